"""From a model's ``config.json`` to its shape; a key that is not known here means: not ours to run."""

from collections.abc import Callable, Mapping
from typing import Any

from batchspec.model.native.shape import DecoderShape, Rotary
from batchspec.model.sizes import SIZES

__all__ = ["Unknown", "decoder_shape"]

Config = Mapping[str, Any]

_SAYS_NOTHING = {  # keys without influence on logits
    "_name_or_path",
    "_sliding_window_pattern",
    "architectures",
    "attention_dropout",
    "bos_token_id",
    "cache_implementation",
    "dtype",
    "eos_token_id",
    "initializer_range",
    "max_window_layers",
    "model_type",
    "pad_token_id",
    "sliding_window_pattern",
    "torch_dtype",
    "transformers_version",
    "unk_token_id",
    "use_cache",
}
_SIZES = {*SIZES, "rms_norm_eps", "tie_word_embeddings"}
_ROTARY = {"rope_parameters", "rope_scaling", "rope_theta"}
_MUST_BE: Mapping[str, tuple[Any, ...]] = {
    "attention_bias": (False, True),  # biases are taken where the weights have them
    "mlp_bias": (False,),
    "pretraining_tp": (1,),
    "use_bidirectional_attention": (False, None),
}


class Unknown(Exception):
    """The configuration asks for something that only transformers' modules do; the text says what."""


def decoder_shape(config: Config) -> DecoderShape:
    """Return the shape that a configuration describes.

    Args:
        config: a ``config.json``.

    Raises:
        Unknown: a key or a value is not known.
    """
    family = _FAMILIES.get(config.get("model_type", ""))
    if family is None or config.get("architectures") != [family[0]]:
        raise Unknown(f"{config.get('architectures')} of type {config.get('model_type')!r}")
    _, keys, special = family
    strange = sorted(set(config) - _SAYS_NOTHING - _SIZES - _ROTARY - set(_MUST_BE) - keys)
    if strange:
        raise Unknown(f"the key {strange[0]!r}")
    for name, allowed in _MUST_BE.items():
        if name in config and config[name] not in allowed:
            raise Unknown(f"{name} {config[name]!r}")
    try:
        return DecoderShape(**_common(config) | special(config))
    except KeyError as error:
        raise Unknown(f"{error.args[0]!r} not being stated") from error


def _common(config: Config) -> dict[str, Any]:
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    return {
        "vocab_size": config["vocab_size"],
        "hidden_size": config["hidden_size"],
        "intermediate_size": config["intermediate_size"],
        "num_heads": heads,
        "num_kv_heads": config.get("num_key_value_heads") or heads,
        "head_dim": head_dim,
        "context_length": config["max_position_embeddings"],
        "eps": config["rms_norm_eps"],
        "scale": head_dim**-0.5,
        "activation": "silu",
        "is_tied": config["tie_word_embeddings"],
    }


def _llama(config: Config) -> dict[str, Any]:
    _need(config, "hidden_act", "silu")
    layers = config["num_hidden_layers"]
    return {"rotary": (_rotary(config, None),) * layers, "windows": (0,) * layers}


def _mistral(config: Config) -> dict[str, Any]:
    return _llama(config) | {"windows": (config["sliding_window"] or 0,) * config["num_hidden_layers"]}


def _qwen(config: Config) -> dict[str, Any]:
    if config["use_sliding_window"]:
        raise Unknown("use_sliding_window True")
    if set(config.get("layer_types") or ()) - {"full_attention"}:
        raise Unknown(f"layer_types {config['layer_types']}")
    return _llama(config) | {"has_head_norms": config["model_type"] == "qwen3"}


def _gemma(config: Config) -> dict[str, Any]:
    _need(config, "hidden_activation", "gelu_pytorch_tanh")
    is_third = config["model_type"] == "gemma3_text"
    kinds = config["layer_types"]
    if len(kinds) != config["num_hidden_layers"] or set(kinds) - {"full_attention", "sliding_attention"}:
        raise Unknown(f"layer_types {kinds}")
    if is_third:
        _need(config, "attn_logit_softcapping", None)
    return {
        "activation": "gelu_tanh",
        "rotary": tuple(_rotary(config, kind if is_third else None) for kind in kinds),
        "windows": tuple(config["sliding_window"] if kind == "sliding_attention" else 0 for kind in kinds),
        "embedding_scale": config["hidden_size"] ** 0.5,
        "norm_offset": 1.0,
        "has_head_norms": is_third,
        "has_output_norms": True,
        "scale": config["query_pre_attn_scalar"] ** -0.5,
        "attention_softcap": config["attn_logit_softcapping"] or 0.0,
        "final_softcap": config["final_logit_softcapping"] or 0.0,
    }


def _need(config: Config, name: str, value: Any) -> None:
    if config[name] != value:
        raise Unknown(f"{name} {config[name]!r}")


def _rotary(config: Config, kind: str | None) -> Rotary:
    """Return a layer's rotary embedding from the present or the former way of writing it."""
    if "rope_parameters" in config:
        parameters = config["rope_parameters"] if kind is None else config["rope_parameters"][kind]
    elif kind is None:
        parameters = (config.get("rope_scaling") or {}) | {"rope_theta": config["rope_theta"]}
    else:
        raise KeyError("rope_parameters")
    settings = dict(parameters)
    name = settings.pop("rope_type", None) or settings.pop("type", None) or "default"
    theta, factor = settings.pop("rope_theta"), settings.pop("factor", 1.0)
    if name == "llama3":
        edges = [settings.pop(key) for key in ("low_freq_factor", "high_freq_factor")]
        rotary = Rotary(theta=theta, factor=factor, llama3=(*edges, settings.pop("original_max_position_embeddings")))
    elif name in ("default", "linear"):
        rotary = Rotary(theta=theta, factor=factor if name == "linear" else 1.0)
    else:
        raise Unknown(f"rope_type {name!r}")
    if settings:
        raise Unknown(f"rotary settings {sorted(settings)}")
    return rotary


_GEMMA = {
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "hidden_activation",
    "layer_types",
    "query_pre_attn_scalar",
    "sliding_window",
}
_QWEN = {"hidden_act", "layer_types", "sliding_window", "use_sliding_window"}
_FAMILIES: Mapping[str, tuple[str, set[str], Callable[[Config], dict[str, Any]]]] = {
    "llama": ("LlamaForCausalLM", {"hidden_act"}, _llama),
    "mistral": ("MistralForCausalLM", {"hidden_act", "sliding_window"}, _mistral),
    "qwen2": ("Qwen2ForCausalLM", _QWEN, _qwen),
    "qwen3": ("Qwen3ForCausalLM", _QWEN, _qwen),
    "gemma2": ("Gemma2ForCausalLM", _GEMMA, _gemma),
    "gemma3_text": ("Gemma3ForCausalLM", _GEMMA, _gemma),
}

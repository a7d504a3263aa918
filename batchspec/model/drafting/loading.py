"""Loading the draft model that belongs to a target: of the same vocabulary, or not at all."""

from pathlib import Path

from batchspec.errors import ModelError, UsageError
from batchspec.model.load import LoadedModel, load_model
from batchspec.model.locate import EMBEDDED_DRAFT, EMBEDDED_TARGET, fingerprint, locate

__all__ = ["load_draft"]


def load_draft(target: LoadedModel, model: str | Path | None) -> LoadedModel:
    """Load a draft model, of the target's dtype and where the target is.

    Args:
        target: the model to draft for.
        model: as in ``load_model``; None for the embedded draft model, which suits the embedded target only.

    Raises:
        UsageError: no model is given, or its vocabulary is another.
        ModelError: it cannot be loaded or run.
    """
    if model is None and target.fingerprint != fingerprint(locate(EMBEDDED_TARGET).files):
        raise UsageError(
            'a draft model for this model must be named: --draft-model PATH ("model" in --speculative-config) of a '
            "smaller model of the same vocabulary."
        )
    name = EMBEDDED_DRAFT if model is None else model
    dtype = str(target.dtype).removeprefix("torch.")
    try:
        draft = load_model(name, device=target.device.type, dtype=dtype, generation_config="openai", trust=target.trust)
    except ModelError as error:
        raise ModelError(f"--draft-model {name}: {str(error).removeprefix(f'--model {name}: ')}") from error
    _compare(target, draft, model=name)
    return draft


def _compare(target: LoadedModel, draft: LoadedModel, *, model: str | Path) -> None:
    """Raise UsageError unless both vocabularies have the same tokens; those added to them may bear other names."""
    remedy = "give a draft model of the target's vocabulary"
    own, other = target.tokenizer.num_vocabulary, draft.tokenizer.num_vocabulary
    if own != other:
        raise UsageError(
            f"--draft-model {model}: its vocabulary has {other} tokens, that of the target {own}; {remedy}."
        )
    ours, theirs = target.tokenizer.inner, draft.tokenizer.inner
    added = {*ours.added_tokens_decoder, *theirs.added_tokens_decoder}
    for token_id in range(own):
        token, its_token = ours.convert_ids_to_tokens(token_id), theirs.convert_ids_to_tokens(token_id)
        if token != its_token and token_id not in added:
            raise UsageError(
                f"--draft-model {model}: its vocabulary and that of the target have {own} tokens each, but token "
                f"{token_id} is {its_token!r} there and {token!r} in the target; {remedy}."
            )

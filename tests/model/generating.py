"""Greedy text twice: by transformers alone, and by the engine over pages."""

from typing import Any

import numpy as np
import torch

from batchspec.engine import EngineCore
from batchspec.model.cache import KVCache
from batchspec.model.load import LoadedModel
from batchspec.model.modules import ModuleNetwork
from batchspec.model.runner import ModelRunner
from batchspec.request import Endpoint, Request, SamplingParams, TokenPrompt
from batchspec.sequence import Sequence
from batchspec.testing import ScriptedDrafter, make_engine

from .tiny import VOCAB_SIZE

CPU = torch.device("cpu")


def module_of(loaded: LoadedModel) -> Any:
    """Return the transformers module of a model that transformers runs."""
    assert isinstance(loaded.network, ModuleNetwork)
    return loaded.network.module


def prompts_of(*lengths: int, seed: int = 0) -> list[list[int]]:
    """Return seeded random token ids, one prompt for each length."""
    random = np.random.default_rng(seed)
    return [random.integers(3, VOCAB_SIZE, size=length).tolist() for length in lengths]


def generate_alone(module: Any, prompts: list[list[int]], *, max_tokens: int) -> list[list[int]]:
    """Return transformers' own greedy continuation of each prompt by itself."""
    answers = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        options = {"attention_mask": torch.ones_like(ids), "pad_token_id": 0, "do_sample": False}
        whole = module.generate(input_ids=ids, max_new_tokens=max_tokens, **options)
        answers.append(whole[0, len(prompt) :].tolist())
    return answers


def engine_for(
    module: Any,
    answers: dict[tuple[int, ...], list[int]] | None = None,
    *,
    in_strips: bool | None = None,
    **settings: Any,
) -> EngineCore:
    """Return an engine over an admitted module; it drafts two tokens of the known answer, then a wrong one."""

    def script(sequence: Sequence) -> list[int]:
        answer = (answers or {}).get(tuple(sequence.prompt_ids), [])
        right = answer[sequence.num_output_tokens :][:2]
        return [*right, (right[-1] + 1) % VOCAB_SIZE] if right else []

    settings = {"num_blocks": 24, "block_size": 4, "max_num_batched_tokens": 16, "max_model_len": 64} | settings
    cache = KVCache(
        num_blocks=settings["num_blocks"],
        block_size=settings["block_size"],
        dtype=torch.float32,
        device=CPU,
        in_strips=in_strips,
    )
    return make_engine(
        model=ModelRunner(network=ModuleNetwork(module), cache=cache, device=CPU),
        drafter=ScriptedDrafter(num_spec_tokens=3, script=script),
        eos_ids=frozenset(),
        **settings,
    )


def generate_paged(engine: EngineCore, prompts: list[list[int]], *, max_tokens: int) -> list[list[int]]:
    """Return the engine's greedy continuation of each prompt, all in one batch as far as pages reach."""
    sampling = SamplingParams(max_tokens=max_tokens, temperature=0.0, return_token_ids=True)
    requests = [
        Request(
            index=index,
            line=index + 1,
            custom_id=str(index),
            endpoint=Endpoint.COMPLETIONS,
            prompts=(TokenPrompt(token_ids=tuple(prompt)),),
            sampling=sampling,
        )
        for index, prompt in enumerate(prompts)
    ]
    bodies = [record["response"]["body"] for record in engine.run(requests)]
    return [body["choices"][0]["token_ids"] for body in bodies]

"""Where the checks run: on a CUDA device, or on the CPU to rehearse them."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from batchspec.engine import EngineCore
from batchspec.files import Columns, RowDefaults
from batchspec.files.rows import parse_row
from batchspec.launch import build_engine
from batchspec.model.load import LoadedModel, load_model
from batchspec.params import SamplingParams
from batchspec.request import Request
from batchspec.settings import EngineSettings
from tests.model.device_engine import Rerun, engine_on_device, steps_of

__all__ = ["CUDA", "REHEARSAL", "Stage"]

_QUICKSTART = Path(__file__).parents[2] / "datasets" / "quickstart.jsonl"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A device, and how much is done on it.

    Attributes:
        device: with the CPU everything goes the way of a device, with steps that are called again for recordings.
        num_requests: of the quickstart.
        max_tokens: of each answer.
        batch_sizes: at which speed is measured.
        num_prompt_tokens: of each prompt there.
        num_new_tokens: of each answer there.
        is_large: whether the model there is of a billion parameters.
        num_copied: bytes that are copied to measure the bandwidth.
    """

    device: torch.device
    num_requests: int
    max_tokens: int
    batch_sizes: tuple[int, ...]
    num_prompt_tokens: int
    num_new_tokens: int
    is_large: bool
    num_copied: int

    @property
    def is_rehearsal(self) -> bool:
        """Whether there is no CUDA device."""
        return self.device.type == "cpu"

    def load(self, dtype: str) -> LoadedModel:
        """Return the embedded model on the device, run by transformers' modules."""
        return load_model(device=self.device.type, dtype=dtype, impl="transformers")

    def engine(
        self,
        loaded: LoadedModel,
        settings: EngineSettings,
        *,
        is_recorded: bool = True,
        note: Callable[[str], None] = lambda note: None,
    ) -> EngineCore:
        """Return an engine for a model on the device.

        Args:
            loaded: the model.
            settings: of the engine.
            is_recorded: whether decode and verify steps are recorded.
            note: told what the engine says about itself.
        """
        if self.is_rehearsal:
            return engine_on_device(loaded, settings, capture=Rerun() if is_recorded else None, note=note)
        core = build_engine(loaded, settings, note=note)
        if not is_recorded:
            steps_of(core).graphs = None
        return core

    def requests(self, *, temperature: float) -> Iterator[Request]:
        """Yield requests of the quickstart, with the same number of tokens and with seeds of their own."""
        lines = _QUICKSTART.read_text().splitlines()[: self.num_requests]
        for index, line in enumerate(lines):
            body = {key: value for key, value in json.loads(line)["body"].items() if key in ("messages", "prompt")}
            request = parse_row(body, index=index, line=index + 1, columns=Columns(), defaults=RowDefaults())
            sampling = SamplingParams(
                max_tokens=self.max_tokens, temperature=temperature, seed=index, return_token_ids=True
            )
            yield replace(request, sampling=sampling)


CUDA = Stage(
    device=torch.device("cuda"),
    num_requests=24,
    max_tokens=64,
    batch_sizes=(1, 8, 64),
    num_prompt_tokens=128,
    num_new_tokens=128,
    is_large=True,
    num_copied=1 << 30,
)
REHEARSAL = replace(
    CUDA,
    device=torch.device("cpu"),
    num_requests=8,
    max_tokens=12,
    batch_sizes=(1, 3),
    num_prompt_tokens=20,
    num_new_tokens=6,
    is_large=False,
    num_copied=1 << 20,
)

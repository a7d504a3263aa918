"""Layers run in one go give the bits of layers run product by product, and threads that fail release the others."""

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from batchspec import helper
from batchspec.compiled import compiled
from batchspec.model.attending.lanes import claim
from batchspec.model.linear import can_pack
from batchspec.model.locate import locate
from batchspec.model.native.decoder import Decoder
from batchspec.model.native.loading import load_native
from batchspec.model.native.meeting import counter, give_up, meet, words_for
from batchspec.threads import together

from .by_hand import Pages
from .generating import CPU, prompts_of
from .test_native import MODELS, saved_model

LENGTHS = 40, 21, 70, 9
APART = {"llama with biases", "llama of odd sizes", "qwen2"}


def decoder_of(directory: Path, dtype: torch.dtype) -> Decoder:
    network = load_native(locate(directory), dtype=dtype, device=CPU).network
    assert isinstance(network, Decoder)
    return network


def logits_of(network: Decoder, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return logits from a prefill in two steps, a single row, and rows of a draft."""
    pages = Pages(network, dtype=dtype)
    sequences = [pages.sequence(each) for each in prompts_of(*LENGTHS)]
    found: list[torch.Tensor] = []
    steps: list[list[tuple[int, int, int, int]]] = [
        [(0, 0, 39, 39), (1, 0, 5, 1)],
        [(1, 5, 21, 3), (2, 0, 69, 1), (3, 0, 5, 0)],
        [(0, 39, 40, 1)],
        [(2, 69, 70, 1), (3, 5, 9, 4)],
    ]
    for step in steps:
        found += pages.forward(*((sequences[number], start, end, rows) for number, start, end, rows in step))
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_the_bits_are_the_same(
    tmp_path: Path, name: str, num_threads: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dtype is torch.bfloat16 and not can_pack("pairs"):
        pytest.skip("this processor does not multiply pairs of bfloat16")
    monkeypatch.setattr("batchspec.model.native.layers._WORTH_THREADS", 0)
    torch.set_num_threads(num_threads)
    network = decoder_of(saved_model(tmp_path, name, torch.bfloat16), dtype)
    assert (network.together is None) == (name in APART)
    found = logits_of(network, dtype)
    network.together = None
    expected = logits_of(network, dtype)
    assert all(map(torch.equal, found, expected))


@compiled(nogil=True)
def _meet_often(words: np.ndarray, num_threads: int, number: int) -> int:
    """Return how many times all met; -1 if somebody went on before all were there."""
    for part in range(number):
        own = counter(words, part)
        claim(own)
        if not meet(words, part, num_threads):
            return part
        if own[0] != num_threads:
            return -1
    return number


def test_who_fails_releases_those_who_wait() -> None:
    for failing in ("MainThread", "batchspec-helper"):
        words, done = words_for(3), list[int]()

        def work(failing: str = failing, words: np.ndarray = words, done: list[int] = done) -> None:
            if threading.current_thread().name == failing:
                raise ValueError("broken")
            done.append(_meet_often(words, 2, 3))

        with pytest.raises(ValueError, match="broken"):
            together(2, work, on_error=lambda words=words: give_up(words))  # type: ignore[misc]
        assert done in ([0], [])  # the main thread may have failed before the helper began


def test_an_interruption_before_the_work_begins_releases_the_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    give, begun, ended = helper.Helper.give, threading.Event(), threading.Event()

    def interrupted(self: helper.Helper, work: object) -> None:
        give(self, work)  # type: ignore[arg-type]
        if work is not None:
            assert begun.wait(timeout=30)
            raise KeyboardInterrupt

    words = words_for(3)

    def work() -> None:
        begun.set()
        _meet_often(words, 2, 3)
        ended.set()

    with monkeypatch.context() as patch:
        patch.setattr(helper.Helper, "give", interrupted)
        with pytest.raises(KeyboardInterrupt):
            together(2, work, on_error=lambda: give_up(words))
    assert ended.wait(timeout=30)


@pytest.mark.parametrize("num_threads", [1, 2, 4])
def test_all_meet(num_threads: int) -> None:
    """More threads than cores, too: who waits lends its core."""
    for _ in range(50):
        words = words_for(20)
        counts: list[int] = []
        together(num_threads, lambda words=words, counts=counts: counts.append(_meet_often(words, num_threads, 20)))  # type: ignore[misc]
        assert counts == [20] * num_threads

"""Rows that are screened get the token that all of their logits would have given."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import batchspec
from batchspec import Engine
from batchspec.model.load import load_model
from batchspec.model.locate import locate
from batchspec.model.native.decoder import Decoder
from batchspec.model.native.loading import load_native
from batchspec.model.screening import Screen, ScreeningRunner
from batchspec.model.screening.kernel import screen_some
from batchspec.model.strips import StripLinear, can_pair
from batchspec.model.strips.processor import HAS_BYTES
from batchspec.sampling import Screened, noise_key
from batchspec.sampling.draw import draw
from batchspec.sampling.largest import largest

from .saved import save

Floats = NDArray[np.float32]


class Head:
    """A weight, in full and screened."""

    def __init__(
        self,
        weight: torch.Tensor,
        *,
        in_pairs: bool = False,
        in_bytes: bool = False,
        scales: NDArray[np.float64] | None = None,
    ):
        self.weight = weight
        self.full = StripLinear(weight, in_pairs=in_pairs)
        self.screen = Screen(weight, self.full, in_bytes=in_bytes, scales=scales)

    def chosen(self, rows: Floats, *, temperature: NDArray[np.float64], keys: NDArray[np.uint64]) -> list[int]:
        """Return the tokens by all logits."""
        logits = self.full(torch.from_numpy(rows))
        best, _ = largest(logits)
        highest = logits[torch.arange(len(rows)), best].double().numpy()
        warm = temperature > 0
        drawn = draw(logits, highest=highest, temperature=np.where(warm, temperature, 1.0), keys=keys)
        return [int(token) for token in np.where(warm, drawn.numpy(), best.numpy())]

    def screened(self, rows: Floats, *, temperature: NDArray[np.float64], keys: NDArray[np.uint64]) -> list[int]:
        """Return the tokens by screening."""
        assert self.screen.is_calm(rows).all()
        return [int(token) for token in self.screen(rows, temperature=temperature, keys=keys)]


def keys_of(count: int, *, seed: int = 0) -> NDArray[np.uint64]:
    return np.array([noise_key(seed=seed, sample_index=0, position=i) for i in range(count)], dtype=np.uint64)


def made(kind: str, dice: np.random.Generator, *shape: int) -> Floats:
    """Return numbers that are hard on integers in some way."""
    numbers = dice.normal(size=shape)
    if kind == "outliers":
        numbers[:, dice.integers(shape[1], size=2)] *= 300
    elif kind == "scales":
        numbers *= 10.0 ** dice.integers(-6, 6, size=(shape[0], 1))
    elif kind == "alike":
        numbers = numbers[:1] + numbers * 1e-7
    elif kind == "repeated":
        numbers = numbers[dice.integers(1 + shape[0] // 8, size=shape[0])]
    elif kind == "sparse":
        numbers[dice.random(shape) < 0.8] = 0.0
        numbers[:, 0] += 0.1
    elif kind == "negative":
        numbers = -np.abs(numbers)
    return numbers.astype(np.float32)


KINDS = ["usual", "outliers", "scales", "alike", "repeated", "sparse", "negative"]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(KINDS),
    row_kind=st.sampled_from(KINDS),
    num_outputs=st.integers(1, 700),
    num_inputs=st.integers(1, 90),
    num_rows=st.integers(1, 20),
    packing=st.sampled_from(["32 bits", "16 bits", "pairs"]),
    in_bytes=st.booleans(),
    is_scaled=st.booleans(),
)
def test_screening_chooses_what_all_logits_would(
    seed: int,
    kind: str,
    row_kind: str,
    num_outputs: int,
    num_inputs: int,
    num_rows: int,
    packing: str,
    in_bytes: bool,
    is_scaled: bool,
) -> None:
    dice = np.random.default_rng(seed)
    scales = 10.0 ** dice.uniform(-1, 1, size=num_inputs) if is_scaled else None
    dtype = torch.float32 if packing == "32 bits" else torch.bfloat16
    in_pairs = packing == "pairs" and can_pair()
    weight = torch.from_numpy(made(kind, dice, num_outputs, num_inputs)).to(dtype)
    head = Head(weight, in_pairs=in_pairs, in_bytes=in_bytes and HAS_BYTES, scales=scales)
    rows = made(row_kind, dice, num_rows, num_inputs)
    rows[np.abs(rows).max(axis=1) == 0] = 1.0
    how = {"temperature": dice.choice([0.0, 0.05, 0.8, 2.0], size=num_rows), "keys": keys_of(num_rows, seed=seed)}
    assert head.screened(rows, **how) == head.chosen(rows, **how)


def limits(head: Head, rows: Floats) -> tuple[Floats, Floats]:
    """Return float32 (rows, strips): the highest lower and the highest upper limit of each strip, which must hold."""
    num_strips = len(head.full.strips)
    edges = np.empty((len(rows), num_strips, 2), dtype=np.float32)
    integers, measures = head.screen._integers(head.full.seen(rows))
    counter = np.zeros(1, dtype=np.int64)
    screen_some(counter, integers, measures, head.screen._packed, head.screen._offsets, head.screen._measures, edges)
    logits = head.full(torch.from_numpy(rows)).numpy().reshape(len(rows), num_strips, -1).max(axis=2)
    upper, lower = edges[:, :, 0], edges[:, :, 1]
    assert (logits <= upper).all()
    assert (logits >= lower).all()
    return lower, upper


@pytest.fixture(params=["shorts", "bytes"])
def in_bytes(request: pytest.FixtureRequest) -> bool:
    """Return whether rows become bytes."""
    if request.param == "bytes" and not HAS_BYTES:
        pytest.skip("this processor has no products of bytes")
    is_bytes: bool = request.param == "bytes"
    return is_bytes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_pairs", [False, True])
def test_every_logit_lies_between_its_limits(kind: str, in_pairs: bool, in_bytes: bool) -> None:
    if in_pairs and not can_pair():
        pytest.skip("this processor multiplies no pairs of bfloat16")
    dice = np.random.default_rng(5)
    weight, rows = made(kind, dice, 512, 96), made("usual" if in_bytes else "outliers", dice, 40, 96)
    if in_pairs:
        weight = torch.from_numpy(weight).bfloat16().float().numpy()
    lower, upper = limits(Head(torch.from_numpy(weight), in_pairs=in_pairs, in_bytes=in_bytes), rows)
    size = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(weight, axis=1).reshape(32, 16).max(axis=1)
    assert (upper - lower < (0.08 if in_bytes else 0.05) * size).all(), "limits that say nothing"


def test_scales_bring_limits_closer(in_bytes: bool) -> None:
    dice = np.random.default_rng(7)
    scales = 10.0 ** dice.uniform(-1, 1, size=96)
    weight = (made("usual", dice, 512, 96) / scales).astype(np.float32)
    rows = (made("usual", dice, 40, 96) * scales).astype(np.float32)
    widths = []
    for each in (None, scales):
        lower, upper = limits(Head(torch.from_numpy(weight), in_bytes=in_bytes, scales=each), rows)
        widths.append(float((upper - lower).mean()))
    assert widths[1] < 0.5 * widths[0]


def test_what_a_row_loses_as_integers_is_counted(in_bytes: bool) -> None:
    """The weights are integers; all but a row's first number, which nothing hangs on, become zero."""
    dice = np.random.default_rng(3)
    weight = dice.integers(-127, 128, size=(608, 90)).astype(np.float32)
    weight[:, 0], weight[:, 1] = 0.0, 127.0
    rows = np.sign(weight[:20]) * np.float32(0.49)
    rows[:, 0] = 127.0 if in_bytes else 32766.0
    head = Head(torch.from_numpy(weight), in_bytes=in_bytes)
    integers = head.screen._integers(rows)[0][:, :90]
    assert (integers[:, 1:] == (128 if in_bytes else 0)).all()
    limits(head, rows)


def test_the_limits_hold_where_they_are_tight(in_bytes: bool) -> None:
    """Each row points where a weight and its integers differ, so that all of the difference counts."""
    weight = made("usual", np.random.default_rng(6), 320, 64)
    unit = np.abs(weight).max(axis=1, keepdims=True) / np.float32(127)
    head = Head(torch.from_numpy(weight), in_bytes=in_bytes)
    rows = np.ascontiguousarray((weight - unit * np.rint(weight / unit)) * 1000)
    for sign in (1, -1):
        limits(head, sign * rows)


def test_what_float32_loses_is_counted(in_bytes: bool) -> None:
    """Weights and rows are integers, so that their products are exact, but for sums in float32."""
    dice = np.random.default_rng(4)
    weight = np.append(np.full((608, 1), 127), dice.integers(0, 128, size=(608, 63)), axis=1)
    most = 127 if in_bytes else 32766
    rows = dice.integers(1, most, size=(20, 64))
    rows[:, 0] = most
    head = Head(torch.from_numpy(weight.astype(np.float32)), in_bytes=in_bytes)
    integers = head.screen._integers(rows.astype(np.float32))[0].astype(np.int64)
    assert (integers == rows + (128 if in_bytes else 0)).all()
    limits(head, rows.astype(np.float32))


def test_sums_of_many_inputs_stay_within_integers(in_bytes: bool) -> None:
    weight = torch.ones(64, 3000) * torch.linspace(0.5, 2.0, 64)[:, None]
    limits(Head(weight, in_bytes=in_bytes), np.ones((3, 3000), dtype=np.float32))


def test_more_inputs_than_sums_have_room_for_are_refused() -> None:
    with pytest.raises(ValueError, match="more inputs"):
        Head(torch.ones(16, 1 << 16))


def test_few_strips_are_multiplied_in_full(in_bytes: bool) -> None:
    dice = np.random.default_rng(1)
    head = Head(torch.from_numpy(made("usual", dice, 1 << 14, 128)), in_bytes=in_bytes)
    rows = made("usual", dice, 50, 128)
    for temperature in (0.0, 0.3, 1.0):
        head.screened(rows, temperature=np.full(50, temperature), keys=keys_of(50))
        assert 50 <= head.screen.num_tried < 0.05 * 50 * len(head.full.strips)


def test_where_logits_are_too_close_it_is_left_alone_for_a_while() -> None:
    dice = np.random.default_rng(2)
    head = Head(torch.from_numpy(made("alike", dice, 512, 64)))
    rows = made("usual", dice, 3, 64)
    assert head.screen.is_worth_it()
    head.screened(rows, temperature=np.zeros(3), keys=keys_of(3))
    assert [head.screen.is_worth_it() for _ in range(65)] == [False] * 63 + [True, True]


@pytest.mark.skipif(not can_pair(), reason="the processor does not multiply pairs of bfloat16")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_limits_are_those_of_the_weights_as_they_are_multiplied(in_bytes: bool, dtype: torch.dtype) -> None:
    weight = torch.zeros(64, 64, dtype=dtype)
    weight[0], weight[20] = 1.0, 1.0 + 2.0**-8  # the same in bfloat16
    head = StripLinear(weight, in_pairs=True)
    rows = np.ones((1, 64), dtype=np.float32)
    chosen = Screen(weight, head, in_bytes=in_bytes)(rows, temperature=np.zeros(1), keys=np.zeros(1, dtype=np.uint64))
    assert chosen.tolist() == head(torch.from_numpy(rows)).argmax(dim=1).tolist() == [0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_weights_that_are_no_usual_numbers_are_refused(value: float) -> None:
    weight = torch.randn(40, 8)
    weight[33, 5] = value
    with pytest.raises(ValueError, match="no usual numbers"):
        Head(weight)


def test_rows_that_are_no_usual_numbers_are_not_calm() -> None:
    head, rows = Head(torch.randn(40, 8)), np.ones((6, 8), dtype=np.float32)
    for row, value in enumerate([np.nan, np.inf, -np.inf, 1e30]):
        rows[row, 3] = value
    rows[4] = 0.0
    assert head.screen.is_calm(rows).tolist() == [False] * 5 + [True]


ROWS: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 0.8, "seed": 4},
    {"temperature": 1.0, "seed": 5, "n": 3},
    {"temperature": 0.7, "top_p": 0.9, "seed": 6},
    {"temperature": 0, "logprobs": 3},
    {"temperature": 0, "repetition_penalty": 1.2},
    {"temperature": 0, "min_tokens": 5},
    {"temperature": 0, "prompt_logprobs": 1},
    {"temperature": 0.9, "seed": 8, "structured_outputs": {"choice": ["a long way", "a short way"]}},
]


def answers(rows: list[dict[str, Any]], *, method: str, max_num_seqs: int) -> tuple[list[Any], Engine]:
    speculation: dict[str, Any] = {"method": method}
    if method != "none":
        speculation["num_speculative_tokens"] = 3
    if method == "draft_model":  # whose tokens are all accepted, those that are drawn, too
        speculation["model"] = str(Path(batchspec.__file__).parent / "models" / "target")
    engine = Engine(max_num_seqs=max_num_seqs, speculative_config=speculation)
    records = list(engine.run([{"prompt": "one two one two one two", "max_tokens": 12} | row for row in rows]))
    return [record["response"]["body"]["choices"] for record in records], engine


@pytest.fixture
def screening(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Decide whether models get a screen, however small they are."""
    monkeypatch.setattr("batchspec.model.native.loading.choose_packing", lambda *_, **__: "strips")
    monkeypatch.setattr("batchspec.model.screening.screen._CROWD", 2.0)  # of a small vocabulary nothing is spared
    return lambda on: monkeypatch.setattr("batchspec.model.native.screening._WORTH_SCREENING", 0 if on else 1 << 60)


@pytest.mark.parametrize("rows", [ROWS[:3] * 8, ROWS[:1], ROWS * 4], ids=["simple", "one", "mixed"])
@pytest.mark.parametrize("method", ["none", "ngram", "draft_model"])
def test_answers_are_the_same_with_every_parameter(
    rows: list[dict[str, Any]], method: str, screening: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    screening(False)
    expected, engine = answers(rows, method=method, max_num_seqs=64)
    assert not isinstance(engine._core.runner, ScreeningRunner)
    screening(True)
    screened: list[Screened] = []
    original = Decoder._screened

    def watched(*given: Any, **more: Any) -> torch.Tensor | Screened:
        result = original(*given, **more)
        if isinstance(result, Screened):
            screened.append(result)
        return result

    monkeypatch.setattr(Decoder, "_screened", watched)
    found, engine = answers(rows, method=method, max_num_seqs=64)
    assert isinstance(engine._core.runner, ScreeningRunner)
    assert found == expected
    assert len(screened) > 2
    assert any((each.places < 0).any() for each in screened)


def test_a_row_that_is_no_number_has_no_token(
    screening: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Decoder.states

    def broken(*given: Any, **more: Any) -> Floats:
        states = original(*given, **more)
        states[1:2, 3] = np.nan
        return states

    monkeypatch.setattr(Decoder, "states", broken)
    errors = []
    for is_screened in (False, True):
        screening(is_screened)
        engine = Engine(speculative_config={"method": "none"})
        rows = [{"prompt": prompt, "max_tokens": 4, "temperature": 0} for prompt in ("one", "two", "three")]
        errors.append([record["error"] for record in engine.run(rows)])
    assert errors[0] == errors[1]
    assert [error is None for error in errors[0]] == [True, False, False]


@pytest.mark.parametrize(
    ("model_type", "changes", "expected"),
    [("gemma3_text", {}, True), ("gemma2", {"final_logit_softcapping": 5.0}, False), ("llama", {}, True)],
)
def test_logits_that_are_capped_are_not_screened(
    model_type: str,
    changes: dict[str, Any],
    expected: bool,
    screening: Callable[[bool], None],
    tmp_path: Path,
) -> None:
    screening(True)
    loaded = load_model(str(save(tmp_path, model_type, **changes)))
    assert (loaded.network.screened is not None) == expected
    screening(False)
    assert load_model(str(tmp_path)).network.screened is None


@pytest.mark.parametrize("token_ids", [[], [10**6]], ids=["none", "unknown"])
def test_a_tokenizer_of_another_model_gives_no_scales(
    token_ids: list[int], screening: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Other:
        eos_token_id = None
        input_ids = token_ids

        def __call__(self, text: str, **_: Any) -> "Other":
            return self

    save(tmp_path, "llama")
    screening(True)
    monkeypatch.setattr("batchspec.model.native.loading.read_tokenizer", lambda _: Other())
    parts = load_native(locate(tmp_path), dtype=torch.float32, device=torch.device("cpu"))
    assert isinstance(parts.network, Decoder)
    assert parts.network.screen is not None
    assert (parts.network.screen._scales == 1).all()

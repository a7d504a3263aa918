"""Workloads drawn at random, and one fixed run in which everything happens."""

import random
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st

from batchspec.acceptance import Level
from batchspec.drafting import Drafter, NgramDrafter
from batchspec.engine import EngineCore
from batchspec.request import Request
from batchspec.sequence import Sequence
from batchspec.testing import ByteTokenizer, ScriptedDrafter

from .paged import PagedModel
from .runs import ask, ask_chat, checked_engine, serve

LETTERS = [ord(letter) for letter in "abcdef"]
CONTEXT = 64
Answers = dict[tuple[int, int, int], list[int]]


def prone_table(seed: int, *, end: float, is_poisoned: bool) -> torch.Tensor:
    """Six letters that follow each other at random, and an end of sequence as likely as ``end`` makes it."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.full((ByteTokenizer.vocab_size, ByteTokenizer.vocab_size), -torch.inf)
    table[:, LETTERS] = torch.randn(ByteTokenizer.vocab_size, len(LETTERS), generator=generator)
    table[:, ByteTokenizer.eos_id] = end + torch.randn(ByteTokenizer.vocab_size, generator=generator)
    if is_poisoned:
        table[LETTERS[0]] = torch.nan
    return table


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How a run is computed; nothing of it may show in the output."""

    drafter: str
    k: int
    max_num_seqs: int
    budget: int
    block_size: int
    spare_blocks: int
    level: Level
    prefix_caching: bool = False


sampling_params: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.0, 0.7, 1.5]),
        "seed": st.integers(0, 3),
        "max_tokens": st.integers(1, 14),
        "stop_token_ids": st.sampled_from([(), (LETTERS[1],), (LETTERS[2], ByteTokenizer.eos_id)]),
        "ignore_eos": st.booleans(),
    },
    optional={"top_k": st.integers(1, 4), "top_p": st.sampled_from([0.5, 0.9]), "min_p": st.sampled_from([0.1])},
)
prompts = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=20)


@st.composite
def workloads(draw: st.DrawFn) -> list[Request]:
    requests = []
    for index in range(draw(st.integers(1, 6))):
        sampling = draw(sampling_params)
        match draw(st.sampled_from(["one", "one", "one", "samples", "prompts", "turns"])):
            case "one":
                request = ask(draw(prompts), index=index, **sampling)
            case "samples":
                request = ask(draw(prompts), index=index, n=draw(st.integers(2, 3)), **sampling)
            case "prompts":
                request = ask(*draw(st.lists(prompts, min_size=2, max_size=3)), index=index, **sampling)
            case _:
                request = ask_chat(
                    "ab", *draw(st.lists(st.sampled_from(["c", "de"]), max_size=2)), index=index, **sampling
                )
        requests.append(request)
    return requests


setups = st.builds(
    Setup,
    drafter=st.sampled_from(["ngram", "noisy"]),
    k=st.integers(1, 5),
    max_num_seqs=st.integers(1, 5),
    budget=st.integers(1, 24),
    block_size=st.integers(1, 6),
    spare_blocks=st.integers(0, 6),
    level=st.sampled_from(list(Level)),
    prefix_caching=st.booleans(),
)
tables = st.builds(
    prone_table,
    st.integers(0, 9),
    end=st.sampled_from([-3.0, -1.0, 0.5]),
    is_poisoned=st.sampled_from([False, False, True]),
)


def noisy_drafter(k: int, answers: Answers) -> ScriptedDrafter:
    """Drafts the true answer with some tokens replaced, past its end at times, and nothing now and then."""

    def script(sequence: Sequence) -> list[int]:
        key = (sequence.request_index, sequence.sample_index, sequence.num_prompt_tokens)
        dice = random.Random(f"{key} {sequence.num_tokens}")
        rest = answers.get(key, [])[sequence.num_output_tokens :] + dice.choices(LETTERS, k=k)
        return [dice.choice(LETTERS) if dice.random() < 0.2 else token for token in rest[: dice.randint(0, k)]]

    return ScriptedDrafter(num_spec_tokens=k, script=script)


class Listener(ScriptedDrafter):
    """Drafts nothing and keeps every sequence's output."""

    def __init__(self) -> None:
        super().__init__(num_spec_tokens=0, script=lambda sequence: [])
        self.answers: Answers = {}

    def end(self, sequence: Sequence) -> None:
        key = (sequence.request_index, sequence.sample_index, sequence.num_prompt_tokens)
        self.answers[key] = sequence.output_ids


def plain_run(table: torch.Tensor, requests: list[Request]) -> tuple[list[dict[str, Any]], Answers]:
    """Serve without speculation, one sequence at a time."""
    listener = Listener()
    model = PagedModel(table, block_size=4)
    engine = checked_engine(model=model, drafter=listener, max_num_seqs=1, max_model_len=CONTEXT, block_size=4)
    return serve(engine, requests), listener.answers


def drafter_of(setup: Setup, answers: Answers) -> Drafter:
    if setup.drafter == "noisy":
        return noisy_drafter(setup.k, answers)
    return NgramDrafter(num_spec_tokens=setup.k, prompt_lookup_min=1, prompt_lookup_max=3)


def engine_of(table: torch.Tensor, setup: Setup, answers: Answers) -> EngineCore:
    longest = -(-CONTEXT // setup.block_size)
    return checked_engine(
        model=PagedModel(table, block_size=setup.block_size),
        drafter=drafter_of(setup, answers),
        level=setup.level,
        max_num_seqs=setup.max_num_seqs,
        max_num_batched_tokens=setup.budget,
        max_model_len=CONTEXT,
        num_blocks=longest + setup.spare_blocks,
        block_size=setup.block_size,
        prefix_caching=setup.prefix_caching,
    )


def visible(record: dict[str, Any]) -> dict[str, Any]:
    """A record without its metrics and its time."""
    body = {key: value for key, value in record["response"]["body"].items() if key not in ("metrics", "created")}
    return record | {"response": record["response"] | {"body": body}}


def busy_run(level: Level, **kwargs: Any) -> tuple[EngineCore, list[dict[str, Any]]]:
    """A fixed run with acceptance, rejection, preemption, discarded tokens and unreported requests."""
    table = prone_table(4, end=-3.0, is_poisoned=False)
    requests = [ask([LETTERS[i % 6]] * 6, index=i, max_tokens=14, temperature=0.7, n=1 + (i == 3)) for i in range(8)]
    _, answers = plain_run(table, requests)
    setup = Setup(drafter="noisy", k=3, max_num_seqs=4, budget=12, block_size=4, spare_blocks=0, level=level)
    engine = engine_of(table, setup, answers)
    return engine, serve(engine, requests)

"""The quickstart data, the generators behind it, and the embedded model folders."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Literal, cast

import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from datasets import copying
from datasets.training import quickstart
from datasets.training.pools import Pools, is_held_out
from datasets.training.stream import BOS, MIX, make_example, render_chat, stream
from datasets.training.tasks_code import rename_in
from datasets.training.tasks_lists import in_split

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "batchspec" / "models"
FOLDERS = (MODELS / "target", MODELS / "draft")
LIMIT = 12 * 1024 * 1024
TRAINED_ON = 4_000


def _rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "datasets" / "quickstart.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(MODELS / "target", local_files_only=True)


@pytest.fixture(scope="module")
def training_texts() -> set[str]:
    """Every message and every completion prompt at the start of the training stream."""
    texts: set[str] = set()
    for example in islice(stream(0), TRAINED_ON):
        texts.add(example.prompt.removeprefix(BOS))
        texts.update(re.split(r"<\|\w+\|>", example.prompt))
    return texts


def test_model_folders_are_small_and_hold_no_other_files() -> None:
    size = sum(path.stat().st_size for folder in FOLDERS for path in folder.iterdir())
    assert 1024 * 1024 < size <= LIMIT
    names = {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    for folder in FOLDERS:
        assert {path.name for path in folder.iterdir()} == names


def test_both_models_share_one_tokenizer() -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (FOLDERS[0] / name).read_bytes() == (FOLDERS[1] / name).read_bytes()


@pytest.mark.parametrize(("folder", "low", "high"), [(FOLDERS[0], 3.0e6, 4.5e6), (FOLDERS[1], 0.3e6, 0.6e6)])
def test_model_loads_and_gives_finite_logits(
    folder: Path, low: int, high: int, tokenizer: Any, recwarn: pytest.WarningsRecorder
) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    assert low <= sum(p.numel() for p in model.parameters()) <= high
    assert model.config.architectures == ["LlamaForCausalLM"]
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.eos_token_id == tokenizer.eos_token_id
    assert model.config.max_position_embeddings == 2048
    ids = tokenizer("List: 1, 2, 3\nNext 3:", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        logits = model(ids).logits
    assert torch.isfinite(logits).all()
    assert logits.float().std() > 0.5
    assert not list(recwarn)


def test_target_answers_a_record_it_never_saw(tokenizer: Any) -> None:
    model = AutoModelForCausalLM.from_pretrained(FOLDERS[0], local_files_only=True, dtype=torch.float32)
    messages = [{"role": "user", "content": "Convert this record to JSON.\ncolor: green; quantity: 12"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=48, do_sample=False)
    assert output[0, -1] == tokenizer.eos_token_id
    answer = tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True)
    assert json.loads(answer) == {"color": "green", "quantity": 12}


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200))
def test_tokenizer_round_trips_any_text(tokenizer: Any, text: str) -> None:
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert tokenizer.decode(ids) == text


def test_a_word_is_spelt_alike_wherever_it_stands(tokenizer: Any) -> None:
    def ids(text: str) -> list[int]:
        return cast(list[int], tokenizer(text, add_special_tokens=False)["input_ids"])

    word = ids("Marluviette")
    for text in ('"Marluviette"', "a Marluviette", "x\nMarluviette"):
        assert ids(text)[-len(word) - text.endswith('"') :][: len(word)] == word


def test_plain_text_gets_one_bos(tokenizer: Any) -> None:
    assert tokenizer("word")["input_ids"][0] == tokenizer.bos_token_id
    assert tokenizer("word")["input_ids"].count(tokenizer.bos_token_id) == 1


def test_chat_template_renders_as_in_training(tokenizer: Any) -> None:
    messages = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Hi {{ x }}"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Again\n"},
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    pairs = [(message["role"], message["content"]) for message in messages]
    assert text == render_chat([*pairs, ("assistant", "x")]).prompt
    assert not tokenizer.apply_chat_template(messages, tokenize=False).endswith("<|assistant|>")


def test_chat_template_refuses_an_unknown_role(tokenizer: Any) -> None:
    with pytest.raises(Exception, match="Roles are system, user and assistant"):
        tokenizer.apply_chat_template([{"role": "tool", "content": "x"}], tokenize=False)


def test_generator_is_deterministic_and_seeded() -> None:
    first = [make_example(3, i) for i in range(50)]
    assert first == [make_example(3, i) for i in range(50)]
    assert first != [make_example(4, i) for i in range(50)]
    assert list(islice(stream(3, start=10), 5)) == first[10:15]


def test_answer_spans_lie_in_the_prompt() -> None:
    spans = 0
    for example in islice(stream(1), 300):
        assert example.answer.strip()
        for start, end in example.spans:
            assert 0 < start < end <= len(example.prompt)
            spans += 1
    assert spans > 50


def test_pools_are_disjoint() -> None:
    for draw in (Pools.person, Pools.surname, Pools.city, Pools.company, Pools.role, Pools.item, Pools.ident):
        seen: dict[str, set[str]] = {}
        for split in ("train", "heldout"):
            seen[split] = {draw(Pools(Random(f"{split}{i}"), split)) for i in range(800)}
        assert len(seen["heldout"]) >= 8
        assert not seen["train"] & seen["heldout"]
        assert all(is_held_out(word) for word in seen["heldout"])


def test_quickstart_files_are_what_the_script_makes(tmp_path: Path) -> None:
    quickstart.write(tmp_path)
    assert (tmp_path / "quickstart.jsonl").read_bytes() == (ROOT / "datasets" / "quickstart.jsonl").read_bytes()
    made = pq.read_table(tmp_path / "quickstart.parquet")
    assert made.equals(pq.read_table(ROOT / "datasets" / "quickstart.parquet"))


def test_parquet_holds_the_rows_of_the_jsonl() -> None:
    table = pq.read_table(ROOT / "datasets" / "quickstart.parquet")
    assert table.column_names == ["custom_id", "method", "url", "category", "body"]
    assert [{**row, "body": json.loads(row["body"])} for row in table.to_pylist()] == _rows()


def test_quickstart_rows_are_well_formed(tokenizer: Any) -> None:
    rows = _rows()
    assert len(rows) == 64
    assert len({row["custom_id"] for row in rows}) == 64
    assert len({row["category"] for row in rows}) >= 7
    assert sum(row["url"] == "/v1/completions" for row in rows) == 8
    assert sum("temperature" not in row["body"] for row in rows) >= 4
    for row in rows:
        body = row["body"]
        assert set(row) == {"custom_id", "method", "url", "category", "body"}
        assert row["method"] == "POST"
        assert row["url"] == ("/v1/chat/completions" if "messages" in body else "/v1/completions")
        assert body["model"] == "embedded"
        assert body.get("temperature", 0.0) == (0.8 if row["category"] == "story" else 0.0)
        assert ("seed" in body) == (row["category"] == "story")
        if "messages" in body:
            assert body["messages"][-1]["role"] == "user"
            text = tokenizer.apply_chat_template(body["messages"], tokenize=False, add_generation_prompt=True)
        else:
            text = body["prompt"]
        assert len(tokenizer(text)["input_ids"]) + body["max_tokens"] < 2048


def test_expected_answers_fit_in_max_tokens(tokenizer: Any) -> None:
    for request in quickstart.quickstart_requests():
        ids = tokenizer(request.expected, add_special_tokens=False)["input_ids"]
        assert len(ids) < request.max_tokens, request.custom_id


def test_every_quickstart_prompt_holds_a_held_out_word() -> None:
    for request in quickstart.quickstart_requests():
        text = request.prompt + "\n".join(m["content"] for m in request.messages if m["role"] == "user")
        assert request.held_out or request.category == "list", request.custom_id
        for word in request.held_out:
            assert is_held_out(word)
            assert re.search(rf"\b{re.escape(word)}\b", text)


def test_no_quickstart_prompt_is_in_the_training_stream(training_texts: set[str]) -> None:
    for row in _rows():
        users = [m["content"] for m in row["body"].get("messages", []) if m["role"] == "user"]
        assert (users or [row["body"]["prompt"]])[0] not in training_texts, row["custom_id"]


def test_a_training_prompt_would_be_found(training_texts: set[str]) -> None:
    for example in islice(stream(0), 20):
        first = next(text for text in re.split(r"<\|\w+\|>", example.prompt) if text)
        assert first in training_texts
    unseen = [make_example(0, i, "heldout").prompt for i in range(20)]
    assert not any(text.removeprefix(BOS) in training_texts for text in unseen)


def test_lists_are_split_by_their_first_entries() -> None:
    splits: tuple[tuple[Literal["train", "heldout"], Literal["train", "heldout"]], ...]
    splits = (("train", "heldout"), ("heldout", "train"))
    for split, other in splits:
        p = Pools(Random(5), split)
        task = next(maker for maker, _ in MIX if maker.__name__ == "continue_list")(p)
        shown = task.payload.replace("\n", ", ")
        assert in_split(Pools(Random(0), split), shown)
        assert not in_split(Pools(Random(0), other), shown)


def test_rename_changes_whole_names_only() -> None:
    assert rename_in("a = ab + a_b + a", "a", "z") == "z = ab + a_b + z"


def test_copying_prompts_begin_to_repeat_what_they_hold() -> None:
    rows = [json.loads(line) for line in (ROOT / "datasets/copying.jsonl").read_text().splitlines()]
    assert len({row["custom_id"] for row in rows}) == len(rows) > 10
    for row in rows:
        first, again = re.split(r"\n\n\n# \w+\.py, once more\n", row["prompt"])
        assert again.strip()
        assert again in first + "\n"
        assert len(first) > 4 * len(again)


def test_copying_prompts_are_made_of_what_a_file_defines(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text(f"x = 1\n\ndef short():\n    pass\n\ndef long():\n    return '{'a' * 700}'\n")
    assert [piece[:10] for piece in copying.pieces(path)] == ["def long()"]

"""The flags of a run on a cluster: what cannot work is one sentence, before anything is started or written."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calling import call

MISTAKES: list[tuple[list[str], str]] = [
    (["--num-workers", "2"], "--num-workers is about workers on Ray: give --ray with it or drop it"),
    (["--gpus-per-worker", "1"], "--gpus-per-worker is about workers on Ray"),
    (["--ray", "--num-workers", "0"], "--num-workers must be from 1 to 10000, not 0"),
    (["--ray", "--gpus-per-worker", "1.5"], "--gpus-per-worker must be a part of one or a whole number up to 64"),
    (["--ray", "--gpus-per-worker", "-1"], "--gpus-per-worker must be"),
    (["--ray", "--gpus-per-worker", "nan"], "--gpus-per-worker must be"),
    (["--shard", "2/2"], "--shard 2/2: shards count from 0"),
    (["--shard", "env"], "--shard env found neither RANK and WORLD_SIZE nor SLURM_ARRAY_TASK_ID"),
    (["--ray"], "--ray needs Ray, which is not installed: pip install 'batchspec[ray]'"),
]


@pytest.mark.parametrize(("flags", "expected"), MISTAKES, ids=[" ".join(flags) for flags, _ in MISTAKES])
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    flags: list[str],
    expected: str,
) -> None:
    for name in ("RANK", "WORLD_SIZE", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"prompt": "a"}\n')
    status, out, err = call(monkeypatch, capsys, "run", "in.jsonl", *flags)
    assert (status, out) == (2, "")
    assert expected in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_merging_needs_no_model(tmp_path: Path) -> None:
    """As reports do, it answers without torch."""
    heavy = ("torch", "transformers", "ray")
    code = f"import sys, batchspec.scaleout.merging; print([m for m in {heavy!r} if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ended.stdout.strip() == "[]"

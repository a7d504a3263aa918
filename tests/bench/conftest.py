"""A subject on the embedded model, which is loaded once."""

from pathlib import Path

import pytest

from batchspec.bench.prompts import Prompts
from batchspec.bench.settings import BenchSettings
from batchspec.bench.subject import Subject
from batchspec.model.load import LoadedModel, load_model
from batchspec.settings import EngineSettings


@pytest.fixture(scope="session")
def embedded() -> LoadedModel:
    return load_model(device="cpu")


@pytest.fixture(scope="session")
def screened() -> LoadedModel:
    """The same, with the language head of a model of many tokens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("batchspec.model.native.loading.choose_packing", lambda *_, **__: "strips")
        patch.setattr("batchspec.model.native.screening._WORTH_SCREENING", 0)
        return load_model(device="cpu")


@pytest.fixture
def subject(embedded: LoadedModel) -> Subject:
    prompts = Prompts(token_ids=[[1, 50 + i, 51, 52, 50 + i, 51] for i in range(4)])
    return Subject(loaded=embedded, settings=EngineSettings(max_num_seqs=2), prompts=prompts)


@pytest.fixture
def settings(tmp_path: Path) -> BenchSettings:
    """As small as a benchmark can be."""
    (tmp_path / "in.jsonl").write_text('{"prompt": "a b a b a"}\n{"prompt": "c d c d"}\n')
    return BenchSettings(
        input=str(tmp_path / "in.jsonl"),
        run_dir=tmp_path / "bench",
        device="cpu",
        max_num_seqs=(1, 2),
        max_tokens=4,
        rows=(1, 6),
        contexts=(8,),
        prefix_requests=4,
        prefix_tokens=96,
        rounds=2,
    )

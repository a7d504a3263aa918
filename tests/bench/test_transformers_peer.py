"""transformers as a peer: every way does the whole job."""

from pathlib import Path

import pytest
import torch

from batchspec.bench.job import Job
from batchspec.bench.peers.transformers_peer import TransformersPeer
from batchspec.errors import UsageError
from batchspec.model.locate import EMBEDDED_TARGET


@pytest.fixture(scope="module")
def peer() -> TransformersPeer:
    return TransformersPeer(
        str(EMBEDDED_TARGET), dtype="float32", device=torch.device("cpu"), num_threads=1, num_spec_tokens=2
    )


@pytest.mark.parametrize("way", ["generate", "generate_batch", "generate, prompt lookup"])
def test_every_way_generates_all_tokens(peer: TransformersPeer, way: str, capfd: pytest.CaptureFixture[str]) -> None:
    num_threads = torch.get_num_threads()
    job = Job(prompts=[[1, 50, 51, 50], [1, 60, 61]], max_tokens=5, max_num_seqs=1)
    measured = peer.contestants(1)[f"transformers {way}"].run(job)
    assert measured.output_tokens == 10
    assert measured.seconds > 0
    assert torch.get_num_threads() == num_threads
    assert capfd.readouterr() == ("", "")


def test_prompt_lookup_is_for_one_sequence(peer: TransformersPeer) -> None:
    assert set(peer.contestants(4)) == {"transformers generate", "transformers generate_batch"}


def test_a_model_that_transformers_cannot_load_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "abacus"}')
    with pytest.raises(UsageError, match=r"--peer transformers: the model cannot be loaded there: .*abacus"):
        TransformersPeer(str(tmp_path), dtype="float32", device=torch.device("cpu"), num_threads=1, num_spec_tokens=0)

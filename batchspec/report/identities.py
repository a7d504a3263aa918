"""What must hold inside one record's metrics, beyond what must hold in any engine's."""

from collections.abc import Mapping
from typing import Any

from batchspec.ingest.faults import RowFault
from batchspec.ingest.identities import contradictions
from batchspec.ingest.shapes.vllm import read_vllm

__all__ = ["broken_identities"]


def broken_identities(
    speculative_decoding: Mapping[str, Any], *, batchspec: Mapping[str, Any] | None, completion_tokens: int
) -> list[str]:
    """Return a sentence for each identity that a record's numbers break; an honest record breaks none.

    Args:
        speculative_decoding: the documented fields.
        batchspec: the fields beside them, or None in a record of another writer.
        completion_tokens: tokens of the output, of all turns together.
    """
    try:
        acceptance = read_vllm(speculative_decoding, {"metrics": {"batchspec": batchspec}})
    except RowFault as fault:
        return [fault.message]
    broken = list(contradictions(acceptance, completion_tokens=completion_tokens))
    steps, drafted = acceptance.num_spec_steps, acceptance.num_draft_tokens
    if steps is not None and drafted is not None and steps > drafted:
        broken.append(f"{steps} steps, each with a draft, but {drafted} draft tokens")
    return broken

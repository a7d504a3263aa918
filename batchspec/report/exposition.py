"""The speculative totals in a Prometheus text exposition, such as ``metrics.prom`` or a server's scrape."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

__all__ = ["totals_from_exposition"]

_SCALARS = {
    "vllm:spec_decode_num_drafts_total": "num_spec_steps",
    "vllm:spec_decode_num_draft_tokens_total": "num_draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "num_accepted_draft_tokens",
}
_PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"


def totals_from_exposition(text: str) -> dict[str, Any]:
    """Return the totals in the shape that ``Counters.totals`` has, added up over engines and models.

    Series that are missing count as zero; a server without speculation exposes none of them.

    Args:
        text: Prometheus text exposition format.

    Raises:
        ValueError: the text is not in that format.
    """
    totals: dict[str, Any] = dict.fromkeys(_SCALARS.values(), 0)
    per_position: dict[int, int] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in _SCALARS:
                totals[_SCALARS[sample.name]] += int(sample.value)
            elif sample.name == _PER_POSITION:
                position = int(sample.labels["position"])
                per_position[position] = per_position.get(position, 0) + int(sample.value)
    num_positions = max(per_position, default=-1) + 1
    return totals | {"num_accepted_tokens_per_pos": [per_position.get(i, 0) for i in range(num_positions)]}

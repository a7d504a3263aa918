"""A log with every kind of row, and names that try to be more than text."""

import random
from typing import Any

from tests.ingest.logs import SUMMARY, batch_line, body

from .made import line

__all__ = ["HOSTILE", "everything"]

HOSTILE = '<script>document.title="broken"</script>'
_IMAGE = '"><img src=x onerror=alert(1)>'


def everything() -> list[Any]:
    """Requests with steps and positions, in four categories, with faults, errors and nulls among them."""
    generator = random.Random(5)
    rows: list[Any] = []
    for index in range(60):
        steps = [(4, min(generator.randrange(6), 4)) for _ in range(generator.randrange(1, 30))]
        accepted = [number for _, number in steps]
        positions = [1 + sum(number + 1 for number in accepted[:place]) for place in range(len(accepted))]
        own = {"num_decode_steps": len(steps), "num_discarded_tokens": 0, "per_step_position": positions}
        category = ("code", "prose", HOSTILE, "=1+1")[index % 4]
        rows.append(line(steps, batchspec=own, category=category, custom_id=f"r{index}"))
    rows.append(line([(4, 0)] * 50, category="code", custom_id=HOSTILE))
    rows.append(line([(4, 4)] * 50, category="code", custom_id=_IMAGE))
    rows.append(line([], category="code", custom_id="idle"))
    rows.append(batch_line(body(None), custom_id="null"))
    rows.append({"error": {"code": HOSTILE, "message": HOSTILE}})
    rows.append(batch_line(body(SUMMARY | {"num_spec_steps": 44}), custom_id=HOSTILE))
    rows.append(batch_line(body(SUMMARY | {"num_spec_steps": HOSTILE}), custom_id="x\x1b[31m"))
    rows.append(b"no json")
    rows.append({"timings": {"predicted_n": 90, "draft_n": 40, "draft_n_accepted": 20}})
    rows.append({"meta_info": {"spec_verify_ct": 9, "spec_accept_length": 2.5, "completion_tokens": 22}})
    return rows

"""Which rows of a step's plan need logits."""

from batchspec.step import StepPlan

__all__ = ["wanted_rows"]


def wanted_rows(plan: StepPlan) -> list[int]:
    """Return the packed row numbers whose logits are needed, those before prompt tokens last."""
    wanted: list[int] = []
    prompt_rows: list[int] = []
    end = 0
    for chunk in plan.chunks:
        prompt_rows += range(end, end + chunk.num_prompt_rows)
        end += len(chunk.token_ids)
        wanted += range(end - chunk.num_rows, end)
    return wanted + prompt_rows

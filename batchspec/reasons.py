"""Why a request got no metrics, or no further token, in words."""

from batchspec.errors import RequestError
from batchspec.request import Request
from batchspec.sequence import Sequence

__all__ = ["cause_of_silence", "no_token"]


def cause_of_silence(request: Request) -> str:
    """Return why a served request's record carries no acceptance metrics."""
    if request.sampling.n > 1:
        return "n > 1"
    return "several prompts" if len(request.prompts) > 1 else "stream without usage"


def no_token(sequence: Sequence) -> RequestError:
    """Return why no token could be chosen to follow a sequence."""
    if sequence.grammar is not None and sequence.grammar.error is not None:
        return RequestError(f"the grammar cannot go on: {sequence.grammar.error}", code="invalid_grammar")
    if sequence.is_starved:
        constraints = _constraints(sequence)
        return RequestError(
            f"no token is left that may come next: {' and '.join(constraints)} together forbid all; relax them",
            param=constraints[0],
            code="no_token_left",
        )
    return RequestError(
        "the model's logits choose no token, because the largest is NaN or infinite; "
        "check the model's weights, and try --dtype float32 if it ran with another",
        code="invalid_logits",
        status_code=500,
    )


def _constraints(sequence: Sequence) -> list[str]:
    """Return the names of the parameters that forbid tokens."""
    sampling = sequence.sampling
    given = {
        "structured_outputs": sequence.grammar is not None,
        "allowed_token_ids": sampling.allowed_token_ids is not None,
        "bad_words": bool(sequence.bad_words),
        "min_tokens": sequence.num_output_tokens < sampling.min_tokens,
        "logit_bias": bool(sampling.logit_bias),
        "repetition_penalty": sampling.repetition_penalty != 1,
    }
    return [name for name, is_given in given.items() if is_given]

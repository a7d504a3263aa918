"""The target's own token for each logit row: a deterministic function of logits, parameters, context and position.

Logits are processed in the order that ``SamplingParams`` tells: removal (``constraints``), bias and penalties
(``penalties``), temperature and truncation (``truncation``); ``rows`` says which context each row continues. Then the
likeliest token is taken at temperature 0, and otherwise Gumbel-max draws (``choice``): the token with the largest logit
plus noise, where the noise is keyed by seed, sample index, absolute position and vocabulary id (``noise``). That draws
exactly from the processed distribution (Gumbel, 1954; Maddison et al., "A* Sampling", 2014), and it does not depend on
what else is in the batch or on how many tokens were drafted. ``logprobs`` tells the distribution.
"""

from batchspec.sampling.choice import Choices, choose, decide
from batchspec.sampling.logprobs import score_prompt, token_logprobs
from batchspec.sampling.noise import gumbel_noise, noise_key
from batchspec.sampling.processing import process, warp
from batchspec.sampling.rows import Row, is_plain, rows_to_process
from batchspec.sampling.screened import Screened
from batchspec.sampling.simple import SimpleRows, simple_rows
from batchspec.sampling.truncation import truncate

__all__ = [
    "Choices",
    "Row",
    "Screened",
    "SimpleRows",
    "choose",
    "decide",
    "gumbel_noise",
    "is_plain",
    "noise_key",
    "process",
    "rows_to_process",
    "score_prompt",
    "simple_rows",
    "token_logprobs",
    "truncate",
    "warp",
]

"""Checks the way of a CUDA device, and measures it: ``python tests/gpu/check.py``, unattended, in under four minutes.

What each part finds goes to standard error, one document of JSON to standard output. Without a CUDA device it says so
and ends; ``--rehearse`` walks through all parts on the CPU instead, to see that the check itself works.
"""

import faulthandler
import json
import sys
from pathlib import Path

_LONGEST = 235  # seconds


def main(arguments: list[str]) -> int:
    """Run the check; return the exit status: 0 if everything is right or there is no device."""
    import torch

    is_rehearsal = arguments == ["--rehearse"]
    if not is_rehearsal and not torch.cuda.is_available():
        print("skipped: torch sees no CUDA device here")
        return 0
    faulthandler.dump_traceback_later(_LONGEST, exit=True)
    sys.path[0] = str(Path(__file__).parents[2])  # instead of this directory, whose files have names of packages
    from tests.gpu.parts import run_parts
    from tests.gpu.stage import CUDA, REHEARSAL

    document = run_parts(REHEARSAL if is_rehearsal else CUDA)
    print(json.dumps(document, indent=2))
    return 0 if document["is_right"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

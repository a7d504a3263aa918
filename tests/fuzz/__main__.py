"""``python -m tests.fuzz``: feed every target for so long, and count what was fed and what went wrong.

A seed decides everything but the clock, which counts processor time. A failure is named by its seed, which alone makes
it again: ``--only SEED``.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

from .targets import TARGETS

_SLOW_SECONDS = 20.0


def main() -> int:
    """Run until the time is over; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="processor time (2)")
    parser.add_argument("--seed", type=int, default=0, help="from which all chance follows (0)")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="only this one, may be repeated")
    parser.add_argument("--only", help="one input again, by its seed as it was printed")
    parser.add_argument("--json", action="store_true", help="print the counts as one document")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    names = given.target or list(TARGETS)
    if given.only is not None:
        return int(_feed(given.only.partition("/")[0], given.only) is not None)
    tried: Counter[str] = Counter()
    slowest: dict[str, float] = dict.fromkeys(names, 0.0)
    found: list[str] = []
    end, number = time.process_time() + given.minutes * 60, 0
    with suppress(KeyboardInterrupt):  # who has waited long enough still gets the counts
        while time.process_time() < end:
            for name in names:
                seed, began = f"{name}/{given.seed}/{number}", time.process_time()
                trouble = _feed(name, seed)
                seconds = time.process_time() - began
                tried[name] += 1
                slowest[name] = max(slowest[name], seconds)
                if trouble is None and seconds > _SLOW_SECONDS:
                    trouble = f"{seed} took {seconds:.1f} s"
                if trouble is not None:
                    found.append(trouble)
                    print(trouble, file=sys.stderr, flush=True)
            number += 1
    _show(tried, slowest, found, seed=given.seed, as_json=given.json)
    return int(bool(found))


def _feed(name: str, seed: str) -> str | None:
    """Feed one input; return what went wrong."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            TARGETS[name](Random(seed), Path(scratch))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"--only {seed}\n{traceback.format_exc()}"
    return None


def _show(tried: Counter[str], slowest: dict[str, float], found: list[str], *, seed: int, as_json: bool) -> None:
    if as_json:
        document = {"seed": seed, "tried": dict(tried), "slowest_seconds": slowest, "num_found": len(found)}
        print(json.dumps(document, indent=2))
        return
    for name, number in tried.items():
        print(f"{name:12} {number:10,} inputs, the slowest {slowest[name]:6.2f} s")
    print(f"{'all':12} {tried.total():10,} inputs with seed {seed}, {len(found)} tracebacks")


if __name__ == "__main__":
    sys.exit(main())

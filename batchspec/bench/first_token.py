"""The way to a first token in a process of its own: ``python -m batchspec.bench.first_token ENGINE ROW``.

Both arguments are JSON: keyword arguments of ``batchspec.Engine``, and a request. Prints a JSON object with readings of
the monotonic clock, which all processes of a machine share.
"""

import json
import sys
import time


def main() -> None:
    """Go the way and print the readings."""
    marks = {"interpreter": time.monotonic()}
    import batchspec.launch  # noqa: F401
    from batchspec.api import Engine

    marks["imports"] = time.monotonic()
    engine = Engine(**json.loads(sys.argv[1]))
    marks["model"] = time.monotonic()
    next(engine.stream(json.loads(sys.argv[2])))
    marks["first_step"] = time.monotonic()
    print(json.dumps(marks))


if __name__ == "__main__":
    main()

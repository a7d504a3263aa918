"""Run a command and say how much memory it took at most, from a process so small that its own does not count.

    python peak.py REPORT COMMAND…

A child's peak begins with its parent's size, which is why a large process cannot ask for it itself.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    status = subprocess.call(sys.argv[2:])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    Path(sys.argv[1]).write_text(json.dumps({"peak_bytes": peak * unit}))
    sys.exit(status)

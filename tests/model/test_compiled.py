"""Machine code on disk."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
from batchspec.compiled import compiled, is_stored

@compiled()
def double(x):
    return 2 * x

print(is_stored(double), double(3), is_stored(double))
"""


def test_code_is_stored_once_it_was_needed(tmp_path: Path) -> None:
    (tmp_path / "doubling.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "doubling.py")]
    said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert said == ["False 6 True\n", "True 6 True\n"]

"""The check of the way of a CUDA device, as a test; and that the check itself works, on the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

CHECK = Path(__file__).with_name("check.py")
HAS_DEVICE = torch.cuda.is_available()


def run_check(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CHECK), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(not HAS_DEVICE, reason="torch sees no CUDA device here")
def test_on_the_device() -> None:
    done = run_check()
    assert done.returncode == 0, done.stderr


def test_without_a_device_it_says_so() -> None:
    done = run_check(CUDA_VISIBLE_DEVICES="")
    assert (done.returncode, done.stdout) == (0, "skipped: torch sees no CUDA device here\n")


@pytest.mark.slow
def test_the_rehearsal_goes_through_all_parts() -> None:
    done = run_check("--rehearse")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["is_right"]
    assert set(document["parts"]) == {
        "attention",
        "texts of the CPU",
        "recordings",
        "speculation",
        "waiting",
        "speed",
    }
    assert document["parts"]["recordings"]["values"]["num_replays"]["float32"] > 0

"""The metrics port is for this machine alone, unless the user says otherwise."""

import socket
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, Counter

from batchspec.errors import UsageError
from batchspec.job.serve import serve_metrics
from batchspec.job.settings import JobSettings


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_counters_are_served_on_the_loopback_address_only(tmp_path: Path) -> None:
    registry, port = CollectorRegistry(), free_port()
    Counter("things", "of some kind", registry=registry).inc()
    host = JobSettings(input="-", run_dir=tmp_path).metrics_host
    with serve_metrics(registry, host=host, port=port):
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert b"things_total 1.0" in answer.read()
        with socket.socket() as other:  # the port is free on every other address of this machine
            other.bind(("127.0.0.2", port))
        taken = f"--metrics-port {port} cannot be used on 127.0.0.1"
        with pytest.raises(UsageError, match=taken), serve_metrics(registry, host=host, port=port):
            pass
    with serve_metrics(registry, host=host, port=None):
        pass

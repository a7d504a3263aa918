"""The counters on a port while the run goes on."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server

from batchspec.errors import UsageError

__all__ = ["serve_metrics"]


@contextmanager
def serve_metrics(registry: CollectorRegistry, *, host: str, port: int | None) -> Iterator[None]:
    """Serve a registry over HTTP; nothing when no port is given.

    Raises:
        UsageError: the port cannot be used.
    """
    if port is None:
        yield
        return
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--metrics-port {port} cannot be used on {host} ({error}): choose another port") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

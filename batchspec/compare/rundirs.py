"""What run directories tell beside their responses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from batchspec.errors import UsageError
from batchspec.files.manifest import differences, read_manifest

__all__ = ["changed_settings", "whole_throughput"]


def changed_settings(first: str, second: str) -> list[str] | None:
    """Return what the manifests of two runs say differently, one phrase each; None where there are not two."""
    old, new = _manifest(first), _manifest(second)
    return None if old is None or new is None else differences(old, new)


def _manifest(path: str) -> Mapping[str, Any] | None:
    try:
        return read_manifest(Path(path) / "manifest.json")
    except UsageError:
        return None


def whole_throughput(path: str) -> dict[str, Any] | None:
    """Return seconds and tokens per second of a whole run from its report, None where there is none."""
    try:
        document = orjson.loads((Path(path) / "report.json").read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    found = document.get("throughput") if isinstance(document, dict) else None
    return found if isinstance(found, dict) else None

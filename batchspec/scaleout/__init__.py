"""More than one machine: shards and their merge, workers of a Ray cluster, a stage for Ray Data.

>>> from batchspec.scaleout import BatchSpecStage, StageTally, read_lines
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from batchspec.scaleout.reading import read_lines
    from batchspec.scaleout.stage import BatchSpecStage
    from batchspec.scaleout.tally import StageTally

__all__ = ["BatchSpecStage", "StageTally", "read_lines"]

_MODULES = {"BatchSpecStage": "stage", "StageTally": "tally", "read_lines": "reading"}


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that shards are merged without an engine."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

"""batchspec: offline batch inference with speculative decoding, exact acceptance metrics and reconciled totals.

>>> from batchspec import Engine
>>> records = list(Engine().run([{"prompt": "Once upon a time"}]))
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from batchspec.api import Engine, Model

__all__ = ["Engine", "Model", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import the engine when it is first asked for, so that ``import batchspec`` costs nothing."""
    if name in ("Engine", "Model"):
        from batchspec import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

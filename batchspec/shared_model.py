"""A model that was loaded once, for engines that run it one after another.

Nothing heavy is imported before a model is loaded.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batchspec.errors import UsageError
from batchspec.settings import EngineSettings

if TYPE_CHECKING:
    from batchspec.launch import Launched

__all__ = ["Model", "loaded"]


class Model:
    """A model in memory, for engines of different settings that run it one after another.

    Args:
        model: a directory, a hub id or a ``.gguf`` file; None for the embedded model.
        device: as in ``Engine``, like those after it.
        dtype: see there.
        generation_config: see there.
        model_impl: see there.
        trust_remote_code: see there.
        allow_pickle: see there.

    Raises:
        ModelError: the model cannot be loaded or run.

    >>> model = Model("./my-model")
    >>> engines = (Engine(model, speculative_config={"num_speculative_tokens": k}) for k in (1, 3, 5))
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        device: str = "auto",
        dtype: str = "auto",
        generation_config: str = "auto",
        model_impl: str = "auto",
        trust_remote_code: bool = False,
        allow_pickle: bool = False,
    ):
        from batchspec.launch import load

        self._loaded = load(
            model,
            device=device,
            dtype=dtype,
            generation_config=generation_config,
            model_impl=model_impl,
            trust_remote_code=trust_remote_code,
            allow_pickle=allow_pickle,
        )
        self._is_used = False

    @property
    def resolved(self) -> dict[str, Any]:
        """What ``auto`` came to: dtype, device, model_impl, model_fingerprint."""
        from batchspec.launch import resolved

        return resolved(self._loaded)

    def launch(self, settings: EngineSettings) -> "Launched":
        """Return the inside of an engine that runs the model; raises as ``Engine`` does."""
        from batchspec.launch import launch
        from batchspec.model.memory import give_back

        if self._is_used:
            give_back()
        self._is_used = True
        return launch(self._loaded, settings)


def loaded(model: str | Path | Model | None, of_model: Mapping[str, Any]) -> Model:
    """Return the model, loaded unless it was before; UsageError for settings that come too late for it."""
    if not isinstance(model, Model):
        return Model(model, **of_model)
    late = [name for name, value in of_model.items() if value not in ("auto", False)]
    if late:
        raise UsageError(f"{late[0]} was settled when the model was loaded: give it to Model and not to Engine.")
    return model

"""Finding what ``--model`` names: a directory, a hub id or a GGUF file."""

import hashlib
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from batchspec.errors import ModelError

__all__ = ["EMBEDDED_DRAFT", "EMBEDDED_TARGET", "ModelSource", "fingerprint", "locate"]

EMBEDDED_TARGET = Path(__file__).parent.parent / "models" / "target"
EMBEDDED_DRAFT = EMBEDDED_TARGET.parent / "draft"
_PATIENCE = 10  # seconds to wait for the hub's first answer
_CHOICE = "give a directory, a hub id or a .gguf file."


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """What to give to ``from_pretrained``.

    Attributes:
        path: a directory or a hub id.
        name: the model's name in labels and bodies.
        options: keyword arguments.
        files: the local files that shape the output; empty for a hub id.
        doubt: why loading may fail although the name is right, for the message; empty if there is no reason.
    """

    path: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    doubt: str = ""


def locate(model: str | Path) -> ModelSource:
    """Return where the model is.

    Raises:
        ModelError: when there is no such model, or the hub says that it may not be read.
    """
    path = Path(model).expanduser()
    if path.suffix == ".gguf" and (path.is_file() or not path.is_dir()):
        return _gguf(path, model)
    if path.is_dir():
        return _directory(path, model)
    looks_local = path.is_absolute() or str(model).startswith((".", "~")) or str(model).count("/") != 1
    if path.exists() or looks_local:
        raise ModelError(f"--model {model}: there is no such directory; {_CHOICE}")
    return _on_hub(str(model))


def _gguf(path: Path, model: str | Path) -> ModelSource:
    if not path.is_file():
        raise ModelError(f"--model {model}: there is no such file; {_CHOICE}")
    missing = [name for name in ("gguf", "accelerate") if find_spec(name) is None]
    if missing:
        raise ModelError(
            f"--model {model}: reading GGUF files needs {' and '.join(missing)}; run pip install 'batchspec[gguf]'."
        )
    return ModelSource(path=str(path.parent), name=path.stem, options={"gguf_file": path.name}, files=(path,))


def _directory(path: Path, model: str | Path) -> ModelSource:
    if not (path / "config.json").is_file():
        raise ModelError(f"--model {model}: the directory has no config.json; give a Hugging Face model directory.")
    shaping = {".json", ".safetensors", ".bin", ".jinja", ".model", ".txt"}
    files = tuple(sorted(file for file in path.iterdir() if file.suffix in shaping))
    return ModelSource(path=str(path), name=path.resolve().name, options={"local_files_only": True}, files=files)


def _on_hub(hub_id: str) -> ModelSource:
    """Ask the hub once; if it cannot be reached, only the local cache is read, since every file would wait in vain."""
    from huggingface_hub import HfApi  # takes a quarter of a second to import, which local models need not wait for
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    name = hub_id.rsplit("/", 1)[-1]
    try:
        HfApi().model_info(hub_id, timeout=_PATIENCE)
    except GatedRepoError:
        raise ModelError(
            f"--model {hub_id}: the hub grants access on request only; accept its terms there and set HF_TOKEN."
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise ModelError(f"--model {hub_id}: there is neither such a directory nor such a hub id; {_CHOICE}") from None
    except (HfHubHTTPError, OSError) as error:
        return _cached(hub_id, error)
    except Exception as error:  # the transport's own exceptions, whichever library huggingface_hub uses for it
        return _cached(hub_id, error)
    return ModelSource(path=hub_id, name=name)


def _cached(hub_id: str, error: Exception) -> ModelSource:
    lines = str(error).splitlines() or [type(error).__name__]
    return ModelSource(
        path=hub_id,
        name=hub_id.rsplit("/", 1)[-1],
        options={"local_files_only": True},
        doubt=f"the hub cannot be reached ({lines[0]}) and the local cache does not hold all files of this model",
    )


def fingerprint(files: tuple[Path, ...]) -> str:
    """Return a sha256 over name, size, first and last MiB of the files."""
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(1 << 20))
            file.seek(max(0, size - (1 << 20)))
            digest.update(file.read())
    return digest.hexdigest()

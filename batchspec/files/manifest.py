"""The manifest of a run: what it was asked to do, with what, and how far it came."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from batchspec import __version__
from batchspec.errors import UsageError
from batchspec.files.atomic import write_whole
from batchspec.files.wording import shown

__all__ = ["damaged_manifests", "differences", "new_manifest", "plain", "read_manifest", "write_manifest"]

_PARTS = ("parameters", "model", "dataset")
_REMEDY = "it is damaged: copy it again or make the run again"


def plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document as it will be read back: lists for tuples, text for paths."""
    value: dict[str, Any] = orjson.loads(orjson.dumps(dict(document), default=str))
    return value


def new_manifest(
    *, parameters: Mapping[str, Any], model: Mapping[str, Any], dataset: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the manifest of a run that is about to start."""
    return {
        "status": "running",
        "batchspec_version": __version__,
        "versions": {},
        "parameters": plain(parameters),
        "model": plain(model),
        "dataset": plain(dataset),
        "counts": {},
    }


def read_manifest(path: Path, *, remedy: str = _REMEDY) -> dict[str, Any] | None:
    """Return the manifest; None when there is none.

    Args:
        path: of the file.
        remedy: what the message says can be done about a file that is none.

    Raises:
        UsageError: there is a file, but not one that batchspec wrote.
    """
    try:
        document = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError):
        document = None
    is_ours = isinstance(document, dict) and all(isinstance(document.get(part), dict) for part in _PARTS)
    if document is None or not is_ours or "batchspec_version" not in document:
        raise UsageError(f"{path} is not a manifest that batchspec wrote: {remedy}")
    return dict(document)


def damaged_manifests(directories: Iterable[str]) -> list[str]:
    """Return a sentence for each run directory whose manifest is there and cannot be read; other paths have none."""
    sentences = []
    for path in (Path(directory) / "manifest.json" for directory in dict.fromkeys(directories)):
        try:
            if path.is_file():
                read_manifest(path)
        except OSError:
            continue
        except UsageError as error:
            sentences.append(str(error))
    return sentences


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest atomically.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        write_whole(path, orjson.dumps(manifest, option=orjson.OPT_INDENT_2, default=str) + b"\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error}): check the disk") from error


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one phrase for each thing that two manifests ask differently; a dataset may move but not change."""
    phrases = []
    for part, label in (("parameters", "--{name}"), ("model", "the model's {name}")):
        for name in [*new[part], *(name for name in old[part] if name not in new[part])]:
            was, now = _value(old[part], name), _value(new[part], name)
            if was != now:
                flag = name.replace("_", "-") if part == "parameters" else name
                phrases.append(f"{label.format(name=flag)} was {was}, now {now}")
    for name in ("size", "fingerprint"):
        was, now = _value(old["dataset"], name), _value(new["dataset"], name)
        if was != now:
            phrases.append(f"the input's {name} was {was}, now {now} ({new['dataset'].get('path')})")
    return phrases


def _value(document: Mapping[str, Any], name: str) -> str:
    return shown(document[name]) if name in document else "not set"

"""Reading a tokenizer, with as little of transformers as it takes."""

from pathlib import Path
from typing import Any

from batchspec.model.locate import ModelSource
from batchspec.model.plain_tokenizer import NotPlain, PlainTokenizer

__all__ = ["read_tokenizer"]


def read_tokenizer(source: ModelSource) -> Any:
    """Return a directory's tokenizer: ``AutoTokenizer``'s, or what does the same without transformers.

    Raises:
        OSError: there is none, or it cannot be read.
        ValueError: it is damaged.
    """
    try:
        return PlainTokenizer(Path(source.path))
    except NotPlain:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(source.path, trust_remote_code=False, **source.options)

"""Reading a tokenizer, with as little of transformers as it takes."""

import json
from pathlib import Path
from typing import Any

from batchspec.model.locate import ModelSource

__all__ = ["read_tokenizer"]

_PLAIN = {"PreTrainedTokenizerFast", "TokenizersBackend"}  # nothing but a tokenizer.json


def read_tokenizer(source: ModelSource) -> Any:
    """Return a directory's tokenizer, as ``AutoTokenizer`` would.

    Raises:
        OSError: there is none, or it cannot be read.
        ValueError: it is damaged.
    """
    options = {"trust_remote_code": False} | source.options
    settings = json.loads((Path(source.path) / "tokenizer_config.json").read_bytes())
    if settings.get("tokenizer_class") in _PLAIN:
        from transformers import PreTrainedTokenizerFast  # AutoTokenizer takes seconds to import

        return PreTrainedTokenizerFast.from_pretrained(source.path, **options)
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(source.path, **options)

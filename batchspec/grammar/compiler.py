"""Grammars of requests and the masks of steps: what the engine calls for structured output."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING

from batchspec.errors import RequestError
from batchspec.grammar.masks import MaskedChunk, fill, masked_chunks
from batchspec.grammar.source import source_of
from batchspec.grammar.state import LLGrammar
from batchspec.grammar.template import Template
from batchspec.grammar.trial import Trial, is_doubtful
from batchspec.grammar.wording import one_line
from batchspec.params import StructuredOutput
from batchspec.step import StepPlan, TokenMasks

if TYPE_CHECKING:
    from llguidance import LLExecutor, LLParserLimits, LLTokenizer

__all__ = ["GrammarCompiler"]


class GrammarCompiler:
    """Compiles each structured output once and gives every sequence its own copy.

    Args:
        tokenizer: returns llguidance's tokenizer for the model's vocabulary; called once, for the first grammar. Its
            RequestError, for a vocabulary that llguidance cannot read, is every structured request's error.
        max_cached: the most structured outputs whose grammars, or errors, are remembered.
        limits: llguidance's limits on a grammar; None for its own.
        trial: tries large grammars before they are compiled here; None for the usual limits of time and memory.
    """

    def __init__(
        self,
        tokenizer: "Callable[[], LLTokenizer]",
        *,
        max_cached: int = 128,
        limits: "LLParserLimits | None" = None,
        trial: Trial | None = None,
    ):
        self._make_tokenizer = tokenizer
        self._tokenizer: LLTokenizer | RequestError | None = None
        self._limits = limits
        self._trial = trial or Trial()
        self._template_of = lru_cache(maxsize=max_cached)(self._template)
        self._thread: ThreadPoolExecutor | None = None
        self._executor: LLExecutor | None = None

    def compile(self, structured: StructuredOutput) -> LLGrammar:
        """Return the grammar at its beginning, of the caller's own.

        Raises:
            RequestError: llguidance is not installed, or the grammar cannot be compiled, enforces less than it says,
                is too large, takes too long, or is followed by no text.
        """
        template = self._template_of(structured)
        if isinstance(template, RequestError):
            raise _again(template)
        return LLGrammar(template)

    def masks(self, plan: StepPlan) -> Callable[[], TokenMasks | None]:
        """Begin to compute which tokens are allowed in each logit row; calling the result waits for it.

        This runs beside the forward pass: until it is waited for, the grammars of the plan must not be touched.
        The result is None, and nothing begins, when no sampled chunk has a grammar.
        """
        chunks = masked_chunks(plan)
        if not chunks:
            return lambda: None
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="grammar")
        return self._thread.submit(self._fill, chunks).result

    def close(self) -> None:
        """End the thread, whose result is waited for, and the process of the trials, if there are such."""
        self._trial.close()
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None

    def _fill(self, chunks: list[MaskedChunk]) -> TokenMasks:
        from llguidance import LLExecutor

        if self._executor is None:
            self._executor = LLExecutor()
        return fill(self._executor, chunks)

    def _template(self, structured: StructuredOutput) -> Template | RequestError:
        """Return an error instead of raising it, so that the cache remembers it."""
        try:
            tokenizer = self._known_tokenizer()
            source = source_of(structured)
            if is_doubtful(source, is_literal=structured.choice is not None):
                self._trial.check(source)
            return Template(source, tokenizer=tokenizer, limits=self._limits)
        except RequestError as error:
            return error
        except ImportError:
            return RequestError(
                "structured output needs the package llguidance, which is not installed; "
                "install it with pip install 'batchspec[grammar]'",
                param="structured_outputs",
                code="unsupported_parameter",
            )
        except (ValueError, RecursionError) as error:
            return _unenforceable(structured, error)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # which llguidance's language raises, outside of Exception
                raise
            return _unenforceable(structured, error)

    def _known_tokenizer(self) -> "LLTokenizer":
        import llguidance  # noqa: F401

        if self._tokenizer is None:
            try:
                self._tokenizer = self._make_tokenizer()
            except RequestError as error:
                self._tokenizer = error
        if isinstance(self._tokenizer, RequestError):
            raise _again(self._tokenizer)
        return self._tokenizer


def _unenforceable(structured: StructuredOutput, error: BaseException) -> RequestError:
    return RequestError(
        f"the {_kind(structured)} cannot be enforced: {one_line(str(error))}",
        param="structured_outputs",
        code="invalid_grammar",
    )


def _again(error: RequestError) -> RequestError:
    """Return a copy, since raising one exception twice would add to its traceback."""
    return RequestError(error.message, param=error.param, code=error.code, status_code=error.status_code)


def _kind(structured: StructuredOutput) -> str:
    """Return how messages name what was given."""
    if structured.json is not None:
        return "JSON schema"
    if structured.regex is not None:
        return "regular expression"
    return "choice" if structured.choice is not None else "grammar"

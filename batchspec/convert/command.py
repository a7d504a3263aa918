"""What ``batchspec convert`` is asked to do, checked before anything is read or written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from batchspec.convert.batch_lines import ForeignFormat, to_batch_lines
from batchspec.convert.converting import Conversion
from batchspec.convert.responses import to_aiperf
from batchspec.errors import UsageError
from batchspec.files.outputs import check_destination, check_output
from batchspec.files.seen import SeenIds
from batchspec.files.source import open_source
from batchspec.files.unfinished import unfinished_sentences

__all__ = ["ConvertSettings", "open_conversion"]


@dataclass(frozen=True, kw_only=True)
class ConvertSettings:
    """A conversion.

    Attributes:
        input: file, ``-``, or a run directory.
        form: what the file holds, to make batch lines of it; None to make AIPerf's records of responses.
        is_to_aiperf: the other way.
        is_first_turn: ask only the first question of a conversation.
        is_chat: ask lines of text as chats.
        output: where the lines go; None for standard output.
    """

    input: str
    form: ForeignFormat | None
    is_to_aiperf: bool
    is_first_turn: bool = False
    is_chat: bool = False
    output: Path | None = None

    def check(self) -> None:
        """Raise UsageError for settings that do not go together."""
        if (self.form is None) == (not self.is_to_aiperf):
            forms = ", ".join(ForeignFormat)
            raise UsageError(f"give either --from ({forms}), for batch lines, or --to aiperf, for responses")
        if self.is_chat and self.form is not ForeignFormat.TEXT:
            raise UsageError("--chat has an effect only with --from text: drop it")
        if self.is_first_turn and self.form not in (ForeignFormat.SPEC_BENCH, ForeignFormat.SHAREGPT):
            raise UsageError("--first-turn has an effect only with --from spec-bench or sharegpt: drop it")
        if self.output is not None:
            check_output(self.output, input_path=self.input)


@contextmanager
def open_conversion(settings: ConvertSettings, *, say: Callable[[str], None]) -> Iterator[Conversion]:
    """Give the conversion, which reads its input as its lines are asked for.

    Args:
        settings: what to convert, and how.
        say: is told every row that could not be converted, in one sentence, and that a run has not finished.

    Raises:
        UsageError: the settings do not go together, or the input is missing or not what its name says.
    """
    settings.check()
    if settings.form is None:
        for sentence in unfinished_sentences([settings.input]):
            say(sentence)
        yield to_aiperf(settings.input, say=say)
        return
    source = open_source(settings.input)
    if settings.output is not None:
        check_destination(settings.output, inputs=[part.path for part in source.parts])
    with SeenIds() as seen:
        yield to_batch_lines(
            source, settings.form, seen=seen, is_first_turn=settings.is_first_turn, is_chat=settings.is_chat, say=say
        )

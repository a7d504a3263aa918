"""Drafters beside each other on the requests of a file as they are: how fast each is, and what became of its drafts."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from batchspec.bench.entries import Entry, best_rival, entries_for, has_draft_model
from batchspec.bench.interruption import Interruption
from batchspec.bench.race import Lap, Race
from batchspec.bench.settings import BenchSettings
from batchspec.bench.spread import alternate, ratios, spread
from batchspec.bench.subject import WITHOUT, Subject
from batchspec.bench.whole_file import read_whole_file
from batchspec.files import RowDefaults, create_journal

__all__ = ["measure_drafters"]


def measure_drafters(
    subject: Subject,
    settings: BenchSettings,
    *,
    say: Callable[[str], None],
    interruption: Interruption | None = None,
) -> dict[str, Any]:
    """Serve the whole file with every drafter in turn, at every size of the running batch; compare the answers.

    Args:
        subject: the model.
        settings: file, drafters, sizes and rounds.
        say: told what is being measured.
        interruption: keeps the sizes and rounds that are complete when a signal comes.

    Raises:
        UsageError: a request cannot be served, or a drafter changes an answer.
    """
    interruption = interruption or Interruption()
    defaults = RowDefaults().over(subject.loaded.generation_defaults.values)
    file = read_whole_file(settings.input, column=settings.prompt_column, defaults=defaults)
    changed = file.changed()
    race = Race(subject, {False: file, True: changed})
    with TemporaryDirectory() as directory:
        earlier = Path(directory) / "responses.jsonl"
        entries = entries_for(settings, earlier=str(earlier))
        say(f"drafters: {len(file.content)} requests without one, whose answers are kept")
        _write_answers(race, earlier, max_num_seqs=max(settings.max_num_seqs))
        for entry in entries[1:]:
            say(f"drafters: warming up {entry.name}")
            race.run(entry, max_num_seqs=max(settings.max_num_seqs))
        measure = partial(_size, race, entries, settings, say=say, interruption=interruption)
        sizes = interruption.until(partial(measure, max_num_seqs=size) for size in settings.max_num_seqs)
    return {
        "num_requests": len(file.content),
        "num_left_out": file.num_left_out,
        "num_changed": changed.num_changed,
        "remarks": _remarks(settings),
        "is_identical": all(not row["num_different"] for size in sizes for row in size["rows"].values()),
        "sizes": sizes,
    }


def _write_answers(race: Race, path: Path, *, max_num_seqs: int) -> None:
    """Run the file without a drafter and write its records as a run does; they are what the others must say, too."""
    with create_journal(path=path, checkpoint_path=path.with_name("checkpoint.json")) as journal:
        race.run(Entry(name="none", config=WITHOUT), max_num_seqs=max_num_seqs, on_record=journal.append)


def _size(
    race: Race,
    entries: list[Entry],
    settings: BenchSettings,
    *,
    max_num_seqs: int,
    say: Callable[[str], None],
    interruption: Interruption,
) -> dict[str, Any]:
    laps = alternate(
        {entry.name: partial(race.run, entry, max_num_seqs=max_num_seqs) for entry in entries},
        rounds=settings.rounds,
        on_round=lambda number: say(f"drafters at {max_num_seqs} sequences, round {number} of {settings.rounds}"),
        interruption=interruption,
    )
    return {"max_num_seqs": max_num_seqs, "rows": {entry.name: _row(entry, entries, laps) for entry in entries}}


def _row(entry: Entry, entries: list[Entry], laps: dict[str, list[Lap]]) -> dict[str, Any]:
    """Return the document of one entry; counts are the last round's, since only adaptive drafters differ in them."""
    rates = {name: [lap.rate for lap in each] for name, each in laps.items()}
    baseline = next(each.name for each in entries if each.is_baseline and each.is_changed == entry.is_changed)
    best = best_rival(entry, entries, {name: median(each) for name, each in rates.items()})
    own, last = laps[entry.name], laps[entry.name][-1]
    counts = last.measured.counts or {}
    return {
        "method": entry.config.method,
        "num_speculative_tokens": entry.config.num_speculative_tokens,
        "is_adaptive": entry.config.adaptive,
        "is_changed": entry.is_changed,
        "is_recalling": entry.is_recalling,
        "tokens_per_second": vars(spread(rates[entry.name])),
        "over_none": vars(ratios(rates[entry.name], rates[baseline])),
        "best_fixed": best,
        "over_best_fixed": vars(ratios(rates[entry.name], rates[best])),
        "output_tokens": last.measured.output_tokens,
        "counts": counts,
        "accepted_per_draft": _quotient(counts["num_accepted_draft_tokens"], counts["num_drafts"]),
        "tokens_per_decode_step": _quotient(counts["num_decoded_tokens"], counts["num_decode_steps"]),
        "accepted_by_source": dict(last.accepted_by_source),
        "num_different": max(lap.num_different for lap in own),
        "rounds": [asdict(lap.measured) for lap in own],
    }


def _quotient(above: int, below: int) -> float | None:
    return above / below if below else None


def _remarks(settings: BenchSettings) -> list[str]:
    if "draft_model" not in settings.drafters or has_draft_model(settings):
        return []
    return ["draft_model is left out: only the embedded model comes with one; give --draft-model"]

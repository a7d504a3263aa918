"""Reading requests, journalling records, and the directory a run lives in.

Input: ``open_source`` checks a path, ``read_requests`` streams it. Output: ``open_run`` judges a run directory,
``create_journal`` and ``open_for_resume`` give the journal in it, ``responses_to_parquet`` converts what it holds.
"""

from batchspec.files.answers import RecordedAnswers
from batchspec.files.defaults import RowDefaults
from batchspec.files.finished import FinishedIndices, record_index
from batchspec.files.identity import Columns
from batchspec.files.journal import Journal, create_journal, read_records
from batchspec.files.outputs import check_destination, check_not_input, check_output, check_writable
from batchspec.files.outputs_log import OutputsLog
from batchspec.files.parquet_out import RESPONSE_SCHEMA, read_responses, responses_to_parquet
from batchspec.files.reader import read_requests
from batchspec.files.response_parts import ResponseParts, remove_parts
from batchspec.files.resume import Recovery, checkpoint_state, open_for_resume
from batchspec.files.rows import parse_row
from batchspec.files.rundir import open_run
from batchspec.files.runstate import OWN_FILES, RunState, RunStatus
from batchspec.files.sampling_fields import derive_seed
from batchspec.files.source import InputSource, open_source
from batchspec.files.unchanged import check_unchanged, read_so_far

__all__ = [
    "OWN_FILES",
    "RESPONSE_SCHEMA",
    "Columns",
    "FinishedIndices",
    "InputSource",
    "Journal",
    "OutputsLog",
    "RecordedAnswers",
    "Recovery",
    "ResponseParts",
    "RowDefaults",
    "RunState",
    "RunStatus",
    "check_destination",
    "check_not_input",
    "check_output",
    "check_unchanged",
    "check_writable",
    "checkpoint_state",
    "create_journal",
    "derive_seed",
    "open_for_resume",
    "open_run",
    "open_source",
    "parse_row",
    "read_records",
    "read_requests",
    "read_responses",
    "read_so_far",
    "record_index",
    "remove_parts",
    "responses_to_parquet",
]

"""Jobs on the embedded model, as the tests of the job run them."""

from tests.job.conftest import embedded, run_lines

__all__ = ["embedded", "run_lines"]

"""What ``import batchspec`` gives, and what it costs."""

import subprocess
import sys

import pytest

import batchspec


def test_all_is_what_is_promised() -> None:
    assert batchspec.__all__ == ["Engine", "Model", "__version__"]
    for name in batchspec.__all__:
        assert getattr(batchspec, name) is not None
    assert set(batchspec.__all__) <= set(dir(batchspec))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'engine_of_wonder'"):
        batchspec.engine_of_wonder  # noqa: B018


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import batchspec", ("torch", "transformers", "numba", "pyarrow", "rich")),
        ("from batchspec import Engine", ("torch", "transformers")),
        ("import batchspec.settings", ("torch", "transformers", "pyarrow")),
    ],
)
def test_an_import_loads_nothing_heavy(code: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys; {code}; print([name for name in {heavy!r} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert (ended.stdout.strip(), ended.stderr) == ("[]", "")

# batchspec: `make demo` shows the tool at work, `make test` checks everything.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test install lint fuzz crash soak clean

# torch first and by exact version: the CPU build, when one is at hand, then satisfies every looser requirement.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q "torch==2.13.0"
	$(BIN)/python -m pip install -q -e ".[test]"
	@touch $@

install: $(VENV)/.installed

demo: install
	$(BIN)/batchspec run datasets/quickstart.jsonl --level detailed --run-dir reports/demo --overwrite

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# A process for each core; their threads sleep while they wait, so that they leave each other the cores.
test: lint
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

# Hostile input for ten minutes of processor time; `FUZZ="--minutes 60 --seed 7"` for another walk.
fuzz: install
	$(BIN)/python -m tests.fuzz $(or $(FUZZ),--minutes 10)

# The long forms of tests/reliability: what they found stands in reports/reliability.md.
crash: install
	$(BIN)/python -m tests.reliability.crash --points 120
	$(BIN)/python -m tests.reliability.every_operation

soak: install
	$(BIN)/python -m tests.reliability.soak --requests 200000

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache

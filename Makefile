# make run     a sample campaign, end to end
# make test    everything that must hold
# make whole   all of what the tests take a sample of
# make quick   lint, types and the fast tests, for every edit
# make pythons the fast tests, or those in TESTS, on every Python from 3.11 to 3.14 that is installed
# make models       TLC on every model, against the pinned results
# make models-long  every safety run with one bound raised, for long nights
# make conformance  every model driven through the code, with figures
# make mutants      every generated fault of models and code, and what sees it first, against the pinned matrix
# make races        ten thousand races of the real engines under kills, recorded and checked
# make bench   speed against the limits and the peers, table and JSON
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: run test whole quick pythons bench lint clean models models-long conformance races mutants

# The stamp is touched only after pip succeeded, so an interrupted set-up is repeated.
$(VENV)/stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,models]'
	touch $@

$(VENV)/bench-stamp: $(VENV)/stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	touch $@

run: $(VENV)/stamp
	$(BIN)/smtspool demo

lint: $(VENV)/stamp
	$(BIN)/ruff check .
	$(BIN)/mypy

# Three at a time, also with two processors: most tests wait for processes. The slowest are named at the end.
test: lint
	$(BIN)/python --version
	$(BIN)/python -W error -m pytest -n 3 --dist worksteal --durations=30

models: $(VENV)/stamp
	$(BIN)/python -m conformance models

models-long: $(VENV)/stamp
	$(BIN)/python -m conformance models --long

conformance: $(VENV)/stamp
	$(BIN)/python -m conformance

mutants: $(VENV)/stamp
	$(BIN)/python -m conformance mutants

whole: $(VENV)/stamp
	SMTSPOOL_WHOLE=1 $(BIN)/python -W error -m pytest -n 2 -m sampled --durations=0

quick: lint
	$(BIN)/python -W error -m pytest -m 'not slow' -x -q

pythons:
	$(PYTHON) tests/pythons.py $(TESTS)

races: $(VENV)/stamp
	$(BIN)/python -m conformance race --races 10000

bench: $(VENV)/bench-stamp
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

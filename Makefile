# Two commands do all set-up: `make example` and `make test`. PYTHON picks the interpreter (>= 3.11).
PYTHON ?= python3
VENV ?= .venv
OUTPUT ?= output
CMDSTAN ?=
MINUTES ?= inf
TESTS ?= tests
BIN = $(VENV)/bin

.PHONY: example test test-slow test-study test-stan-slow test-cmdstan lint check-wheel readme benchmark clean

example: $(VENV)/.examples  ## check the eight schools on real data; report and plots go to output/
	$(BIN)/python examples/eight_schools.py --output $(OUTPUT)

test: $(VENV)/.test  ## the tests, without the long statistical runs
	$(BIN)/python -m pytest -m "not slow" -n auto --dist worksteal $(TESTS)

test-slow: $(VENV)/.test  ## the long statistical runs
	$(BIN)/python -m pytest -m "slow and not study" -n auto --dist worksteal --minutes $(MINUTES) \
	  --ignore=tests/backends/stan/test_corpus_proof.py --ignore=tests/backends/stan/test_cmdstan.py

test-study: $(VENV)/.test  ## measurements of levels and power, and long runs of faults: an hour or two
	$(BIN)/python -m pytest -m study -n auto --dist worksteal

test-stan-slow: $(VENV)/.test  ## a compiled proof of every program of the Stan corpus: half an hour of compiling
	$(BIN)/python -m pytest -m slow -n auto --dist worksteal tests/backends/stan/test_corpus_proof.py

test-cmdstan: $(VENV)/.test  ## the road of cmdstanpy, on the CmdStan in CMDSTAN; skipped where there is none
	CMDSTAN="$(CMDSTAN)" $(BIN)/python -m pytest tests/backends/stan/test_cmdstan.py

lint: $(VENV)/.test  ## style, types, import directions, docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/numpydoc lint $$(git ls-files 'bread/*.py')

readme: $(VENV)/.test  ## compare the printed outputs of the README with what the code prints now
	$(BIN)/python examples/readme.py

check-wheel:  ## sdist and wheel: built, checked, installed alone with each extra, and used from an empty folder
	PYTHON="$(PYTHON)" .ci/wheel

benchmark: $(VENV)/.test  ## cost of the engine, as ratios in one run
	$(BIN)/python benchmarks/run.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.examples: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[examples]"
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@ $(VENV)/.examples

clean:
	rm -rf $(VENV) $(OUTPUT) .mypy_cache .ruff_cache .pytest_cache

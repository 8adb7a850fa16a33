# Two commands do all set-up: `make example` and `make test`. PYTHON picks the interpreter (>= 3.11).
PYTHON ?= python3
VENV ?= .venv
OUTPUT ?= output
CMDSTAN ?=
MINUTES ?= inf
TESTS ?= tests plugins
BLOCKS ?=
LONG ?=
BENCHMARKS ?=
EXTRAS ?=
BIN = $(VENV)/bin
# what to install follows; uv takes seconds where pip takes minutes, but knows neither pip's configuration nor every platform
INSTALL = PYTHON="$(PYTHON)" .ci/install
# models of another kind, in a package that bread finds by its entry point
PLUGINS = --editable plugins/bread-webppl
WEBPPL = npm install --no-audit --no-fund --no-save --prefix .webppl webppl@0.9.15
HUNDREDS = tests/backends/stan/test_mutants.py::test_hundreds_of_mutants_have_a_right_end
# of scripts: whether the names they use exist, whatever their types
NAMES_ONLY = --config-file= --ignore-missing-imports --follow-imports=silent \
  $(foreach code,arg-type assignment index operator return-value type-var union-attr,--disable-error-code=$(code))

.PHONY: example test which-tests test-moderate test-slow test-study test-stan-slow test-cmdstan test-jax test-executors test-numpyro test-webppl test-engine lint check-wheel readme docs docs-links benchmark clean

example: $(VENV)/.examples  ## check the eight schools on real data; report and plots go to output/
	$(BIN)/python examples/eight_schools.py --output $(OUTPUT)

test: $(VENV)/.test  ## the tests, without the long statistical runs
	$(BIN)/python -m pytest -m "not slow" -n auto --dist worksteal --minutes $(MINUTES) $(TESTS)

which-tests: $(VENV)/.test  ## the test files that name a module: make which-tests MODULE=bread/paths/kinds.py
	$(BIN)/python -m tests.support.which_tests $(MODULE)

test-jax:  ## kernels of BlackJAX and NumPyro, models of NumPyro, and a cluster of dask, in an environment of their own
	$(INSTALL) .venv-jax --editable ".[jax,numpyro,dask]" pytest
	.venv-jax/bin/python -m pytest -m "not slow" tests/testing/test_jax_kernels.py \
	  tests/running/test_cluster.py tests/backends/numpyro

test-executors:  ## checks on workers of MPI and of Ray, in an environment of their own
	$(INSTALL) .venv-executors --editable . mpi4py mpich ray pytest
	.venv-executors/bin/python -m pytest tests/running/test_other_pools.py

test-numpyro:  ## the same of models of NumPyro, with the long ones: two minutes
	$(INSTALL) .venv-jax --editable ".[jax,numpyro,dask]" pytest
	.venv-jax/bin/python -m pytest tests/backends/numpyro

test-webppl: $(VENV)/.test  ## programs of WebPPL, whose npm package goes to .webppl; needs Node.js
	$(WEBPPL)
	$(BIN)/python -m pytest plugins/bread-webppl

test-engine:  ## PyMC's chains on JAX (experimental), in an environment of their own: ten minutes
	$(INSTALL) .venv-engine --editable ".[jax,pymc,dask]" pytest
	.venv-engine/bin/python -m pytest tests/backends/pymc/test_vectorised.py \
	  tests/backends/pymc/test_vectorised_fallback.py tests/backends/pymc/test_vectorised_devices.py \
	  tests/backends/pymc/test_vectorised_check.py

test-moderate: $(VENV)/.test  ## what tests/moderate.txt names
	$(BIN)/python -m pytest -m moderate -n auto --dist worksteal --minutes $(MINUTES)

test-slow: $(VENV)/.test  ## the long statistical runs
	$(BIN)/python -m pytest -m "slow and not study and not moderate" -n auto --dist worksteal --minutes $(MINUTES) \
	  --ignore=tests/backends/stan/test_corpus_proof.py --ignore=tests/backends/stan/test_cmdstan.py \
	  --deselect=$(HUNDREDS)

test-study: $(VENV)/.test  ## measurements of levels and power, and long runs of faults: an hour or two
	$(BIN)/python -m pytest -m study -n auto --dist worksteal

test-stan-slow: $(VENV)/.test  ## a compiled proof of every program of the Stan corpus, and hundreds of mutants: an hour
	$(BIN)/python -m pytest -m slow -n auto --dist worksteal tests/backends/stan/test_corpus_proof.py $(HUNDREDS)

test-cmdstan: $(VENV)/.test  ## the road of cmdstanpy, on the CmdStan in CMDSTAN; skipped where there is none
	CMDSTAN="$(CMDSTAN)" $(BIN)/python -m pytest tests/backends/stan/test_cmdstan.py

lint: $(VENV)/.test  ## style, types, import directions, docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	for folder in examples benchmarks stan_models; do $(BIN)/mypy $(NAMES_ONLY) $$folder || exit 1; done
	$(BIN)/lint-imports
	$(BIN)/numpydoc lint --config . $$(git ls-files 'bread/*.py' 'plugins/*/bread_*.py')

readme: $(VENV)/.test  ## compare the printed outputs of the README with what the code prints now
	$(BIN)/python examples/readme.py $(BLOCKS)

docs: $(VENV)/.docs  ## the documentation, in docs/_build: every code block runs, warnings are errors; wants Node.js for one page
	@$(BIN)/python -c 'import sys; sys.version_info >= (3, 12) or sys.exit("make docs runs pages on ArviZ 1 and Bambi, which " \
	  "need Python >= 3.12, and this is an older one: PYTHON=python3.13 VENV=.venv-docs make docs")'
	@$(WEBPPL) || echo "No WebPPL: docs/how_to/webppl.md will say that its code was not run."
	$(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html

docs-links: $(VENV)/.docs  ## the documentation without its code: pages, references and links between them
	BREAD_DOCS_EXECUTION=off $(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/links

check-wheel:  ## sdist and wheel: built, checked, installed alone with each extra, and used from an empty folder
	PYTHON="$(PYTHON)" .ci/wheel $(EXTRAS)

benchmark:  ## ratios to other tools and to 2016, and bread's own costs, in an environment of their own; LONG=1: hours
	$(INSTALL) .venv-benchmark --editable ".[stan,plots,examples,jax,dask]" simuk pymbar
	.venv-benchmark/bin/python benchmarks/run.py $(if $(LONG),--long) $(BENCHMARKS)

$(VENV)/.examples: pyproject.toml
	$(INSTALL) $(VENV) --editable ".[examples]"
	touch $@

$(VENV)/.docs: pyproject.toml plugins/bread-webppl/pyproject.toml
	$(INSTALL) $(VENV) --editable ".[docs]" $(PLUGINS)
	touch $@

$(VENV)/.test: pyproject.toml plugins/bread-webppl/pyproject.toml
	$(INSTALL) $(VENV) --editable ".[test]" $(PLUGINS)
	touch $@ $(VENV)/.examples

clean:
	rm -rf $(VENV) .venv-jax .venv-engine .venv-benchmark .webppl $(OUTPUT) .mypy_cache .ruff_cache .pytest_cache

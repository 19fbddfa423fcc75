# make demo, make test and make bench install what they need into .venv.
# make test also needs a browser and PostgreSQL: see scripts/system_packages.sh.
# SYSTEM_PACKAGES=no make test installs no Debian packages.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt

# Compiled files are kept even if the environment says otherwise: the tests start many processes, and
# each of them would compile all that it imports.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test types quick-tests test-slow docs bench bench-gpu clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/rankshot demo

test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	bash scripts/system_packages.sh
	$(MAKE) --jobs 2 types quick-tests

# The types are checked while the tests start: many of these wait for a browser or a server.
types: $(VENV)/.test
	$(BIN)/mypy

quick-tests: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile -m 'not slow'

# The slow tests: whole experiments, examples with networks, crowds and killed processes.
test-slow: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile -m slow

# The documentation site, in docs/_build/html. Its gallery runs; warnings are errors.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html

# One thread per process. Ratios then compare algorithms and not the number of cores; and the test
# processes use all cores already, where more threads would mostly wait for each other.
bench docs test quick-tests test-slow: export OMP_NUM_THREADS = 1
bench docs test quick-tests test-slow: export OPENBLAS_NUM_THREADS = 1
bench docs test quick-tests test-slow: export MKL_NUM_THREADS = 1
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/ranking.py
	$(BIN)/python benchmarks/ranking_models.py
	$(BIN)/python benchmarks/semantics.py
	$(BIN)/python benchmarks/zeroshot.py
	$(BIN)/python benchmarks/command.py
	$(BIN)/python benchmarks/inference.py
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/survey.py

# Needs a CUDA device; without one it says so.
bench-gpu: $(VENV)/.bench
	$(BIN)/python benchmarks/gpu.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis docs/_build docs/gallery docs/api/generated

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/.demo: $(VENV)/.core
	$(PIP) --editable '.[cli,report]'
	touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) --editable '.[test]'
	touch $@

$(VENV)/.bench: $(VENV)/.core
	$(PIP) --editable '.[bench]'
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) --editable '.[docs]'
	touch $@

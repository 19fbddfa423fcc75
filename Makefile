# make demo, make test and make bench install what they need into .venv.
# make test also needs a browser and PostgreSQL: see scripts/system_packages.sh.
# SYSTEM_PACKAGES=no make test installs no Debian packages.
PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt

# Compiled files are kept even if the environment says otherwise: the tests start many processes, and
# each of them would compile all that it imports.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test check system-packages types quick-tests site-tests core-alone coverage test-slow test-lowest reproduce examples batches together defaults names overview docs first-image screenshots dist hooks bench bench-gpu claims clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/rankshot demo

test:
	$(MAKE) --jobs 2 $(VENV)/.test system-packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --jobs 4 types core-alone site-tests quick-tests

# All of it, before a release; only the benchmarks are apart.
check: test
	$(MAKE) test-slow
	$(MAKE) test-lowest
	$(MAKE) coverage
	$(MAKE) dist

system-packages:
	bash scripts/system_packages.sh

# These are checked while the tests start: many of the tests wait for a browser or a server.
types: $(VENV)/.test
	$(BIN)/mypy

quick-tests: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile -m 'not slow' --ignore tests/site \
	    --durations 100 --durations-min 1

site-tests: docs
	$(BIN)/python -m pytest --numprocesses 1 -m 'not slow' tests/site

# The tests and examples of three layers, and the share of their lines that these run, with every
# line that is left out. Less than 95 % of one layer fails. Measuring makes tests slower, so this is
# apart from `make test`.
LAYERS := ranking sources zeroshot
coverage: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile -m 'not slow' --cov --cov-report= \
	    $(LAYERS:%=tests/%) $(LAYERS:%=src/rankshot/%)
	for layer in $(LAYERS); do \
	    $(BIN)/python -m coverage report --show-missing --fail-under 95 --include "src/rankshot/$$layer/*" \
	        || exit 1; done

# The slow tests: whole experiments, examples with networks, crowds and killed processes.
# Those of the site have processes of their own: other tests leave an event loop, which its browser
# cannot use.
test-slow: $(VENV)/.test docs
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile -m slow --ignore tests/site
	$(BIN)/python -m pytest --numprocesses auto -m slow tests/site

# The lowest versions of dependencies, in an environment of their own. It has no torch. The command,
# the survey, clusters and models are not tested with the lowest versions of what they need.
# Old versions use what newer versions of their own dependencies, and of pytest, deprecate. The
# estimator checks of scikit-learn 1.6 need SciPy's support of the array API.
test-lowest: $(LOWEST)/.test
	SCIPY_ARRAY_API=1 $(LOWEST)/bin/python -m pytest --numprocesses auto --dist loadfile -m 'not slow' \
	    -W ignore::DeprecationWarning -W 'ignore:Passing a non-Collection iterable' \
	    tests/core tests/ranking tests/sources tests/zeroshot tests/pages \
	    src/rankshot/core src/rankshot/ranking src/rankshot/sources src/rankshot/zeroshot

# A release in dist/: built, checked, and installed into a fresh environment for each extra alone.
# EXTRAS="parquet onnx" installs only these; EXTRAS=--core installs none, as `make test` does.
dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist/survey survey
	$(BIN)/python scripts/check_dist.py $(EXTRAS)

core-alone:
	$(MAKE) dist EXTRAS=--core

# The checks before each commit, and a first run of them on all files.
hooks: $(VENV)/.test $(VENV)/.hooks
	$(BIN)/pre-commit install
	$(BIN)/pre-commit run --all-files

# The paper's tables and figures on the full data: make reproduce DATA=cifar FROM=DIRECTORY. See
# reproduction/README.md.
reproduce: $(VENV)/.reproduce
	$(BIN)/python -m reproduction $(DATA) $(FROM)

# The next four write sections of docs/results/accuracies.md. OPTIONS="--data sounds --draws 3"
# measures less, and OPTIONS="--old FOLDER" compares with the source of version 0.3.
# Rankings and labelled examples together, against each of them alone: make examples FROM=DIRECTORY.
examples: $(VENV)/.reproduce
	$(BIN)/python -m reproduction.examples_table $(FROM) $(OPTIONS)

# Inputs predicted as a batch, against one at a time: make batches FROM=DIRECTORY.
batches: $(VENV)/.reproduce
	$(BIN)/python -m reproduction.batches $(FROM) $(OPTIONS)

# Old and new classes together, within a budget: make together FROM=DIRECTORY.
together: $(VENV)/.reproduce
	$(BIN)/python -m reproduction.together $(FROM) $(OPTIONS)

# The default numbers, chosen again on held-out seen classes: make defaults FROM=DIRECTORY. It writes
# docs/results/defaults.md, in at most half an hour on two cores.
defaults: $(VENV)/.reproduce
	$(BIN)/python -m reproduction.defaults $(FROM) $(OPTIONS)

# Rankings from names alone: make names FROM=DIRECTORY LISTS=FOLDER.
names: $(VENV)/.reproduce
	$(BIN)/python -m reproduction.names $(FROM) $(if $(LISTS),--lists $(LISTS))

# New classes alone, beside rules of one line: make overview FROM=DIRECTORY. It writes two sections of
# docs/results/accuracies.md, and puts the first table into README.md and the first page.
overview: $(VENV)/.reproduce
	$(BIN)/python -m reproduction.overview $(FROM) $(OPTIONS)
	$(BIN)/python scripts/fill_accuracies.py

# The documentation site, in docs/_build/html. Its gallery runs; warnings are errors.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html

# The first image of README and site, from a run of the README's program.
first-image: $(VENV)/.test
	$(BIN)/python scripts/draw_first_image.py

# The images in docs/images, from the built site, the demonstration and a survey.
screenshots: $(VENV)/.test docs first-image
	$(BIN)/python scripts/draw_examples.py
	$(BIN)/python scripts/take_screenshots.py

# One thread per process. Ratios then compare algorithms and not the number of cores; and the test
# processes use all cores already, where more threads would mostly wait for each other.
batches together bench claims defaults names overview docs first-image examples test quick-tests site-tests coverage test-slow test-lowest: export OMP_NUM_THREADS = 1
batches together bench claims defaults names overview docs first-image examples test quick-tests site-tests coverage test-slow test-lowest: export OPENBLAS_NUM_THREADS = 1
batches together bench claims defaults names overview docs first-image examples test quick-tests site-tests coverage test-slow test-lowest: export MKL_NUM_THREADS = 1
# Every file runs, also after one that missed a limit; then it fails.
BENCHMARKS := ranking ranking_models sources zeroshot command recognition jobs survey
bench: $(VENV)/.bench
	missed=; for each in $(BENCHMARKS); do \
	    $(BIN)/python benchmarks/$$each.py || missed="$$missed $$each"; done; \
	if [ -n "$$missed" ]; then echo "missed:$$missed" >&2; exit 1; fi

claims: $(VENV)/.core
	$(BIN)/python benchmarks/claims.py

# Needs a CUDA device; without one it says so.
bench-gpu: $(VENV)/.bench
	$(BIN)/python benchmarks/gpu.py

clean:
	rm -rf $(VENV) $(LOWEST) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis docs/_build docs/gallery docs/api/generated

# Old versions of pip take twice as long to find and unpack what the tests need.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/.demo: $(VENV)/.core
	$(PIP) --editable '.[cli]'
	touch $@

# In one call: each takes a while to find out what is there.
$(VENV)/.test: $(BIN)/python pyproject.toml survey/pyproject.toml constraints.txt
	$(PIP) --editable '.[docs,release,test]' --editable './survey[postgresql]'
	touch $(VENV)/.core $(VENV)/.docs $(VENV)/.dist $@

$(VENV)/.reproduce: $(VENV)/.core
	$(PIP) --editable '.[cli,vectors]'
	touch $@

$(VENV)/.bench: $(VENV)/.core
	$(PIP) --editable '.[bench]' --editable './survey[postgresql]'
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.dist: $(VENV)/.core
	$(PIP) --editable '.[release]'
	touch $@

$(VENV)/.hooks: $(VENV)/.core
	$(PIP) --editable '.[hooks]'
	touch $@

$(LOWEST)/.test: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check install --quiet --no-compile \
	    --constraint constraints-lowest.txt --editable '.[test-core]'
	touch $@

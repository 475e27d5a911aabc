# Every target sets up what it needs: a machine with python3 and the package index is enough.
PYTHON ?= python3
BIN := .venv/bin
# the distributions beside orthocal itself
APPS := $(patsubst %/pyproject.toml,%,$(sort $(wildcard apps/*/pyproject.toml)))
EDITABLE_APPS := $(addprefix --editable ,$(APPS))
PROJECTS := pyproject.toml $(addsuffix /pyproject.toml,$(APPS))
# one BLAS thread a process: the tests share the cores already
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# worksteal: tests of one file mostly run in one process, which makes their fixtures and compiled code once
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: help venv locked lock demo test test-slow test-min test-pythons test-mutations test-browser bench lint docs changelog clean

help:
	@echo "make demo          calibrate the built-in example and write a report into demo/"
	@echo "make test          the fast test suite, with that of the applications"
	@echo "make test-slow     the long statistical tests"
	@echo "make test-min      the fast test suite without extras, in .venv-min"
	@echo "make test-pythons  the fast test suite on every python3.x from 3.11 that is installed, in .venv-3.x"
	@echo "make test-mutations  whether the fast tests notice errors in the numerical core, one line each"
	@echo "make test-browser  every kind of page in chromium, which the system must have (Debian: apt install chromium)"
	@echo "make docs          the documentation site, notebooks and gallery executed, into site/"
	@echo "make bench         speed, side by side with peers"
	@echo "make changelog VERSION=0.3.0  the one-line files of changes/ into CHANGELOG.md, at a release"
	@echo "make lint          ruff, mypy --strict and import-linter: style, types, layers"
	@echo "make venv          only make .venv, with everything the tests need"
	@echo "make locked        the same with the versions of requirements-dev.lock, each file checked by its digest"
	@echo "make lock          write requirements-dev.lock anew, with the versions of today"

venv: .venv/ready-dev

# The stamps make a second run free; a change of a pyproject.toml installs anew.
.venv/ready: $(PROJECTS)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . $(EDITABLE_APPS)
	@touch $@

.venv/ready-dev: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint]'
	@touch $@

# What the other targets then find ready. The packages themselves are built without an index, by what the lock has installed.
locked: requirements-dev.lock
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . $(EDITABLE_APPS)
	@touch .venv/ready .venv/ready-dev

lock: .venv/ready
	$(BIN)/python .ci/lock.py

demo: .venv/ready
	$(BIN)/orthocal demo --out demo

test: .venv/ready-dev
	$(PYTEST)

test-slow: .venv/ready-dev
	$(PYTEST) -m slow -rP

.venv-min/ready: $(PROJECTS)
	$(PYTHON) -m venv .venv-min
	.venv-min/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	.venv-min/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test-min]' $(EDITABLE_APPS)
	@touch $@

# -rs: what was skipped, and the extra that it needs
test-min: .venv-min/ready
	$(ONE_THREAD) .venv-min/bin/python -m pytest -n auto -rs $(ARGS)

# a part of it: make test-pythons ARGS=tests/problem
test-pythons:
	$(ONE_THREAD) $(PYTHON) tests/every_python.py $(ARGS)

# a part of it: make test-mutations ARGS="slice hmc"
test-mutations: .venv/ready-dev
	$(BIN)/python tests/mutations/run.py $(ARGS)

.venv/ready-browser: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	@touch $@

# The browser is the chromium of the system (Debian: apt install chromium); playwright downloads none.
test-browser: .venv/ready-browser
	ORTHOCAL_SCREENSHOTS=build/screenshots $(ONE_THREAD) $(BIN)/python -m pytest -m browser -rs tests/browser $(ARGS)

.venv/ready-bench: .venv/ready-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

# a part of it: make bench ARGS="bart large_data"; its parts: ARGS=--list; kept in benchmarks/history.json: ARGS="--record bart"
bench: .venv/ready-bench
	$(BIN)/python benchmarks/run.py $(ARGS)

.venv/ready-docs: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

# Warnings are errors. What is executed is kept in build/docs, for as long as the package does not change; site/ is the
# last build that was whole.
docs: .venv/ready-docs
	$(ONE_THREAD) $(BIN)/python -m sphinx -b html -W --keep-going -j auto -d build/docs/doctrees docs build/docs/html
	$(BIN)/python docs/_ext/check_site.py build/docs/html
	rm -rf site && cp -r build/docs/html site

changelog:
	$(PYTHON) .ci/changelog.py $(VERSION)

lint: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv .venv-* demo build dist site docs/generated .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

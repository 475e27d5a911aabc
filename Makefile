# Every target sets up what it needs: a machine with python3 and the package index is enough.
PYTHON ?= python3
BIN := .venv/bin
# one BLAS thread a process: the tests share the cores already
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

.PHONY: help venv demo test test-slow bench lint clean

help:
	@echo "make demo       calibrate the built-in example and write a report into demo/"
	@echo "make test       the fast test suite"
	@echo "make test-slow  the long statistical tests"
	@echo "make bench      speed, side by side with peers"
	@echo "make lint       ruff, mypy --strict and import-linter: style, types, layers"
	@echo "make venv       only make .venv, with everything the tests need"

venv: .venv/ready-dev

# The stamps make a second run free; a change of pyproject.toml installs anew.
.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/ready-dev: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint]'
	@touch $@

demo: .venv/ready
	$(BIN)/orthocal demo --out demo

test: .venv/ready-dev
	$(PYTEST)

test-slow: .venv/ready-dev
	$(PYTEST) -m slow -rP

.venv/ready-bench: .venv/ready-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

bench: .venv/ready-bench
	$(BIN)/python benchmarks/run.py

lint: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

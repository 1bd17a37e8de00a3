# Every target builds .venv by itself. A stamp per extra makes the second time fast; a change of the pins or of pyproject.toml renews it.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test coverage slow fuzz pythons lint docs bench clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/'

demo: .venv/ready  ## the autoscaler learned, compared and plotted to out/demo.png
	$(BIN)/pkd demo

test: .venv/ready-test  ## run the tests, without the slow ones
	$(BIN)/python -m pytest -n auto $(TEST_OPTIONS)

coverage:  ## the same tests, and which branches outside of the kernels they miss; fails below 95%
	$(MAKE) test TEST_OPTIONS=--cov

slow: .venv/ready-test  ## run the slow tests
	$(BIN)/python -m pytest -m slow

fuzz: .venv/ready-test  ## attack everything with random and damaged input for four minutes
	$(BIN)/python -m tests.fuzz --seconds 240

pythons:  ## run the tests with every Python from 3.11 on that is here; names the missing ones
	bash .ci/pythons

lint: .venv/ready-lint  ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/ready-docs  ## build the pages into docs/_build; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build

bench: .venv/ready-bench  ## measure beside peers and write the tables into out/
	$(BIN)/python benchmarks/bench.py --out out

clean:  ## remove what the other targets made
	rm -rf .venv .venv-* .coverage* build dist out docs/_build docs/_gallery docs/jupyter_execute .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

.venv/ready: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable .
	@touch $@

.venv/ready-test: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable '.[test]'
	$(INSTALL) --no-deps stockpyl
	@touch $@

.venv/ready-%: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) --editable '.[$*]'
	@touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv

# The few words that a person types. `make` alone lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test lint format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## everything, into .venv

# torch comes first and alone: whatever build of it is found then satisfies the extras, and no second one is fetched.
# bfcl-eval brings only its data: its own dependencies are clients of a dozen model vendors.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 11) or sys.exit("error: toolcrib needs Python 3.11 or newer, and $(PYTHON) is %d.%d; try: make PYTHON=python3.11" % v)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt -e '.[train,dev]'
	$(BIN)/pip install --quiet -c constraints.txt --no-deps bfcl-eval
	@touch $@

demo: $(STAMP) ## the whole loop on real data, into runs/demo
	$(BIN)/toolcrib demo

test: export HF_HUB_OFFLINE = 1
test: export TRANSFORMERS_OFFLINE = 1
test: lint ## lint, types, import floors and every test
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

lint: $(STAMP) ## style, without changing anything
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(STAMP) ## style, applied
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove caches and builds; .venv, runs/ and mlruns/ stay
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

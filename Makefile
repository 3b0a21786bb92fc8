# Each target makes .venv and installs what it needs; nothing has to be done before.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
NATIVE := CMakeLists.txt pyproject.toml $(wildcard csrc/*)

.PHONY: setup check test bench demo sanitize clean

setup: $(VENV)/.dev

# The package alone: what a user installs.
$(VENV)/.base: $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -e .
	touch $@

# The package with what its tests and checks compare it with.
$(VENV)/.dev: $(VENV)/.base
	$(BIN)/pip install --quiet -e ".[dev]"
	touch $@

demo: $(VENV)/.base
	$(BIN)/unspool demo

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: $(VENV)/.dev
	$(BIN)/pytest

bench: $(VENV)/.dev
	$(BIN)/pip install --quiet -e ".[bench]"
	$(BIN)/python bench/run.py

sanitize: $(VENV)/.dev
	$(BIN)/python tests/sanitize.py

clean:
	rm -rf build $(VENV)

# Each target makes .venv and installs what it needs; nothing has to be done before.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
NATIVE := CMakeLists.txt pyproject.toml $(wildcard csrc/*.* csrc/*/*.* csrc/*/*/*.*)

install_extra = $(BIN)/python -c 'import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*extras["$(1)"], sep="\n")' > $(VENV)/$(1).txt && $(BIN)/pip install --quiet -r $(VENV)/$(1).txt

.PHONY: setup check test test-browser docs-check bench demo sanitize arm browser clean

setup: $(VENV)/.dev

# The package alone: what a user installs.
$(VENV)/.base: $(NATIVE)
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo 'unspool needs Python 3.11 or newer, and $(PYTHON) is not: install one and name it, for example make demo PYTHON=python3.12'; exit 1; }
	@for each in $(CXX) c++ g++ clang++; do command -v $$each >/dev/null && exit 0; done; \
	  echo 'unspool needs a C++17 compiler, and there is none: install one (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; macOS: xcode-select --install)'; exit 1
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'The native module is compiled now, which takes about a minute.'
	$(BIN)/pip install --quiet -e .
	touch $@

# The package with what its tests and checks compare it with. The extra alone: to install the package again would compile it again.
$(VENV)/.dev: $(VENV)/.base
	$(call install_extra,dev)
	touch $@

demo: $(VENV)/.base
	$(BIN)/unspool demo

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: $(VENV)/.dev
	$(BIN)/pytest --ignore=tests/studio/browser

# The studio's page in Chromium; these tests wait for a browser, so a busy machine can fail them.
test-browser: browser $(VENV)/.dev
	$(BIN)/pytest tests/studio/browser

# The printed outputs of all pages; texts are read from the folder that UNSPOOL_DATA names.
docs-check: $(VENV)/.dev
	$(BIN)/python docs/reprint.py
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_architecture.py

bench: $(VENV)/.dev
	$(call install_extra,bench)
	$(BIN)/python bench/run.py

sanitize: $(VENV)/.dev
	$(BIN)/python tests/sanitize.py

# The kernels on x86-64 and, in an emulator, on ARM.
arm:
	@$(PYTHON) tests/arm/run.py

# Debian's Chromium, for the tests of the studio's page; without it they are skipped. It never fails.
browser:
	@command -v chromium >/dev/null || { command -v apt-get >/dev/null && { apt-get update && apt-get install --yes chromium; } >/dev/null 2>&1; } || \
	  echo 'The tests of the page are skipped: Chromium cannot be installed here (Debian, as root: apt-get update && apt-get install chromium)'

clean:
	rm -rf build $(VENV)

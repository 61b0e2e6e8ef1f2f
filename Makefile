# Needs python3 (3.11 or newer), make and pip; every command below builds .venv by itself.
#   make demo    certificates of well-known methods, then the counterexample figure
#   make test    the whole test suite         (JOBS=N worker processes, 2 unless said)
#   make lint    ruff and the type checker
#   make bench   the benchmarks, side by side with peers
#   make docs    the documentation site, in site/

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# One thread a process: worker processes already fill the cores, and sums keep one order.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench docs install browser

help:
	@sed -n 's/^#   //p' Makefile

install: $(STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "generic-adam needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamp is older than pyproject.toml or constraints.txt exactly when the environment may be out of date.
$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(STAMP)
	@$(BIN)/generic-adam demo

# The explorer page is tested in a real browser: found, or installed from the system's packages where that is allowed.
browser:
	@command -v chromedriver >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get -qq update && apt-get -qq -y install chromium chromium-driver >/dev/null; } || \
		echo "No browser (chromium with chromedriver) was found or could be installed: its tests will be skipped." >&2

test: $(STAMP) browser
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

bench: $(STAMP)
	@set -e; for script in benchmarks/*.py; do \
		case $$script in benchmarks/machine.py|benchmarks/__init__.py) continue ;; esac; \
		echo "== $$script"; $(BIN)/python $$script; done

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

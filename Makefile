# The verbs of this project. Each sets up what it needs in .venv: Python 3.11 or newer and make are enough to start.

PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
            $(shell $(p) -c 'import sys; print("$(p)" if sys.version_info >= (3, 11) else "")' 2>/dev/null)))
BIN := .venv/bin
READY := .venv/.ready
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses=4 --dist worksteal
FOLDERS := api benchmarks cli core migrations plugins storage tests

.PHONY: demo test gold check bench clean

demo: $(READY)  # build a small database, search it, query the hits by SQL
	@$(BIN)/seqloom demo

test: $(READY)  # the tests
	$(PYTEST) -m "not gold" $(ARGS)

gold: $(READY)  # agreement with other programs on larger data, every width of vectors, more kills; slower
	$(PYTEST) -m gold $(ARGS)

check: $(READY)  # style, types, tests
	$(BIN)/ruff check $(FOLDERS)
	rm -rf .types && mkdir -p .types/seqloom
	ln -s $(CURDIR)/api/* $(foreach f,cli core migrations plugins storage,$(CURDIR)/$(f)) .types/seqloom
	cd .types && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p seqloom
	$(MAKE) test

bench: $(READY)  # comparisons with other programs
	$(BIN)/python -m benchmarks $(ARGS)

clean:  # remove what these verbs made
	rm -rf .venv .types build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "seqloom needs Python 3.11 or newer (make PYTHON=/path/to/python)" >&2; exit 1; }
	@echo "setting up .venv, once; this takes a minute or two"
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e ".[test]"
	@touch $@

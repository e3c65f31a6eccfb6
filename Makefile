# The verbs of this project. Each sets up what it needs in .venv: Python 3.11 or newer and make are enough to start.

PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
            $(shell $(p) -c 'import sys; print("$(p)" if sys.version_info >= (3, 11) else "")' 2>/dev/null)))
OLD_PYTHON ?= $(firstword $(foreach p,python3 python3.11 python3.12,\
            $(shell $(p) -c 'import sys; print("$(p)" if (3, 11) <= sys.version_info < (3, 13) else "")' 2>/dev/null)))
BIN := .venv/bin
READY := .venv/.ready
TESTS := -m pytest -n auto --maxprocesses=4 --dist worksteal
PYTEST := $(BIN)/python $(TESTS)
PIP := bin/python -m pip install -qq --disable-pip-version-check --no-compile  # modules are, when they are imported
FOLDERS := api benchmarks cli core migrations plugins storage tests

.PHONY: demo test gold plain lowest newest kills check bench pictures fuzz clean

demo: $(READY)  # build a small database, search it, query the hits by SQL
	@$(BIN)/seqloom demo

test: $(READY)  # the tests
	$(PYTEST) -m "not gold" $(ARGS)

gold: $(READY)  # agreement with other programs on larger data, every width of vectors, more kills; slower
	$(PYTEST) -m "gold and not plain" $(ARGS)

plain: $(READY)  # kernels as numba alone compiles them give the same bytes; slower
	$(PYTEST) -m plain $(ARGS)

lowest: .venv-lowest/.ready  # the tests with the oldest versions that pyproject.toml allows
	.venv-lowest/bin/python $(TESTS) -m "not gold" $(ARGS)

newest:  # the tests with the newest versions that there are
	@test -x .venv-newest/bin/pip || $(PYTHON) -m venv --clear .venv-newest
	.venv-newest/$(PIP) -U --upgrade-strategy eager -e ".[test]"
	.venv-newest/bin/python $(TESTS) -m "not gold" $(ARGS)

kills: $(READY)  # kill commands at calls that change files, and make these fail: make kills MINUTES=20
	$(BIN)/python -m tests.kills --seconds $$(( $(or $(MINUTES),20) * 60 )) $(ARGS)

check: $(READY)  # style, types, tests
	$(BIN)/ruff check $(FOLDERS)
	rm -rf .types && mkdir -p .types/seqloom
	ln -s $(CURDIR)/api/* $(foreach f,cli core migrations plugins storage,$(CURDIR)/$(f)) .types/seqloom
	cd .types && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml -p seqloom
	$(MAKE) test

bench: $(READY)  # comparisons with other programs
	$(BIN)/python -m benchmarks $(ARGS)

pictures: $(READY)  # pictures of the documentation; needs chromium and chromedriver
	$(BIN)/python -m benchmarks.pictures

fuzz: $(READY)  # mutated input for everything that is read, 10 minutes; ARGS="--minutes 60 --target toml"
	$(BIN)/python -m tests.fuzz $(ARGS)

clean:  # remove what these verbs made
	rm -rf .venv .venv-lowest .venv-newest .types build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "seqloom needs Python 3.11 or newer (make PYTHON=/path/to/python)" >&2; exit 1; }
	@echo "setting up .venv, once; this takes a minute or two"
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@.venv/$(PIP) -e ".[test]"
	@touch $@

.venv-lowest/.ready: pyproject.toml tests/floors.py
	@test -n "$(OLD_PYTHON)" || { echo "these versions need Python 3.11 or 3.12 (make lowest OLD_PYTHON=/path/to/python)" >&2; exit 1; }
	@echo "setting up .venv-lowest, once; this takes a minute or two"
	@$(OLD_PYTHON) -m venv --clear .venv-lowest
	@$(OLD_PYTHON) tests/floors.py > .venv-lowest/floors.txt
	@.venv-lowest/$(PIP) -c .venv-lowest/floors.txt -e ".[test]"
	@touch $@

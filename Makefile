# The commands of this project; `make help` lists them. Needs make and Python 3.11 or newer, nothing else.
#
# Recipes keep standard output for what was asked for: `make gtp` speaks GTP there, so all that installing prints goes
# to standard error. (`make -C FOLDER gtp` says on standard output that it enters the folder; give it -s as well.) Three
# stamps in .venv say what is installed there; they are older than pyproject.toml or constraints.txt exactly when pip
# has to look again.

PYTHON ?= python3
# More options for the engine (`make gtp ARGS="--visits 500"`), for pytest (`make test ARGS="-k ladder"`) and for pip.
ARGS ?=
PIP_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PLAY := $(VENV)/installed-play
DEV := $(VENV)/installed-dev
DOCS := $(VENV)/installed-docs
INSTALL = $(BIN)/python -m pip install --disable-pip-version-check $(PIP_ARGS) -c constraints.txt
SOURCES := keima engine gtp bench weights tests docs

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help play gtp test test-slow lint bench map signature docs wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-11s %s\n", $$1, $$2 }' Makefile

play: $(PLAY) ## install if needed, then play in the browser
	@trap : INT; $(BIN)/keima play $(ARGS) || [ $$? -eq 130 ]

gtp: $(PLAY) ## install if needed, then play: GTP on standard input and output
	@trap : INT; $(BIN)/keima gtp $(ARGS) || [ $$? -eq 130 ]

test: $(DEV) ## run the default test suite, on up to four cores
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile $(ARGS)

test-slow: $(DEV) ## run the tests that take minutes, or measure time: on a quiet machine
	@$(BIN)/python -m pytest -m slow $(ARGS)

lint: $(DEV) ## check style, formatting and types
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy

bench: $(DEV) ## measure the speed of rollouts, encoders and networks, then play a short match of small search against none
	@$(BIN)/python -m bench.speed.rollouts
	@$(BIN)/python -m bench.speed.features
	@$(BIN)/python -m bench.speed.inference
	@$(BIN)/keima match --size 9 --games 4 --first "$(BIN)/keima gtp --visits 50" --second "$(BIN)/keima gtp --policy-only" $(ARGS)

map: $(DEV) ## write what docs/gtp.md and docs/rules.md list of the sources anew
	@$(BIN)/python -m tests.listed

signature: $(DEV) ## print a hash of what the search does; it changes only in commits that mean it to
	@$(BIN)/python -m bench.strength.signature

docs: $(DOCS) ## build the site, build/site/index.html: all pages, and the reference of the package keima
	@$(BIN)/python -m sphinx -q -E -a -W --keep-going -c docs -d build/doctrees . build/site $(ARGS)
	@echo "the site is build/site/index.html" >&2

wheel: $(BIN)/python ## build dist/keima-*.whl, and the source distribution that it is built from
	@$(INSTALL) build >&2
	@$(BIN)/python -m build

clean: ## remove what was built and installed here; compiled kernels stay in the user's cache folder
	@rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find $(SOURCES) -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"Keima needs Python 3.11 or newer, not {sys.version.split()[0]}: try make PYTHON=python3.12" or 0)'
	@echo "creating $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV) >&2 || { rm -rf $(VENV); exit 1; }

# Editable, so that an edit is in force at the next start.
$(PLAY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing Keima into $(VENV); the first time this takes minutes" >&2
	@$(INSTALL) --editable . >&2
	@$(BIN)/python -m gtp.startup
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing Keima and its test tools into $(VENV); the first time this takes minutes" >&2
	@$(INSTALL) --editable ".[dev]" >&2
	@touch $(PLAY) $(DOCS) $@

$(DOCS): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing Keima and what builds its site into $(VENV); the first time this takes minutes" >&2
	@$(INSTALL) --editable ".[docs]" >&2
	@touch $(PLAY) $@

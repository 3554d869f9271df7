# The verbs of this project. Every one sets up .venv first if it is missing or out of date.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= dev
CONSTRAINTS ?= constraints.txt
BENCH ?= runs/bench
comma := ,
STAMP := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))

.DEFAULT_GOAL := help
.PHONY: help install demo test test-oldest test-newest device-test torture check format docs notebooks bench reproduction release-check clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

install: $(STAMP)  ## set up .venv with everything that demo, test and check need, or with EXTRAS=dev,examples

$(STAMP): pyproject.toml $(CONSTRAINTS)
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found; say which Python to use: make PYTHON=python3.12 ..."; exit 1; }
	[ "$$($(BIN)/python -V 2>/dev/null)" = "$$($(PYTHON) -V)" ] || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[$(EXTRAS)]'
	@touch $@

demo: $(STAMP)  ## race four strategies on DeepSea and make a page of it (under three minutes)
	$(BIN)/bootdqn demo --out runs/demo

test: $(STAMP)  ## run the tests
	$(BIN)/python -m pytest -n auto --dist loadfile

test-oldest:  ## run the tests with the oldest direct dependencies that pyproject.toml admits, in .venv-oldest
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=build/oldest.txt

test-newest:  ## run the tests with the newest versions of everything, in .venv-newest; PyTorch brings CUDA, 5 GB
	PIP_UPGRADE=1 PIP_UPGRADE_STRATEGY=eager $(MAKE) --always-make test VENV=.venv-newest CONSTRAINTS=/dev/null

build/oldest.txt: pyproject.toml
	mkdir -p build
	$(PYTHON) tests/oldest_versions.py $(EXTRAS) > $@

device-test:  ## run the learners on PyTorch/XLA's CPU device beside the CPU, in .venv-xla; PyTorch 2.9 brings CUDA, 6 GB
	$(MAKE) install VENV=.venv-xla EXTRAS=xla CONSTRAINTS=build/xla.txt
	PJRT_DEVICE=CPU .venv-xla/bin/python -m pytest tests/devices -rP

build/xla.txt: constraints.txt
	mkdir -p build
	grep -v '^torch==' constraints.txt > $@

torture: $(STAMP)  ## stop, kill, damage and starve runs hundreds of times; they must go on all the same (many minutes)
	$(BIN)/python -m pytest --torture tests/torture -n 2 --timeout 3600 -rP

check: $(STAMP)  ## formatting, lint, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs:  ## build the documentation site, build/docs/index.html; a broken link is an error (installs the docs extra)
	$(MAKE) install EXTRAS=$(EXTRAS),docs
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going -c docs/site -d build/doctrees . build/docs
	@echo "open build/docs/index.html"

notebooks:  ## execute the notebooks again and keep their outputs (installs the docs extra)
	$(MAKE) install EXTRAS=$(EXTRAS),docs
	$(BIN)/jupyter execute --inplace --NotebookClient.record_timing=False examples/notebooks/*.ipynb

bench:  ## measure speed beside its peers, one table at the end (under ten minutes; installs the bench extra)
	$(MAKE) install EXTRAS=dev,bench
	$(BIN)/python -m benchmarks.run_all --out $(BENCH)

reproduction: $(STAMP)  ## write the numbers and figures of the docs from the runs in reproduction/results/
	$(BIN)/python -m reproduction.write_docs

release-check:  ## build wheel and sdist, and try every command of the wheel in an empty environment (some minutes)
	$(PYTHON) tests/release_check.py

clean:  ## remove .venv and caches, keep runs
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

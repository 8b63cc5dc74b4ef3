# make demo    set up, run the main job on the embedded default, print where report and figures are
# make demo-collected   small models on ANLI and AdversarialQA, which come from the hub
# make test    set up, run linters and tests
# make test-slurm   the workflow through a real SLURM of one node (root; installs Debian's packages)
# make test-study   the study of config/config.yaml, every model and data set in miniature (an hour on 2 cores)
# make bench   speed and memory against peers, as ratios (SMALL=1: the short rows)
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CORES ?= 2
DEMO := results/demo
INSTALL := UV_FIND_LINKS="$${PIP_FIND_LINKS:-}" $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c envs/constraints.txt
export PATH := $(CURDIR)/$(BIN):$(PATH)
export HF_HUB_DISABLE_TELEMETRY := 1
# Without compiled modules every job would spend most of its start-up on compiling.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo demo-collected test test-slurm test-study lint bench docs clean

help:
	@grep -E '^# make' Makefile | sed 's/^# //'

setup: $(READY)

$(READY): pyproject.toml envs/constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else f"Python {v[0]}.{v[1]} found, 3.11 or later needed: run make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)")'
	@echo "Setting up $(VENV) (once; downloads about 1 GB, more where torch comes with CUDA)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(INSTALL) -e '.[dev,slurm]'
	@touch $(READY)

demo: $(READY)
	@$(BIN)/snakemake --cores $(CORES) --configfile config/demo.yaml
	@$(MAKE) --no-print-directory $(DEMO)/report.html
	@$(BIN)/advsets summary $(DEMO)

demo-collected: $(READY)
	@$(BIN)/snakemake --cores $(CORES) --configfile config/demo_collected.yaml
	@$(BIN)/advsets summary results/demo_collected

$(DEMO)/report.html: $(wildcard $(DEMO)/figures/*.png) $(wildcard $(DEMO)/evaluation/findings.md)
	@$(BIN)/snakemake --report $@ --configfile config/demo.yaml --quiet

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/mypy
	$(BIN)/snakemake --lint --configfile config/smoke.yaml

test: lint
	$(BIN)/python -m pytest

test-slurm: $(READY)
	ADVSETS_TEST_SLURM=1 $(BIN)/python -m pytest tests/slurm

test-study: $(READY)
	ADVSETS_TEST_STUDY=1 $(BIN)/python -m pytest -s tests/workflow/test_study.py

bench: $(READY)
	@$(INSTALL) -e '.[dev,slurm,bench]'
	@$(BIN)/python tests/bench $(if $(SMALL),--small)

docs: $(READY)
	$(BIN)/advsets keys > config/README.md

clean:
	rm -rf results .snakemake

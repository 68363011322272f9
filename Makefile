# `make report` and `make test` do their own set-up; everything else is told by `.venv/bin/ttf --help`.
PYTHON ?= python3
BIN := .venv/bin
# Typed values reach programs through the environment, so that neither a shell nor make expands them: a name may have
# quotes, $(...) or line breaks. DATA and ONLY are common names; what the shell has exported as them is ignored.
TYPED := DATA CONFIG TRACE ONLY
$(foreach name,DATA ONLY,$(if $(findstring environment,$(origin $(name))),$(eval override $(name) :=)))
$(foreach name,$(TYPED),$(eval override $(name) := $$(value $(name))))
export $(TYPED)
# Some containers forbid bytecode; then every job would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := report
.PHONY: help report test test-module test-slurm test-store test-faults test-tools lint format docs coverage gallery samples bench lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1: /p' Makefile

report: .venv/study.lock  ## run the study on the sample, or DATA=a folder or table, CONFIG=a file, TRACE=names
	@exec $(BIN)/ttf report --config="$$CONFIG" --trace="$$TRACE" -- "$$DATA"

test: .venv/test.lock  ## run the tests, or ONLY=a folder, a file or an expression; some need `make test-tools`
	@$(BIN)/python tests/run_tests.py --only="$$ONLY"

test-module: .venv/test.lock  ## run the study as a module of another workflow, and docs/tutorial.md
	@$(BIN)/python -m pytest -n auto tests/module

test-slurm: .venv-cluster/cluster.lock  ## test on a real Slurm of two nodes on this machine (root)
	@.venv-cluster/bin/python -m pytest tests/slurm

test-store: .venv-kubernetes/kubernetes.lock  ## test a study with its products in an S3 store on loopback
	@.venv-kubernetes/bin/python -m pytest tests/store

test-faults: .venv/test.lock  ## test with mutated inputs, kills and full disks: docs/reliability.md
	@$(BIN)/python tests/faults/run.py $(if $(SEEDS),--seeds $(SEEDS)) --write docs/reliability.md

test-tools:  ## install the system packages of the tests in a browser, with Slurm and against R (Debian or Ubuntu, root)
	@bash tools/setup/test_tools.sh

lint: .venv/test.lock  ## check all files: ruff, docstrings, mypy, snakefmt, snakemake --lint, codespell, yamllint
	@$(BIN)/pre-commit run --config tools/pre-commit.yaml --all-files

format: .venv/test.lock  ## format Python with ruff and rules with snakefmt
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format . && $(BIN)/snakefmt Snakefile workflow

docs: .venv/test.lock  ## write what declarations tell: rules, tables, numbers (after `make report TRACE=all`), keys
	@$(BIN)/python tools/docs/analysis_rules.py
	@$(BIN)/python tools/docs/tables.py docs/tables.md
	@$(BIN)/python tools/docs/metrics.py docs/metrics.md $(wildcard results/sample*/metrics.json)
	@$(BIN)/python tools/docs/configuration.py config/README.md
	@$(BIN)/python tools/docs/wings_diagram.py docs/architecture.md

coverage: .venv/test.lock  ## simulate how often intervals cover the truth and tests reject: docs/coverage.md
	@$(BIN)/python tools/docs/coverage.py docs/coverage.md

gallery: .venv/test.lock  ## make the README's picture of the page, after `make report`
	@$(BIN)/python tools/docs/gallery.py docs/gallery

samples: .venv/test.lock  ## make the embedded samples again, with the same bytes
	@$(BIN)/python tools/bench/samples/make.py

bench: .venv/test.lock .venv-study/study.lock  ## measure time and memory against pandas and DuckDB: docs/performance.md
	@$(BIN)/python tools/bench/run.py

lock: .venv/study.lock  ## resolve pyproject.toml into locks/
	@bash tools/setup/lock.sh $(BIN)

clean:  ## remove products, logs and environments; raw tables under data/ stay
	rm -rf results/* logs benchmarks .snakemake .venv .venv-study .venv-cluster .venv-kubernetes

# An environment is made once, and again only if the content of its lock changes, whatever its date.
.venv/%.lock .venv-study/%.lock .venv-cluster/%.lock .venv-kubernetes/%.lock: locks/%.lock
	@bash tools/setup/install.sh $(PYTHON) $(@D) $<

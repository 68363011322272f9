# Two commands do all the set-up: `make report` and `make test`. `make help` lists the others.
PYTHON ?= python3
# What is typed goes to programs by the environment, where no shell reads it, and make expands nothing in it: a name may
# hold quotes, $(...) or line breaks. Not what a shell happens to have exported under the common ones of these names.
COMMON := DATA STUDY PART SURE FILE FOLDER MODEL OUT RULES AGAINST ONLY VERBOSE
TYPED := $(COMMON) CONFIG TRACE KEY PROFILE CORES
$(foreach name,$(COMMON),$(if $(findstring environment,$(origin $(name))),$(eval override $(name) :=)))
$(foreach name,$(TYPED),$(eval override $(name) := $$(value $(name))))
export $(TYPED)
# Where containers forbid bytecode, every job would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
# PROFILE=slurm, or a folder with a profile of your own: the jobs go to a cluster (docs/cluster.md).
CLUSTER := .venv-$(if $(filter kubernetes,$(notdir $(PROFILE:/=))),kubernetes,cluster)
STORE := .venv-kubernetes
VENV := $(if $(PROFILE),$(CLUSTER),.venv)
ENVIRONMENT := $(VENV)/$(if $(PROFILE),$(CLUSTER:.venv-%=requirements-%),requirements).lock
BIN := $(VENV)/bin

RUN = exec $(BIN)/python

# The study: TRACE=name, CONFIG=file or DATA=folder say what it is made of, STUDY=name is one that was made. Without any
# of them it is the one made last.
SNAKEMAKE = $(RUN) scripts/run_study.py --study="$$STUDY" --config="$$CONFIG" --trace="$$TRACE" --data="$$DATA" \
  $(if $(PROFILE),--workflow-profile="$$PROFILE" $(if $(TRACE),--scatter='scatter={jobs: 16}')) $(if $(CORES),--cores="$$CORES")

# `make help` prints these lines, and the comment of each target below.
## TRACE=names of traces, a comma between two; all: the embedded samples
## CONFIG=the file of a configuration
## DATA=a folder of job records
## STUDY=the name of a study that was made; default: the most recent
## PART=the name of a part of TRACE
## SURE=yes: remove what was listed
## FILE=a product under results/, or a table of new jobs
## KEY=the key of a number in a metrics.json
## VERBOSE=yes: every job behind a number, down to the raw files
## FOLDER=an unpacked archive or a site
## RULES=a file of thresholds
## AGAINST=a folder of earlier results
## MODEL=the window whose model scores; default: the model that serves
## OUT=the file for the scores
## CORES=the number of cores; default: all
## PROFILE=slurm, kubernetes, or a folder with a profile of Snakemake
## ONLY=a folder or a file of tests, or else an expression for the -k of pytest
## SEEDS=numbers, a space between two

.DEFAULT_GOAL := report
.PHONY: help report pdf publish archive remove gallery docs rules coverage snakemake-report verify explain check score check-resources test test-module test-slurm test-store test-faults test-tools bench bench-growth samples lint format lock clean

help:  ## list the targets and variables
	@$(PYTHON) setup/help.py Makefile

report: $(ENVIRONMENT)  ## run the study and render its page, results/studies/<name>/report/index.html
	@$(SNAKEMAKE)

pdf: $(ENVIRONMENT)  ## print the report on paper, report.pdf beside the page
	@$(SNAKEMAKE) -- pdf all

publish: $(ENVIRONMENT)  ## write site/ in the folder of the study, for any host of static files
	@$(SNAKEMAKE) -- publish_site

archive: $(ENVIRONMENT)  ## write archive/ there: one file for a repository of research data, with RO-Crate metadata
	@$(SNAKEMAKE) -- archive_results

snakemake-report: report  ## write logs/snakemake-report.html: rules, run times, tables and charts by theme
	@$(SNAKEMAKE) --report logs/snakemake-report.html

remove: $(ENVIRONMENT)  ## list what STUDY, or PART of TRACE, has of its own; with SURE=yes remove it
	@$(RUN) scripts/remove_study.py --study="$$STUDY" --trace="$$TRACE" --part="$$PART" --sure="$$SURE"

verify: $(ENVIRONMENT)  ## compare the results, or FOLDER, with their manifest: nothing edited, added, missing or out of date?
	@$(RUN) scripts/verify_results.py --study="$$STUDY" $(if $(FOLDER),--folder="$$FOLDER")

explain: $(ENVIRONMENT)  ## trace FILE, or the number KEY of a metrics.json, back to the raw files
	@$(RUN) scripts/explain_product.py --study="$$STUDY" --file="$$FILE" --key="$$KEY" $(if $(VERBOSE),--verbose)

check: $(ENVIRONMENT)  ## compare the numbers of the study with thresholds, for cron or CI; with AGAINST: which numbers moved, and why
	@$(RUN) scripts/check_thresholds.py --study="$$STUDY" --rules="$$RULES" --against="$$AGAINST"

score: $(ENVIRONMENT)  ## predict the risk of failure of new jobs in FILE, or of PART of TRACE: docs/risk.md
	@$(RUN) scripts/score_jobs.py --study="$$STUDY" --trace="$$TRACE" --file="$$FILE" --part="$$PART" --model="$$MODEL" --out="$$OUT"

check-resources: $(ENVIRONMENT)  ## name the jobs of the finished study that used more memory or time than their rules request
	@$(BIN)/python scripts/check_resources.py

gallery: .venv/requirements-test.lock  ## make badges and the picture of the page for the README, in docs/gallery/; after `make report`
	@$(BIN)/python docs/gallery.py docs/gallery "$$STUDY"
	@$(BIN)/python docs/badges.py docs/gallery

docs: .venv/requirements-test.lock  ## write docs/tables.md, docs/metrics.md (after `make report TRACE=all`), config/README.md, workflow/files.txt
	@$(BIN)/python docs/tables.py docs/tables.md
	@$(BIN)/python docs/metrics.py docs/metrics.md $(wildcard results/sample*/metrics.json)
	@$(BIN)/python docs/configuration.py config/README.md
	@$(BIN)/python docs/wings_diagram.py docs/architecture.md
	@$(BIN)/python docs/workflow_files.py

rules: .venv/requirements-test.lock  ## write workflow/rules/analyses.smk out of the declarations of the analyses
	@$(BIN)/python docs/analysis_rules.py

coverage: .venv/requirements-test.lock  ## simulate how often intervals hold the truth and tests reject true nulls: docs/coverage.md; some 10 min
	@$(BIN)/python docs/coverage.py docs/coverage.md

test: .venv/requirements-test.lock .venv-crate/requirements-crate.lock  ## run the tests; without `make test-tools` those in a browser and against R are skipped; 9 min on two cores
	@$(BIN)/python tests/run_tests.py --only="$$ONLY"

test-module: .venv/requirements-test.lock  ## run the study as a module of another workflow, and docs/tutorial.md; not in `make test`; 4 min
	@$(BIN)/python -m pytest -n auto tests/module

test-slurm: $(CLUSTER)/requirements-cluster-test.lock  ## test on a real Slurm of two nodes on this machine (root); not in `make test`; 13 min
	@$(CLUSTER)/bin/python -m pytest tests/slurm

test-store: $(STORE)/requirements-kubernetes-test.lock  ## test a study with its products in an S3 store on loopback; not in `make test`
	@$(STORE)/bin/python -m pytest tests/store

test-faults: .venv/requirements-test.lock  ## try mutated inputs and configurations, kills and full disks: docs/reliability.md; some 10 min a seed
	@$(BIN)/python tests/faults/run.py $(if $(SEEDS),--seeds $(SEEDS)) --write docs/reliability.md

test-tools:  ## install the system packages of the tests in a browser, with Slurm and against R (Debian or Ubuntu, root)
	@bash setup/test_tools.sh

bench: .venv/requirements-test.lock  ## measure time and memory of the study, pandas, DuckDB, lifelines and plain Python: docs/performance.md; some 20 min
	@$(BIN)/python bench/run.py

bench-growth: .venv/requirements-test.lock  ## measure the same at 0.1, 1, 3 and 10 times the full size; some 30 min and 40 GB of disk
	@$(BIN)/python bench/run.py growth

samples: .venv/requirements-test.lock  ## draw the embedded samples anew and pack them, the same bytes: samples/
	@$(BIN)/python bench/samples/make.py

lint: .venv/requirements-test.lock  ## check all files as .pre-commit-config.yaml says: ruff, snakefmt, snakemake --lint, codespell, yamllint
	@$(BIN)/pre-commit run --all-files

format: .venv/requirements-test.lock  ## rewrite Python by ruff, rules by snakefmt
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format . && $(BIN)/snakefmt Snakefile workflow

lock: $(ENVIRONMENT)  ## resolve pyproject.toml anew into the lock files
	@bash setup/lock.sh $(BIN)

clean:  ## remove products, logs and the environment; raw tables under data/ stay
	rm -rf results/* logs benchmarks .snakemake .venv .venv-crate .venv-cluster $(STORE)

# The environment is made once and again only when the content of the lock changes, whatever its date.
.venv/requirements%lock .venv-crate/requirements%lock .venv-cluster/requirements%lock $(STORE)/requirements%lock: requirements%lock
	@bash setup/install.sh $(PYTHON) $(@D) $<

# `make report` and `make test` do their own set-up. `make help` lists all targets.
PYTHON ?= python3
# Typed values go to programs through the environment, so neither a shell nor make expands them: a name may contain
# quotes, $(...) or line breaks. Variables of the common names that the shell has exported are ignored.
COMMON := DATA STUDY PART SURE FILE FOLDER MODEL OUT RULES AGAINST ONLY VERBOSE
TYPED := $(COMMON) CONFIG TRACE KEY PROFILE CORES
$(foreach name,$(COMMON),$(if $(findstring environment,$(origin $(name))),$(eval override $(name) :=)))
$(foreach name,$(TYPED),$(eval override $(name) := $$(value $(name))))
export $(TYPED)
# Some containers forbid bytecode; then every job would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
# PROFILE=slurm, or a folder with your own profile: the jobs run on a cluster (docs/cluster.md).
CLUSTER := .venv-$(if $(filter kubernetes,$(notdir $(PROFILE:/=))),kubernetes,cluster)
STORE := .venv-kubernetes
VENV := $(if $(PROFILE),$(CLUSTER),.venv)
ENVIRONMENT := $(VENV)/$(if $(PROFILE),$(CLUSTER:.venv-%=requirements-%),requirements).lock
BIN := $(VENV)/bin

RUN = exec $(BIN)/python

# The study: TRACE=name, CONFIG=file or DATA=folder define a study, STUDY=name is an existing one. Default: the most
# recent study.
SNAKEMAKE = $(RUN) scripts/run_study.py --study="$$STUDY" --config="$$CONFIG" --trace="$$TRACE" --data="$$DATA" \
  $(if $(PROFILE),--workflow-profile="$$PROFILE" $(if $(TRACE),--scatter='scatter={jobs: 16}')) $(if $(CORES),--cores="$$CORES")

# `make help` prints these lines, and the comment of each target below.
## TRACE=names of traces, separated by commas; all: the embedded samples
## CONFIG=the file of a configuration
## DATA=a folder of job records; with CONFIG=a mapping, its table or folder
## STUDY=the name of an existing study; default: the most recent
## PART=the name of a part of TRACE
## SURE=yes: remove the listed files
## FILE=a product under results/, or a table of new jobs
## KEY=the key of a number in a metrics.json
## VERBOSE=yes: every job behind a number, down to the raw files
## FOLDER=an unpacked archive or a site
## RULES=a file of thresholds
## AGAINST=a folder of earlier results
## MODEL=the window whose model scores; default: the model that serves
## OUT=the file for the scores, or for the metrics
## CORES=the number of cores; default: all
## PROFILE=slurm, kubernetes, or a folder with a Snakemake profile
## ONLY=a folder or file of tests, or an expression for pytest -k
## SEEDS=numbers, separated by spaces

.DEFAULT_GOAL := report
.PHONY: help report pdf figures publish archive remove gallery docs rules coverage snakemake-report verify explain check metrics score test test-module test-slurm test-store test-faults test-tools bench bench-growth samples lint format lock clean

help:  ## list the targets and variables
	@$(PYTHON) setup/help.py Makefile

report: $(ENVIRONMENT)  ## run the study and render its page, results/studies/<name>/report/index.html
	@$(SNAKEMAKE)

pdf: $(ENVIRONMENT)  ## print the report as report.pdf, next to the page
	@$(SNAKEMAKE) -- pdf all

figures: $(ENVIRONMENT)  ## write figures/ in the folder of the study: each chart for papers, as PDF and SVG with embedded fonts
	@$(SNAKEMAKE) -- export_figures

publish: $(ENVIRONMENT)  ## write site/ in the folder of the study, for any host of static files
	@$(SNAKEMAKE) -- publish_site

archive: $(ENVIRONMENT)  ## write archive/ there: one file with RO-Crate metadata for a repository of research data
	@$(SNAKEMAKE) -- archive_results

snakemake-report: report  ## write logs/snakemake-report.html: rules, run times, tables and charts by theme
	@$(SNAKEMAKE) --report logs/snakemake-report.html

remove: $(ENVIRONMENT)  ## list the files that only STUDY, or PART of TRACE, has; with SURE=yes remove them
	@$(RUN) scripts/remove_study.py --study="$$STUDY" --trace="$$TRACE" --part="$$PART" --sure="$$SURE"

verify: $(ENVIRONMENT)  ## check the results, or FOLDER, against their manifest: edited, added, missing or outdated files
	@$(RUN) scripts/verify_results.py --study="$$STUDY" $(if $(FOLDER),--folder="$$FOLDER")

explain: $(ENVIRONMENT)  ## trace FILE, or the number KEY of a metrics.json, back to the raw files
	@$(RUN) scripts/explain_product.py --study="$$STUDY" --file="$$FILE" --key="$$KEY" $(if $(VERBOSE),--verbose)

check: $(ENVIRONMENT)  ## compare the numbers of the study with thresholds, for cron or CI; with AGAINST: which numbers changed, and why
	@$(RUN) scripts/check_thresholds.py --study="$$STUDY" --rules="$$RULES" --against="$$AGAINST"

metrics: $(ENVIRONMENT)  ## write monitoring/ there: the main numbers for Prometheus, and RULES as alerts: docs/monitoring.md
	@$(RUN) scripts/write_metrics.py --study="$$STUDY" --rules="$$RULES" --out="$$OUT"

score: $(ENVIRONMENT)  ## predict the risk of failure of new jobs in FILE, or of PART of TRACE: docs/risk.md
	@$(RUN) scripts/score_jobs.py --study="$$STUDY" --trace="$$TRACE" --file="$$FILE" --part="$$PART" --model="$$MODEL" --out="$$OUT"

gallery: .venv/requirements-test.lock  ## make the README's picture of the page in docs/gallery/; after `make report`
	@$(BIN)/python docs/gallery.py docs/gallery "$$STUDY"

docs: .venv/requirements-test.lock  ## write docs/tables.md, docs/metrics.md (after `make report TRACE=all`), config/README.md, workflow/files.txt
	@$(BIN)/python docs/tables.py docs/tables.md
	@$(BIN)/python docs/metrics.py docs/metrics.md $(wildcard results/sample*/metrics.json)
	@$(BIN)/python docs/configuration.py config/README.md
	@$(BIN)/python docs/wings_diagram.py docs/architecture.md
	@$(BIN)/python docs/workflow_files.py

rules: .venv/requirements-test.lock  ## write workflow/rules/analyses.smk from the declarations of the analyses
	@$(BIN)/python docs/analysis_rules.py

coverage: .venv/requirements-test.lock  ## simulate how often intervals cover the truth and tests reject true nulls: docs/coverage.md; about 10 min
	@$(BIN)/python docs/coverage.py docs/coverage.md

test: .venv/requirements-test.lock  ## run the tests; without `make test-tools` skip those in a browser and against R; 14 min on two cores
	@$(BIN)/python tests/run_tests.py --only="$$ONLY"

test-module: .venv/requirements-test.lock  ## run the study as a module of another workflow, and docs/tutorial.md; not in `make test`; 4 min
	@$(BIN)/python -m pytest -n auto tests/module

test-slurm: $(CLUSTER)/requirements-cluster-test.lock  ## test on a real Slurm of two nodes on this machine (root); not in `make test`; 13 min
	@$(CLUSTER)/bin/python -m pytest tests/slurm

test-store: $(STORE)/requirements-kubernetes-test.lock  ## test a study with its products in an S3 store on loopback; not in `make test`
	@$(STORE)/bin/python -m pytest tests/store

test-faults: .venv/requirements-test.lock  ## test with mutated inputs and configurations, kills and full disks: docs/reliability.md; about 10 min per seed
	@$(BIN)/python tests/faults/run.py $(if $(SEEDS),--seeds $(SEEDS)) --write docs/reliability.md

test-tools:  ## install the system packages of the tests in a browser, with Slurm and against R (Debian or Ubuntu, root)
	@bash setup/test_tools.sh

bench: .venv/requirements-test.lock  ## measure time and memory of the study, pandas, DuckDB, lifelines and plain Python: docs/performance.md; about 20 min
	@$(BIN)/python bench/run.py

bench-growth: .venv/requirements-test.lock  ## measure the same at 0.1, 1, 3 and 10 times the full size; about 30 min and 40 GB of disk
	@$(BIN)/python bench/run.py growth

samples: .venv/requirements-test.lock  ## make the embedded samples in samples/ again, with the same bytes
	@$(BIN)/python bench/samples/make.py

lint: .venv/requirements-test.lock  ## check all files by .pre-commit-config.yaml: ruff, snakefmt, snakemake --lint, codespell, yamllint
	@$(BIN)/pre-commit run --all-files

format: .venv/requirements-test.lock  ## format Python with ruff and rules with snakefmt
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format . && $(BIN)/snakefmt Snakefile workflow

lock: $(ENVIRONMENT)  ## resolve pyproject.toml into the lock files
	@bash setup/lock.sh $(BIN)

clean:  ## remove products, logs and the environment; raw tables under data/ stay
	rm -rf results/* logs benchmarks .snakemake .venv .venv-cluster $(STORE)

# The environment is made once, and again only if the content of the lock changes, whatever its date.
.venv/requirements%lock .venv-cluster/requirements%lock $(STORE)/requirements%lock: requirements%lock
	@bash setup/install.sh $(PYTHON) $(@D) $<

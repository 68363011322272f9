# Two commands do all the set-up: `make report` and `make test`.
PYTHON ?= python3
# What is typed goes to programs by the environment, where no shell reads it, and make expands nothing in it: a name may
# hold quotes, $(...) or line breaks. Not what a shell happens to have exported under the common ones of these names.
COMMON := DATA STUDY PART SURE FILE FOLDER MODEL OUT RULES AGAINST
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

# Until the script says what a request to stop does (scripts/ttf/stopping.py), it does nothing.
RUN = trap '' INT HUP TERM; TTF_MAKE=$$PPID exec $(BIN)/python

# The study: TRACE=name, CONFIG=file or DATA=folder say what it is made of, STUDY=name is one that was made. Without any
# of them it is the one made last.
SNAKEMAKE = $(RUN) scripts/run_study.py --study="$$STUDY" --config="$$CONFIG" --trace="$$TRACE" --data="$$DATA" \
  $(if $(PROFILE),--workflow-profile="$$PROFILE" $(if $(TRACE),--scatter='scatter={jobs: 16}')) $(if $(CORES),--cores="$$CORES")

.PHONY: report pdf publish archive remove gallery docs coverage snakemake-report verify explain check score check-resources test test-module test-slurm test-store test-faults test-tools bench bench-growth lint format lock clean

report: $(ENVIRONMENT)  ## run the study and render its page, results/studies/<name>/report/index.html
	@$(SNAKEMAKE)

pdf: $(ENVIRONMENT)  ## the report on paper, report.pdf beside the page
	@$(SNAKEMAKE) -- pdf all

publish: $(ENVIRONMENT)  ## site/ in the folder of the study, for any host of static files
	@$(SNAKEMAKE) -- publish_site

archive: $(ENVIRONMENT)  ## archive/ there: one file for a repository of research data, with RO-Crate metadata
	@$(SNAKEMAKE) -- archive_results

snakemake-report: report  ## how the study was run: rules, run times, tables and charts by theme, in logs/snakemake-report.html
	@$(SNAKEMAKE) --report logs/snakemake-report.html

remove: $(ENVIRONMENT)  ## what STUDY=name, or PART=name of TRACE=name, has of its own; goes with SURE=yes
	@$(RUN) scripts/remove_study.py --study="$$STUDY" --trace="$$TRACE" --part="$$PART" --sure="$$SURE"

verify: $(ENVIRONMENT)  ## are the results what the manifest says: nothing edited, added, missing or out of date? FOLDER=: of an unpacked archive or a site
	@$(RUN) scripts/verify_results.py --study="$$STUDY" $(if $(FOLDER),--folder="$$FOLDER")

explain: $(ENVIRONMENT)  ## the chain from FILE=results/... (and KEY=, a number of a metrics.json) back to the raw files
	@$(RUN) scripts/explain_product.py --study="$$STUDY" -- $(if $(FILE),"$$FILE") $(if $(KEY),"$$KEY")

check: $(ENVIRONMENT)  ## hold RULES=thresholds.yaml against the numbers of the study, for cron or CI; AGAINST=folder of earlier results: which moved, and why
	@$(RUN) scripts/check_thresholds.py --study="$$STUDY" --rules="$$RULES" --against="$$AGAINST"

score: $(ENVIRONMENT)  ## the risk of failure of new jobs, FILE=new_jobs.csv, or of PART=name of TRACE=name: docs/risk.md; MODEL=window, OUT=file
	@$(RUN) scripts/score_jobs.py --study="$$STUDY" --trace="$$TRACE" --file="$$FILE" --part="$$PART" --model="$$MODEL" --out="$$OUT"

check-resources: $(ENVIRONMENT)  ## did any job of the finished study use more memory or time than its rule asks for?
	@$(BIN)/python scripts/check_resources.py

gallery: .venv/requirements-test.lock  ## badges and a picture of the page for the README, in docs/gallery/; after `make report`
	@$(BIN)/python docs/gallery.py docs/gallery "$$STUDY"
	@$(BIN)/python docs/badges.py docs/gallery

docs: .venv/requirements-test.lock  ## docs/tables.md, what every column of every table is; docs/metrics.md, the same of numbers, after `make report TRACE=all`; workflow/files.txt
	@$(BIN)/python docs/tables.py docs/tables.md
	@$(BIN)/python docs/metrics.py docs/metrics.md $(wildcard results/sample*/metrics.json)
	@$(BIN)/python docs/workflow_files.py

coverage: .venv/requirements-test.lock  ## docs/coverage.md, how often intervals hold the truth and tests reject true nulls; some 10 min
	@$(BIN)/python docs/coverage.py docs/coverage.md

test: .venv/requirements-test.lock .venv-crate/requirements-crate.lock  ## the tests; those in a browser and against R are skipped where `make test-tools` has not run
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-module: .venv/requirements-test.lock  ## the study as a module of another workflow, and the commands of docs/tutorial.md; not part of `make test`
	@$(BIN)/python -m pytest -n auto tests/module

test-slurm: $(CLUSTER)/requirements-cluster-test.lock  ## a real Slurm of two nodes on this machine (root); not part of `make test`
	@$(CLUSTER)/bin/python -m pytest tests/slurm

test-store: $(STORE)/requirements-kubernetes-test.lock  ## a study with its products in an S3 store on loopback; not part of `make test`
	@$(STORE)/bin/python -m pytest tests/store

test-faults: .venv/requirements-test.lock  ## mutated inputs and configurations, kills, full disks: docs/reliability.md, some 10 min a seed; SEEDS='1 2 3'
	@$(BIN)/python tests/faults/run.py $(if $(SEEDS),--seeds $(SEEDS)) --write docs/reliability.md

test-tools:  ## system packages of the tests in a browser, with Slurm and against R (Debian or Ubuntu, needs root)
	@bash setup/test_tools.sh

bench: .venv/requirements-test.lock  ## time and memory of the study, pandas, DuckDB, lifelines and plain Python, into docs/performance.md; some 20 min
	@$(BIN)/python bench/run.py

bench-growth: .venv/requirements-test.lock  ## the same at 0.1, 1, 3 and 10 times the full size; some 30 min and 40 GB of disk
	@$(BIN)/python bench/run.py growth

lint: .venv/requirements-test.lock  ## what .pre-commit-config.yaml names, over all files
	@$(BIN)/pre-commit run --all-files

format: .venv/requirements-test.lock
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format . && $(BIN)/snakefmt Snakefile workflow

lock: $(ENVIRONMENT)  ## resolve pyproject.toml anew into the lock files
	@bash setup/lock.sh $(BIN)

clean:  ## remove products, logs and the environment; raw tables under data/ stay
	rm -rf results/* logs benchmarks .snakemake .venv .venv-crate .venv-cluster $(STORE)

# The environment is made once and again only when the content of the lock changes, whatever its date.
.venv/requirements%lock .venv-crate/requirements%lock .venv-cluster/requirements%lock $(STORE)/requirements%lock: requirements%lock
	@bash setup/install.sh $(PYTHON) $(@D) $<

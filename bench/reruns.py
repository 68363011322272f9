"""The samples as `make report` runs them: from nothing, with nothing to do, after a change of a key or of a chart."""

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from clock import ROOT, Cost, cost_of, machine, tell
from runs import forget_products

# Of a checkout: what is no part of the workflow.
LEFT_OUT = {".venv", ".git", "results", "data", "logs", "benchmarks", ".snakemake", "tests", "bench"}
CHART, BEFORE, AFTER = "scripts/ttf/analyses/time_to_failure/fit_mttf/charts.py", "TOOLTIPS = 50", "TOOLTIPS = 60"
ONE_SAMPLE = ["sample"]


def compare(folder: Path) -> dict:
    """What each run costs, once, by what it does; in a copy of the checkout, since a chart's module is edited in it."""
    folder.mkdir(parents=True, exist_ok=True)
    checkout = folder / "checkout"
    shutil.rmtree(checkout, ignore_errors=True)
    shutil.copytree(ROOT, checkout, ignore=lambda _, names: LEFT_OUT.intersection(names))
    costs: dict[str, Cost] = {}

    def run(what: str, study: list[str], **settings: dict) -> None:
        (checkout / "bench.json").write_text(json.dumps({"study": study} | settings))
        costs[what] = cost_of([sys.executable, "scripts/run_study.py", "--config=bench.json"], checkout)
        tell(f"{what}: {costs[what].seconds:.1f} s")

    for what, study in (("three samples", ["sample", "sample_philly", "sample_slurm"]), ("one sample", ONE_SAMPLE)):
        forget_products(checkout)
        shutil.rmtree(checkout / "data", ignore_errors=True)
        run(what, study)
    run("nothing to do", ONE_SAMPLE)
    run("a changed key", ONE_SAMPLE, ettr={"restart_s": 600})
    run("the key as it was", ONE_SAMPLE)
    _edit(checkout / CHART, BEFORE, AFTER)
    run("a changed chart", ONE_SAMPLE)
    return {name: asdict(cost) for name, cost in costs.items()} | {"machine": machine("snakemake", "altair")}


def _edit(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    if before not in text:
        raise SystemExit(f"{file} has no {before!r} to change")
    file.write_text(text.replace(before, after), encoding="utf-8")

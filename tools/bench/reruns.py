"""Measure `ttf report` on the samples: from nothing, with nothing to do, after a change of a key or of a chart."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from clock import ROOT, STUDY_PYTHON, Cost, machine, measure_cost, report
from runs import remove_products

# Folders of a checkout that are not part of the workflow.
EXCLUDED = {".venv*", ".git", "results", "data", "logs", "benchmarks", ".snakemake", "tests", "bench"}
CHART = "scripts/ttf/analyses/time_to_failure/fit_mttf/charts.py"
CHART_TEXT, CHANGED_TEXT = "TOOLTIPS = 50", "TOOLTIPS = 60"
ONE_SAMPLE = ["sample"]


def compare(folder: Path) -> dict:
    """Measure each run once, in a copy of the checkout, because the benchmark edits a chart's module."""
    folder.mkdir(parents=True, exist_ok=True)
    checkout = folder / "checkout"
    shutil.rmtree(checkout, ignore_errors=True)
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*EXCLUDED))
    costs: dict[str, Cost] = {}

    def run(label: str, study: list[str], **settings: dict) -> None:
        (checkout / "bench.json").write_text(json.dumps({"study": study} | settings))
        package = f"PYTHONPATH={checkout}/scripts:{checkout}/workflow/plugins"
        command = ["env", package, STUDY_PYTHON, "-m", "ttf", "report", "--config=bench.json"]
        costs[label] = measure_cost(command, checkout)
        report(f"{label}: {costs[label].seconds:.1f} s")

    for label, study in (("three samples", ["sample", "sample_philly", "sample_slurm"]), ("one sample", ONE_SAMPLE)):
        remove_products(checkout)
        shutil.rmtree(checkout / "data", ignore_errors=True)
        run(label, study)
    run("nothing to do", ONE_SAMPLE)
    run("a changed key", ONE_SAMPLE, ettr={"restart_s": 600})
    run("the key as it was", ONE_SAMPLE)
    _edit(checkout / CHART, CHART_TEXT, CHANGED_TEXT)
    run("a changed chart", ONE_SAMPLE)
    return {name: asdict(cost) for name, cost in costs.items()} | {"machine": machine("snakemake", "altair")}


def _edit(file: Path, old_text: str, new_text: str) -> None:
    text = file.read_text(encoding="utf-8")
    if old_text not in text:
        raise SystemExit(f"{file} has no {old_text!r} to change")
    file.write_text(text.replace(old_text, new_text), encoding="utf-8")

"""Measure a trace of 52 weekly dumps of 100,000 jobs from nothing, and then the 53rd week.

Half the weeks show how the cost of a week grows with the trace. Weeks of a few jobs show the fixed cost of a study.
"""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from clock import machine, measure_cost, report
from runs import command, longest_jobs, remove_products
from weeks import write_weeks

WEEKS, JOBS, FEW_JOBS = 52, 100_000, 300


def compare(folder: Path) -> dict:
    """Measure once each: `few` jobs per week, `half` the weeks and `all`; from nothing, and the next week."""
    costs = {"weeks": WEEKS, "jobs": JOBS}
    for name, (number, size) in {"few": (WEEKS, FEW_JOBS), "half": (WEEKS // 2, JOBS), "all": (WEEKS, JOBS)}.items():
        size_folder = folder / name
        dump_folder = write_weeks(folder / f"weeks_of_{size}", WEEKS + 1, size)
        costs[name] = _measure_weeks(size_folder, sorted(dump_folder.iterdir())[: number + 1])
        costs["profile"] = longest_jobs(size_folder)
    return costs | {"machine": machine("polars", "snakemake")}


def _measure_weeks(folder: Path, dumps: list[Path]) -> dict:
    """Measure a study of all dumps but the last from nothing, and then with the last."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "raw").mkdir(parents=True)
    config = folder / "study.json"
    config.write_text(json.dumps({"study": ["bench"], "registry": {"bench": {"format": "sacct", "folder": "raw"}}}))
    for dump in dumps[:-1]:
        (folder / "raw" / dump.name).hardlink_to(dump)
    remove_products(folder)
    costs = {}
    for run_name in ("nothing", "monday"):
        costs[run_name] = asdict(measure_cost([*command(), "--configfile", str(config)], folder))
        seconds, cpu_seconds = (costs[run_name][key] for key in ("seconds", "cpu_seconds"))
        report(f"{len(dumps) - 1} weeks, {run_name}: {seconds:.1f} s, {cpu_seconds:.1f} s of CPU")
        if run_name == "nothing":
            (folder / "raw" / dumps[-1].name).hardlink_to(dumps[-1])
    return costs

"""A week more: what a trace of 52 weekly dumps of 100,000 jobs costs from nothing, and what the 53rd week then costs.

The same at half the weeks, to see how the cost of a week grows with the trace; and with weeks of a few jobs, which is
what a study costs whatever its size.
"""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from clock import cost_of, machine, tell
from runs import command, forget_products, longest_jobs
from weeks import write_weeks

WEEKS, JOBS, FEW_JOBS = 52, 100_000, 300


def compare(folder: Path, weeks: int = WEEKS, jobs: int = JOBS) -> dict:
    """Costs, once each, of `few` jobs a week, of `half` the weeks and of `all`: from nothing, and the week after."""
    found = {"weeks": weeks, "jobs": jobs}
    for name, (number, size) in {"few": (weeks, FEW_JOBS), "half": (weeks // 2, jobs), "all": (weeks, jobs)}.items():
        place = folder / name
        given = write_weeks(folder / f"weeks_of_{size}", weeks + 1, size)
        found[name] = _weeks(place, sorted(given.iterdir())[: number + 1])
        found["profile"] = longest_jobs(place)
    return found | {"machine": machine("polars", "snakemake")}


def _weeks(place: Path, dumps: list[Path]) -> dict:
    """What a study of all dumps but the last costs from nothing, and once that is done, with the last."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "raw").mkdir(parents=True)
    config = place / "study.json"
    config.write_text(json.dumps({"study": ["bench"], "registry": {"bench": {"format": "sacct", "folder": "raw"}}}))
    for dump in dumps[:-1]:
        (place / "raw" / dump.name).hardlink_to(dump)
    forget_products(place)
    costs = {}
    for what in ("nothing", "monday"):
        costs[what] = asdict(cost_of([*command(), "--configfile", str(config)], place))
        tell(
            f"{len(dumps) - 1} weeks, {what}: {costs[what]['seconds']:.1f} s, {costs[what]['cpu_seconds']:.1f} s of CPU"
        )
        if what == "nothing":
            (place / "raw" / dumps[-1].name).hardlink_to(dumps[-1])
    return costs

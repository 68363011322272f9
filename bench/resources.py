"""Make workflow/resources.yaml anew from finished studies, small and large, and say what declarations of analyses need.

usage: .venv/bin/python bench/resources.py STUDY ...: folders in which studies were made
"""

import math
import sys
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from check_resources import TABLE, Job, jobs_of
from ttf.analyses.catalogue import rooms

LEAST_GB = 0.02  # a trace with next to nothing of a GB says nothing about a GB
LEAST_MB = 150  # what Python and Polars take; a job of a moment is measured before it has them


def table_of(jobs: list[Job], fixed: dict[str, Any]) -> dict[str, Any]:
    """The table that follows from these jobs: of each rule a line for each format, and a base that lifts it above them.

    A line is as steep as memory grew up to the largest trace of its format, from one of half its size or less: what
    streams stays flat.
    """
    rules = {}
    for rule in sorted({job.rule for job in jobs}):
        of_rule = [job for job in jobs if job.rule == rule]
        slopes = {
            name: steep for name in sorted({job.format or "" for job in of_rule}) if (steep := _slope(of_rule, name))
        }
        base = max(job.megabytes - slopes.get(job.format, 0) * job.raw_gb for job in of_rule)
        lines = {name: _round_up(steep) for name, steep in slopes.items()}
        rules[rule] = {"base_mb": max(_round_up(base), 100)} | ({"mb_per_gb": lines} if lines else {})
    return fixed | {"rules": rules}


def _slope(jobs: list[Job], name: str) -> float:
    """MB per GB of raw tables up to the largest size of a format, from the largest at most half of it; 0 if unknown."""
    smallest = min(jobs, key=lambda job: job.raw_gb)
    of_size = {0.0: max(smallest.megabytes, LEAST_MB)}
    for job in jobs:
        if job.format == name and job.raw_gb >= LEAST_GB:
            of_size[job.raw_gb] = max(job.megabytes, of_size.get(job.raw_gb, 0.0))
    larger = max(of_size)
    smaller = max(size for size in of_size if size <= larger / 2)
    return max(of_size[larger] - of_size[smaller], 0.0) / (larger - smaller) if larger else 0.0


def write(measured: dict[str, Any]) -> None:
    comments = TABLE.read_text(encoding="utf-8").partition("\nsnakemake_mb")[0]
    fixed = yaml.safe_dump({key: measured[key] for key in measured if key != "rules"}, sort_keys=False)
    lines = [
        f"  {rule}: {yaml.safe_dump(about, default_flow_style=True, width=1000, sort_keys=False).strip()}\n"
        for rule, about in measured["rules"].items()
    ]
    TABLE.write_text(f"{comments}\n{fixed}rules:\n{''.join(lines)}", encoding="utf-8")


def _round_up(megabytes: float) -> int:
    """The next 10 MB, a quarter more than was measured."""
    return math.ceil(megabytes * 1.25 / 10) * 10


if __name__ == "__main__":
    measured = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    jobs = [job for folder in sys.argv[1:] for job in jobs_of(Path(folder))]
    table = table_of(jobs, {key: measured[key] for key in measured if key != "rules"})
    of_rooms = {name: table["rules"].pop(name) for name in rooms() if name in table["rules"]}
    write(table)
    for name, about in of_rooms.items():
        print(f"analysis {name}: memory_mb={about['base_mb']}, mb_per_gb={about.get('mb_per_gb', {})}")

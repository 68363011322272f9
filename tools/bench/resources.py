"""Fit workflow/resources.yaml to finished studies, small and large, and print the values for declarations.

usage: .venv/bin/python tools/bench/resources.py FOLDER ... (folders in which studies were made)
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from ttf.analyses.catalogue import load_analyses
from ttf.engine.provenance.seal import read_sealed
from ttf.study.running.resources import measure_gb, parse_benchmark_path, read_benchmark
from ttf.study.studies import STUDIES

TABLE = Path(__file__).resolve().parents[2] / "workflow" / "resources.yaml"
READERS = ("ingest", "ingest_part", "merge_parts")  # the rules that read raw tables

LEAST_GB = 0.02  # a smaller trace does not show the memory per GB
LEAST_MB = 150  # memory of Python and Polars; a very short job is measured before it has imported them


class Job(NamedTuple):
    """A finished job: its benchmark file, its trace's format and size (format None: whole study), and its usage."""

    benchmark: Path
    rule: str
    format: str | None
    raw_gb: float
    megabytes: float
    minutes: float


def read_jobs(folder: Path) -> Iterator[Job]:
    """Yield the finished jobs of the studies in a folder, for the traces that the studies still have."""
    registry, raw_paths_by_key = {}, {}
    for file in sorted((folder / STUDIES).glob("*/manifest.json")):  # a study without one is not finished
        registry |= yaml.safe_load(file.with_name("config.yaml").read_text(encoding="utf-8"))["registry"]
        manifest = read_sealed(file)
        for job in [job for job in manifest["jobs"].values() if job["rule"] in READERS]:
            raw_paths = [str(folder / path) for path in job["inputs"] if path in manifest["raw"]]
            trace, part = (job["wildcards"].get(name) for name in ("trace", "part"))
            for key in {trace, (trace, part)}:
                raw_paths_by_key.setdefault(key, set()).update(raw_paths)
    sizes = {key: measure_gb(paths) for key, paths in raw_paths_by_key.items()}
    for benchmark in sorted((folder / "benchmarks").rglob("*.tsv")):
        if "published" in benchmark.parts:  # the scripts of other rules, on tables of the same size
            continue
        trace, rule = parse_benchmark_path(benchmark, folder / "benchmarks")
        if trace is None:
            study_gb = sum(size for key, size in sizes.items() if key in registry)
            yield Job(benchmark, rule, None, study_gb, *read_benchmark(benchmark))
        elif trace in sizes:
            # When the job that unpacks a sample requests memory, its tables do not exist yet.
            raw_gb = 0.0 if rule == "unpack_sample" else sizes.get((trace, benchmark.stem), sizes[trace])
            yield Job(benchmark, rule, registry[trace]["format"], raw_gb, *read_benchmark(benchmark))


def fit_table(jobs: list[Job], fixed: dict[str, Any]) -> dict[str, Any]:
    """Fit a line of memory per GB for each rule and format, and a base such that all jobs lie below it.

    The slope is the growth of memory to the largest trace of the format from one of at most half its size. So a rule
    that streams has a flat line.
    """
    rules = {}
    for rule in sorted({job.rule for job in jobs}):
        rule_jobs = [job for job in jobs if job.rule == rule]
        slopes = {
            name: slope
            for name in sorted({job.format or "" for job in rule_jobs})
            if (slope := _slope(rule_jobs, name))
        }
        base = max(job.megabytes - slopes.get(job.format, 0) * job.raw_gb for job in rule_jobs)
        lines = {name: _round_up(slope) for name, slope in slopes.items()}
        rules[rule] = {"base_mb": max(_round_up(base), 100)} | ({"mb_per_gb": lines} if lines else {})
    return fixed | {"rules": rules}


def _slope(jobs: list[Job], name: str) -> float:
    """Return MB per GB of raw tables between the largest trace and the largest of at most half its size; else 0."""
    smallest = min(jobs, key=lambda job: job.raw_gb)
    megabytes_by_size = {0.0: max(smallest.megabytes, LEAST_MB)}
    for job in jobs:
        if job.format == name and job.raw_gb >= LEAST_GB:
            megabytes_by_size[job.raw_gb] = max(job.megabytes, megabytes_by_size.get(job.raw_gb, 0.0))
    larger = max(megabytes_by_size)
    smaller = max(size for size in megabytes_by_size if size <= larger / 2)
    return max(megabytes_by_size[larger] - megabytes_by_size[smaller], 0.0) / (larger - smaller) if larger else 0.0


def write(measured: dict[str, Any]) -> None:
    comments = TABLE.read_text(encoding="utf-8").partition("\nsnakemake_mb")[0]
    fixed = yaml.safe_dump({key: measured[key] for key in measured if key != "rules"}, sort_keys=False)
    lines = [
        f"  {rule}: {yaml.safe_dump(resources, default_flow_style=True, width=1000, sort_keys=False).strip()}\n"
        for rule, resources in measured["rules"].items()
    ]
    TABLE.write_text(f"{comments}\n{fixed}rules:\n{''.join(lines)}", encoding="utf-8")


def _round_up(megabytes: float) -> int:
    """Add a quarter and round up to 10 MB."""
    return math.ceil(megabytes * 1.25 / 10) * 10


if __name__ == "__main__":
    measured = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    jobs = [job for folder in sys.argv[1:] for job in read_jobs(Path(folder))]
    table = fit_table(jobs, {key: measured[key] for key in measured if key != "rules"})
    resources_by_analysis = {name: table["rules"].pop(name) for name in load_analyses() if name in table["rules"]}
    write(table)
    for name, resources in resources_by_analysis.items():
        print(f"analysis {name}: memory_mb={resources['base_mb']}, mb_per_gb={resources.get('mb_per_gb', {})}")

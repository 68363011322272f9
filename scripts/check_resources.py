"""`make check-resources`: name the jobs of the finished study that used more memory or time than their rules request.

Prints one line per such job; exit code 1 if there is any. Arguments are folders of further studies to check.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

CHECKOUT = Path(__file__).parents[1]
TABLE = CHECKOUT / "workflow" / "resources.yaml"
sys.path.insert(0, str(CHECKOUT / "workflow"))

from study.resources import (  # noqa: E402
    add_analysis_costs,
    estimate_memory_mb,
    estimate_runtime_min,
    measure_gb,
    parse_benchmark_path,
    read_benchmark,
)
from study.studies import STUDIES  # noqa: E402
from ttf.analyses.catalogue import load_analyses  # noqa: E402
from ttf.engine.provenance.seal import Tampered, read_sealed  # noqa: E402

READERS = ("ingest", "ingest_part", "merge_parts")  # the rules that read raw tables


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


def problems(jobs: list[Job], measured: dict[str, Any]) -> list[str]:
    """Return a line for each job that used more than its rule requests at the first attempt."""
    lines = []
    for job in jobs:
        requested_mb = estimate_memory_mb(measured, job.rule, job.format, job.raw_gb, 1) - measured["snakemake_mb"]
        if job.megabytes > requested_mb:
            lines.append(f"{job.benchmark}: used {job.megabytes:.0f} MB, requests {requested_mb} MB")
        if job.minutes > (runtime_min := estimate_runtime_min(measured, job.raw_gb, 1)):
            lines.append(f"{job.benchmark}: took {job.minutes:.1f} min, requests {runtime_min}")
    return lines


def main(arguments: list[str]) -> int:
    measured = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    folders = [Path(), *map(Path, arguments)]
    if unfinished := [path for folder in folders if not any((path := folder / STUDIES).glob("*/manifest.json"))]:
        print(f"{unfinished[0]}: not found; run the study first: make report", file=sys.stderr)
        return 1
    try:
        jobs = [job for folder in folders for job in read_jobs(folder)]
    except Tampered as error:
        print(f"{error}. Delete it and run `make report`.", file=sys.stderr)
        return 1
    lines = problems(jobs, add_analysis_costs(measured, load_analyses()))
    print("\n".join(lines) or f"{len(jobs)} jobs: none used more memory or time than its rule requests.")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

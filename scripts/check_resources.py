"""`make check-resources`: did any job of the finished study use more memory or time than its rule asks for?

One line for each that did; exit code 1 if any. Arguments are the folders of other studies, looked at together.
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
from ttf.analyses.catalogue import rooms  # noqa: E402
from ttf.engine.provenance.seal import NotIntact, unsealed  # noqa: E402

READERS = ("ingest", "ingest_part", "merge_parts")  # the rules whose inputs are raw tables


class Job(NamedTuple):
    """A finished job: its benchmark file, what its trace is (of the whole study: None), and what it used."""

    benchmark: Path
    rule: str
    format: str | None
    raw_gb: float
    megabytes: float
    minutes: float


def jobs_of(folder: Path) -> Iterator[Job]:
    """The finished jobs of the studies in a folder, of the traces that they still have."""
    registry, raw = {}, {}
    for file in sorted((folder / STUDIES).glob("*/manifest.json")):  # a study without one is not finished
        registry |= yaml.safe_load(file.with_name("config.yaml").read_text(encoding="utf-8"))["registry"]
        manifest = unsealed(file)
        for job in [job for job in manifest["jobs"].values() if job["rule"] in READERS]:
            read = [str(folder / path) for path in job["inputs"] if path in manifest["raw"]]
            trace, part = (job["wildcards"].get(name) for name in ("trace", "part"))
            for whole in {trace, (trace, part)}:
                raw.setdefault(whole, set()).update(read)
    sizes = {whole: measure_gb(paths) for whole, paths in raw.items()}
    for benchmark in sorted((folder / "benchmarks").rglob("*.tsv")):
        if "published" in benchmark.parts:  # the scripts of other rules once more, on tables as large
            continue
        trace, rule = parse_benchmark_path(benchmark, folder / "benchmarks")
        if trace is None:
            whole_study = sum(size for whole, size in sizes.items() if whole in registry)
            yield Job(benchmark, rule, None, whole_study, *read_benchmark(benchmark))
        elif trace in sizes:
            # The tables of a sample are not there yet when the job that unpacks them asks.
            raw_gb = 0.0 if rule == "unpack_sample" else sizes.get((trace, benchmark.stem), sizes[trace])
            yield Job(benchmark, rule, registry[trace]["format"], raw_gb, *read_benchmark(benchmark))


def problems(jobs: list[Job], measured: dict[str, Any]) -> list[str]:
    """A line for each job that used more than its rule asks for at the first attempt."""
    found = []
    for job in jobs:
        asked = estimate_memory_mb(measured, job.rule, job.format, job.raw_gb, 1) - measured["snakemake_mb"]
        if job.megabytes > asked:
            found.append(f"{job.benchmark}: used {job.megabytes:.0f} MB and asks for {asked} MB")
        if job.minutes > (runtime_min := estimate_runtime_min(measured, job.raw_gb, 1)):
            found.append(f"{job.benchmark}: took {job.minutes:.1f} min and asks for {runtime_min}")
    return found


def main(arguments: list[str]) -> int:
    measured = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    folders = [Path(), *map(Path, arguments)]
    if missing := [path for folder in folders if not any((path := folder / STUDIES).glob("*/manifest.json"))]:
        print(f"{missing[0]}: not found; run the study first: make report", file=sys.stderr)
        return 1
    try:
        jobs = [job for folder in folders for job in jobs_of(folder)]
    except NotIntact as error:
        print(f"{error}. Delete it and run `make report`.", file=sys.stderr)
        return 1
    found = problems(jobs, add_analysis_costs(measured, rooms()))
    print("\n".join(found) or f"{len(jobs)} jobs: none used more memory or time than its rule asks for.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

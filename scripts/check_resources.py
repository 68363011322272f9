"""`make check-resources`: did any job of the finished study use more memory or time than its rule asks for?

One line for each that did; exit code 1 if any. Further arguments are the folders of other studies, looked at together.
--write makes workflow/resources.yaml anew from these studies, small and large, and says what the declarations of
analyses are to say.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

CHECKOUT = Path(__file__).parents[1]
TABLE = CHECKOUT / "workflow" / "resources.yaml"
sys.path.insert(0, str(CHECKOUT / "workflow"))

from study.resources import gigabytes, megabytes, minutes, rounded_up, rule_of_benchmark, used, with_rooms  # noqa: E402
from study.studies import STUDIES  # noqa: E402
from ttf.provenance.seal import NotIntact, unsealed  # noqa: E402
from ttf.rooms import rooms  # noqa: E402

READERS = ("ingest", "ingest_part", "merge_parts")  # the rules whose inputs are raw tables
LEAST_GB = 0.02  # a trace with next to nothing of a GB says nothing about a GB
LEAST_MB = 150  # what Python and Polars take; a job of a moment is measured before it has them


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
    sizes = {whole: gigabytes(paths) for whole, paths in raw.items()}
    for benchmark in sorted((folder / "benchmarks").rglob("*.tsv")):
        if "published" in benchmark.parts:  # the scripts of other rules once more, on tables as large
            continue
        trace, rule = rule_of_benchmark(benchmark, folder / "benchmarks")
        if trace is None:
            whole_study = sum(size for whole, size in sizes.items() if whole in registry)
            yield Job(benchmark, rule, None, whole_study, *used(benchmark))
        elif trace in sizes:
            # The tables of a sample are not there yet when the job that makes them asks.
            raw_gb = 0.0 if rule == "make_sample" else sizes.get((trace, benchmark.stem), sizes[trace])
            yield Job(benchmark, rule, registry[trace]["format"], raw_gb, *used(benchmark))


def problems(jobs: list[Job], measured: dict[str, Any]) -> list[str]:
    """A line for each job that used more than its rule asks for at the first attempt."""
    found = []
    for job in jobs:
        asked = megabytes(measured, job.rule, job.format, job.raw_gb, 1) - measured["snakemake_mb"]
        if job.megabytes > asked:
            found.append(f"{job.benchmark}: used {job.megabytes:.0f} MB and asks for {asked} MB")
        if job.minutes > minutes(measured, job.raw_gb, 1):
            found.append(f"{job.benchmark}: took {job.minutes:.1f} min and asks for {minutes(measured, job.raw_gb, 1)}")
    return found


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
        lines = {name: rounded_up(steep) for name, steep in slopes.items()}
        rules[rule] = {"base_mb": max(rounded_up(base), 100)} | ({"mb_per_gb": lines} if lines else {})
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


def main(arguments: list[str]) -> int:
    measured = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    folders = [Path(), *(Path(argument) for argument in arguments if not argument.startswith("--"))]
    if missing := [path for folder in folders if not any((path := folder / STUDIES).glob("*/manifest.json"))]:
        print(f"{missing[0]}: not found; run the study first: make report", file=sys.stderr)
        return 1
    try:
        jobs = [job for folder in folders for job in jobs_of(folder)]
    except NotIntact as error:
        print(f"{error}. Delete it and run `make report`.", file=sys.stderr)
        return 1
    if "--write" in arguments:
        table = table_of(jobs, {key: measured[key] for key in measured if key != "rules"})
        of_rooms = {name: table["rules"].pop(name) for name in rooms() if name in table["rules"]}
        write(table)
        for name, about in of_rooms.items():
            print(f"analysis {name}: memory_mb={about['base_mb']}, mb_per_gb={about.get('mb_per_gb', {})}")
        return 0
    found = problems(jobs, with_rooms(measured, rooms()))
    print("\n".join(found) or f"{len(jobs)} jobs: none used more memory or time than its rule asks for.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`make check-resources`: did any job of the finished study use more memory or time than its rule asks for?

One line for each that did; exit code 1 if any. Further arguments are the folders of other studies, looked at together.
--write makes workflow/resources.yaml anew from these studies: the base from the smallest trace of each format, what a
GB adds from the largest.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

CHECKOUT = Path(__file__).parents[1]
TABLE = CHECKOUT / "workflow" / "resources.yaml"
sys.path.insert(0, str(CHECKOUT / "workflow"))

from study.resources import gigabytes, megabytes, minutes, rounded_up, rule_of_benchmark, used  # noqa: E402

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
    """The finished jobs of the study in a folder, of the traces that it still has."""
    config = yaml.safe_load((folder / "results" / "config.yaml").read_text(encoding="utf-8"))
    manifest = yaml.safe_load((folder / "results" / "manifest.json").read_text(encoding="utf-8"))
    raw = {}
    for job in manifest["jobs"].values():
        if job["rule"] in READERS:
            read = [str(folder / path) for path in job["inputs"] if path in manifest["raw"]]
            raw.setdefault(job["wildcards"]["trace"], set()).update(read)
    sizes = {trace: gigabytes(paths) for trace, paths in raw.items()}
    for benchmark in sorted((folder / "benchmarks").rglob("*.tsv")):
        trace, rule = rule_of_benchmark(benchmark, folder / "benchmarks")
        if trace is None or trace == "comparison":
            yield Job(benchmark, rule, None, sum(sizes.values()), *used(benchmark))
        elif trace in sizes:
            yield Job(benchmark, rule, config["registry"][trace]["format"], sizes[trace], *used(benchmark))


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
    """The table that follows from these jobs: what small traces took, and per GB what larger ones took above it."""
    rules = {}
    for rule in sorted({job.rule for job in jobs}):
        of_rule = sorted((job for job in jobs if job.rule == rule), key=lambda job: job.raw_gb)
        base = max(rounded_up(of_rule[0].megabytes), 100)
        slopes = {}
        for job in of_rule:
            above = rounded_up(job.megabytes) - base
            # A GB cannot be told from a trace that has next to nothing of it.
            if job.raw_gb >= 0.02 and job.format and above > 0:
                slopes[job.format] = max(slopes.get(job.format, 0), rounded_up(above / job.raw_gb / 1.25))
        small = [job for job in of_rule if job.raw_gb < 0.02 or not job.format]
        base = max([base, *(rounded_up(job.megabytes) for job in small)])
        rules[rule] = {"base_mb": base} | ({"mb_per_gb": slopes} if slopes else {})
    return fixed | {"rules": rules}


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
    folders = [Path(argument) for argument in arguments if not argument.startswith("--")] or [Path()]
    if missing := [path for folder in folders if not (path := folder / "results" / "manifest.json").is_file()]:
        print(f"{missing[0]}: not found; run the study first: make report", file=sys.stderr)
        return 1
    jobs = [job for folder in folders for job in jobs_of(folder)]
    if "--write" in arguments:
        write(table_of(jobs, {key: measured[key] for key in measured if key != "rules"}))
        return 0
    found = problems(jobs, measured)
    print("\n".join(found) or f"{len(jobs)} jobs: none used more memory or time than its rule asks for.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

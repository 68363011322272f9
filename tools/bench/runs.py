"""Commands that run the study in the benchmarks: Snakemake in a separate folder, on all cores."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

from clock import ROOT, STUDY_PYTHON, report
from ttf.study.running.resources import parse_benchmark_path

FULL_SIZE = 1_261_050
MAKE = ROOT / "tools/bench/samples/make.py"
REQUIRED = ("pai_job_table.csv", "pai_task_table.csv", "pai_instance_table.csv")


def make_tables(folder: Path, tasks: int) -> Path:
    """Make a synthetic PAI trace of `tasks` tasks in `folder`, unless it exists; return the folder."""
    if not folder.exists():
        report(f"making a sample of {tasks:,} tasks")
        # In a separate process: memory of this one would count as its children's.
        arguments = ("pai2020", "--size", str(tasks), "--out", str(folder))
        subprocess.run([sys.executable, str(MAKE), *arguments], check=True)
    return folder


def required_tables(tables: Path, folder: Path) -> Path:
    """Link the three tables of `tables` from which jobs are made into `folder`; return it."""
    folder.mkdir(exist_ok=True)
    for name in REQUIRED:
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to((tables / name).resolve())
    return folder


def snakemake(folder: Path, target: str, tables: Path) -> list[str]:
    """Return the command of a study in `folder` up to one product."""
    config = folder / f"{Path(target).stem}.json"
    entry = {"format": "pai2020", "folder": str(tables)}
    config.write_text(json.dumps({"study": ["bench"], "registry": {"bench": entry}}))
    return [*command(), "--configfile", str(config), "--", target]


def command() -> list[str]:
    """Return the command that `ttf report` uses, on all cores."""
    return [
        *(STUDY_PYTHON, "-m", "snakemake", "--snakefile", f"{ROOT}/Snakefile"),
        *("--workflow-profile", f"{ROOT}/profiles/default", "--cores", "all"),
        *("--logger", "progress", "--executor", "forks"),
    ]


def remove_products(folder: Path) -> None:
    """Remove everything that a study leaves in its folder, except the raw tables."""
    for name in ("results", ".snakemake", "logs", "benchmarks"):
        shutil.rmtree(folder / name, ignore_errors=True)


def longest_jobs(folder: Path) -> list[dict]:
    """Return the twelve jobs of a finished study with the most CPU time: rule, seconds, CPU seconds, GB."""
    return sorted(_read_job_costs(folder), key=lambda job: -job["cpu_seconds"])[:12]


def _read_job_costs(folder: Path) -> list[dict]:
    """Read Snakemake's benchmark files; a job that is too short to measure has a dash there, which counts as 0."""
    jobs = []
    for file in sorted((folder / "benchmarks").rglob("*.tsv")):
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                numbers = [float(row[name]) if row[name][0].isdigit() else 0.0 for name in ("s", "cpu_time", "max_rss")]
                costs = {"seconds": numbers[0], "cpu_seconds": numbers[1], "gigabytes": numbers[2] / 1024}
                jobs.append({"rule": parse_benchmark_path(file, folder / "benchmarks")[1]} | costs)
    return jobs

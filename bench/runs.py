"""The study as a command, for the benchmarks: Snakemake in a folder of its own, on all cores."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from clock import ROOT, tell

sys.path.insert(0, str(ROOT / "workflow"))
sys.path.insert(0, str(ROOT / "scripts"))

from study.resources import parse_benchmark_path

FULL_SIZE = 1_261_050
MAKE = ROOT / "bench" / "samples" / "make.py"
REQUIRED = ("pai_job_table.csv", "pai_task_table.csv", "pai_instance_table.csv")


def make_tables(folder: Path, tasks: int, seed: int = 2020) -> Path:
    """A synthetic PAI trace of so many tasks in `folder`, unless it is there. Returns the folder."""
    if not folder.exists():
        tell(f"making a sample of {tasks:,} tasks")
        # In a process of its own: what this one holds in memory would count as that of the processes it starts.
        asked = ("pai2020", "--size", str(tasks), "--seed", str(seed), "--out", str(folder))
        subprocess.run([sys.executable, str(MAKE), *asked], check=True)
    return folder


def required_tables(tables: Path, folder: Path) -> Path:
    """A folder with the three tables that jobs are made from, which lie in `tables`."""
    folder.mkdir(exist_ok=True)
    for name in REQUIRED:
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to((tables / name).resolve())
    return folder


def snakemake(folder: Path, target: str, tables: Path | Sequence[Path]) -> list[str]:
    """The command of a study in `folder` up to one product; tables in several folders are a trace in parts."""
    config = folder / f"{Path(target).stem}.json"
    where = str(tables) if isinstance(tables, Path) else [str(part) for part in tables]
    config.write_text(json.dumps({"study": ["bench"], "registry": {"bench": {"format": "pai2020", "folder": where}}}))
    return [*command(), "--configfile", str(config), "--", target]


def command(plan: bool = False) -> list[str]:
    """Snakemake as `make report` starts it, on all cores; plan: a dry run."""
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")),
        *("--workflow-profile", str(ROOT / "profiles" / "default"), "--cores", "all"),
        *(("--dry-run",) if plan else ("--logger", "progress", "--executor", "forks")),
    ]


def forget_products(folder: Path) -> None:
    """Remove what a study leaves in its folder, but for the raw tables."""
    for name in ("results", ".snakemake", "logs", "benchmarks"):
        shutil.rmtree(folder / name, ignore_errors=True)


def longest_jobs(folder: Path, most: int = 12) -> list[dict]:
    """The jobs of a finished study that took the most CPU time: rule, seconds, CPU seconds, GB."""
    return sorted(_jobs(folder), key=lambda job: -job["cpu_seconds"])[:most]


def cost_of_jobs(folder: Path) -> dict:
    """How many jobs a finished study had, and the sums of their seconds and CPU seconds."""
    jobs = _jobs(folder)
    return {"count": len(jobs)} | {key: sum(job[key] for job in jobs) for key in ("seconds", "cpu_seconds")}


def _jobs(folder: Path) -> list[dict]:
    """A line per job, as Snakemake's benchmark files have it; a job too short to be measured has a dash there."""
    found = []
    for file in sorted((folder / "benchmarks").rglob("*.tsv")):
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                numbers = [float(row[name]) if row[name][0].isdigit() else 0.0 for name in ("s", "cpu_time", "max_rss")]
                costs = {"seconds": numbers[0], "cpu_seconds": numbers[1], "gigabytes": numbers[2] / 1024}
                found.append({"rule": parse_benchmark_path(file, folder / "benchmarks")[1]} | costs)
    return found

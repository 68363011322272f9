"""Measure wall time and memory of whole processes, in turn, so that noise of the machine affects all sides equally."""

import importlib.metadata
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Without pandas, as users have it: Snakemake imports pandas where it is installed.
STUDY_PYTHON = f"{ROOT}/.venv-study/bin/python"
# For processes that import functions of the study, and for Snakemake, which finds its plugins there.
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}/scripts{os.pathsep}{ROOT}/workflow/plugins"}
# Some containers forbid bytecode; then each process of a study would compile every module again.
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)


@dataclass(frozen=True)
class Cost:
    """Cost of a process: wall time and CPU time in seconds, largest resident size of any single process in GB."""

    seconds: float
    cpu_seconds: float
    gigabytes: float


def measure_cost(command: list[str], folder: Path) -> Cost:
    """Measure a command in a folder, including start-up and child processes; exit if it fails."""
    log = folder / "output.log"
    start = time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{log.read_text()[-3000:]}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6)


def measure_in_turn(
    commands: Mapping[str, list[str]], folder: Path, rounds: int, before_each: Callable[[], None] = lambda: None
) -> dict[str, Cost]:
    """Return the median cost by command name over `rounds` in turn (A B C A B C ...), after a warm-up."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            before_each()
            cost = measure_cost(command, folder)
            report(f"{name}: {cost.seconds:.1f} s, {cost.gigabytes:.2f} GB{'' if turn else ' (warm-up, not counted)'}")
            if turn:
                costs[name].append(cost)
    return {
        name: Cost(*(statistics.median(getattr(cost, key) for cost in samples) for key in Cost.__dataclass_fields__))
        for name, samples in costs.items()
    }


def report(text: str) -> None:
    """Print the progress of the benchmark."""
    print(text, file=sys.stderr, flush=True)


def machine(*packages: str) -> str:
    """Describe the machine and the versions, for the line below a table."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return f"{os.cpu_count()} cores, Python {platform.python_version()}{', ' if versions else ''}{versions}"

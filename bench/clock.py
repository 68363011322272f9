"""Wall time and memory of whole processes, taken in turn so that a noisy machine treats all sides alike."""

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

ROOT = Path(__file__).parents[1]
# For processes that call functions of the study by themselves, and for Snakemake, which finds its plugins there.
PACKAGES = ("scripts", "workflow", "workflow/plugins")
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in PACKAGES)}
# Without bytecode, as some containers have it, each process of a study would compile every module again.
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)


@dataclass(frozen=True)
class Cost:
    """What a process took: wall time and CPU time in seconds, the largest resident size of any one process in GB."""

    seconds: float
    cpu_seconds: float
    gigabytes: float


def cost_of(command: list[str], folder: Path) -> Cost:
    """Run a command in a folder, its start-up and the processes it starts included. Ends the benchmark if it fails."""
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


def in_turn(
    commands: Mapping[str, list[str]], folder: Path, rounds: int, before_each: Callable[[], None] = lambda: None
) -> dict[str, Cost]:
    """The cost of each command by its name: medians over `rounds` in turn (A B C A B C ...), after a warm-up."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            before_each()
            cost = cost_of(command, folder)
            tell(f"{name}: {cost.seconds:.1f} s, {cost.gigabytes:.2f} GB{'' if turn else ' (warm-up, not counted)'}")
            if turn:
                costs[name].append(cost)
    return {
        name: Cost(*(statistics.median(getattr(cost, key) for cost in of_name) for key in Cost.__dataclass_fields__))
        for name, of_name in costs.items()
    }


def tell(text: str) -> None:
    """Say how far the benchmark is."""
    print(text, file=sys.stderr, flush=True)


def machine(*packages: str) -> str:
    """What it was measured on, for the line under a table."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return f"{os.cpu_count()} cores, Python {platform.python_version()}{', ' if versions else ''}{versions}"

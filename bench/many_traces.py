"""Many small traces in one study: the plan of 50 and a bare one, the study of some and what its jobs take."""

import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from clock import ENVIRONMENT, Cost, cost_of, machine, tell
from runs import command, cost_of_jobs, forget_products, make_tables

# The smallest synthetic trace there is: what is left is the cost of a trace itself.
TASKS = 1000
# What a study has of each of them: jobs, each with so many products and inputs from up to so many jobs before.
JOBS, PRODUCTS, BEFORE = 28, 6, 5


def compare(folder: Path, planned: int = 50, run: int = 8) -> dict:
    """What it costs, once, to plan a study of `planned` traces, to run one of `run`, and that one again.

    `bare` is the plan of as many jobs and products of rules that are nothing but files and a script: what Snakemake
    takes by itself. graph_seconds: how long of the plan the jobs are put together, the median of three.
    """
    folder.mkdir(parents=True, exist_ok=True)
    forget_products(folder)
    graph_seconds = statistics.median(_graph_seconds(folder, planned) for _ in range(3))
    costs = {
        "plan": _study(folder, planned, plan=True),
        "bare": _bare_plan(folder / "bare", planned),
        "study": _study(folder, run),
        "again": _study(folder, run),
    }
    return {name: asdict(cost) for name, cost in costs.items()} | {
        "graph_seconds": graph_seconds,
        "planned": planned,
        "run": run,
        "tasks": TASKS,
        "jobs": cost_of_jobs(folder),
        "machine": machine("snakemake"),
    }


def _study(folder: Path, traces: int, plan: bool = False) -> Cost:
    cost = cost_of(_command(folder, traces, plan), folder)
    tell(f"{'plan of ' if plan else ''}{traces} traces: {cost.seconds:.1f} s, CPU {cost.cpu_seconds:.1f} s")
    return cost


def _command(folder: Path, traces: int, plan: bool) -> list[str]:
    registry = {
        f"small_{number:02}": {
            "format": "pai2020",
            "folder": str(make_tables(folder / "raw" / f"small_{number:02}", TASKS, number)),
            "synthetic": True,
            "title": f"Small trace {number}",
        }
        for number in range(traces)
    }
    config = folder / "many.json"
    config.write_text(json.dumps({"study": list(registry), "registry": registry}))
    return [*command(plan), "--configfile", str(config)]


def _graph_seconds(folder: Path, traces: int) -> float:
    """From where Snakemake says that it puts the graph of the jobs together to where it says what jobs there are."""
    said = {}
    with subprocess.Popen(
        _command(folder, traces, plan=True),
        cwd=folder,
        env=ENVIRONMENT | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout:
            said.setdefault(line.strip(), time.perf_counter())
    seconds = said["Job stats:"] - said["Building DAG of jobs..."]
    tell(f"{traces} traces, the graph of their jobs: {seconds:.1f} s")
    return seconds


def _bare_plan(folder: Path, traces: int) -> Cost:
    (folder / "scripts").mkdir(parents=True, exist_ok=True)
    (folder / "scripts" / "nothing.py").write_text("pass\n")
    (folder / "Snakefile").write_text(_bare_snakefile(traces))
    quiet = ("--cores", "all", "--scheduler", "greedy", "--quiet", "host", "reason", "rules")
    cost = cost_of([sys.executable, "-m", "snakemake", *quiet, "--dry-run"], folder)
    tell(f"{traces} traces, bare rules: {cost.seconds:.1f} s, CPU {cost.cpu_seconds:.1f} s")
    return cost


def _bare_snakefile(traces: int) -> str:
    """A rule a step, with inputs from the steps before; `all` asks for one product of each job, as the study does."""
    one_of_each = f"[f'results/{{trace}}/{{step}}/0' for trace in range({traces}) for step in range({JOBS})]"
    rules = [f"rule all:\n    input: {one_of_each}"]
    for step in range(JOBS):
        given = [f"results/{{trace}}/{before}/{file}" for before in range(step)[-BEFORE:] for file in (0, 1)]
        made = [f"results/{{trace}}/{step}/{file}" for file in range(PRODUCTS)]
        log, script = f"logs/{{trace}}/{step}", "scripts/nothing.py"
        rules.append(
            f"rule step{step}:\n    input: {given}\n    output: {made}\n    log: {log!r}\n    script: {script!r}"
        )
    return "\n\n".join(rules) + "\n"

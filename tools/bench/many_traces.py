"""Measure many small traces in one study: the plan of 50, a bare plan, and the study of a few with its jobs."""

import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from clock import ENVIRONMENT, Cost, machine, measure_cost, report
from runs import command, make_tables, remove_products, sum_job_costs

# The smallest synthetic trace: what remains is the fixed cost of a trace.
TASKS = 1000
# Per trace: jobs, products of each job, and number of earlier jobs from which it has inputs.
JOBS, PRODUCTS, EARLIER_STEPS = 28, 6, 5


def compare(folder: Path, planned: int = 50, run: int = 8) -> dict:
    """Measure once the plan of a study of `planned` traces, a run of `run` traces, and a second run of these.

    `bare` is the plan of as many jobs and products from rules with only files and a script: the cost of Snakemake
    itself. graph_seconds: the part of the plan that builds the graph of jobs, median of three.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_products(folder)
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
        "jobs": sum_job_costs(folder),
        "machine": machine("snakemake"),
    }


def _study(folder: Path, traces: int, plan: bool = False) -> Cost:
    cost = measure_cost(_command(folder, traces, plan), folder)
    report(f"{'plan of ' if plan else ''}{traces} traces: {cost.seconds:.1f} s, CPU {cost.cpu_seconds:.1f} s")
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
    """Measure the time between Snakemake's messages that it builds the graph of jobs and that it lists them."""
    time_by_line = {}
    with subprocess.Popen(
        _command(folder, traces, plan=True),
        cwd=folder,
        env=ENVIRONMENT | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout:
            time_by_line.setdefault(line.strip(), time.perf_counter())
    seconds = time_by_line["Job stats:"] - time_by_line["Building DAG of jobs..."]
    report(f"{traces} traces, the graph of their jobs: {seconds:.1f} s")
    return seconds


def _bare_plan(folder: Path, traces: int) -> Cost:
    (folder / "scripts").mkdir(parents=True, exist_ok=True)
    (folder / "scripts" / "nothing.py").write_text("pass\n")
    (folder / "Snakefile").write_text(_bare_snakefile(traces))
    quiet = ("--cores", "all", "--scheduler", "greedy", "--quiet", "host", "reason", "rules")
    cost = measure_cost([sys.executable, "-m", "snakemake", *quiet, "--dry-run"], folder)
    report(f"{traces} traces, bare rules: {cost.seconds:.1f} s, CPU {cost.cpu_seconds:.1f} s")
    return cost


def _bare_snakefile(traces: int) -> str:
    """Write a rule per step, with inputs from earlier steps; `all` requests one product per job, as the study does."""
    targets = f"[f'results/{{trace}}/{{step}}/0' for trace in range({traces}) for step in range({JOBS})]"
    rules = [f"rule all:\n    input: {targets}"]
    for step in range(JOBS):
        inputs = [f"results/{{trace}}/{earlier}/{file}" for earlier in range(step)[-EARLIER_STEPS:] for file in (0, 1)]
        outputs = [f"results/{{trace}}/{step}/{file}" for file in range(PRODUCTS)]
        log, script = f"logs/{{trace}}/{step}", "scripts/nothing.py"
        rules.append(
            f"rule step{step}:\n    input: {inputs}\n    output: {outputs}\n    log: {log!r}\n    script: {script!r}"
        )
    return "\n\n".join(rules) + "\n"

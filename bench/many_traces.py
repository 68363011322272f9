"""Many small traces in one study: the plan of 50 beside a bare one, the study of some beside what its jobs take."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from clock import Cost, cost_of, machine, tell
from runs import command, cost_of_jobs, forget_products

# The smallest synthetic trace there is: what is left is the cost of a trace itself.
TASKS = 1000
# What a study has of each of them: jobs, each with so many products and inputs from up to so many jobs before.
JOBS, PRODUCTS, BEFORE = 23, 8, 3


def compare(folder: Path, planned: int = 50, run: int = 8) -> dict:
    """What it costs, once, to plan a study of `planned` traces, to run one of `run`, and that one again.

    Beside the plan `bare`: of as many jobs and products of rules that are nothing but files and a script, what
    Snakemake takes by itself.
    """
    folder.mkdir(parents=True, exist_ok=True)
    forget_products(folder)
    costs = {
        "plan": _study(folder, planned, "--dry-run"),
        "bare": _bare_plan(folder / "bare", planned),
        "study": _study(folder, run),
        "again": _study(folder, run),
    }
    return {name: asdict(cost) for name, cost in costs.items()} | {
        "planned": planned,
        "run": run,
        "tasks": TASKS,
        "jobs": cost_of_jobs(folder),
        "machine": machine("snakemake"),
    }


def _study(folder: Path, traces: int, *arguments: str) -> Cost:
    registry = {
        f"small_{number:02}": {
            "format": "pai2020",
            "generate": {"tasks": TASKS, "seed": number},
            "title": f"Small trace {number}",
        }
        for number in range(traces)
    }
    config = folder / "many.json"
    config.write_text(json.dumps({"study": list(registry), "registry": registry}))
    cost = cost_of([*command(), "--configfile", str(config), *arguments], folder)
    tell(f"{traces} traces {' '.join(arguments)}: {cost.seconds:.1f} s, CPU {cost.cpu_seconds:.1f} s")
    return cost


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

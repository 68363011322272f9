"""Many small traces in one study: the plan of 50, and the whole study of some beside what its jobs take themselves."""

import json
from dataclasses import asdict
from pathlib import Path

from clock import Cost, cost_of, machine, tell
from runs import command, cost_of_jobs, forget_products

# The smallest synthetic trace there is: what is left is the cost of a trace itself.
TASKS = 1000


def compare(folder: Path, planned: int = 50, run: int = 8) -> dict:
    """What it costs, once, to plan a study of `planned` traces, and to run one of `run`, and that one again."""
    folder.mkdir(parents=True, exist_ok=True)
    forget_products(folder)
    costs = {
        "plan": _study(folder, planned, "--dry-run"),
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

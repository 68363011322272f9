"""Many small traces in one study: the plan, the whole study, and the study again with nothing to do."""

import json
from dataclasses import asdict
from pathlib import Path

from clock import Cost, cost_of, machine, tell
from study import command, forget_products

# The smallest synthetic trace there is: what is left is the cost of a trace itself.
TASKS = 1000


def compare(folder: Path, traces: int = 50) -> dict:
    """What each step costs, once."""
    folder.mkdir(parents=True, exist_ok=True)
    forget_products(folder)
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

    def run(what: str, *arguments: str) -> Cost:
        cost = cost_of([*command(), "--configfile", str(config), *arguments], folder)
        tell(f"{what} of {traces} traces: {cost.seconds:.1f} s, CPU {cost.cpu_seconds:.1f} s")
        return cost

    steps = {"plan": run("plan", "--dry-run"), "study": run("study"), "again": run("nothing to do")}
    return {name: asdict(cost) for name, cost in steps.items()} | {
        "traces": traces,
        "tasks": TASKS,
        "machine": machine("snakemake"),
    }

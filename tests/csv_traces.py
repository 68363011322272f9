"""Tables of jobs as people map them: of nodes or cores alone, with GPUs that half of the jobs have, one GPU a node."""

import csv
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

TIME = "%Y-%m-%d %H:%M:%S"
COMMON = {"job_id": "id", "user": "owner", "submit": "created", "start": "began", "end": "done", "status": "state"}
# What of a size each trace has, and its columns of it.
SIZES = {
    "in_nodes": {"nodes": "hosts", "cpus": "cores"},
    "in_cores": {"cpus": "cores"},
    "half_gpus": {"gpus": "gpus"},
    "one_gpu_a_node": {"nodes": "hosts", "gpus": "gpus"},
}
JOBS = 1_500


def write(folder: Path) -> dict[str, dict]:
    """Write every trace into a folder of its own, and return the registry of them."""
    registry = {}
    for seed, (name, sizes) in enumerate(SIZES.items()):
        (folder / name).mkdir(parents=True)
        rows = list(_jobs(name, seed))
        with (folder / name / "jobs.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, [*COMMON.values(), *sizes.values()], extrasaction="ignore")
            table.writeheader()
            table.writerows(rows)
        registry[name] = {
            "format": "table",
            "folder": str(folder / name),
            "mapping": COMMON | sizes,
            "times": {"format": TIME},
            "outcomes": {"success": ["COMPLETED"], "failure": ["FAILED"], "cancelled": ["CANCELLED"]},
        }
    return registry


def _jobs(name: str, seed: int) -> Iterator[dict]:
    """Jobs of 20 users, of whom each fails at a rate of their own."""
    draw, now = random.Random(seed), datetime(2024, 1, 1, tzinfo=UTC)
    rates = [draw.choice([0.1, 0.2, 0.4]) for _ in range(20)]
    for number in range(JOBS):
        now += timedelta(seconds=int(draw.expovariate(1 / 900)))
        owner, nodes = draw.randrange(20), draw.choice([1, 1, 1, 2, 4, 16, 32])
        waited = 0 if name == "one_gpu_a_node" else int(draw.expovariate(1 / 1_800))
        began = now + timedelta(seconds=waited)
        failed = draw.random() < rates[owner]
        state = "FAILED" if failed else draw.choice(["COMPLETED"] * 9 + ["CANCELLED"])
        lasted = 1 + int(draw.lognormvariate(8.5, 1.2) / (3 if failed else 1))
        gpus = nodes if name != "half_gpus" else nodes * draw.choice([0, 1])
        if name == "half_gpus" and not gpus and draw.random() < 0.9:
            state = "COMPLETED"
        times = {"created": now, "began": began, "done": began + timedelta(seconds=lasted)}
        yield {
            "id": number,
            "owner": f"u{owner}",
            "state": state,
            "hosts": nodes,
            "cores": 32 * nodes,
            "gpus": gpus,
            **{name: f"{moment:{TIME}}" for name, moment in times.items()},
        }


def read(folder: Path, name: str) -> list[Mapping]:
    """The jobs of a trace with `hours`, how long each lasted, by the file alone."""
    with (folder / name / "jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lasted = [datetime.strptime(row["done"], TIME) - datetime.strptime(row["began"], TIME) for row in rows]
    return [row | {"hours": time.total_seconds() / 3600} for row, time in zip(rows, lasted, strict=True)]

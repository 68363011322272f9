"""Mapped tables of jobs: with nodes or cores alone, with GPUs for half of the jobs, with one GPU per node."""

import csv
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

TIME = "%Y-%m-%d %H:%M:%S"
COMMON = {"job_id": "id", "user": "owner", "submit": "created", "start": "began", "end": "done", "status": "state"}
# Trace -> size field -> column of the file.
SIZES = {
    "in_nodes": {"nodes": "hosts", "cpus": "cores"},
    "in_cores": {"cpus": "cores"},
    "half_gpus": {"gpus": "gpus"},
    "one_gpu_a_node": {"nodes": "hosts", "gpus": "gpus"},
}
JOBS = 1_500
# Columns of the runs of a tool that no format knows.
HEADER = ["run_id", "owner", "gpus", "created_at", "finished_at", "state"]


def write(folder: Path) -> dict[str, dict]:
    """Write every trace into its own folder and return their registry."""
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
    """Yield jobs of 20 users with different failure rates."""
    draw, submit = random.Random(seed), datetime(2024, 1, 1, tzinfo=UTC)
    rates = [draw.choice([0.1, 0.2, 0.4]) for _ in range(20)]
    for number in range(JOBS):
        submit += timedelta(seconds=int(draw.expovariate(1 / 900)))
        owner, nodes = draw.randrange(20), draw.choice([1, 1, 1, 2, 4, 16, 32])
        wait_s = 0 if name == "one_gpu_a_node" else int(draw.expovariate(1 / 1_800))
        start = submit + timedelta(seconds=wait_s)
        failed = draw.random() < rates[owner]
        state = "FAILED" if failed else draw.choice(["COMPLETED"] * 9 + ["CANCELLED"])
        duration_s = 1 + int(draw.lognormvariate(8.5, 1.2) / (3 if failed else 1))
        gpus = nodes if name != "half_gpus" else nodes * draw.choice([0, 1])
        if name == "half_gpus" and not gpus and draw.random() < 0.9:
            state = "COMPLETED"
        times = {"created": submit, "began": start, "done": start + timedelta(seconds=duration_s)}
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
    with (folder / name / "jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    durations = [datetime.strptime(row["done"], TIME) - datetime.strptime(row["began"], TIME) for row in rows]
    return [row | {"hours": duration.total_seconds() / 3600} for row, duration in zip(rows, durations, strict=True)]


def write_runs(file: Path, states=("succeeded", "failed", "cancelled"), header=HEADER) -> list[list]:
    """Write 5,000 runs of 40 users; return those that ended."""
    draw, moment = random.Random(37), datetime(2024, 1, 1, tzinfo=UTC)
    rates = [draw.choice([0.05, 0.2, 0.4]) for _ in range(40)]
    rows = []
    for number in range(5_000):
        moment += timedelta(seconds=int(draw.expovariate(1 / 2_000)))
        user, end = draw.randrange(40), moment + timedelta(seconds=1 + int(draw.lognormvariate(8, 1.5)))
        state = states[1] if draw.random() < rates[user] else draw.choice([states[0]] * 8 + [states[2]])
        is_running = number > 4_990
        ends = ["", "running"] if is_running else [f"{end:%Y-%m-%dT%H:%M:%S}.250Z", state]
        start = f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"
        rows.append([f"run-{number}", f"u{user}", draw.choice([1, 1, 2, 4, 8, 16]), start, *ends])
    with file.open("w", newline="") as target:
        csv.writer(target).writerows([header, *rows])
    return [row for row in rows if row[4]]

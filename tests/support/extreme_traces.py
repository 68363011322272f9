"""Extreme traces: hostile names, one job, no failure, no success, no GPU, no times, many accounts.

All but the hostile one are tables with one row per job.
"""

from pathlib import Path

import hostile_trace
from hostile_trace import HOSTILE

HEADER = "id,state,sub,beg,fin,who,account,gpus"
MAPPING = {
    "job_id": "id",
    "status": "state",
    "submit": "sub",
    "start": "beg",
    "end": "fin",
    "user": "who",
    "account": "account",
    "gpus": "gpus",
}
ENTRY = {
    "format": "table",
    "times": {"format": "seconds"},
    "outcomes": {"success": ["done"], "failure": ["failed"], "running": ["runs"], "waiting": ["queued"]},
}


def _jobs(count: int, state, gpus=lambda n: 1 << n % 4, accounts=5, times=True, least_s=60) -> list[str]:
    rows = [HEADER]
    for n in range(count):
        start_s, duration_s = 600 * n + 7 * (n % 9), least_s + 977 * (n % 31)
        times_text = f"{600 * n},{start_s},{start_s + duration_s}" if times else f"{600 * n},,"
        rows.append(f"j{n},{state(n)},{times_text},u{n % (2 * accounts)},a{n % accounts},{gpus(n)}")
    return rows


def _some_run(n: int) -> str:
    return "runs" if n % 2 else "failed"


def _some_fail(n: int) -> str:
    return "failed" if n % 3 == 0 else "done"


TABLES = {
    "one_job": _jobs(1, lambda _: "failed"),
    "no_failure": _jobs(150, lambda _: "done", least_s=90_000),
    "no_success": _jobs(150, _some_run),
    "no_gpu": _jobs(150, _some_fail, gpus=lambda _: 0),
    "no_times": _jobs(150, lambda _: "queued", times=False),
    "many_accounts": _jobs(2000, _some_fail, accounts=1000),
}
NAMES = ("hostile", *TABLES)


def write_all(folder: Path) -> dict:
    """Write the traces below `folder`, a subfolder of the one where snakemake runs; return their registry."""
    hostile_trace.write(folder / "dumps")
    labels = {"title": HOSTILE[0], "note": HOSTILE[2], "source": HOSTILE[5], "citation": HOSTILE[6]}
    entry = {
        "format": "sacct",
        "folder": f"{folder.name}/dumps",
        "health_events": f"{folder.name}/health_events.csv",
        "node_events": [f"{folder.name}/node_events.txt", f"{folder.name}/cluster_events.txt"],
    }
    registry = {"hostile": entry | labels}
    for name, rows in TABLES.items():
        (folder / name).mkdir()
        (folder / name / "jobs.csv").write_text("\n".join(rows) + "\n")
        # One trace does not map the user.
        mapping = MAPPING if name != "no_success" else {key: MAPPING[key] for key in MAPPING if key != "user"}
        registry[name] = ENTRY | {
            "folder": f"{folder.name}/{name}",
            "mapping": mapping,
            "title": f"{name} " + "n" * 200,
        }
    return registry

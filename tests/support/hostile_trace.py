"""A dump of Slurm's accounting in which every name is malicious or malformed."""

import csv

from samples.sacct.sample import write_sample
from ttf.formats.sacct.hostlist import expand

HOSTILE = [
    "<script>window.broken=1</script>",
    "<img src=x onerror=window.broken=1>",
    "</script><script>window.broken=1</script>",
    "\"'>&lt;b&gt;",
    "{{< include /etc/passwd >}}",
    "[link](javascript:window.broken=1)",
    "$x^2$ `code` **bold** @fig-t1-survival",
    "🔥‮gnp.exe",
    "datum.x); window.broken=1; (",
    "A" * 10_000,
]
# Replace the characters that have a meaning in a list of nodes, or in the resources of a job.
_OF_NODES = str.maketrans("[],", "() ")
_OF_GPUS = str.maketrans("=,", ": ")


def node(name: str) -> str:
    return HOSTILE[int(name[1:]) % len(HOSTILE)].translate(_OF_NODES) + name


def gpu_type(number: int) -> str:
    return HOSTILE[number % len(HOSTILE)].translate(_OF_GPUS)


def write(folder) -> None:
    """Write two dumps, health events and node events in which all free text is HOSTILE."""
    folder.mkdir(parents=True)
    write_sample(folder, jobs=300, seed=2)  # with this seed nodes fail
    for name, number in (("node_events.txt", 6), ("cluster_events.txt", 5)):
        # The workflow reads every .csv or .txt in this folder as a dump of jobs.
        dump = (folder / name).rename(folder.parent / name)
        header, *lines = dump.read_text().splitlines()
        hostile_rows = [_hostile_event(row_index, line.split("|"), number) for row_index, line in enumerate(lines)]
        dump.write_text("\n".join([header, *("|".join(cells) for cells in hostile_rows)]) + "\n")
    for dump in folder.glob("*.txt"):
        header, *lines = dump.read_text().splitlines()
        columns = header.split("|")
        rows = [_hostile(dict(zip(columns, line.split("|"), strict=True))) for line in lines]
        dump.write_text("\n".join([header, *("|".join(row.values()) for row in rows)]) + "\n")
    events = folder / "health_events.csv"
    with events.open(newline="") as file:
        header, *checks = csv.reader(file)
    with events.open("w", newline="") as file:
        hostile_rows = [
            [node(name), time, HOSTILE[row_index % len(HOSTILE)], severity]
            for row_index, (name, time, _, severity) in enumerate(checks)
        ]
        csv.writer(file).writerows([header, *hostile_rows])
    events.rename(folder.parent / "health_events.csv")


def _hostile_event(row_index: int, cells: list[str], reason: int) -> list[str]:
    cells[1] = ",".join(node(name) for name in expand(cells[1]))
    if "Registered" not in cells[reason] and row_index % 2:
        cells[reason] = HOSTILE[row_index % len(HOSTILE)]
    return cells


def _hostile(row: dict[str, str]) -> dict[str, str]:
    job = int(row["JobIDRaw"].split(".")[0])
    named = row | {
        "Account": HOSTILE[job // 3 % len(HOSTILE)],
        "ReqTRES": row["ReqTRES"].replace("a100", gpu_type(job)),
        "AllocTRES": row["AllocTRES"].replace("a100", gpu_type(job)),
    }
    if row["User"]:
        named["User"] = HOSTILE[int(row["User"][4:]) % len(HOSTILE)]
    if row["State"] in ("FAILED", "NODE_FAIL") and row["Reason"]:
        named["Reason"] = HOSTILE[job % len(HOSTILE)]
    if row["NodeList"] != "None assigned":
        named["NodeList"] = ",".join(node(name) for name in expand(row["NodeList"]))
    if row["FailedNode"] != "None":
        named["FailedNode"] = node(row["FailedNode"])
    return named

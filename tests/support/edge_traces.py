"""Valid input at its edges: the first rows of the files of every format, and traces in which a column is constant.

all_cases() lists the cases, write_case() writes one into a folder and returns its configuration, whole_study.run()
runs it there.
"""

import gzip
import json
import random
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path

import made_traces
import yaml
from samples.pai2020 import sample as pai_sample
from samples.philly import sample as philly_sample
from samples.sacct import sample as sacct_sample
from study_runs import PODS_HEADER, ROOT, pods

ROWS = (1, 2, 3, 5, 10, 20, 50, 60, 100, 200, 500)
_FIRST = datetime(2014, 1, 1)
_REGISTRY = yaml.safe_load((ROOT / "config/traces.yaml").read_text(encoding="utf-8"))
# Entry of a trace in the registry, without its location.
_SAID = {
    name: {key: value for key, value in entry.items() if key not in ("folder", "download", "embedded", "synthetic")}
    for name, entry in _REGISTRY.items()
}


# Made traces: each writes its files into a folder and returns its registry entry without the folder. ---------------


def _lines(path: Path, header: str, rows: Iterable[Iterable]) -> None:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows), ""]), encoding="utf-8")


def _titan(folder: Path) -> dict:
    draw, last_watch = random.Random(1), datetime(2019, 8, 1, 20, 7, 33)
    rows = []
    for number in range(150):
        insert = _FIRST + timedelta(days=draw.randrange(900))
        is_failed = draw.random() < 0.3
        remove = insert + timedelta(seconds=draw.randrange(1, 50_000_000)) if is_failed else last_watch
        location = f"c{number % 25}-{number % 8}c{number % 3}s{number % 8}n{number % 4}"
        event = draw.choice(["DBE", "OTB", ""]) if is_failed else ""
        rows.append(
            (
                f"{number:04}",
                location,
                insert,
                remove,
                int((remove - insert).total_seconds()),
                str(is_failed).upper(),
                event,
            )
        )
    _lines(folder / "gc_full.csv", "SN,location,insert,remove,duration,out,event", rows)
    return _SAID["titan"]


def _lanl(folder: Path) -> dict:
    draw, causes = random.Random(2), ["Facilities", "Hardware", "Human Error", "Network", "Undetermined", "Software"]
    header = "System,machine type,nodes,nodenumz,node prod,node decom,cputype,Prob Started,Prob Fixed,Down Time"
    rows = []
    for number in range(200):
        system = 1 + number // 80
        begins = datetime(2001, 1, 5) + timedelta(hours=9 * (number % 80) + draw.randrange(9))
        minutes = draw.randrange(1, 600)
        times = [f"{time:%m/%d/%Y %H:%M}" for time in (begins, begins + timedelta(minutes=minutes))]
        cause = draw.randrange(7)
        system_columns = (system, "smp", 4 * system, draw.randrange(4 * system), "1-Jan", "current", system)
        rows.append((*system_columns, *times, minutes, *("known" if cause == index else "" for index in range(6))))
    _lines(folder / "LA-UR-05-7318-failure-data-1996-2005.csv", ",".join([header, *causes]), rows)
    return _SAID["lanl"]


def _hbd(folder: Path) -> dict:
    draw, events = random.Random(3), []
    for number in range(100):
        day, kind = 3 * number + draw.random(), draw.choice([("GPU", "GPU lost"), ("NIC", "link down")])
        fault_type = {"Level": "Hardware Failure", "Class": kind[0], "Desc": kind[1]}
        for event_type, event_day in (("fault_start", day), ("fault_end", day + draw.random())):
            node = f"node-{number * number % 17}"
            events.append(
                {"node_id": node, "event_time": round(event_day, 4), "event_type": event_type, "fault_type": fault_type}
            )
    (folder / "fault_trace.json").write_text(json.dumps(events))
    return _SAID["infinitehbd"] | {"nodes": 20}


def _ssd(folder: Path) -> dict:
    draw = random.Random(4)
    rows = [
        (f"M{n % 3}", _FIRST + timedelta(hours=7 * n), 1, "none", n, f"n{draw.randrange(90)}", n % 30, n % 5)
        for n in range(200)
    ]
    header = "model,failure_time,failure,app,disk_id,node_id,rack_id,machine_room_id"
    _lines(folder / "ssd_failure_tag.csv", header, rows)
    return _SAID["alibaba_ssd"]


def _backblaze(folder: Path) -> dict:
    for day in range(12):
        drives = [n for n in range(120) if not (n % 30 == 7 and day > n % 11)]
        rows = [
            (
                f"{_FIRST + timedelta(days=day):%Y-%m-%d}",
                f"S{n}",
                f"M{n % 4}",
                0,
                int(n % 30 == 7 and day == n % 11),
                9 * n,
            )
            for n in drives
        ]
        header = "date,serial_number,model,capacity_bytes,failure,smart_9_raw"
        _lines(folder / f"{_FIRST + timedelta(days=day):%Y-%m-%d}.csv", header, rows)
    return _SAID["backblaze"]


def _openb(folder: Path) -> dict:
    (folder / "openb_pod_list_default.csv").write_text("\n".join([PODS_HEADER, *pods(300)]) + "\n")
    return {"format": "openb"}


def _outages(folder: Path) -> dict:
    draw = random.Random(5)
    rows = [(f"n{draw.randrange(12)}", 9000 * n, 9000 * n + draw.randrange(1, 20_000), f"c{n % 3}") for n in range(200)]
    _lines(folder / "outages.csv", "unit,from,to,why", rows)
    return {
        "format": "outages",
        "mapping": {"unit": "unit", "start": "from", "end": "to", "cause": "why"},
        "times": {"format": "seconds"},
        "nodes": 15,
        "window_days": [0, 40],
    }


def _table(folder: Path) -> dict:
    draw, rows = random.Random(6), []
    for n in range(300):
        begins = 700 * n + draw.randrange(600)
        state = draw.choice(["done", "done", "failed", "stopped", "runs"])
        rows.append((f"j{n}", state, 700 * n, begins, begins + draw.randrange(9000), f"u{n % 7}", f"a{n % 3}", n % 9))
    return _table_of(folder, rows)


def _table_of(folder: Path, rows: Iterable[Iterable]) -> dict:
    _lines(folder / "jobs.csv", "id,state,sub,beg,fin,who,team,gpus", rows)
    file_columns = ("id", "state", "sub", "beg", "fin", "who", "team", "gpus")
    mapping_keys = ("job_id", "status", "submit", "start", "end", "user", "account", "gpus")
    outcomes = {"success": ["done"], "failure": ["failed"], "cancelled": ["stopped"], "running": ["runs"]}
    return {
        "format": "table",
        "mapping": dict(zip(mapping_keys, file_columns, strict=True)),
        "times": {"format": "seconds"},
        "outcomes": outcomes | {"waiting": ["queued"]},
    }


def _sacct_with_events(folder: Path) -> dict:
    sacct_sample.write_sample(folder, jobs=1000)
    events_folder = folder.with_name("beside")
    events_folder.mkdir()
    for name in ("health_events.csv", "node_events.txt", "cluster_events.txt"):
        (folder / name).rename(events_folder / name)
    options = {"health_events": "beside/health_events.csv", "infra_failures": _SAID["sample_slurm"]["infra_failures"]}
    return {"format": "sacct", "node_events": ["beside/cluster_events.txt", "beside/node_events.txt"]} | options


def _slurm_events(folder: Path) -> dict:
    sacct_sample.write_sample(folder, jobs=1000)
    for file in folder.iterdir():
        if "_events.txt" not in file.name:
            file.unlink()
    return {"format": "slurm_events"}


def _pai(folder: Path) -> dict:
    pai_sample.write_sample(folder, tasks=1000)
    return {"format": "pai2020"}


def _philly_sample(folder: Path) -> dict:
    philly_sample.write_sample(folder, jobs=300)
    (folder / "loss_log.csv").rename(folder.with_name("losses.csv"))
    return {"format": "philly", "loss_log": "losses.csv", "window": _SAID["sample_philly"]["window"]}


def _by(name: str) -> Callable[[Path], dict]:
    def write(folder: Path) -> dict:
        made_traces.WRITERS[name](folder)
        return {"format": name}

    return write


MADE = {
    "openb": _openb,
    "titan": _titan,
    "lanl": _lanl,
    "infinitehbd": _hbd,
    "alibaba_ssd": _ssd,
    "backblaze": _backblaze,
    "outages": _outages,
    "slurm_events": _slurm_events,
    "table": _table,
    "sacct": _by("sacct"),
    "sacct_with_events": _sacct_with_events,
    "helios": _by("helios"),
    "acme": _by("acme"),
    "philly": _by("philly"),
    "philly_sample": _philly_sample,
    "pai2020": _pai,
}


# Cases -----------------------------------------------------------------------------------------------------------


def all_cases() -> list[tuple[str, int | None]]:
    """Return (trace, rows): every prefix of every trace, and the whole traces of SHAPES (None)."""
    return [(name, rows) for name in MADE for rows in ROWS] + [(name, None) for name in SHAPES]


def write_case(case: tuple[str, int | None], folder: Path) -> dict:
    """Write the files of a case below `folder`, where the study runs, and return its configuration."""
    name, rows = case
    raw = folder / "raw"
    raw.mkdir(parents=True)
    entry = (MADE | SHAPES)[name](raw)
    if rows is not None:
        for file in [*raw.iterdir(), *(folder / "beside").glob("*"), *folder.glob("*.csv")]:
            cut(file, rows, headed=entry["format"] != "pai2020")
    return {"study": ["mine"], "registry": {"mine": entry | {"folder": "raw"}}}


def cut(file: Path, rows: int, headed: bool = True) -> None:
    """Keep the first rows of a table, packed or not, or of an array of objects."""
    packed = file.suffix == ".gz"
    text = (gzip.decompress(file.read_bytes()) if packed else file.read_bytes()).decode("utf-8", "surrogateescape")
    if text.startswith("["):
        text = json.dumps(json.loads(text)[:rows])
    else:
        text = "".join(text.splitlines(keepends=True)[: rows + headed])
    content = text.encode("utf-8", "surrogateescape")
    file.write_bytes(gzip.compress(content, mtime=0) if packed else content)


# Shapes ----------------------------------------------------------------------------------------------------------


def _jobs(number: int = 60, **how: Callable[[int], object]) -> Callable[[Path], dict]:
    """Return a writer of a table of jobs; `how` replaces the default value of a column in row n."""
    usual = {
        "id": lambda n: f"j{n}",
        "state": lambda n: ("done", "failed", "done", "stopped")[n % 4],
        "sub": lambda n: 600 * n,
        "beg": lambda n: 600 * n + 7 * (n % 9),
        "fin": lambda n: 600 * n + 100 + 977 * (n % 31),
        "who": lambda n: f"u{n % 5}",
        "team": lambda n: f"a{n % 2}",
        "gpus": lambda n: 1 << n % 4,
    }
    assert how.keys() <= usual.keys()

    def write(folder: Path) -> dict:
        return _table_of(folder, ([value(n) for value in (usual | how).values()] for n in range(number)))

    return write


def _down(*rows: tuple, **settings) -> Callable[[Path], dict]:
    def write(folder: Path) -> dict:
        entry = _outages(folder) | settings
        _lines(folder / "outages.csv", "unit,from,to,why", rows)
        return entry

    return write


def _gpus(*rows: tuple) -> Callable[[Path], dict]:
    def write(folder: Path) -> dict:
        _lines(folder / "gc_full.csv", "SN,location,insert,remove,duration,out,event", rows)
        return _SAID["titan"]

    return write


def _same(value: object) -> Callable[[int], object]:
    return lambda _: value


_IN, _OUT = "2014-01-01 00:00:00", "2014-01-02 00:00:00"
SHAPES = {
    "one_user": _jobs(who=_same("u"), team=_same("a")),
    "all_failed": _jobs(state=_same("failed")),
    "none_failed": _jobs(state=_same("done")),
    "all_cancelled": _jobs(state=_same("stopped")),
    "all_running": _jobs(state=_same("runs"), fin=_same("")),
    "all_waiting": _jobs(state=_same("queued"), beg=_same(""), fin=_same("")),
    "zero_length_failed": _jobs(fin=lambda n: 600 * n + 7 * (n % 9), state=_same("failed")),
    "one_timestamp": _jobs(sub=_same(0), beg=_same(0), fin=_same(0)),
    "alike": _jobs(state=_same("failed"), sub=_same(0), beg=_same(0), fin=_same(10), who=_same("u"), gpus=_same(1)),
    "alike_in_time": _jobs(state=_same("failed"), sub=_same(0), beg=_same(0), fin=_same(10)),
    "no_gpus_said": _jobs(gpus=_same("")),
    "nobody": _jobs(who=_same(""), team=_same("")),
    "one_job_each": _jobs(who=lambda n: f"u{n}", team=lambda n: f"a{n}"),
    "blank_when_submitted": _jobs(sub=_same("")),
    "blank_when_ended": _jobs(fin=_same("")),
    "backwards": _jobs(fin=lambda n: 600 * n - 50),
    "very_long": _jobs(fin=lambda n: 600 * n + 10**9),
    "unknown_words": _jobs(state=_same("what")),
    "one_failed_last": _jobs(state=lambda n: "failed" if n == 59 else "done"),
    "huge_job": _jobs(gpus=lambda n: 10**6 if n == 5 else 1),
    "one_outage": _down(("n1", 0, 100, "c")),
    "one_open_outage": _down(("n1", 0, "", "c")),
    "outages_of_no_length": _down(*(("n1", 100 * n, 100 * n, "c") for n in range(20))),
    "outages_at_one_time": _down(*((f"n{n}", 100, 200, "c") for n in range(12))),
    "watch_ends_first": _down(
        *((f"n{n % 3}", 10**6 + 1000 * n, 10**6 + 1000 * n + 9, "c") for n in range(9)), window_days=[0, 1]
    ),
    "one_node_always_down": _down(("n1", 0, 40 * 86_400, "c"), nodes=1),
    "no_gpu_failed": _gpus(*((f"{n}", "c0-0c0s0n0", _IN, _OUT, 86_400, "FALSE", "") for n in range(40))),
    "every_gpu_failed": _gpus(*((f"{n}", "c0-0c0s0n0", _IN, _OUT, 86_400, "TRUE", "DBE") for n in range(40))),
    "no_gpu_lived": _gpus(*((f"{n}", "c0-0c0s0n0", _IN, _IN, 0, "TRUE", "DBE") for n in range(40))),
    "rows_twice": _gpus(*(("1", "c0-0c0s0n0", _IN, _OUT, 86_400, "TRUE", "OTB") for _ in range(2))),
}

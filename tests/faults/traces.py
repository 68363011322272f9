"""A small, good trace of every format: what mutations begin with."""

import json
import random
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import extreme_traces
import made_traces
from study_runs import PODS_HEADER, pods
from ttf.formats.pai2020 import sample as pai2020
from ttf.formats.sacct import sample as sacct

FIRST = datetime(2020, 1, 6, tzinfo=UTC)
Files = dict[str, bytes]


def _clock(minutes: float) -> str:
    return f"{FIRST + timedelta(minutes=minutes):%Y-%m-%d %H:%M:%S}"


def _written(write, *arguments, **named) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), *arguments, **named)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _lines(name: str, *lines: str) -> Files:
    return {name: "".join(f"{line}\n" for line in lines).encode()}


def _titan(draw: random.Random) -> Files:
    rows = ["SN,location,insert,remove,duration,out,event"]
    for number in range(80):
        start = draw.randrange(500_000)
        end = start + draw.randrange(1, 900_000)
        place = f"c{number % 25}-{number % 8}c{number % 3}s{number % 8}n{number % 4}"
        event = draw.choice(["", "", "DBE", "OTB"])
        out = "TRUE" if event else "FALSE"
        seconds = 60 * (end - start)
        rows.append(f"{number // 2:010},{place},{_clock(start)},{_clock(end)},{seconds},{out},{event}")
    return _lines("gc_full.csv", *rows)


_LANL = (
    "System,machine type,nodes,procstot,procsinnode,nodenum,nodenumz,node install,node prod,node decom,fru type,mem,"
    "cputype,memtype,num intercon,purpose,Prob Started,Prob Fixed,Down Time,Facilities,Hardware,Human Error,Network,"
    "Undetermined,Software,Same Event"
)


def _lanl(draw: random.Random) -> Files:
    rows = [_LANL]
    for _number in range(120):
        start = FIRST.replace(year=2002) + timedelta(minutes=draw.randrange(900_000))
        end = start + timedelta(minutes=draw.randrange(1, 2000))
        system, node = draw.randrange(2, 5), draw.randrange(8)
        cause = draw.choice(["Graphics,,,,", ",,Cable,,", ",,,Unknown,", ",,,,Kernel"])
        times = f"{start:%m/%d/%Y %H:%M},{end:%m/%d/%Y %H:%M},{(end - start).seconds // 60}"
        rows.append(
            f"{system},cluster,8,64,8,{node},{node},1-Jun,1-Jun,current,part,80,{system},1,0,compute,{times},,{cause},No"
        )
    return _lines("LA-UR-05-7318-failure-data-1996-2005.csv", *rows)


def _infinitehbd(draw: random.Random) -> Files:
    events = []
    for number in range(60):
        kind = {
            "Level": draw.choice(["Hardware Failure", "Software Failure"]),
            "Class": "GPU",
            "Desc": f"d{number % 4}",
        }
        start = draw.uniform(0, 300)
        for what, at in (("start", start), ("end", start + draw.uniform(0.01, 9))):
            where = {"node_id": f"n{number % 9}", "event_time": round(at, 4), "event_type": f"fault_{what}"}
            events.append(where | {"fault_type": kind})
    events.sort(key=lambda event: event["event_time"])
    return {"fault_trace.json": json.dumps(events).encode()}


def _slurm_events(draw: random.Random) -> Files:
    nodes = ["Cluster|NodeName|TimeStart|TimeEnd|State|StateRaw|Reason|User"]
    for _number in range(80):
        start = int(FIRST.timestamp()) + draw.randrange(9_000_000)
        state = draw.choice(["DOWN", "DRAIN", "DRAINED", "FAIL"])
        nodes.append(
            f"big|n{draw.randrange(9)}|{start}|{start + draw.randrange(1, 90_000)}|{state}|0x202|GPU lost|root"
        )
    first, last = int(FIRST.timestamp()), int(FIRST.timestamp()) + 9_000_000
    cluster = [
        "Cluster|Cluster Nodes|TimeStart|TimeEnd|TRES|Reason",
        f"big|n[0-8]|{first}|{last}|cpu=1|Cluster Registered TRES",
    ]
    return _lines("nodes.txt", *nodes) | _lines("cluster.txt", *cluster)


def _outages(draw: random.Random) -> Files:
    rows = ["host,from,to,why"]
    for _number in range(60):
        start = draw.randrange(9_000_000)
        rows.append(f"h{draw.randrange(9)},{start},{start + draw.randrange(1, 90_000)},{draw.choice(['fan', 'disk'])}")
    return _lines("outages.csv", *rows)


def _alibaba_ssd(draw: random.Random) -> Files:
    rows = ["model,failure_time,failure,app,r_5,n_5,disk_id,node_id,rack_id,machine_room_id"]
    for number in range(60):
        at = _clock(draw.randrange(900_000))
        rows.append(f"A{number % 3},{at},1,{draw.choice(['RM', 'none'])},,,{number},n{number % 20},r{number % 7},1")
    return _lines("ssd_failure_tag.csv", *rows)


def _backblaze(draw: random.Random) -> Files:
    files = {}
    for day in range(4):
        rows = ["date,serial_number,model,capacity_bytes,failure,smart_1_raw,smart_9_normalized,smart_9_raw"]
        for serial in range(40):
            failed = int(draw.random() < 0.05)
            rows.append(f"2013-04-{10 + day},Z{serial},M{serial % 3},4000787030016,{failed},7,99,{1000 * serial + day}")
        files |= _lines(f"2013-04-{10 + day}.csv", *rows)
    return files


OUTAGES = {
    "mapping": {"unit": "host", "start": "from", "end": "to", "cause": "why"},
    "times": {"format": "seconds"},
    "nodes": 12,
    "window_days": [0, 120],
}


@cache
def trace(format_: str) -> tuple[Files, dict]:
    """The raw files of a good trace, by name, and its entry in the registry; they are to lie in the folder `raw`."""
    draw = random.Random(7)
    entry: dict = {"format": format_}
    if format_ in made_traces.WRITERS:
        files = _written(made_traces.WRITERS[format_])
        entry |= {"loss_log": "raw/losses.csv"} if format_ == "philly" else {}
    elif format_ == "sacct_events":
        files, entry = _written(sacct.write_sample, jobs=300, seed=2), {"format": "sacct"}
        entry |= {"health_events": "raw/health_events.csv"}
        entry |= {"node_events": ["raw/cluster_events.txt", "raw/node_events.txt"]}
    elif format_ == "pai2020":
        files = _written(pai2020.write_sample, tasks=1000, seed=3)
    elif format_ == "openb":
        files = _lines("openb_pod_list_default.csv", PODS_HEADER, *pods(120))
    elif format_ == "table":
        entry = extreme_traces.ENTRY | {"mapping": extreme_traces.MAPPING}
        files = _lines("jobs.csv", *extreme_traces.jobs(120, extreme_traces.some_fail))
    else:
        files = globals()[f"_{format_}"](draw)
        entry |= OUTAGES if format_ == "outages" else {}
        entry |= {"nodes": 12, "window_days": [0, 310]} if format_ == "infinitehbd" else {}
    return files, entry | {"folder": "raw"}


FORMATS = (
    *("pai2020", "philly", "helios", "acme", "sacct", "sacct_events", "openb", "table", "titan", "lanl"),
    *("infinitehbd", "slurm_events", "outages", "alibaba_ssd", "backblaze"),
)

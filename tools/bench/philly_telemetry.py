"""Measure time and peak memory of ingest, jobs and nodes of a Philly trace of full size.

Makes a synthetic trace in the published layout: 117,325 jobs, and telemetry of 550 machines x 80,000 minutes (44
million rows and 3 GB per table). Each step is a separate process.
usage: philly_telemetry.py FOLDER [--minutes N] [--tables gpu_util cpu_util mem_util] [--keep]
"""

import argparse
import json
import random
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from clock import ROOT, measure_cost

MACHINES = 550
JOBS = 117_325
FIRST_MINUTE = datetime(2017, 10, 3, 7, tzinfo=UTC)
BLOCK_MINUTES = 1_000

INGEST = """
import sys, yaml
from pathlib import Path
from ttf.raw.ingest import ingest
from ttf.raw.raw_tables import table_schemas
from ttf.formats.philly.read import READERS
root, folder, *tables = sys.argv[1:]
schemas = table_schemas(yaml.safe_load((Path(root) / "scripts/ttf/formats/philly/format.yaml").read_text())["schema"])
raw = Path(folder) / "raw"
raw.mkdir(exist_ok=True)
files = {table: [Path(folder) / f"cluster_{table}"] for table in tables}
account, _ = ingest(files, schemas, raw, 0, READERS)
print(account.rows())
"""
DERIVE = """
import sys
from pathlib import Path
import polars as pl
from dataclasses import replace
from ttf.formats.protocol import format_and_source
root, folder, *tables = sys.argv[1:]
format_, source = format_and_source(Path(folder) / "raw", "ttf.formats.philly.derive", dict(), tables)
frame = format_.{function}(replace(source, records=format_.records(source)))
print(frame.height, frame.select(pl.all().count()).row(0, named=True))
"""


def make_log(path: Path, minutes: int) -> None:
    """Write a job log: consecutive attempts, some without an end, in local time."""
    rng = random.Random(2017)
    first = FIRST_MINUTE.replace(tzinfo=None) - timedelta(hours=7)
    jobs = []
    for number in range(JOBS):
        submit = moment = first + timedelta(seconds=rng.randrange(minutes * 60))
        attempts = []
        for _ in range(0 if rng.random() < 0.045 else rng.choice((1, 1, 1, 1, 1, 1, 2, 3))):
            start = moment + timedelta(seconds=rng.randrange(600))
            moment = start + timedelta(seconds=int(rng.expovariate(1 / 10_000)))
            detail = [
                {
                    "ip": f"m{rng.randrange(MACHINES)}",
                    "gpus": [f"gpu{gpu}" for gpu in sorted(rng.sample(range(8), rng.choice((1, 1, 1, 2, 4, 8))))],
                }
                for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 3)))
            ]
            end = None if rng.random() < 0.03 else str(moment)
            attempts.append({"start_time": str(start), "end_time": end, "detail": detail})
        jobs.append(
            {
                "status": rng.choice(("Pass", "Killed", "Failed")),
                "vc": f"{rng.randrange(15):06x}",
                "jobid": f"application_1506638472019_{number}",
                "attempts": attempts,
                "submitted_time": str(submit),
                "user": f"{rng.randrange(320):06x}",
            }
        )
    path.write_text(json.dumps(jobs))


def make_telemetry(path: Path, table: str, minutes: int) -> None:
    """Write a table of telemetry by minute, with offline machines and machines of four GPUs."""
    rng = np.random.default_rng(2017)
    machines = pl.DataFrame({"machine": [f"m{number}" for number in range(MACHINES)]})
    header = {
        "gpu_util": "time,machineId," + ",".join(f"gpu{gpu}_util" for gpu in range(8)),
        "cpu_util": "time,machine_id,cpu_util",
        "mem_util": "time,machine_id,mem_total,mem_free",
    }[table]
    with path.open("wb") as file:
        file.write(header.encode() + b"\n")
        for block in range(0, minutes, BLOCK_MINUTES):
            begin = FIRST_MINUTE + timedelta(minutes=block)
            end = begin + timedelta(minutes=min(BLOCK_MINUTES, minutes - block) - 1)
            moments = pl.datetime_range(begin, end, "1m", eager=True).dt.convert_time_zone("America/Los_Angeles")
            frame = pl.DataFrame({"time": moments.dt.to_string("%Y-%m-%d %H:%M:%S %Z")}).join(machines, how="cross")
            offline = pl.Series(rng.random(frame.height) < 0.01)
            columns = {}
            if table == "gpu_util":
                small = pl.Series(np.arange(frame.height) % MACHINES % 2 == 1)
                for gpu in range(8):
                    busy = rng.random(frame.height) < 0.6
                    use = pl.Series(np.round(rng.uniform(0, 100, frame.height), 9) * busy).cast(pl.String)
                    columns[f"gpu{gpu}"] = use if gpu < 4 else use.set(small, "")
                    columns[f"gpu{gpu}"] = columns[f"gpu{gpu}"].set(offline & (columns[f"gpu{gpu}"] != ""), "NA")
                columns["last"] = pl.repeat("", frame.height, eager=True)
            elif table == "cpu_util":
                columns["cpu"] = pl.Series(np.round(rng.uniform(0, 100, frame.height), 3)).cast(pl.String)
            else:
                columns["total"] = pl.repeat("528272672.0", frame.height, eager=True).set(offline, "0.0")
                columns["free"] = pl.Series(np.round(rng.uniform(0, 5e8, frame.height), 4)).cast(pl.String)
            frame.with_columns(**columns).write_csv(file, include_header=False, quote_style="never")


def measure_step(label: str, code: str, folder: Path, tables: list[str]) -> None:
    """Run the code in a separate process; print wall time (s) and largest resident size (GB)."""
    cost = measure_cost([sys.executable, "-c", code, str(ROOT), str(folder), *tables], folder)
    output = (folder / "output.log").read_text().strip()
    print(f"{label}: {cost.seconds:.1f} s, {cost.gigabytes:.2f} GB at most\n  {output}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=int, default=80_000)
    parser.add_argument("--tables", nargs="+", default=["gpu_util"], choices=["gpu_util", "cpu_util", "mem_util"])
    parser.add_argument("--keep", action="store_true", help="keep the files")
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    tables = ["job_log", *arguments.tables]
    for table in tables:
        path = folder / f"cluster_{table}"
        if not path.exists():
            if table == "job_log":
                make_log(path, arguments.minutes)
            else:
                make_telemetry(path, table, arguments.minutes)
        print(f"{path.name}: {path.stat().st_size / 1e6:,.0f} MB", flush=True)
    measure_step("job log: ingest", INGEST, folder, ["job_log"])
    for table in arguments.tables:
        measure_step(f"{table}: ingest", INGEST, folder, [table])
    for function in ("jobs", "attempts", "nodes"):
        measure_step(function, DERIVE.replace("{function}", function), folder, tables)
    if not arguments.keep:
        for table in tables:
            (folder / f"cluster_{table}").unlink()
        shutil.rmtree(folder / "raw")


if __name__ == "__main__":
    main()

"""Compare reading a Slurm dump and a Philly job log with plain pandas and plain Python on the same file.

Both sides are whole processes. The study checks every row, stores the typed table and derives jobs and attempts by the
functions that its rules call. `formats.py FILE` makes that file.
"""

import json
import random
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

import sacct_million
from clock import ROOT, machine, measure_in_turn

RECORDS = 1_000_000
# Of a Philly trace of full size.
JOBS, MACHINES, WATCH_S = 117_325, 550, 80_000 * 60
STUDY = """
import sys
from dataclasses import replace
from pathlib import Path
import polars as pl
from ttf.formats.protocol import Source, code_of, reading_in
from ttf.raw.ingest import ingest
from ttf.raw.raw_tables import table_schemas
root, file, name, table = sys.argv[1:]
from ttf.study.recognition.format_declarations import load_formats
about = load_formats()[name]
schemas, readers = table_schemas(about["schema"]), reading_in(about["reader"]).readers
folder = Path(file).parent / "typed"
folder.mkdir(exist_ok=True)
ingest({table: [Path(file)]}, schemas, folder, 0, readers)
format_ = code_of(about["code"])
source = Source({table: pl.scan_parquet(folder / f"{table}.parquet")})
source = replace(source, records=format_.records(source))
jobs, attempts = (table(source).lazy().collect() for table in (format_.jobs, format_.attempts))
print(jobs.height, attempts.height)
"""
# Name -> (file, number of its jobs or records, arguments of the study's side, peer).
FORMATS = {
    "slurm": ("dump.txt", RECORDS, ("sacct", "record"), "pandas_sacct.py"),
    "philly": ("cluster_job_log", JOBS, ("philly", "job_log"), "philly_notebook.py"),
}


def compare(folder: Path, rounds: int) -> dict:
    """Measure the costs of both sides and the file size by format; add the machine."""
    folder.mkdir(parents=True, exist_ok=True)
    results = {}
    for name, (file, rows, arguments, peer) in FORMATS.items():
        path = folder / file
        if not path.exists():
            # In a separate process: memory of this one would count as its children's.
            subprocess.run([sys.executable, __file__, str(path)], check=True)
        commands = {
            "study": [sys.executable, "-c", STUDY, str(ROOT), str(path), *arguments],
            "peer": [sys.executable, str(ROOT / "tools/bench" / "peers" / peer), str(path)],
        }
        costs = measure_in_turn(commands, folder, rounds)
        results[name] = {"rows": rows, "megabytes": path.stat().st_size / 1e6} | {
            side: asdict(cost) for side, cost in costs.items()
        }
    return results | {"machine": machine("pandas", "polars")}


def make_log(path: Path) -> None:
    """Write a job log: consecutive attempts, some without an end, in local time."""
    rng = random.Random(2017)
    first = datetime(2017, 10, 3)
    jobs = []
    for number in range(JOBS):
        submit = moment = first + timedelta(seconds=rng.randrange(WATCH_S))
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


def make(path: Path) -> None:
    if path.name == "dump.txt":
        path.write_text(sacct_million.dump(RECORDS))
    else:
        make_log(path)


if __name__ == "__main__":
    make(Path(sys.argv[1]))

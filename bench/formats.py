"""Time and peak memory of reading a Slurm dump and a Philly job log, against plain pandas and json in the same run.

Both sides are whole processes that end with the same: one row per job of the Slurm dump, typed attempts of the job log.
The study's also checks every row and stores the typed table. Called by run.py; alone: formats.py FILE makes that file.
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import philly_telemetry
import sacct_million

ROOT = Path(__file__).parents[1]
RECORDS = 1_000_000

STUDY = """
import sys
from pathlib import Path
import polars as pl
from ttf.ingest import ingest
from ttf.schemas import schemas_and_readers
schemas, readers = schemas_and_readers("{reader}", {{}}, Path(sys.argv[1]) / "workflow/schemas/tables/{format}.yaml")
folder = Path(sys.argv[2]) / "raw"
folder.mkdir(exist_ok=True)
ingest({{"{table}": [Path(sys.argv[2]) / "{file}"]}}, schemas, folder, 0, readers)
"""
JOBS = """
from ttf.traces import sacct
print(sacct.jobs({"record": pl.scan_parquet(folder / "record.parquet")}).height)
"""
# What a notebook would do: types, the first word of the state, GPUs out of the TRES string, a row per job.
PANDAS_SACCT = """
import sys
import pandas as pd
frame = pd.read_csv(f"{sys.argv[2]}/dump.txt", sep="|", dtype=str)
for name in ("Submit", "Start", "End"):
    frame[name] = pd.to_datetime(pd.to_numeric(frame[name], errors="coerce"), unit="s")
frame["State"] = frame["State"].str.split().str[0]
for name in ("ReqTRES", "AllocTRES"):
    frame[f"{name}_gpus"] = pd.to_numeric(frame[name].str.extract(r"gres/gpu=(\\d+)")[0])
    frame[f"{name}_cpus"] = pd.to_numeric(frame[name].str.extract(r"cpu=(\\d+)")[0])
frame["runtime"] = (frame["End"] - frame["Start"]).dt.total_seconds()
jobs = frame.sort_values("Submit").groupby("JobIDRaw", sort=False).agg(
    user=("User", "first"), account=("Account", "first"), submit=("Submit", "min"), start=("Start", "min"),
    end=("End", "max"), runtime=("runtime", "sum"), state=("State", "last"), gpus=("ReqTRES_gpus", "last"),
    cpus=("ReqTRES_cpus", "last"), nodes=("NNodes", "last"), attempts=("State", "size"))
print(len(jobs))
"""
# What is timed -> (file, the study's code, the peer's code).
FORMATS = {
    f"Slurm dump of {RECORDS:,} records → jobs": (
        "dump.txt",
        STUDY.format(format="sacct", reader="sacct_reader", table="record", file="dump.txt") + JOBS,
        PANDAS_SACCT,
    ),
    f"Philly job log of {philly_telemetry.JOBS:,} jobs → typed attempts": (
        "cluster_job_log",
        STUDY.format(format="philly", reader="philly_raw", table="job_log", file="cluster_job_log"),
        philly_telemetry.PANDAS,
    ),
}


def compare(measured: Callable[[list[str], Path], tuple[float, float]], rounds: int, folder: Path) -> list[tuple]:
    """Rows (what, MB, our s, their s, our GB, their GB): medians of `rounds` in turn, after one that is not counted."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = str(ROOT / "scripts")
    rows = []
    for what, (name, *codes) in FORMATS.items():
        if not (folder / name).exists():
            # In a process of its own: what this one holds in memory would count as its children's.
            subprocess.run([sys.executable, __file__, str(folder / name)], check=True)
        figures: tuple[list, list] = ([], [])
        for turn in range(rounds + 1):
            for code, found in zip(codes, figures, strict=True):
                figure = measured([sys.executable, "-c", code, str(ROOT), str(folder)], folder)
                print(f"{what}: {figure[0]:.1f} s, {figure[1]:.2f} GB", file=sys.stderr)
                found += [figure] if turn else []
        ours, theirs = ([statistics.median(values) for values in zip(*found, strict=True)] for found in figures)
        rows.append((what, (folder / name).stat().st_size / 1e6, ours[0], theirs[0], ours[1], theirs[1]))
    return rows


def as_markdown(rows: list[tuple]) -> str:
    lines = [
        "| what | MB | study, s | pandas, s | ratio | study, GB | pandas, GB | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for what, megabytes, ours, theirs, our_memory, their_memory in rows:
        lines.append(
            f"| {what} | {megabytes:.0f} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} "
            f"| {our_memory:.2f} | {their_memory:.2f} | {our_memory / their_memory:.2f} |"
        )
    return "\n".join(lines)


def make(path: Path) -> None:
    if path.name == "dump.txt":
        path.write_text(sacct_million.dump(RECORDS))
    else:
        philly_telemetry.make_log(path, 80_000)


if __name__ == "__main__":
    make(Path(sys.argv[1]))

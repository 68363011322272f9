"""How long a dump of `sacct` takes: a million made-up records, read, checked, and turned into jobs and attempts.

usage: python bench/sacct_million.py [RECORDS]; works in a folder of its own that it removes.
"""

import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from ttf.ingest import ingest  # noqa: E402
from ttf.raw_tables import table_schemas  # noqa: E402
from ttf.traces import sacct, sacct_reader  # noqa: E402

HEADER = (
    "JobIDRaw|JobID|Cluster|User|Account|Partition|QOS|State|ExitCode|DerivedExitCode|Submit|Eligible|Start|End|"
    "ElapsedRaw|Suspended|TimelimitRaw|NNodes|NodeList|ReqTRES|AllocTRES|Reason|Flags"
)
STATES = ["COMPLETED", "FAILED", "CANCELLED by 1007", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "REQUEUED", "PREEMPTED"]
SHARES = [0.6, 0.2, 0.1, 0.04, 0.02, 0.01, 0.02, 0.01]


def dump(records: int, seed: int = 1) -> str:
    """Text as sacct prints it, sorted by submission; a requeued or preempted job goes on in the record after."""
    random = np.random.default_rng(seed)
    states = random.choice(len(STATES), records, p=SHARES)
    goes_on = np.isin(states, [6, 7])
    job = np.cumsum(np.r_[True, ~goes_on[:-1]]) + 1_000_000
    runtime = random.lognormal(6, 2, records).astype(np.int64)
    wait = random.exponential(600, records).astype(np.int64)
    submit = 1_700_000_000 + np.cumsum(random.integers(0, 60, records))
    # The next record of a job is submitted when the run before ends.
    for place in np.flatnonzero(goes_on[:-1]):
        submit[place + 1] = submit[place] + wait[place] + runtime[place]
    start, end = submit + wait, submit + wait + runtime
    nodes = random.choice([1, 1, 1, 1, 2, 4, 8, 32], records)
    first = random.integers(1, 900, records)
    user = random.integers(1000, 1800, records)[job - job[0]]
    lines = [HEADER]
    for n in range(records):
        where = f"gpu[{first[n]:04d}-{first[n] + nodes[n] - 1:04d}]" if nodes[n] > 1 else f"gpu{first[n]:04d}"
        gpus = 8 * nodes[n]
        tres = f"billing={16 * nodes[n]},cpu={16 * nodes[n]},gres/gpu:a100={gpus},gres/gpu={gpus},mem={128 * nodes[n]}G"
        lines.append(
            f"{job[n]}|{job[n]}|main|u{user[n]}|lab{user[n] % 40}|gpu|normal|{STATES[states[n]]}|0:0|0:0|{submit[n]}|"
            f"{submit[n]}|{start[n]}|{end[n]}|{runtime[n]}|00:00:00|1440|{nodes[n]}|{where}|{tres},node={nodes[n]}|"
            f"{tres},node={nodes[n]}|None|SchedMain,StartRecieved"
        )
    return "\n".join(lines) + "\n"


def main(records: int) -> None:
    schema = yaml.safe_load((ROOT / "workflow/schemas/tables/sacct.yaml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "dump.txt"
        file.write_text(dump(records))
        print(f"{records:,} records, {file.stat().st_size / 1e6:.0f} MB")
        times = [time.perf_counter()]
        ingest({"record": [file]}, table_schemas(schema), folder, 0.0, sacct_reader.READERS)
        times.append(time.perf_counter())
        raw = {"record": pl.scan_parquet(folder / "record.parquet")}
        jobs = sacct.jobs(raw)
        times.append(time.perf_counter())
        attempts = sacct.attempts(raw)
        times.append(time.perf_counter())
    took = [later - earlier for earlier, later in pairwise(times)]
    print(f"ingest {took[0]:.1f} s; {jobs.height:,} jobs {took[1]:.1f} s; {attempts.height:,} attempts {took[2]:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)

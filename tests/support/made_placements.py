"""Placements, jobs and nodes of a few rows, and the tables of occupancy and of lemon nodes computed from them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from ttf.analyses.nodes.find_lemon_nodes.compute import lemon_nodes
from ttf.analyses.queue.reconstruct_occupancy.compute import occupancy_tables
from ttf.engine.storage.partitions import Partitions
from ttf.records.jobs import JOB_COLUMNS, NODE_COLUMNS, PLACEMENT_COLUMNS, add_blank_columns, conform

# For frames in any order; see `ttf.records.jobs`.
ATTEMPT_ID = pl.struct("job_id", "attempt").rank("dense").cast(pl.UInt32)
DAY = 86_400
PLACED = ("job_id", "node", "start_s", "end_s", "gpu_milli")


def make_placements(rows, names=PLACED, **columns) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema={name: PLACEMENT_COLUMNS[name] for name in names}, orient="row")
    defaults = {"attempt": pl.lit(0, pl.Int64), "outcome": pl.lit("success")} | columns
    frame = frame.with_columns(**{name: value for name, value in defaults.items() if name not in names})
    frame = frame.with_columns(attempt_id=ATTEMPT_ID)
    return add_blank_columns(frame, PLACEMENT_COLUMNS)


def make_jobs(rows, end=10_000) -> pl.DataFrame:
    """rows: (job_id, account, submit_s, start_s, end_s, gpu_milli)."""
    names = ("job_id", "account", "submit_s", "start_s", "end_s", "gpu_milli")
    frame = pl.DataFrame(rows, schema={name: JOB_COLUMNS[name] for name in names}, orient="row")
    frame = frame.with_columns(size=pl.lit(1, pl.Int64), outcome=pl.lit("success"), trace_end_s=pl.lit(end, pl.Int64))
    return add_blank_columns(frame, JOB_COLUMNS)


def make_nodes(**counts) -> pl.DataFrame:
    frame = pl.DataFrame({"node": list(counts), "gpu_count": list(counts.values())}, schema_overrides=NODE_COLUMNS)
    return add_blank_columns(frame, NODE_COLUMNS)


def complete_placements(placements, jobs, attempts=None) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame | None]:
    """Return the three frames with all referenced rows and with the attempt_id that PLACEMENTS requires."""
    keys, rows = (["job_id"], jobs) if attempts is None else (["job_id", "attempt"], attempts)
    lacking = placements.select(keys).unique(maintain_order=True).join(rows, on=keys, how="anti", maintain_order="left")
    rows = pl.concat([rows, lacking], how="diagonal")
    numbers = rows.select(keys).unique(keys, keep="first", maintain_order=True).with_row_index("attempt_id")
    placements = placements.drop("attempt_id").join(numbers, on=keys, how="left", maintain_order="left")
    return (placements, rows, None) if attempts is None else (placements, jobs, rows)


def compute_occupancy(placements, jobs=None, nodes=None, attempts=None) -> dict:
    jobs = make_jobs([]) if jobs is None else jobs
    nodes = make_nodes() if nodes is None else nodes
    placements, jobs, attempts = complete_placements(placements, jobs, attempts)
    attempts = None if attempts is None else attempts.lazy()
    with TemporaryDirectory() as folder:
        return occupancy_tables(placements.lazy(), jobs.lazy(), nodes, attempts, Path(folder))


def place_attempts(**columns) -> pl.DataFrame:
    """Make placements of attempts on one node each, unless `nodes` and `own_outcome` are given."""
    frame = pl.DataFrame(columns)
    defaults = {
        "job_id": pl.format("j{}", pl.int_range(pl.len())),
        "attempt": pl.lit(0),
        "nodes": pl.lit(1),
        "own_outcome": pl.lit(True),
        "start_s": pl.lit(0),
        "end_s": pl.lit(DAY),
    }
    frame = frame.with_columns(**{name: value for name, value in defaults.items() if name not in frame.columns})
    frame = frame.with_columns(attempt_id=ATTEMPT_ID, runtime_s=pl.col("end_s") - pl.col("start_s"))
    return conform(frame, PLACEMENT_COLUMNS)


def make_infra_durations(placements: pl.DataFrame, basis: str = "proxy", infra=None) -> pl.DataFrame:
    """Make the infra durations of placements; without a column `user`, every job has its own user."""
    user = pl.col("user") if "user" in placements.columns else pl.col("job_id")
    durations = placements.select("attempt_id", unit_id="job_id", duration_id="attempt", user=user).unique(
        maintain_order=True
    )
    event = pl.lit(None, pl.String) if infra is None else pl.Series(infra, dtype=pl.String)
    blank, start = pl.lit(None, pl.String), placements.group_by("attempt_id").agg(pl.col("start_s").min())
    durations = durations.join(start, on="attempt_id", maintain_order="left")
    columns = {"account": blank, "gpu_type": blank, "failed_node": blank, "incident": pl.col("attempt_id")}
    return durations.with_columns(event=event, basis=pl.lit(basis), **columns)


def lemon_table(placements, basis="proxy", infra=None, window=(0, 28 * DAY), partitions=None):
    """Return LEMON_NODES of these placements; infra: the event of each of their attempts."""
    durations = make_infra_durations(placements, basis, infra)
    partitions = Partitions(Path()) if partitions is None else partitions
    (table,) = lemon_nodes(placements.lazy(), durations.lazy(), [window], 0.05, partitions)
    return table

"""The errors of the logs, the runs of the watched nodes, and the time for which each log was written."""

from dataclasses import dataclass

import polars as pl

from ttf.analyses.causes.judge_node_errors.clocks import Clocks, align_clocks
from ttf.records.clusters import DAY_S, split_into_blocks
from ttf.records.inputs import Inputs
from ttf.records.jobs import is_at_time_limit
from ttf.records.node_errors import MOST_OFFSET_S
from ttf.stats.matched_risk import RUNS, History

_ATTEMPT_COLUMNS = (
    "job",
    "user",
    "outcome",
    "state",
    "status_raw",
    "infra_failure",
    "end_s",
    "runtime_s",
    "gpu_milli",
    "nodes",
)


@dataclass(frozen=True)
class LogRecords:
    """Frames that share `unit`, the number of a node in alphabetical order.

    nodes: unit, node, fleet, gpus (blank if unknown). errors: rows of NODE_ERRORS in service, with unit. attempts: a
    row for each attempt with attempt_id, user, is_failed, is_infra (blank if no cause is recorded) and gpu_time (in
    milli-GPU s). days: unit, day and node_s, the part of each day for which the log was written. clocks: how the clocks
    of logs and jobs compare, where no starts of jobs tell it.
    """

    nodes: pl.DataFrame
    errors: pl.DataFrame
    attempts: pl.DataFrame
    history: History
    days: pl.DataFrame
    clocks: Clocks


def read_log_records(inputs: Inputs) -> LogRecords:
    has_attempts = "attempts" in inputs
    attempts = inputs.read("attempts" if has_attempts else "jobs", _ATTEMPT_COLUMNS)
    if has_attempts:
        jobs = inputs.read("jobs", ["user", "gpu_type"])
        attempts = attempts.with_columns(jobs[name].gather(attempts["job"]) for name in jobs.columns)
    attempts = mark_failures(attempts)
    placements = inputs.scan("placements", ["attempt_id", "node", "start_s", "end_s"]).drop_nulls()
    nodes = inputs.read("nodes", ["node", "gpu_type", "gpu_count"])
    errors, watch = inputs.read("node_errors"), inputs.read("node_log_watch")
    return make_log_records(errors, watch, attempts, placements, nodes, inputs.settings.window_s)


def mark_failures(attempts: pl.DataFrame) -> pl.DataFrame:
    """Return attempt_id, user, gpu_type, is_failed, is_done, is_infra, gpu_time, gpus_a_node of attempts, or of jobs.

    A run of Philly that was retried has no outcome of its own: it did not succeed.
    """
    names = attempts.columns
    state = next((name for name in ("state", "status_raw") if name in names), None)
    is_infra = pl.col("infra_failure") if "infra_failure" in names else pl.lit(None, pl.Boolean)
    is_failed = (pl.col("outcome") == "failure") | (pl.col("outcome").is_null() & pl.col("end_s").is_not_null())
    is_limit = is_at_time_limit(state) if state else pl.lit(False)
    # Requests of jobs are of one instance.
    gpu_milli = pl.col("gpu_milli") * (pl.col("size").fill_null(1) if "size" in names else 1)
    texts = [pl.col(name) if name in names else pl.lit(None, pl.String).alias(name) for name in ("user", "gpu_type")]
    return attempts.with_row_index("attempt_id").select(
        "attempt_id",
        *texts,
        is_failed=(is_failed.fill_null(False) & ~is_limit) | is_infra.fill_null(False),
        is_done=(pl.col("outcome") == "success").fill_null(False) | is_limit,
        is_infra=is_infra,
        gpu_time=gpu_milli.fill_null(0).cast(pl.Int128) * pl.col("runtime_s").fill_null(0),
        gpus_a_node=(gpu_milli / pl.col("nodes").fill_null(1).clip(1) / 1000).ceil().cast(pl.Int64),
    )


def make_log_records(
    errors: pl.DataFrame,
    watch: pl.DataFrame,
    attempts: pl.DataFrame,
    placements: pl.LazyFrame,
    nodes: pl.DataFrame,
    window_s: int,
) -> LogRecords:
    """Give numbers to the nodes, join the runs on them with their failures, and correct clocks.

    errors, watch: NODE_ERRORS and NODE_LOG_WATCH; attempts: see `mark_failures`; placements: attempt_id, node, start_s,
    end_s; nodes: node, gpu_type, gpu_count. Only nodes with a log count. Where the trace does not say which GPUs a node
    has, they are of the most frequent type of the attempts on it, and as many as any attempt used per node.
    """
    errors = correct_clocks(errors.filter(~pl.col("at_boot")), watch)
    names = pl.concat([watch.select("node"), errors.select("node")]).unique().sort("node").with_row_index("unit")
    parts = placements.lazy().unique(["attempt_id", "node"]).join(names.lazy(), on="node")
    facts = attempts.lazy().select(
        *("attempt_id", "gpu_type", "gpus_a_node", "is_failed", "is_done"), user=pl.col("user").rank("dense") - 1
    )
    parts = parts.join(facts, on="attempt_id").filter(pl.col("start_s") <= pl.col("end_s"))
    parts = parts.rename({"attempt_id": "run"}).cast({"run": pl.UInt32, "user": pl.UInt32})
    runs = parts.select(*RUNS, "is_done", "gpu_type", "gpus_a_node").collect().sort("unit", "run")
    used_type = pl.col("gpu_type").drop_nulls().mode().sort().first().alias("used_type")
    used = runs.group_by("unit").agg(pl.col("gpus_a_node").max(), used_type)
    numbered = names.join(nodes.unique("node"), on="node", how="left").join(used, on="unit", how="left").sort("unit")
    gpus = pl.coalesce("gpu_count", "gpus_a_node")
    numbered = numbered.select("unit", "node", fleet=pl.coalesce("gpu_type", "used_type", pl.lit("all")), gpus=gpus)
    watch = watch.join(names, on="node").select("unit", "start_s", "end_s", "clock_offset_s").sort("unit", "start_s")
    days = split_into_blocks(watch, pl.col("start_s"), pl.col("end_s"), 1)
    days = days.group_by("unit", day="block").agg(node_s=pl.col("block_s").sum()).sort("unit", "day")
    history = History(runs.select(*RUNS, "is_done"), watch.drop("clock_offset_s"))
    errors = errors.join(names, on="node")
    known = watch.filter(pl.col("clock_offset_s").is_not_null()).select("unit").unique()
    aligned, clocks = align_clocks(errors.join(known, on="unit", how="anti"), runs, window_s)
    errors = pl.concat([errors.join(known, on="unit", how="semi"), aligned]).sort("time_s", "unit", "code", "gpu")
    return LogRecords(numbered, errors, attempts, history, days.with_columns(pl.col("day").cast(pl.Int64)), clocks)


def correct_clocks(errors: pl.DataFrame, watch: pl.DataFrame) -> pl.DataFrame:
    """Correct the times of errors on nodes whose clock is known to be off by more than MOST_OFFSET_S."""
    is_wrong = pl.col("clock_offset_s").abs() > MOST_OFFSET_S
    offsets = watch.filter(is_wrong).select("node", "clock_offset_s").unique("node", keep="first", maintain_order=True)
    corrected = errors.join(offsets, on="node", how="left", maintain_order="left")
    offset_s = pl.col("clock_offset_s").fill_null(0)
    return corrected.with_columns(pl.col("time_s", "last_s") - offset_s).drop("clock_offset_s")


def label_months(day: str, clock: str) -> pl.Expr:
    """Return the month, such as 2025-03, of each day (number since 1970) in a time zone."""
    noon = pl.from_epoch(pl.col(day) * DAY_S + DAY_S // 2).dt.replace_time_zone("UTC").dt.convert_time_zone(clock)
    return noon.dt.strftime("%Y-%m")

"""What follows an interruption of a job: its node goes down and is repaired, the job is queued again and restarts.

No log of training is needed: attempts of jobs and outages of nodes tell the times.
"""

from collections.abc import Sequence

import polars as pl

from ttf.analyses.queue.describe_attempts import RESTARTS, RETRY_SUCCESS
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.infra import BEFORE_S, PROXY, pair_near_events
from ttf.records.inputs import Inputs
from ttf.stats.clustered import clustered_shares, join_clustered
from ttf.stats.durations.survival import curve_quantiles, survival_tables
from ttf.stats.shares import add_wilson

DURATIONS = (
    *("unit_id", "duration_id", "start_s", "end_s", "state", "event", "cause", "basis", "attempt_id", "failed_node"),
    *CLUSTER_COLUMNS,
)
# The phases in order; the last one is all of the time without an attempt.
PHASES = ("to_outage", "outage", "to_eligible", "queued", "to_start")
ALL = "all"
# Words of the outcomes of an attempt or a job that has not ended.
OPEN = ("running", "waiting")
# A node that goes down later than a day after the end of the attempt goes down for another reason.
LATEST_S = 86_400
# Retries from this one on are one row.
LAST_RETRY = 4
_DONE = "done"


def compute_restarts(inputs: Inputs) -> dict[str, pl.DataFrame]:
    """Return RESTARTS and RETRY_SUCCESS; without recorded causes they have no row."""
    rows = list_interruptions(
        inputs.scan("durations_infra", DURATIONS),
        inputs.scan("attempts", ("outcome", "eligible_s")),
        inputs.scan("jobs", ("job_id", "outcome", "trace_end_s")),
    )
    outages = inputs.read("outages", ("node", "start_s", "end_s", "seen_until_s")) if "outages" in inputs else None
    return {"restarts": build_restarts(rows, outages), "retry_success": build_retry_success(rows)}


def list_interruptions(durations: pl.LazyFrame, attempts: pl.LazyFrame, jobs: pl.LazyFrame) -> pl.DataFrame:
    """Return the attempts that infrastructure ended, or that were followed by another or are to be.

    Columns: end_s, cause, failed_node, eligible_s, next_start_s, next_outcome (of the next attempt), retry (its
    number), trace_end_s (blank if the job has ended) and CLUSTER_COLUMNS. durations: durations_infra, with the attempts
    of a job in sequence. attempts: outcome, eligible_s (when the scheduler may start it). jobs: job_id, outcome,
    trace_end_s.
    """
    blank = [pl.lit(None, pl.Int64).alias(name) for name in ("eligible_s",) if name not in attempts.collect_schema()]
    ends = attempts.with_columns(blank).with_row_index("attempt_id").cast({"attempt_id": pl.Int64})
    is_open_job = pl.col("outcome").is_in(OPEN)
    last_seen = jobs.filter(is_open_job).select("trace_end_s", unit_id="job_id").unique("unit_id", keep="first")
    # A proxy knows no cause.
    rows = durations.filter(pl.col("basis") != PROXY).cast({"attempt_id": pl.Int64})
    rows = rows.join(ends, on="attempt_id", how="left", maintain_order="left")
    is_followed = (pl.col("unit_id") == pl.col("unit_id").shift(-1)) & (
        pl.col("duration_id") < pl.col("duration_id").shift(-1)
    )
    following = {"next_start_s": "start_s", "next_outcome": "outcome", "eligible_s": "eligible_s"}
    following["retry"] = "duration_id"
    rows = rows.with_columns(
        is_over=~pl.col("outcome").is_in(OPEN).fill_null(False),
        is_followed=is_followed.fill_null(False),
        **{name: pl.when(is_followed).then(pl.col(column).shift(-1)) for name, column in following.items()},
    ).join(last_seen, on="unit_id", how="left", maintain_order="left")
    is_interrupted = pl.col("event").is_not_null() | pl.col("is_followed") | pl.col("trace_end_s").is_not_null()
    interrupted = rows.filter(pl.col("end_s").is_not_null(), "is_over", is_interrupted)
    columns = ("end_s", "failed_node", *following, "trace_end_s", *CLUSTER_COLUMNS)
    return interrupted.select(*columns, cause=pl.coalesce("cause", "state", pl.lit("not recorded"))).collect()


def list_phases(rows: pl.DataFrame, outages: pl.DataFrame | None) -> pl.DataFrame:
    """Return phase, cause, duration_s, event (blank: it still lasts) and CLUSTER_COLUMNS of `list_interruptions`.

    The node's phases are those of the first outage of the failed node that begins from BEFORE_S before the end of the
    attempt to LATEST_S after it. outages: node, start_s, end_s, seen_until_s; None: no phase of the node is known.
    """
    rows = rows.with_row_index("run")
    down = rows.select("run", "end_s", node_list=pl.concat_list("failed_node")).filter(
        rows["failed_node"].is_not_null()
    )
    if outages is None or down.is_empty():
        rows = rows.with_columns(pl.lit(None, pl.Int64).alias(name) for name in ("time_s", "repair_s", "seen_until_s"))
    else:
        starts = outages.drop_nulls("node").rename({"start_s": "time_s", "end_s": "repair_s"})
        pairs = pair_near_events(down, starts, BEFORE_S, LATEST_S).sort("run", "time_s")
        first = pairs.unique("run", keep="first").select("run", "time_s", "repair_s", "seen_until_s")
        rows = rows.join(first, on="run", how="left", maintain_order="left")
    end, eligible = pl.col("end_s"), pl.max_horizontal("eligible_s", "end_s")
    down_from = pl.max_horizontal("time_s", "end_s")
    has_eligible, has_next = pl.col("eligible_s").is_not_null(), pl.col("next_start_s").is_not_null()
    # Phase -> its begin, its end, and until when it was seen to last.
    spans = {
        "to_outage": (pl.when(pl.col("time_s").is_not_null()).then(end), down_from, None),
        "outage": (pl.when(pl.col("time_s").is_not_null()).then(down_from), pl.col("repair_s"), pl.col("seen_until_s")),
        "to_eligible": (pl.when(has_eligible).then(end), eligible, None),
        "queued": (pl.when(has_eligible & has_next).then(eligible), pl.col("next_start_s"), None),
        "to_start": (end, pl.col("next_start_s"), pl.col("trace_end_s")),
    }
    parts = [
        rows.select(
            "cause",
            *CLUSTER_COLUMNS,
            phase=pl.lit(phase),
            duration_s=(pl.coalesce(until, seen) - begin if seen is not None else until - begin).clip(lower_bound=0),
            event=pl.when(until.is_not_null()).then(pl.lit(_DONE)),
        )
        for phase, (begin, until, seen) in spans.items()
    ]
    return pl.concat(parts).drop_nulls("duration_s")


def build_restarts(rows: pl.DataFrame, outages: pl.DataFrame | None) -> pl.DataFrame:
    """Build RESTARTS: the phases after an interruption, of all causes and by cause, the most frequent first.

    Quantiles are those of Kaplan and Meier: a phase that lasts at the end of the trace is censored there. A job that
    ended with the interruption has no next start, and is not among n of its phases.
    """
    durations, causes = list_phases(rows, outages), count_causes(rows)
    tables = []
    for phase in PHASES:
        part = durations.filter(phase=phase).drop("phase")
        if part.height:
            curves, _ = survival_tables(part, _DONE, [ALL, "cause"])
            tables.append(curve_quantiles(curves, (50, 90)).with_columns(phase=pl.lit(phase)))
    if not tables:
        return RESTARTS.frame([])
    order = {phase: index for index, phase in enumerate(PHASES)}
    table = pl.concat(tables).rename({"stratum": "cause"}).join(causes, on="cause", how="left", maintain_order="left")
    table = table.sort(-pl.col("interruptions"), "cause", pl.col("phase").replace_strict(order))
    return RESTARTS.conform(table)


def count_causes(rows: pl.DataFrame) -> pl.DataFrame:
    """Return cause, interruptions (of all causes together, and of each)."""
    counts = rows.group_by("cause").agg(interruptions=pl.len().cast(pl.Int64))
    return pl.concat([pl.DataFrame({"cause": [ALL], "interruptions": [rows.height]}), counts])


def build_retry_success(rows: pl.DataFrame) -> pl.DataFrame:
    """Build RETRY_SUCCESS: how the next attempt ended, by cause of the interruption and number of the retry."""
    ended = rows.filter(pl.col("next_outcome").is_not_null(), ~pl.col("next_outcome").is_in(OPEN))
    ended = ended.with_columns(
        retry=pl.col("retry").clip(upper_bound=LAST_RETRY), holds=pl.col("next_outcome") == "success"
    )
    both = pl.concat([ended.with_columns(cause=pl.lit(ALL)), ended])
    keys: Sequence[str] = ("cause", "retry")
    counts = both.group_by(keys).agg(n=pl.len().cast(pl.Int64), successes=pl.col("holds").sum().cast(pl.Int64))
    counts = counts.join(count_causes(rows), on="cause").sort(-pl.col("interruptions"), "cause", "retry")
    cells = [row | add_wilson("success_share", row["successes"], row["n"]) for row in counts.iter_rows(named=True)]
    table = RETRY_SUCCESS.frame(cells).drop("cluster_by", "clusters", "ci_low_clustered", "ci_high_clustered")
    by_user = clustered_shares(both, keys, pl.col("holds").sum(), pl.len())
    return RETRY_SUCCESS.conform(join_clustered(table, by_user, keys))

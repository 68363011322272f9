"""What follows an interruption of a job: its node goes down and is repaired, the job is queued again and restarts.

No log of training is needed: attempts of jobs and outages of nodes tell the times.
"""

import polars as pl

from ttf.analyses.queue.describe_attempts import RESTARTS, RETRY_SUCCESS
from ttf.analyses.queue.describe_attempts.delays import ALL
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.infra import PROXY, find_first_outages
from ttf.records.inputs import Inputs
from ttf.records.jobs import add_blank_columns
from ttf.records.record_contracts import OUTAGES
from ttf.stats.clustered import CLUSTERED, clustered_shares, join_clustered
from ttf.stats.durations.survival import curve_quantiles, survival_tables
from ttf.stats.shares import add_wilson

DURATIONS = (
    *("unit_id", "start_s", "end_s", "state", "event", "cause", "basis", "attempt_id", "failed_node", "duration_id"),
    *CLUSTER_COLUMNS,
)
PERCENTS = (50, 90)
# Outcomes of an attempt or a job that has not ended.
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
    outages = inputs.read("outages") if "outages" in inputs else OUTAGES.frame([])
    return {"restarts": build_restarts(rows, outages), "retry_success": build_retry_success(rows)}


def list_interruptions(durations: pl.LazyFrame, attempts: pl.LazyFrame, jobs: pl.LazyFrame) -> pl.DataFrame:
    """Return the attempts that infrastructure ended, or that another one followed or is to follow.

    Each is there twice, for all causes and for its own. Columns: cause, interruptions (of this cause), end_s,
    failed_node, eligible_s, next_start_s, next_outcome (of the next attempt), retry (its number), trace_end_s (blank if
    the job has ended) and CLUSTER_COLUMNS. durations: durations_infra, with the attempts of a job in sequence.
    attempts: outcome, eligible_s (when the scheduler may start it). jobs: job_id, outcome, trace_end_s.
    """
    is_open = pl.col("outcome").is_in(OPEN).fill_null(False)
    ends = add_blank_columns(attempts, {"eligible_s": pl.Int64}).with_row_index("attempt_id")
    last_seen = jobs.filter(is_open).select("trace_end_s", unit_id="job_id").unique("unit_id")
    following = {"next_start_s": "start_s", "next_outcome": "outcome", "retry": "duration_id"}
    following["eligible_s"] = "eligible_s"
    # A proxy knows no cause.
    rows = durations.filter(pl.col("basis") != PROXY).cast({"attempt_id": pl.UInt32})
    rows = rows.join(ends, on="attempt_id", how="left", maintain_order="left")
    rows = rows.join(last_seen, on="unit_id", how="left", maintain_order="left")
    rows = rows.with_columns(
        is_over=~is_open,
        cause=pl.coalesce("cause", "state", pl.lit("not recorded")),
        **{name: pl.col(column).shift(-1).over("unit_id") for name, column in following.items()},
    )
    is_interrupted = pl.any_horizontal(pl.col("event", "next_start_s", "trace_end_s").is_not_null())
    rows = rows.filter("is_over", is_interrupted, pl.col("end_s").is_not_null())
    rows = pl.concat([rows.with_columns(cause=pl.lit(ALL)), rows])
    columns = ("cause", "end_s", "failed_node", *following, "trace_end_s", *CLUSTER_COLUMNS)
    return rows.select(*columns, interruptions=pl.len().over("cause").cast(pl.Int64)).collect()


def list_phases(rows: pl.DataFrame, outages: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return by phase cause, duration_s, event (blank: it still lasts) and CLUSTER_COLUMNS of `list_interruptions`.

    The node's phases are those of the first outage (OUTAGES) of the failed node that begins from BEFORE_S before the
    end of the attempt to LATEST_S after it.
    """
    rows = rows.with_row_index("run")
    starts = outages.select("node", "seen_until_s", time_s="start_s", repair_s="end_s")
    first = find_first_outages(rows, starts, after_s=LATEST_S)
    rows = rows.join(first, on="run", how="left", maintain_order="left")
    end, start = pl.col("end_s"), pl.col("next_start_s")
    down, eligible = (pl.col(name).clip(lower_bound=end) for name in ("time_s", "eligible_s"))
    # Phase -> its begin, its end, and until when it was seen to last.
    spans = {
        "end to outage": (end, down, down),
        "outage to repair": (down, pl.col("repair_s"), pl.col("seen_until_s")),
        "end to eligible": (end, eligible, eligible),
        "eligible to start": (eligible, start, start),
        "end to start": (end, start, pl.col("trace_end_s")),
    }
    return {
        phase: rows.select(
            "cause",
            *CLUSTER_COLUMNS,
            duration_s=(pl.coalesce(until, seen) - begin).clip(lower_bound=0),
            event=pl.when(until.is_not_null()).then(pl.lit(_DONE)),
        ).drop_nulls("duration_s")
        for phase, (begin, until, seen) in spans.items()
    }


def build_restarts(rows: pl.DataFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """Build RESTARTS: the phases after an interruption, of all causes and by cause, the most frequent first.

    Quantiles are those of Kaplan and Meier: a phase that lasts at the end of the trace is censored there. A job that
    ended with the interruption has no next start, and is not among n of its phases.
    """
    tables = [
        curve_quantiles(survival_tables(durations, _DONE, ["cause"])[0], PERCENTS).with_columns(phase=pl.lit(phase))
        for phase, durations in list_phases(rows, outages).items()
    ]
    table = pl.concat(tables).rename({"stratum": "cause"})
    counts = rows.select("cause", "interruptions").unique()
    table = table.join(counts, on="cause", how="left", maintain_order="left")
    return RESTARTS.conform(table.sort(-pl.col("interruptions"), pl.col("cause") != ALL, "cause", maintain_order=True))


def build_retry_success(rows: pl.DataFrame) -> pl.DataFrame:
    """Build RETRY_SUCCESS: how the next attempt ended, by cause of the interruption and number of the retry."""
    ended = rows.filter(pl.col("next_outcome").is_not_null(), ~pl.col("next_outcome").is_in(OPEN))
    holds = pl.col("next_outcome") == "success"
    ended = ended.with_columns(retry=pl.col("retry").clip(upper_bound=LAST_RETRY), holds=holds)
    keys = ["interruptions", "cause", "retry"]
    sums = {"successes": pl.col("holds").sum(), "n": pl.len()}
    counts = ended.group_by(keys).agg(**sums).sort(-pl.col("interruptions"), pl.col("cause") != ALL, "cause", "retry")
    cells = [row | add_wilson("success_share", row["successes"], row["n"]) for row in counts.iter_rows(named=True)]
    table = RETRY_SUCCESS.frame(cells).drop(CLUSTERED)
    return RETRY_SUCCESS.conform(join_clustered(table, clustered_shares(ended, keys, *sums.values()), keys))

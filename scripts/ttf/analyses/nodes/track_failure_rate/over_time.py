"""Failure rate per node-day over time, in windows that move by days (Kokolis et al., HPCA 2025, their figure 5).

Each run's time is divided over its days, to the second: a run of weeks is at risk on each of them, not only on the day
of its end, when its failure counts. A rate is failures over node-days of one window.
"""

import numpy as np
import polars as pl

from ttf.analyses.nodes.track_failure_rate import FAILURE_RATE_OVER_TIME
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.durations import count_nodes
from ttf.records.infra import EVENT
from ttf.records.jobs import Frame, add_blank_columns, choose_text
from ttf.records.runs import find_record_start
from ttf.stats.clustered import Clusters
from ttf.stats.durations.mttf import NO_NODE_DAY, SECONDS_A_DAY, poisson_limits

# The longest that fits FEWEST_WINDOWS times into the trace is used: the paper does not give its window.
WINDOWS_DAYS = (30, 7, 1)
FEWEST_WINDOWS = 3
# A longer trace has a window every few days.
MOST_WINDOWS = 1000
# 250 years: if the trace is longer, a time stamp is wrong.
MOST_DAYS = 91_000
MOST_CAUSES = 5
# Maximum number of clusters times days in memory: 32 MB per array.
MOST_CELLS = 1 << 22
CONFIDENCE = 0.9
# If the trace begins later than this, its times count from 1970: no trace is 20 years long.
YEAR_1990_S = 631_152_000
_CLUSTER = {name: CLUSTER_COLUMNS[name] for name in ("cluster_by", "cluster")}
ALL, OTHER, UNKNOWN = "all", "other", "not told"


def with_domains(durations: Frame, reasons: Frame) -> pl.LazyFrame:
    """Replace `cause` of infra durations by the domain of the failure's reason; blank without exactly one reason.

    reasons: reasons.parquet.
    """
    unit = pl.concat_str("job_id", "task", separator="/", ignore_nulls=True)
    unique_reasons = reasons.lazy().select("domain", unit_id=unit, duration_id="attempt")
    unique_reasons = unique_reasons.unique(["unit_id", "duration_id"], keep="none")
    return durations.lazy().join(unique_reasons, on=["unit_id", "duration_id"], how="left").with_columns(cause="domain")


def failure_rate_over_time(
    durations: Frame,
    basis: str | None,
    gpus_per_node: int | None,
    node_gpus_from: str | None = None,
    cause_by: str = "cause",
) -> pl.DataFrame:
    """Compute failures per 1000 node-days in rolling windows (FAILURE_RATE_OVER_TIME): overall, then by cause.

    durations: infra durations. Jobs count if they requested a GPU, with the nodes of `count_nodes`; components with
    their own `nodes`. Runs without a start or a known time are excluded. basis: how failures are attributed to
    infrastructure. gpus_per_node, node_gpus_from: see `count_nodes`. cause_by: `by` in rows of one cause.

    If the first starts are cut off (`find_record_start`), the windows begin where starts are recorded; runs_before and
    days_before count what is earlier. Days are UTC days if times count from 1970, else 24 h from the first start. A
    failure counts on the day of the last second of its run. Causes beyond the MOST_CAUSES most frequent are `other`; if
    all failures have one cause, there are no such rows. Garwood's interval at CONFIDENCE, and the clustered one
    (`Clusters.ratio`; a cluster is weighted by its node time in the window). A rate over less than one node-day is
    blank.
    """
    constant_cells: dict[str, object] = {"confidence": CONFIDENCE, "basis": basis, "by": ALL}

    def blank_table(reason: str) -> pl.DataFrame:
        return FAILURE_RATE_OVER_TIME.frame([constant_cells | {"reason": reason}])

    if not durations.lazy().select(pl.col("start_s").count()).collect(engine="streaming").item():
        return blank_table("the trace gives no times of starting")
    runs = _runs_in_use(durations.lazy(), basis, count_nodes(gpus_per_node, node_gpus_from))
    # A run that ends at midnight was at risk until the previous day.
    last_s = pl.max_horizontal("start_s", pl.col("end_s") - 1)
    first_s, final_s = runs.select(first=pl.col("start_s").min(), last=last_s.max()).collect(engine="streaming").row(0)
    if first_s is None:
        return blank_table("no run with a known start and time")
    has_dates, zero_s, runs_before = first_s >= YEAR_1990_S, first_s, 0
    if basis != "component":
        starts = runs.select("start_s").collect(engine="streaming")["start_s"]
        first_s, runs_before = find_record_start(starts, final_s)
        runs = runs.filter(pl.col("end_s") >= first_s)
    origin = first_s // SECONDS_A_DAY * SECONDS_A_DAY if has_dates else first_s
    runs = runs.with_columns(pl.col("start_s").clip(origin))
    days_before = (origin - zero_s) // SECONDS_A_DAY if runs_before else 0
    constant_cells |= {"runs_before": runs_before, "days_before": days_before}
    days = 1 + (final_s - origin) // SECONDS_A_DAY
    if days > MOST_DAYS:
        return blank_table(f"the times of the trace are {days:,} days apart: a clock was wrong")
    window = window_days(days)
    last_days = np.arange(window - 1, days, -(-days // MOST_WINDOWS))
    cluster_by, clusters = _count_clusters(runs, days)
    at_risk = _window_sums(exposure_by_day(runs, origin, days, clusters), last_days, window)
    failed_runs = runs.filter("failed").group_by("cause", "cluster", day=(last_s - origin) // SECONDS_A_DAY)
    failure_counts = failed_runs.agg(count=pl.len().cast(pl.Int64)).collect(engine="streaming")
    constant_cells |= {"window_days": window}
    windows = pl.DataFrame({"to_day": last_days, "exposure": at_risk.sum(axis=0)}).with_columns(
        from_day=pl.col("to_day") - window + 1, end_s=origin + SECONDS_A_DAY * (pl.col("to_day") + 1)
    )
    window_name = _window_label(has_dates, window, days_before)
    windows = windows.with_columns(start_s=pl.col("end_s") - window * SECONDS_A_DAY, window=window_name)
    parts = []
    for group_by, cause, cause_failures in [(ALL, None, failure_counts), *_split_by_cause(failure_counts, cause_by)]:
        failures = _window_sums(_sum_by_day(cause_failures, cause_failures["count"], days, clusters), last_days, window)
        rows = windows.with_columns(failures=pl.Series(failures.sum(axis=0)), **_clustered_columns(failures, at_risk))
        parts.append(_rate_table(rows, constant_cells | {"by": group_by, "cause": cause, "cluster_by": cluster_by}))
    return pl.concat(parts)


def _count_clusters(runs: pl.LazyFrame, days: int) -> tuple[str | None, int]:
    """Return what the clusters are and their number; 1 if there are none, or too many to hold in memory."""
    first_row = runs.select(pl.col("cluster_by").first(), last=pl.col("cluster").max()).collect(engine="streaming")
    cluster_by, last = first_row.row(0)
    return (None, 1) if last is None or (last + 1) * days > MOST_CELLS else (cluster_by, last + 1)


def _clustered_columns(failures: np.ndarray, exposure: np.ndarray) -> dict[str, pl.Series]:
    """Return the clustered interval of each window; the arrays have a row per cluster and a column per window."""
    failures, exposure = failures.T, exposure.T
    nonzero = np.nonzero(exposure)
    clusters = Clusters(nonzero[0], exposure[nonzero].astype(float), exposure.shape[0])
    bounds = clusters.ratio(failures[nonzero], exposure[nonzero], CONFIDENCE, has_mean_leverage=True)
    limits = {f"ci_{name}_clustered": limit for name, limit in zip(("low", "high"), bounds[:2], strict=True)}
    columns = {name: pl.Series(limit * 1000 * SECONDS_A_DAY).fill_nan(None) for name, limit in limits.items()}
    return columns | {"clusters": pl.Series(bounds.effective)}


def window_days(days: int) -> int:
    """Return the length of the windows of a trace of this many days: see WINDOWS_DAYS."""
    return next((window for window in WINDOWS_DAYS if days >= FEWEST_WINDOWS * window), WINDOWS_DAYS[-1])


def exposure_by_day(runs: Frame, origin: int, days: int, clusters: int = 1) -> np.ndarray:
    """Return exact node-seconds at risk by cluster and day: an Int64 array (clusters, days).

    runs: start_s, end_s (not before it, and in the days), nodes (Int64, all known); cluster if there are several.
    origin: start of the first day. days: number of days. clusters: number of clusters; with 1, all runs together.
    """
    start, end, nodes = pl.col("start_s") - origin, pl.col("end_s") - origin, pl.col("nodes")
    cluster = pl.col("cluster") if clusters > 1 else pl.lit(0).alias("cluster")
    first_day = {"day": start // SECONDS_A_DAY, "at_risk": SECONDS_A_DAY - start % SECONDS_A_DAY}
    last_day = {"day": end // SECONDS_A_DAY, "at_risk": end % SECONDS_A_DAY}
    sums, steps = (np.zeros((clusters, days + 2), dtype=np.int64) for _ in range(2))
    # The rest of the first day, the part of the last day, and whole days between. If both are one day, subtracting a
    # whole day leaves the time between start and end.
    for day_columns, offset, sign in ((first_day, 1, 1), (last_day, 0, -1)):
        by_day = runs.lazy().select(cluster, nodes=nodes, **day_columns).group_by("cluster", "day")
        totals = by_day.agg(pl.col("nodes").sum(), at_risk=(pl.col("nodes") * pl.col("at_risk")).sum())
        day_sums = totals.collect(engine="streaming")
        sums += _sum_by_day(day_sums, day_sums["at_risk"], days + 2, clusters)
        shifted = day_sums.with_columns(pl.col("day") + offset)
        steps += sign * SECONDS_A_DAY * _sum_by_day(shifted, shifted["nodes"], days + 2, clusters)
    return (sums + np.cumsum(steps, axis=1))[:, :days]


def _sum_by_day(rows: pl.DataFrame, values: pl.Series, days: int, clusters: int) -> np.ndarray:
    """Return the sums of values by cluster and day: an Int64 array (clusters, days). rows: cluster, day."""
    sums = np.zeros((clusters, days), dtype=np.int64)
    cluster = rows["cluster"].to_numpy() if clusters > 1 else np.zeros(rows.height, dtype=np.int64)
    np.add.at(sums, (cluster, rows["day"].to_numpy()), values.to_numpy())
    return sums


def _runs_in_use(durations: pl.LazyFrame, basis: str | None, nodes: pl.Expr) -> pl.LazyFrame:
    """Return start_s, end_s, nodes, failed and cause of the runs with a known time at risk."""
    durations = add_blank_columns(durations, _CLUSTER)
    return durations.select(
        "start_s",
        "cause",
        *_CLUSTER,
        end_s=pl.col("start_s") + pl.col("duration_s"),
        nodes=pl.col("nodes") if basis == "component" else nodes,
        failed=(pl.col("event") == EVENT).fill_null(False),
    ).filter(pl.col("end_s").is_not_null() & (pl.col("end_s") >= pl.col("start_s")) & (pl.col("nodes") > 0))


def _split_by_cause(failures: pl.DataFrame, cause_by: str) -> list[tuple[str, str, pl.DataFrame]]:
    """Return group_by, cause and failures of the most frequent causes, then of other and of unknown causes."""
    counts = failures.drop_nulls("cause").group_by("cause").agg(pl.col("count").sum())
    counts = counts.sort("count", "cause", descending=[True, False])
    if counts.height + (failures["cause"].null_count() > 0) < 2 or not counts.height:
        return []
    frequent = counts["cause"].head(MOST_CAUSES).to_list()
    parts = [(cause_by, cause, failures.filter(pl.col("cause") == cause)) for cause in frequent]
    parts += [
        (cause_by, OTHER, failures.filter(pl.col("cause").is_not_null() & ~pl.col("cause").is_in(frequent))),
        (cause_by, UNKNOWN, failures.filter(pl.col("cause").is_null())),
    ]
    return [part for part in parts if part[2].height]


def _window_sums(daily: np.ndarray, last_days: np.ndarray, window: int) -> np.ndarray:
    cumulative = np.pad(np.cumsum(daily, axis=1), ((0, 0), (1, 0)))
    return cumulative[:, last_days + 1] - cumulative[:, last_days + 1 - window]


def _window_label(has_dates: bool, window: int, days_before: int) -> pl.Expr:
    if has_dates:
        last = pl.from_epoch(pl.col("end_s") - 1, time_unit="s").dt.strftime("%Y-%m-%d")
        return last if window == 1 else pl.format(f"{window} days to {{}}", last)
    if window == 1:
        return pl.format("day {}", pl.col("to_day") + 1 + days_before)
    return pl.format("days {} to {}", pl.col("from_day") + 1 + days_before, pl.col("to_day") + 1 + days_before)


def _rate_table(rows: pl.DataFrame, constant_cells: dict) -> pl.DataFrame:
    """Return FAILURE_RATE_OVER_TIME of windows with failures and exposure (s). constant_cells: the same in all rows."""
    failures, exposure = rows["failures"].to_numpy(), rows["exposure"].to_numpy().astype(float)
    low, high = poisson_limits(failures, CONFIDENCE)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1000 * SECONDS_A_DAY / exposure
        rates = {"failures_per_1000_node_days": failures * scale, "ci_low": low * scale, "ci_high": high * scale}
    is_enough = pl.col("exposure") >= SECONDS_A_DAY
    reasons = {
        "no node was at work": pl.col("exposure") == 0,
        NO_NODE_DAY: ~is_enough,
        "no failures: upper limit only": pl.col("failures") == 0,
    }
    # NumPy rounds a quotient once; Polars multiplies by the reciprocal.
    rates["node_days"] = exposure / SECONDS_A_DAY
    rows = rows.with_columns(pl.Series(name, values) for name, values in rates.items()).with_columns(
        pl.when(is_enough).then(
            pl.col("failures_per_1000_node_days", "ci_low", "ci_high", "ci_low_clustered", "ci_high_clustered")
        ),
        reason=choose_text(reasons),
        **{name: pl.lit(value) for name, value in constant_cells.items()},
    )
    return FAILURE_RATE_OVER_TIME.conform(rows)

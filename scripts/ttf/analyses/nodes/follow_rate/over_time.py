"""The failure rate of a node over time, in windows that roll on by days (Kokolis et al., HPCA 2025, their figure 5).

Every run's time is split over the days that it lies in, to the second, so that a run of weeks is at risk in each of
them and not on the day of its end alone, where its failure counts. A rate is failures over node-days of one window.
"""

import numpy as np
import polars as pl

from ttf.analyses.nodes.follow_rate import FAILURE_RATE_OVER_TIME
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.infra import EVENT
from ttf.records.jobs import Frame, with_blanks
from ttf.records.lives import nodes_at_work
from ttf.records.runs import where_starts_are
from ttf.stats.clustered import Clusters
from ttf.stats.durations.mttf import NO_NODE_DAY, SECONDS_A_DAY, poisson_limits

# The longest of these that the trace holds so many times over: the paper does not say what it took.
WINDOWS_DAYS = (30, 7, 1)
FEWEST_WINDOWS = 3
# A trace of more days has a window every few days.
MOST_WINDOWS = 1000
# Beyond that a time stamp is wrong: 250 years.
MOST_DAYS = 91_000
MOST_CAUSES = 5
# Days of all clusters that are held at a time: 32 MB an array.
MOST_CELLS = 1 << 22
CONFIDENCE = 0.9
# A clock that shows a later moment when the trace begins counts from 1970: no trace is 20 years long.
YEAR_1990_S = 631_152_000
_CLUSTER = {name: CLUSTER_COLUMNS[name] for name in ("cluster_by", "cluster")}
EVERY, OTHER, UNKNOWN = "all", "other", "not told"


def with_domains(lives: Frame, reasons: Frame) -> pl.LazyFrame:
    """Infra lives with the domain of their failure's reason as `cause`; blank where there is none, or more than one.

    reasons: reasons.parquet.
    """
    unit = pl.concat_str("job_id", "task", separator="/", ignore_nulls=True)
    known = reasons.lazy().select("domain", unit_id=unit, life_id="attempt")
    known = known.unique(["unit_id", "life_id"], keep="none")
    return lives.lazy().join(known, on=["unit_id", "life_id"], how="left").with_columns(cause="domain")


def failure_rate_over_time(
    lives: Frame,
    basis: str | None,
    gpus_a_node: int | None,
    came_from: str | None = None,
    cause_is: str = "cause",
) -> pl.DataFrame:
    """Failures per 1000 node-days in rolling windows (FAILURE_RATE_OVER_TIME): overall, then of each cause.

    lives: infra lives; those of jobs count if they asked for a GPU, over the nodes that `nodes_at_work` gives them;
    those of components over their own `nodes`. A record whose start is cut off (`where_starts_are`) begins where starts
    are; runs_before, days_before: what lies before that. Runs without a start or a known time are excluded. Days are
    those of UTC where the clock counts from 1970, else 24 h from the first start. A failure counts on the day of the
    last second of its run.

    by: `all`, or `cause_is` in the rows of one cause; causes beyond the MOST_CAUSES with the most failures are one,
    `other`, and where all failures have the same there are no such rows. Garwood's interval at CONFIDENCE, and the
    clustered one (`Clusters.ratio`; a cluster counts by its node time in the window); a rate over less than one
    node-day is blank.
    """
    shared = {"confidence": CONFIDENCE, "basis": basis, "by": EVERY}

    def nothing(reason: str) -> pl.DataFrame:
        return FAILURE_RATE_OVER_TIME.frame([shared | {"reason": reason}])

    started = lives.lazy().select(pl.col("start_s").count()).collect(engine="streaming").item()
    if not started:
        return nothing("the trace gives no times of starting")
    runs = _at_work(lives.lazy(), basis, nodes_at_work(gpus_a_node, came_from))
    # A run that ends at midnight was at risk until the day before.
    last_s = pl.max_horizontal("start_s", pl.col("end_s") - 1)
    span = runs.select(first=pl.col("start_s").min(), last=last_s.max()).collect(engine="streaming")
    first_s, final_s = span.row(0)
    if first_s is None:
        return nothing("no run with a known start and time")
    calendar, zero_s, runs_before = first_s >= YEAR_1990_S, first_s, 0
    if basis != "component":
        starts = runs.select("start_s").collect(engine="streaming")["start_s"]
        first_s, runs_before = where_starts_are(starts, final_s)
        runs = runs.filter(pl.col("end_s") >= first_s)
    origin = first_s // SECONDS_A_DAY * SECONDS_A_DAY if calendar else first_s
    runs = runs.with_columns(pl.col("start_s").clip(origin))
    before = (origin - zero_s) // SECONDS_A_DAY if runs_before else 0
    shared |= {"runs_before": runs_before, "days_before": before}
    days = 1 + (final_s - origin) // SECONDS_A_DAY
    if days > MOST_DAYS:
        return nothing(f"the times of the trace are {days:,} days apart: a clock was wrong")
    window = window_days(days)
    ends = np.arange(window - 1, days, -(-days // MOST_WINDOWS))
    clustered_by, clusters = _clusters_of(runs, days)
    at_risk = _in_windows(exposure_by_day(runs, origin, days, clusters), ends, window)
    failed = runs.filter("failed").group_by("cause", "cluster", day=(last_s - origin) // SECONDS_A_DAY)
    failed = failed.agg(count=pl.len().cast(pl.Int64)).collect(engine="streaming")
    shared |= {"window_days": window}
    about = pl.DataFrame({"to_day": ends, "exposure": at_risk.sum(axis=0)}).with_columns(
        from_day=pl.col("to_day") - window + 1, end_s=origin + SECONDS_A_DAY * (pl.col("to_day") + 1)
    )
    about = about.with_columns(start_s=pl.col("end_s") - window * SECONDS_A_DAY, window=_name(calendar, window, before))
    parts = []
    for by, cause, mine in [(EVERY, None, failed), *_causes(failed, cause_is)]:
        failures = _in_windows(_by_day(mine, mine["count"], days, clusters), ends, window)
        rows = about.with_columns(failures=pl.Series(failures.sum(axis=0)), **_clustered(failures, at_risk))
        parts.append(_rates(rows, shared | {"by": by, "cause": cause, "cluster_by": clustered_by}))
    return pl.concat(parts)


def _clusters_of(runs: pl.LazyFrame, days: int) -> tuple[str | None, int]:
    """(by what the runs are clustered, how many clusters); 1 where there are none, or too many to hold their days."""
    found = runs.select(pl.col("cluster_by").first(), last=pl.col("cluster").max()).collect(engine="streaming")
    by, last = found.row(0)
    return (None, 1) if last is None or (last + 1) * days > MOST_CELLS else (by, last + 1)


def _clustered(failures: np.ndarray, exposure: np.ndarray) -> dict[str, pl.Series]:
    """The clustered interval of each window, of arrays with a row per cluster and a column per window."""
    failures, exposure = failures.T, exposure.T
    place = np.nonzero(exposure)
    clusters = Clusters(place[0], exposure[place].astype(float), exposure.shape[0])
    ends = clusters.ratio(failures[place], exposure[place], CONFIDENCE, both=True)
    limits = {f"ci_{end}_clustered": limit for end, limit in zip(("low", "high"), ends[:2], strict=True)}
    per = {name: pl.Series(limit * 1000 * SECONDS_A_DAY).fill_nan(None) for name, limit in limits.items()}
    return per | {"clusters": pl.Series(ends.effective)}


def window_days(days: int) -> int:
    """How many days a window has, of a trace of so many: see WINDOWS_DAYS."""
    return next((window for window in WINDOWS_DAYS if days >= FEWEST_WINDOWS * window), WINDOWS_DAYS[-1])


def exposure_by_day(runs: Frame, origin: int, days: int, clusters: int = 1) -> np.ndarray:
    """Node-seconds at risk of each cluster on each day from `origin` on, exactly: Int64, a row per cluster.

    runs: start_s, end_s (not before it, and within the days), nodes (Int64, all known), cluster where there are more
    clusters than one: all runs together.
    """
    start, end, nodes = pl.col("start_s") - origin, pl.col("end_s") - origin, pl.col("nodes")
    whose = pl.col("cluster") if clusters > 1 else pl.lit(0).alias("cluster")
    of_first = {"day": start // SECONDS_A_DAY, "at_risk": SECONDS_A_DAY - start % SECONDS_A_DAY}
    of_last = {"day": end // SECONDS_A_DAY, "at_risk": end % SECONDS_A_DAY}
    sums, steps = (np.zeros((clusters, days + 2), dtype=np.int64) for _ in range(2))
    # What is left of its first day, and what its last day had; the days between are whole. Where both are one day, the
    # whole day taken back before it began leaves just what lies between start and end.
    for of_day, later, sign in ((of_first, 1, 1), (of_last, 0, -1)):
        ends = runs.lazy().select(whose, nodes=nodes, **of_day).group_by("cluster", "day")
        ends = ends.agg(pl.col("nodes").sum(), at_risk=(pl.col("nodes") * pl.col("at_risk")).sum())
        ends = ends.collect(engine="streaming")
        sums += _by_day(ends, ends["at_risk"], days + 2, clusters)
        steps += (
            sign * SECONDS_A_DAY * _by_day(ends.with_columns(pl.col("day") + later), ends["nodes"], days + 2, clusters)
        )
    return (sums + np.cumsum(steps, axis=1))[:, :days]


def _by_day(rows: pl.DataFrame, number: pl.Series, days: int, clusters: int) -> np.ndarray:
    """The sum of the numbers on each day from 0 on: Int64, a row per cluster."""
    sums = np.zeros((clusters, days), dtype=np.int64)
    whose = rows["cluster"].to_numpy() if clusters > 1 else np.zeros(rows.height, dtype=np.int64)
    np.add.at(sums, (whose, rows["day"].to_numpy()), number.to_numpy())
    return sums


def _at_work(lives: pl.LazyFrame, basis: str | None, nodes: pl.Expr) -> pl.LazyFrame:
    """start_s, end_s, nodes, failed and cause of the runs whose time at risk is known."""
    lives = with_blanks(lives, _CLUSTER)
    return lives.select(
        "start_s",
        "cause",
        *_CLUSTER,
        end_s=pl.col("start_s") + pl.col("duration_s"),
        nodes=pl.col("nodes") if basis == "component" else nodes,
        failed=(pl.col("event") == EVENT).fill_null(False),
    ).filter(pl.col("end_s").is_not_null() & (pl.col("end_s") >= pl.col("start_s")) & (pl.col("nodes") > 0))


def _causes(failed: pl.DataFrame, cause_is: str) -> list[tuple[str, str, pl.DataFrame]]:
    """(by, cause, its failures) of the causes with the most failures, then of all others, then of those unknown."""
    counts = failed.drop_nulls("cause").group_by("cause").agg(pl.col("count").sum())
    counts = counts.sort("count", "cause", descending=[True, False])
    if counts.height + (failed["cause"].null_count() > 0) < 2 or not counts.height:
        return []
    named = counts["cause"].head(MOST_CAUSES).to_list()
    parts = [(cause_is, cause, failed.filter(pl.col("cause") == cause)) for cause in named]
    parts += [
        (cause_is, OTHER, failed.filter(pl.col("cause").is_not_null() & ~pl.col("cause").is_in(named))),
        (cause_is, UNKNOWN, failed.filter(pl.col("cause").is_null())),
    ]
    return [part for part in parts if part[2].height]


def _in_windows(by_day: np.ndarray, ends: np.ndarray, window: int) -> np.ndarray:
    """The sums over the days of each window; a row per cluster."""
    running = np.pad(np.cumsum(by_day, axis=1), ((0, 0), (1, 0)))
    return running[:, ends + 1] - running[:, ends + 1 - window]


def _name(calendar: bool, window: int, before: int) -> pl.Expr:
    if calendar:
        last = pl.from_epoch(pl.col("end_s") - 1, time_unit="s").dt.strftime("%Y-%m-%d")
        return last if window == 1 else pl.format(f"{window} days to {{}}", last)
    if window == 1:
        return pl.format("day {}", pl.col("to_day") + 1 + before)
    return pl.format("days {} to {}", pl.col("from_day") + 1 + before, pl.col("to_day") + 1 + before)


def _rates(rows: pl.DataFrame, shared: dict) -> pl.DataFrame:
    failures, exposure = rows["failures"].to_numpy(), rows["exposure"].to_numpy().astype(float)
    low, high = poisson_limits(failures, CONFIDENCE)
    with np.errstate(divide="ignore", invalid="ignore"):
        per = 1000 * SECONDS_A_DAY / exposure
        rates = {"failures_per_1000_node_days": failures * per, "ci_low": low * per, "ci_high": high * per}
    enough = pl.col("exposure") >= SECONDS_A_DAY
    none = pl.when(pl.col("exposure") == 0).then(pl.lit("no node was at work")).when(~enough).then(pl.lit(NO_NODE_DAY))
    # By NumPy, which rounds a quotient once; Polars multiplies by the reciprocal of a number.
    rates["node_days"] = exposure / SECONDS_A_DAY
    rows = rows.with_columns(pl.Series(name, values) for name, values in rates.items()).with_columns(
        pl.when(enough).then(
            pl.col("failures_per_1000_node_days", "ci_low", "ci_high", "ci_low_clustered", "ci_high_clustered")
        ),
        reason=none.when(pl.col("failures") == 0).then(pl.lit("no failures: upper limit only")),
        **{name: pl.lit(value) for name, value in shared.items()},
    )
    return FAILURE_RATE_OVER_TIME.typed(rows)

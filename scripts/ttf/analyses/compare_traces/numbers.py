"""The numbers of the comparison's prose."""

from collections import Counter
from collections.abc import Sequence

import polars as pl

from ttf.analyses.compare_traces.labels import ENDS
from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_ENDED, FEWEST_FAILURES, Metrics


def numbers(metrics: Metrics, given: Inputs) -> None:
    """of.<trace>.<number> for each trace; range.<number>.<lowest|highest>.<trace|value> over real traces.

    Over those with enough behind them (FEWEST_ENDED jobs, FEWEST_FAILURES failures), where there are two or more.
    Components are in no range.
    """
    traces = given["compared_traces"]
    kinds = Counter(traces["gives"])
    metrics.put("traces.jobs", kinds["jobs"], "traces", "")
    metrics.put("traces.components", kinds["lives"], "traces", "")
    metrics.put("traces.synthetic", int(traces["synthetic"].sum()), "traces", "")
    for row in traces.filter(gives="jobs").iter_rows(named=True):
        counts = dict.fromkeys(("jobs", "gpu_jobs", "blank_request", "timeouts"), "jobs")
        metrics.put_row(f"of.{row['trace']}", row, counts, "jobs.parquet", row["jobs"])
    _put_outcomes(metrics, given["compared_outcomes"])
    _put_failure_share(metrics, given["compared_failure_share"])
    _put_run_times(metrics, given["compared_run_times"])
    _put_queueing(metrics, given["compared_queueing"])
    _put_mttf(metrics, given["compared_mttf"])


def _put_outcomes(metrics: Metrics, outcomes: pl.DataFrame) -> None:
    source = "outcomes.csv"
    behind = {trace: sums for trace, *sums in outcomes.group_by("trace").agg(pl.col("jobs", "n").sum()).iter_rows()}
    for row in outcomes.iter_rows(named=True):
        key, (jobs, timed) = f"of.{row['trace']}.{row['outcome']}", behind[row["trace"]]
        metrics.put(f"{key}.jobs_share", row["jobs_share"], "share", source, jobs)
        metrics.put(f"{key}.gpu_hours_share", row["gpu_hours_share"], "share", source, timed)


def _put_failure_share(metrics: Metrics, shares: pl.DataFrame) -> None:
    source, overall = "failure_share.csv", shares.filter(gpus="all").rows(named=True)
    for row in overall:
        key = f"of.{row['trace']}"
        metrics.put(f"{key}.ended", row["ended"], "jobs", source, row["jobs"])
        metrics.put(f"{key}.failures", row["failures"], "jobs", source, row["ended"])
        for name, column in (("", "failure_share"), ("_low", "ci_low"), ("_high", "ci_high")):
            metrics.put(f"{key}.failure_share{name}", row[column], "share", source, row["ended"])
    _put_range(metrics, "failure_share", overall, "failure_share", "ended", FEWEST_ENDED, "share", source)


def _put_run_times(metrics: Metrics, run_times: pl.DataFrame) -> None:
    for outcome in ENDS:
        rows = run_times.filter(outcome=outcome).rows(named=True)
        for row in rows:
            times = dict.fromkeys(("runtime_mean_s", "runtime_median_s", "runtime_p90_s"), "s")
            metrics.put_row(f"of.{row['trace']}.{outcome}", row, times, "run_times.csv", row["n"])
        name = f"{outcome}.runtime_median_s"
        _put_range(metrics, name, rows, "runtime_median_s", "n", FEWEST_ENDED, "s", "run_times.csv")


def _put_queueing(metrics: Metrics, queueing: pl.DataFrame) -> None:
    rows = queueing.filter(gpus="all").rows(named=True)
    for row in rows:
        times = dict.fromkeys(("queue_mean_s", "queue_median_s", "queue_p90_s"), "s")
        metrics.put_row(f"of.{row['trace']}", row, times, "queueing.csv", row["n"])
    _put_range(metrics, "queue_median_s", rows, "queue_median_s", "n", FEWEST_ENDED, "s", "queueing.csv")


def _put_mttf(metrics: Metrics, mttf: pl.DataFrame) -> None:
    source, rows = "mttf.csv", mttf.filter(gpus="all", confidence=0.95).rows(named=True)
    for row in rows:
        key = f"of.{row['trace']}"
        metrics.put(f"{key}.mttf_lives", row["n"], "lives", source)
        metrics.put(f"{key}.mttf_events", row["events"], "failures", source, row["n"])
        metrics.put(f"{key}.mttf_without_end", row["without_end"], "failures", source)
        for name, column in (("mttf_s", "mttf_s"), ("mttf_low_s", "ci_low_s"), ("mttf_high_s", "ci_high_s")):
            metrics.put(f"{key}.{name}", row[column], "s", source, row["n"])
        rates = ("failures_per_1000_gpu_days", "failures_per_1000_node_days")
        metrics.put_row(key, row, {name: name.replace("_", " ") for name in rates}, source, row["n"])
    of_jobs = [row for row in rows if row["gives"] == "jobs"]
    _put_range(metrics, "mttf_s", of_jobs, "mttf_s", "events", FEWEST_FAILURES, "s", source)


def _put_range(
    metrics: Metrics, name: str, rows: Sequence[dict], column: str, n: str, fewest: int, unit: str, source: str
) -> None:
    known = [row for row in rows if row[column] is not None and row[n] >= fewest and not row["synthetic"]]
    if len(known) < 2:
        return
    metrics.put(f"range.{name}.traces", len(known), "traces", source)
    for end, of in (("lowest", min), ("highest", max)):
        row = of(known, key=lambda row: row[column])
        metrics.put(f"range.{name}.{end}.trace", row["trace"], "label", source, row[n])
        metrics.put(f"range.{name}.{end}.value", row[column], unit, source, row[n])

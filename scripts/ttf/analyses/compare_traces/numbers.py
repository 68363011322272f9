"""The numbers of the comparison's prose."""

from collections import Counter

import polars as pl

from ttf.analyses.compare_traces.labels import ENDS
from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics, ends


def numbers(metrics: Metrics, given: Inputs) -> None:
    """of.<trace>.<number> for each trace."""
    traces = given["compared_traces"]
    kinds = Counter(traces["gives"])
    metrics.put("traces.jobs", kinds["jobs"], "traces", "")
    metrics.put("traces.components", kinds["lives"], "traces", "")
    metrics.put("traces.synthetic", int(traces["synthetic"].sum()), "traces", "")
    counts = dict.fromkeys(("jobs", "gpu_jobs", "blank_request", "timeouts"), "jobs")
    metrics.put_rows("of.{trace}", traces.filter(gives="jobs"), counts, "jobs.parquet", "jobs")
    outcomes = given["compared_outcomes"].with_columns(pl.col("jobs", "n").sum().over("trace").name.suffix("_of_trace"))
    for share, behind in (("jobs_share", "jobs_of_trace"), ("gpu_hours_share", "n_of_trace")):
        metrics.put_rows("of.{trace}.{outcome}", outcomes, {share: "share"}, "outcomes.csv", behind)
    shares = given["compared_failure_share"].filter(gpus="all")
    metrics.put_rows("of.{trace}", shares, {"ended": "jobs"}, "failure_share.csv", "jobs")
    units = {"failures": "jobs", "failure_share": "share"}
    units |= {"failure_share_low": ("ci_low", "share"), "failure_share_high": ("ci_high", "share")}
    metrics.put_rows("of.{trace}", shares, units, "failure_share.csv", "ended")
    metrics.put_rows("of.{trace}.failure_share", shares, ends("share"), "failure_share.csv", "ended")
    for outcome in ENDS:
        rows = given["compared_run_times"].filter(outcome=outcome)
        _put_times(metrics, f"{outcome}.", rows, "runtime", "run_times.csv")
    _put_times(metrics, "", given["compared_queueing"].filter(gpus="all"), "queue", "queueing.csv")
    rows = given["compared_mttf"].filter(gpus="all", confidence=0.95)
    units = {"mttf_lives": ("n", "lives"), "mttf_without_end": ("without_end", "failures")}
    metrics.put_rows("of.{trace}", rows, units, "mttf.csv", None)
    units = {"mttf_events": ("events", "failures")}
    units |= {"mttf_s": "s", "mttf_low_s": ("ci_low_s", "s"), "mttf_high_s": ("ci_high_s", "s")}
    rates = ("failures_per_1000_gpu_days", "failures_per_1000_node_days")
    units |= {name: name.replace("_", " ") for name in rates}
    metrics.put_rows("of.{trace}", rows, units, "mttf.csv")
    metrics.put_rows("of.{trace}.mttf", rows, ends("s", "_s"), "mttf.csv")


def _put_times(metrics: Metrics, what: str, rows: pl.DataFrame, time: str, source: str) -> None:
    times = dict.fromkeys((f"{time}_mean_s", f"{time}_median_s", f"{time}_p90_s"), "s")
    key = f"of.{{trace}}.{what}".removesuffix(".")
    metrics.put_rows(key, rows, times, source)

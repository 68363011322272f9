"""How does the failure rate of nodes change over time, and by what cause?"""

from functools import partial

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import BASIS, NO_CLUSTERS, clustered_columns
from ttf.engine.contract import REASON, count, number, table, whole_seconds, words

_PER_1000 = {"unit": "per 1000 node-days"}

FAILURE_RATE_OVER_TIME = table(
    "failure_rate_over_time",
    "Failures of all causes, or of one, per node-day in use, in a window of days.",
    by=words("By", "all, cause or domain."),
    cause=words("Cause", "Cause of the failures.", "the row counts all causes"),
    window=words("Window", "Days of the window.", REASON),
    to_day=count("To day", "Last day of the window, from 0.", REASON, "days"),
    start_s=whole_seconds("Start", "Start of the window, in trace time.", REASON),
    end_s=whole_seconds("End", "End of the window, in trace time.", REASON),
    window_days=count("Length", "Length of the window.", REASON, "days"),
    failures=count("Failures", "Runs that infrastructure failures ended in the window.", REASON, "failures"),
    node_days=number("Node-days", "Nodes in use in the window times their days.", REASON, "node-days"),
    failures_per_1000_node_days=number(
        "Failures per 1000 node-days", "Failures divided by node-days.", REASON, **_PER_1000
    ),
    confidence=number("Confidence", "Confidence level of the interval."),
    ci_low=number("from", "Lower bound of Garwood's interval.", REASON, **_PER_1000),
    ci_high=number("to", "Upper bound; one-sided if there is no failure.", REASON, **_PER_1000),
    **clustered_columns(partial(number, **_PER_1000), blank=NO_CLUSTERS),
    basis=BASIS,
    runs_before=count("Runs before", "Runs started before the first window, with few recorded starts.", REASON, "runs"),
    days_before=count("Days before", "Days before the first window.", REASON, "days"),
)
FAILURE_RATE_WINDOWS = table(
    "failure_rate_windows",
    "Summary of the windows of all causes.",
    windows=count("Windows", "Windows with an interval.", unit="windows"),
    failures_in_windows=count("Windows with a failure", "Windows with a failure.", REASON, "windows", n="windows"),
    window_days=count("Length", "Length of a window.", REASON, "days"),
    runs_before=count("Runs before", "Runs started before the first window.", "few started then, or none", "runs"),
    days_before=count("Days before", "Days before the first window.", "few runs started then, or none", "days"),
    by=words("By", "How failures are divided further: by cause or domain.", "they are not divided"),
    last=number("Last rate", "Failure rate in the last window.", REASON, n="last_failures", **_PER_1000),
    last_failures=count("Failures", "Failures in the last window.", REASON, "failures"),
)

ANALYSIS = Analysis(
    question="How does the failure rate of nodes change over time, and by what cause?",
    theme="nodes",
    rank=10,
    needs=["durations_infra", "node_failure_rate"],
    uses=["reasons"],
    tables=(FAILURE_RATE_OVER_TIME, FAILURE_RATE_WINDOWS),
    charts={"failure_rate_over_time": "failure_rate_over_time"},
    main=("failure_rate_over_time",),
    sections=["over_time"],
    in_size_unit=True,
    memory_mb=290,
    mb_per_gb={"pai2020": 60, "philly": 180, "sacct": 1900},
)

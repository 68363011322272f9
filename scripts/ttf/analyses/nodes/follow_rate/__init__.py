"""How often does a node at work fail over the time of the trace, and by what cause?"""

from functools import partial

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import BASIS, NO_CLUSTERS, clustered
from ttf.engine.contract import REASON, count, number, table, whole_seconds, words

_PER_1000 = {"unit": "per 1000 node-days"}

FAILURE_RATE_OVER_TIME = table(
    "failure_rate_over_time",
    "A window of days: failures of all causes, or of one, per node-day at work.",
    by=words("By", "all, cause or domain."),
    cause=words("Cause", "Of the failures counted.", "the row is of all causes"),
    window=words("Window", "Its days.", REASON),
    from_day=count("From day", "First day of the window, from 0.", REASON, "days"),
    to_day=count("To day", "Last day of the window, from 0.", REASON, "days"),
    start_s=whole_seconds("Start", "Moment, on the clock of the trace.", REASON),
    end_s=whole_seconds("End", "Moment, on the clock of the trace.", REASON),
    window_days=count("Length", "Of the window.", REASON, "days"),
    failures=count("Failures", "Runs that infrastructure ended in the window, by the basis.", REASON, "failures"),
    node_days=number("Node-days", "Nodes at work in the window times their days.", REASON, "node-days"),
    failures_per_1000_node_days=number("Failures per 1000 node-days", "Failures over node-days.", REASON, **_PER_1000),
    confidence=number("Confidence", "Of the interval."),
    ci_low=number("from", "Lower end of Garwood's interval.", REASON, **_PER_1000),
    ci_high=number("to", "Upper end of it; without a failure a one-sided bound.", REASON, **_PER_1000),
    **clustered(partial(number, **_PER_1000), blank=NO_CLUSTERS),
    basis=BASIS,
    runs_before=count("Runs before", "Started before the first window, where few starts are recorded.", REASON, "runs"),
    days_before=count("Days before", "Of the time before the first window.", REASON, "days"),
)
FAILURE_RATE_WINDOWS = table(
    "failure_rate_windows",
    "The windows of all causes together.",
    windows=count("Windows", "Those with an interval.", unit="windows"),
    failures_in_windows=count("Windows with a failure", "Those of them.", REASON, "windows", n="windows"),
    window_days=count("Length", "Of a window.", REASON, "days"),
    runs_before=count("Runs before", "Started before the first window.", "few started then, or none", "runs"),
    days_before=count("Days before", "Of the time before the first window.", "few runs started then, or none", "days"),
    by=words("By", "What the failures are divided by besides: cause or domain.", "they are not divided"),
    last=number("Last rate", "Of the last window.", REASON, n="last_failures", **_PER_1000),
    last_failures=count("Failures", "In the last window.", REASON, "failures"),
)

ANALYSIS = Analysis(
    question="How often does a node at work fail over the time of the trace, and by what cause?",
    theme="nodes",
    rank=10,
    needs=["lives_infra", "node_failure_rate"],
    uses=["reasons"],
    tables=(FAILURE_RATE_OVER_TIME, FAILURE_RATE_WINDOWS),
    charts={"failure_rate_over_time": "failure_rate_over_time"},
    main=("failure_rate_over_time",),
    sections=["over_time"],
    in_size_unit=True,
    memory_mb=290,
    mb_per_gb={"pai2020": 60, "philly": 180, "sacct": 1900},
)

"""Whether outages become more frequent, in words, and the table of the tests."""

import polars as pl

from ttf.analyses.follow_outages import GROWTH
from ttf.report import words
from ttf.report.head import Line
from ttf.report.numbers import Numbers
from ttf.report.said import number
from ttf.report.tables import WITH_INTERVAL, Shown
from ttf.report.trace import Trace, largest_strata

_KINDS = {"all": "All", "group": "By group", "level": "By level of cause"}
TESTS = ("laplace_p", "mil_hdbk_p", "lewis_robinson_p", "change_point_p_corrected")
_TRENDS = {
    "worse": "more frequent",
    "better": "less frequent",
    "changed": "changed",
    "bursts": "bursts",
    "none": "none",
}


def trend_in_words(m: Numbers) -> str:
    """Whether it is getting better, and whether it changed; nothing where there were too few faults to tell."""
    return f"{_trend(m)}{_groups(m)}" if m.has("growth.trend") else ""


def _trend(m: Numbers) -> str:
    # Without a p where faults come at even intervals.
    trend, robust = m["growth.trend"], f"p {_p(m, 'lewis_robinson_p')}" if m.has("growth.lewis_robinson_p") else ""
    if trend in ("worse", "better"):
        grow = f"growth β {number(m, 'growth.beta')}, {m.interval('growth.ci_{}')}; " if m.has("growth.beta") else ""
        return f"Faults became {_TRENDS[trend]}{_steadily(m)} ({grow}Lewis-Robinson {robust})."
    if trend == "changed":
        return f"No steady trend{f' (Lewis-Robinson {robust})' if robust else ''}, but the rate changed: {_change(m)}."
    if trend == "bursts" and not robust:
        return "Tests for independent faults take these for a change; that which allows for bursts cannot be computed."
    if trend == "bursts":
        return (
            f"Faults come in bursts, which tests for independent faults take for a change; "
            f"the Lewis-Robinson test sees no trend ({robust})."
        )
    return f"No trend in faults{f' (Lewis-Robinson {robust})' if robust else ''}."


def _steadily(m: Numbers) -> str:
    """That the growth does not say the same as the tests of the mean time, where it does not."""
    end = "growth.ci_low" if m["growth.trend"] == "worse" else "growth.ci_high"
    if not m.has(end):
        return ""
    is_steady = m[end] > 1 if m["growth.trend"] == "worse" else m[end] < 1
    return "" if is_steady else ", but not steadily"


def _groups(m: Numbers) -> str:
    """How many groups of units became better, and worse, where there are several."""
    if m.value("growth.groups.n", 0) < 2:
        return ""
    better, worse = (number(m, f"growth.groups.{trend}", words.count) for trend in ("better", "worse"))
    return f" Of {number(m, 'growth.groups.n', words.count)} groups {better} became less, {worse} more frequent."


def _p(m: Numbers, test: str) -> str:
    return number(m, f"growth.{test}", words.p_value)


def _p_value(value: float) -> str:
    return words.p_value(value).removeprefix("= ")


def _change(m: Numbers) -> str:
    at = number(m, "growth.change_point", str)
    if not m.has("growth.rate_ratio"):
        return f"{at}, p {_p(m, 'change_point_p_corrected')}"
    return f"{number(m, 'growth.rate_ratio')} times as high after {at} (p {_p(m, 'change_point_p_corrected')})"


def lines(trace: Trace, m: Numbers) -> list[Line]:
    if m.has("growth.trend"):
        return []
    found = f"{number(m, 'growth.n', lambda n: words.plural(n, 'fault'))}: too few for a trend"
    return [Line("Change of the rate of outages", found, "tables/growth.csv", checked=False)]


def tables(trace: Trace) -> dict[str, Shown]:
    growth = largest_strata(trace.table("growth"))
    named = growth.with_columns(
        pl.col("stratum_by").replace_strict(_KINDS), trend=pl.col("trend").replace_strict(_TRENDS, default=None)
    )
    columns = {
        "stratum": ("Stratum", None),
        "n": None,
        "beta": WITH_INTERVAL,
        **{name: (GROWTH.columns[name].heading, _p_value) for name in TESTS},
        "rate_ratio": None,
        "trend": ("Trend", None),
    }
    return {"growth": Shown(named, columns, GROWTH, "stratum_by")}

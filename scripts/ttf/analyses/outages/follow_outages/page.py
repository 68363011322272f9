"""Whether outages become more frequent, in words, and the table of the tests."""

import polars as pl

from ttf.analyses.outages.follow_outages import GROWTH
from ttf.display.phrases import with_numbers
from ttf.display.report_tables import Interval, Shown
from ttf.display.report_trace import Trace, largest_strata
from ttf.display.section_head import Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

_KINDS = {"all": "All", "group": "By group", "level": "By level of cause"}
_TRENDS = {"worse": "more frequent", "better": "less frequent", "none": "none"}
# Groups whose common growth describes none of them.
DIFFER = 0.05


@with_numbers
def trend_in_words(m: Numbers) -> str:
    """Whether faults become more frequent, and in how many groups; nothing where there were too few to tell."""
    return f"{_trend(m)}{_groups(m)}" if m.has("growth.trend") else ""


def _trend(m: Numbers) -> str:
    divided = m["growth.strata"] > 1
    grow = ""
    if m.has("growth.beta_within_ci_low"):
        ends = words.span(*(words.number(m[f"growth.beta_within_ci_{end}"]) for end in ("low", "high")))
        grow = f"{'common ' if divided else ''}growth β [growth.beta_within], 95% CI {ends}; "
    told = f"({grow}p [growth.trend_p:p_value])"
    within = " within [growth.strata] groups" if divided else ""
    if m["growth.trend"] == "none":
        return f"No {'common ' if divided else ''}trend in faults{within} {told}."
    return f"Faults became {_TRENDS[m['growth.trend']]}{within} {told}."


def _groups(m: Numbers) -> str:
    """How many groups of units became better, and worse, where there are several."""
    if m.value("growth.groups.n", 0) < 2:
        return ""
    differ = m.has("growth.homogeneity_p") and m["growth.homogeneity_p"] < DIFFER
    of = "Groups differ (p [growth.homogeneity_p:p_value]): of [growth.groups.n]" if differ else "Of [growth.groups.n]"
    return f" {of}, [growth.groups.better] became less, [growth.groups.worse] more frequent."


@with_numbers
def lines(trace: Trace, m: Numbers) -> list[Line]:
    if m.has("growth.trend"):
        return []
    found = "[growth.n fault]: too few, or in too few weeks, for a trend"
    return [Line("Change of the rate of faults", found, "tables/growth.csv", checked=False)]


def tables(trace: Trace) -> dict[str, Shown]:
    growth = largest_strata(trace.table("growth"))
    named = growth.with_columns(
        pl.col("stratum_by").replace_strict(_KINDS), trend=pl.col("trend").replace_strict(_TRENDS, default=None)
    )
    columns = {
        "stratum": ("Stratum", None),
        "n": None,
        "strata": None,
        "beta_within": Interval(low="beta_within_ci_low", high="beta_within_ci_high"),
        **{name: (GROWTH.columns[name].heading, words.plain_p_value) for name in ("homogeneity_p", "trend_p_adjusted")},
        "trend": ("Trend", None),
    }
    return {"growth": Shown(named, columns, GROWTH, "stratum_by")}

"""The tables of the report on competing ends, comparisons between strata, hazard ratios and delayed entry."""

from collections.abc import Callable

import polars as pl

from ttf.report import words
from ttf.report.tables import Column, Interval, html_table
from ttf.report.trace import Trace, largest_strata, strata_in_words

MOST_PAIRS = 15
DAY_S = 86_400
# Ages at which the incidence is told: name of the column, heading.
OF_JOBS = {3_600: ("h", "After 1 h"), DAY_S: ("d", "1 day"), 7 * DAY_S: ("w", "7 days")}
OF_COMPONENTS = {30 * DAY_S: ("m", "After 30 days"), 365 * DAY_S: ("y", "1 year"), 5 * 365 * DAY_S: ("5y", "5 years")}
BOUNDED_AT_S = (3_600, DAY_S, 7 * DAY_S, 30 * DAY_S)
LONGEST_REMARK = 160
FAILURE = pl.col("event") == "failure"


def hazards(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """The HTML tables of the analysis `hazards` by name; one with nothing in it is left out."""
    made = {
        "incidence": _incidence(trace),
        "incidence-bounds": _bounds(trace),
        "logrank": _logrank(trace),
        "pairs": _pairs(trace),
        "cox": _cox(trace),
        "delayed": _delayed_entry(trace),
    }
    return {
        name: html_table(frame, columns, identifier(name), group=group, longest=LONGEST_REMARK)
        for name, (frame, columns, group) in made.items()
        if frame.height
    }


def _incidence(trace: Trace) -> tuple[pl.DataFrame, dict[str, Column], str | None]:
    """The share that each end has come to at a few ages: no age that the lives do not reach."""
    known = trace.table("incidence_at").filter(pl.col("incidence").is_not_null())
    frame = known.group_by("event", maintain_order=True).agg(pl.col("n").first())
    columns: dict[str, Column] = {"event": ("Ended by", None), "n": ("n", words.count)}
    for moment, (name, heading) in (OF_JOBS if trace.has_jobs else OF_COMPONENTS).items():
        rows = known.filter(time_s=moment)
        if not rows.height:
            break
        cells = [_share_with_interval(row) for row in rows.iter_rows(named=True)]
        frame = frame.join(rows.select("event", pl.Series(name, cells)), on="event", how="left", maintain_order="left")
        columns[name] = (heading, str)
    return frame if len(columns) > 2 else frame.head(0), columns, None


def _bounds(trace: Trace) -> tuple[pl.DataFrame, dict[str, Column], str | None]:
    """Between what the incidence of an end lies whose time is not always written."""
    known = (pl.col("without_end") > 0) & pl.col("incidence").is_not_null()
    table = trace.table("incidence_at").filter(known & pl.col("time_s").is_in(BOUNDED_AT_S))
    columns: dict[str, Column] = {
        "time_s": ("By", words.duration),
        "n": ("n", words.count),
        "without_end": ("without end", words.count),
        "incidence_low": ("At least", words.share),
        "incidence_high": ("at most", words.share),
        "incidence": Interval("Without them", words.share, "ci_low", "ci_high"),
    }
    return table, columns, "event"


def _share_with_interval(row: dict) -> str:
    if row["ci_low"] is None:
        return words.share(row["incidence"])
    return f"{words.share(row['incidence'])} ({words.share(row['ci_low'])} to {words.share(row['ci_high'])})"


def _logrank(trace: Trace) -> tuple[pl.DataFrame, dict[str, Column], str | None]:
    frame = trace.table("logrank").filter(FAILURE & (pl.col("kind") == "overall"))
    columns: dict[str, Column] = {
        "stratum_by": ("Strata", None),
        "strata": ("compared", words.count),
        "n": ("n", words.count),
        "events": ("Failures", words.count),
        "statistic": ("χ²", words.number),
        "df": ("df", words.count),
        "p_adjusted": ("p, adjusted", _p),
        "reason": ("Remark", None),
    }
    return strata_in_words(frame), columns, None


def _pairs(trace: Trace) -> tuple[pl.DataFrame, dict[str, Column], str | None]:
    """The pairs that differ beyond chance, those farthest apart first."""
    pairs = trace.table("logrank").filter(FAILURE & (pl.col("kind") == "pairwise") & (pl.col("p_adjusted") < 0.05))
    # Of pairs with p too small for a number the statistic still tells the order.
    pairs = pairs.sort("statistic", descending=True, maintain_order=True)
    frame = pairs.group_by("stratum_by", maintain_order=True).head(MOST_PAIRS).sort("stratum_by", maintain_order=True)
    columns: dict[str, Column] = {
        "stratum_a": ("One", None),
        "stratum_b": ("Other", None),
        "n": ("n", words.count),
        "events": ("Failures", words.count),
        "statistic": ("χ²", words.number),
        "p_adjusted": ("p, adjusted", _p),
    }
    return strata_in_words(frame), columns, "stratum_by"


def _cox(trace: Trace) -> tuple[pl.DataFrame, dict[str, Column], str | None]:
    cox = trace.table("cox").filter(FAILURE)
    columns: dict[str, Column] = {
        "level": ("Level", None),
        "reference": ("against", None),
        "n": ("n", words.count),
        "events": ("Failures", words.count),
        "hazard_ratio": Interval("Hazard ratio", words.number, "ci_low", "ci_high"),
        "p_adjusted": ("p, adjusted", _p),
        "proportionality_p": ("p, proportional", _p),
        "reason": ("Remark", None),
    }
    return strata_in_words(cox, "covariate"), columns, "covariate"


def _delayed_entry(trace: Trace) -> tuple[pl.DataFrame, dict[str, Column], str | None]:
    """The estimates with and without delayed entry side by side, where any life entered late."""
    summary = trace.table("survival_summary_delayed_entry").filter(FAILURE)
    if not summary.height or not summary["entered_late"].sum():
        return summary.head(0), {}, None
    keys = ["stratum_by", "stratum"]
    at_95 = FAILURE & (pl.col("confidence") == 0.95)
    frame = summary.select(*keys, "n", "entered_late", late_median_s="median_s")
    for table, name in (("mttf_delayed_entry", "late_mttf_s"), ("mttf", "mttf_s")):
        mttf = trace.table(table).filter(at_95).select(*keys, pl.col("mttf_s").alias(name))
        frame = frame.join(mttf, on=keys, how="left", maintain_order="left")
    plain = trace.table("survival_summary").filter(FAILURE).select(*keys, "median_s")
    frame = largest_strata(frame.join(plain, on=keys, how="left", maintain_order="left"))
    columns: dict[str, Column] = {
        "stratum": ("Lives", None),
        "n": ("n", words.count),
        "entered_late": ("entered late", words.count),
        "median_s": ("Median without", words.duration),
        "late_median_s": ("with delayed entry", words.duration),
        "mttf_s": ("MTTF without", words.duration),
        "late_mttf_s": ("with delayed entry", words.duration),
    }
    return strata_in_words(frame), columns, "stratum_by"


def _p(value: float) -> str:
    return words.p_value(value).removeprefix("= ")

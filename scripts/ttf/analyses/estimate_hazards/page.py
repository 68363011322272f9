"""The tables of the report on competing ends, comparisons between strata, hazard ratios and delayed entry."""

import polars as pl

from ttf.analyses.estimate_hazards import COX, INCIDENCE_AT, LOGRANK, SURVIVAL_SUMMARY_DELAYED_ENTRY
from ttf.report import words
from ttf.report.numbers import Numbers
from ttf.report.tables import CLUSTERED, Column, Shown
from ttf.report.trace import Trace, largest_strata, strata_in_words

MOST_PAIRS = 15
DAY_S = 86_400
# Ages at which the incidence is shown: name of the column, heading.
OF_JOBS = {3_600: ("h", "After 1 h"), DAY_S: ("d", "1 day"), 7 * DAY_S: ("w", "7 days")}
OF_COMPONENTS = {30 * DAY_S: ("m", "After 30 days"), 365 * DAY_S: ("y", "1 year"), 5 * 365 * DAY_S: ("5y", "5 years")}
BOUNDED_AT_S = (3_600, DAY_S, 7 * DAY_S, 30 * DAY_S)
LONGEST_REMARK = 160
FAILURE = pl.col("event") == "failure"


def _p(value: float) -> str:
    return words.p_value(value).removeprefix("= ")


ADJUSTED = {"p_adjusted_clustered": ("p, adjusted", _p), "p_adjusted": ("p if independent", _p)}


def tables(trace: Trace) -> dict[str, Shown]:
    return {
        "incidence": _incidence(trace),
        "incidence-bounds": _bounds(trace),
        "logrank": _logrank(trace),
        "pairs": _pairs(trace),
        "cox": _cox(trace),
        "delayed": _delayed_entry(trace),
    }


def context(trace: Trace, metrics: Numbers) -> dict:
    named = [key.split(".")[1] for key in metrics if key.startswith("logrank.") and key.endswith(".strata")]
    return {"logrank": named}


def _incidence(trace: Trace) -> Shown:
    """The share that each end has come to at a few ages: no age that the lives do not reach."""
    known = trace.table("incidence_at").filter(pl.col("incidence").is_not_null())
    frame = known.group_by("event", maintain_order=True).agg(pl.col("n").first())
    columns: dict[str, Column] = {"event": None, "n": None}
    for moment, (name, heading) in (OF_JOBS if trace.has_jobs else OF_COMPONENTS).items():
        rows = known.filter(time_s=moment)
        if not rows.height:
            break
        cells = [_share_with_interval(row) for row in rows.iter_rows(named=True)]
        frame = frame.join(rows.select("event", pl.Series(name, cells)), on="event", how="left", maintain_order="left")
        columns[name] = (heading, str)
    return Shown(frame if len(columns) > 2 else frame.head(0), columns, INCIDENCE_AT)


def _bounds(trace: Trace) -> Shown:
    """Between what the incidence of an end lies whose time is not always written."""
    known = (pl.col("without_end") > 0) & pl.col("incidence").is_not_null()
    table = trace.table("incidence_at").filter(known & pl.col("time_s").is_in(BOUNDED_AT_S))
    columns = dict.fromkeys(("time_s", "n", "without_end", "incidence_low", "incidence_high"))
    columns |= {"incidence": CLUSTERED}
    return Shown(table, columns, INCIDENCE_AT, "event", LONGEST_REMARK)


def _share_with_interval(row: dict) -> str:
    ends = [row["ci_low_clustered"], row["ci_high_clustered"]]
    return words.interval(*(None if value is None else words.share(value) for value in (row["incidence"], *ends)))


def _logrank(trace: Trace) -> Shown:
    frame = trace.table("logrank").filter(FAILURE & (pl.col("kind") == "overall"))
    columns = dict.fromkeys(("stratum_by", "strata", "n", "events", "statistic", "df"))
    columns |= ADJUSTED | {"clusters": None, "reason": "Remark"}
    return Shown(strata_in_words(frame), columns, LOGRANK, longest=LONGEST_REMARK)


def _pairs(trace: Trace) -> Shown:
    """The pairs whose difference is statistically significant, those farthest apart first."""
    pairs = trace.table("logrank").filter(FAILURE & (pl.col("kind") == "pairwise"))
    pairs = pairs.filter(pl.col("p_adjusted_clustered") < 0.05)
    # Of pairs with p too small for a number the statistic still gives the order.
    pairs = pairs.sort("statistic", descending=True, maintain_order=True)
    frame = pairs.group_by("stratum_by", maintain_order=True).head(MOST_PAIRS).sort("stratum_by", maintain_order=True)
    columns = dict.fromkeys(("stratum_a", "stratum_b", "n", "events", "statistic"))
    columns |= ADJUSTED | {"clusters": None}
    return Shown(strata_in_words(frame), columns, LOGRANK, "stratum_by", LONGEST_REMARK)


def _cox(trace: Trace) -> Shown:
    columns = dict.fromkeys(("level", "reference", "n", "events")) | {
        "hazard_ratio": CLUSTERED,
        "p_adjusted_clustered": ADJUSTED["p_adjusted_clustered"],
        "proportionality_p": ("p, proportional", _p),
        "reason": "Remark",
    }
    frame = strata_in_words(trace.table("cox").filter(FAILURE), "covariate")
    return Shown(frame, columns, COX, "covariate", LONGEST_REMARK)


def _delayed_entry(trace: Trace) -> Shown:
    """The estimates with and without delayed entry side by side, where any life entered late."""
    summary = trace.table("survival_summary_delayed_entry").filter(FAILURE)
    if not summary.height or not summary["entered_late"].sum():
        return Shown(summary.head(0), {}, SURVIVAL_SUMMARY_DELAYED_ENTRY)
    keys = ["stratum_by", "stratum"]
    at_95 = FAILURE & (pl.col("confidence") == 0.95)
    frame = summary.select(*keys, "n", "entered_late", late_median_s="median_s")
    for table, name in (("mttf_delayed_entry", "late_mttf_s"), ("mttf", "mttf_s")):
        mttf = trace.table(table).filter(at_95).select(*keys, pl.col("mttf_s").alias(name))
        frame = frame.join(mttf, on=keys, how="left", maintain_order="left")
    plain = trace.table("survival_summary").filter(FAILURE).select(*keys, "median_s")
    frame = largest_strata(frame.join(plain, on=keys, how="left", maintain_order="left"))
    columns = {
        **dict.fromkeys(("stratum", "n", "entered_late")),
        "median_s": "Median without",
        "late_median_s": ("with delayed entry", words.duration),
        "mttf_s": ("MTTF without", words.duration),
        "late_mttf_s": ("with delayed entry", words.duration),
    }
    return Shown(strata_in_words(frame), columns, SURVIVAL_SUMMARY_DELAYED_ENTRY, "stratum_by", LONGEST_REMARK)

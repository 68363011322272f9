"""Page section on factors of failure: its head, and tables of hazard ratios, strata, competing risks, delayed entry."""

import polars as pl

from ttf.analyses.factors.estimate_hazards import (
    COX,
    DOUBLING,
    INCIDENCE_AT,
    JOB_SIZE,
    LOGRANK,
    SURVIVAL_SUMMARY_DELAYED_ENTRY,
)
from ttf.analyses.factors.estimate_hazards.total import SIGNIFICANCE
from ttf.display.metrics import FEWEST_FAILURES
from ttf.display.phrases import quote_trace_text
from ttf.display.report_tables import CLUSTERED, Column, PageTable
from ttf.display.report_trace import Trace, label_strata, select_largest_strata
from ttf.display.run_time import NAMES, find_strongest_correlation, has_run_time_chart
from ttf.display.section_head import Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_PAIRS = 15
DAY_S = 86_400
# Ages at which the incidence is shown -> name of the column, heading.
JOB_AGES = {3_600: ("h", "After 1 h"), DAY_S: ("d", "1 day"), 7 * DAY_S: ("w", "7 days")}
COMPONENT_AGES = {30 * DAY_S: ("m", "After 30 days"), 365 * DAY_S: ("y", "1 year"), 5 * 365 * DAY_S: ("5y", "5 years")}
BOUNDED_AT_S = (3_600, DAY_S, 7 * DAY_S, 30 * DAY_S)
LONGEST_REMARK = 160
# Maximum length of a level's name in the claim.
LONGEST_NAME = 24
# Factors that are locations: jobs are in them.
LOCATIONS = ("cage", "cabinet", "row", "column", "system", "account")
FAILURE = pl.col("event") == "failure"
ADJUSTED = {
    "p_adjusted_clustered": ("p, adjusted", words.plain_p_value),
    "p_adjusted": ("p if independent", words.plain_p_value),
}


def tables(trace: Trace) -> dict[str, PageTable]:
    return {
        "incidence": _incidence_table(trace),
        "incidence-bounds": _incidence_bounds_table(trace),
        "logrank": _logrank_table(trace),
        "pairs": _pairs_table(trace),
        "cox": _cox_table(trace),
        "delayed": _delayed_entry_table(trace),
    }


def context(trace: Trace, metrics: Numbers) -> dict:
    """Return for the template the columns whose strata have a log-rank test."""
    return {"logrank": _list_stratifications(metrics)}


def _list_stratifications(m: Numbers) -> list[str]:
    return [key.split(".")[1] for key in m if key.startswith("logrank.") and key.endswith(".strata")]


def head(trace: Trace, m: Numbers) -> Head | None:
    """Return the strongest hazard ratio and the clearest correlation with run time; None without a ratio."""
    if not m.value("cox.total.ratios"):
        return None
    unit = trace.info["unit"]
    keys = [_make_ratio_key(m, "cox.strongest", _label_strongest(m))] if "cox.strongest.hazard_ratio" in m else []
    if "cox.job.hazard_ratio" in m and not _is_size_strongest(m):
        keys.append(_make_ratio_key(m, "cox.job", f"Hazard ratio per doubling of {_name_job_size(m)}"))
    keys += [_make_significance_key(m), *_list_run_time_keys(m, unit)]
    text = "These are associations, not causes."
    if m.value("cox.changing"):
        text += " [cox.changing] of [cox.covariates] factors change with age; read their ratios as averages."
    details = "hazard ratios, log-rank tests" + (", correlations" if has_run_time_chart(m) else "")
    return Head(_format_claim(m, unit), ("factors_of_failure",), tuple(keys), (text,), details=details)


def lines(trace: Trace, m: Numbers) -> list[Line]:
    """Say which strata do not differ, except those of the claim; or why the trace has no ratio."""
    if not m.value("cox.total.ratios"):
        reason = f": {quote_trace_text(m['cox.reason'])}" if "cox.reason" in m else ""
        return [Line("Hazard ratios", f"not estimated{reason}", "tables/cox.csv", checked=False)]
    is_size = "cox.strongest.level" in m and _is_size_strongest(m)
    claim_factor = "gpu_count" if is_size else m.value("cox.strongest.covariate", "")
    equal_strata = []
    for name in _list_stratifications(m):
        key = f"logrank.{name}.p_adjusted_clustered"
        if name != claim_factor and m.value(key, 0) >= SIGNIFICANCE:
            stratification = words.stratification_name(name).replace("cpu", "CPU")
            equal_strata.append(f"{stratification} (adjusted p [{key}:p_value])")
    if not equal_strata:
        return []
    text = f"no significant log-rank difference by {words.join_list(equal_strata)}"
    return [Line("Time to failure", text, "tables/logrank.csv")]


def _is_size_strongest(m: Numbers) -> bool:
    return m.value("cox.strongest.level", "").startswith(DOUBLING)


def _name_job_size(m: Numbers) -> str:
    return "GPUs and nodes" if m["cox.job.covariate"] == JOB_SIZE else "GPUs"


def _is_zero_level_strongest(m: Numbers) -> bool:
    return (m["cox.strongest.covariate"], m["cox.strongest.level"]) in (("gpu_count", "0"), ("nodes", "0"))


def _format_claim(m: Numbers, unit: str) -> str:
    units = words.plural_noun(unit)
    if m["cox.total.untested"] == m["cox.total.ratios"]:
        ratios = "[cox.total.ratios hazard ratio]"
        return f"Too few clusters to test whether {ratios} differ{'s' * (m['cox.total.ratios'] == 1)} from 1"
    if "cox.strongest.hazard_ratio" not in m:
        if m["cox.total.clear"]:
            return f"No factor with {FEWEST_FAILURES} failures or more is significantly associated with failure"
        detail = f"[cox.total.clear] of [cox.total.ratios] hazard ratios{_format_untested(m)}"
        return f"No factor is significantly associated with failure ({detail})"
    ratio = "[cox.strongest.hazard_ratio:2]"
    if _is_size_strongest(m):
        amount = "nodes" if m["cox.strongest.covariate"] == "nodes" else "GPUs"
        direction = "sooner" if m["cox.strongest.hazard_ratio"] > 1 else "later"
        effect = f"each doubling multiplies the adjusted hazard by {ratio}"
        return f"{words.capitalise(units)} on more {amount} fail {direction}: {effect}"
    if _is_zero_level_strongest(m):
        unit_name = "node" if m["cox.strongest.covariate"] == "nodes" else "GPU"
        return f"{words.capitalise(units)} without a {unit_name} have {ratio} times the adjusted hazard of those on one"
    level, reference = (quote_trace_text(m[f"cox.strongest.{name}"], LONGEST_NAME) for name in ("level", "reference"))
    factor = _format_strongest_factor(m)
    preposition = "in" if m["cox.strongest.covariate"] in LOCATIONS else "of"
    group = f"{words.capitalise(units)} {preposition} {factor} {level}"
    return f"{group} have {ratio} times the adjusted hazard of {factor} {reference}"


def _format_untested(m: Numbers) -> str:
    return ", [cox.total.untested] untested" if m["cox.total.untested"] else ""


def _format_strongest_factor(m: Numbers) -> str:
    return words.stratification_name(m["cox.strongest.covariate"]).replace("cpu", "CPU")


def _label_strongest(m: Numbers) -> str:
    if _is_size_strongest(m):
        is_total = m["cox.strongest.covariate"] == JOB_SIZE
        amount = _name_job_size(m) if is_total else _format_strongest_factor(m).replace("number of ", "")
        return f"Hazard ratio per doubling of {amount}"
    if _is_zero_level_strongest(m):
        return "Hazard ratio, none against one"
    level, reference = (quote_trace_text(m[f"cox.strongest.{name}"], LONGEST_NAME) for name in ("level", "reference"))
    return f"Hazard ratio, {level} against {reference}"


def _make_ratio_key(m: Numbers, key: str, label: str) -> Key:
    note = f"[{key}.hazard_ratio:interval]"
    # The ratio of all amounts together is no coefficient, so its p is not adjusted.
    p = next((name for name in ("p_adjusted_clustered", "p_clustered") if f"{key}.{name}" in m), None)
    if p and key == "cox.strongest":
        note += f", p [{key}.{p}:p_value]"
    return Key(label, f"[{key}.hazard_ratio]", note)


def _make_significance_key(m: Numbers) -> Key:
    cluster_note = f", clustered by {quote_trace_text(m['cox.cluster_by'])}" if "cox.cluster_by" in m else ""
    return Key(
        "Significant hazard ratios",
        f"[cox.total.clear] of [cox.total.ratios]{_format_untested(m)}",
        f"adjusted p < {SIGNIFICANCE:g}{cluster_note}",
    )


def _list_run_time_keys(m: Numbers, unit: str) -> list[Key]:
    if (key := find_strongest_correlation(m)) is None:
        return []
    _, outcome, feature, _ = key.split(".")
    outcome_verb = {"success": "succeeded", "failure": "failed"}[outcome]
    note = f"[{key}.estimate:n {unit}] that {outcome_verb}, [{key}.estimate:interval]"
    return [Key(f"Run time against {NAMES[feature]}", f"ρ = [{key}.estimate:coefficient]", note)]


def _incidence_table(trace: Trace) -> PageTable:
    known_rows = trace.table("incidence_at").filter(pl.col("incidence").is_not_null())
    frame = known_rows.group_by("event", maintain_order=True).agg(pl.col("n").first())
    columns: dict[str, Column] = {"event": None, "n": None}
    for age_s, (name, heading) in (JOB_AGES if trace.has_jobs else COMPONENT_AGES).items():
        rows = known_rows.filter(time_s=age_s)
        if not rows.height:
            break
        cells = [_format_share_with_interval(row) for row in rows.iter_rows(named=True)]
        frame = frame.join(rows.select("event", pl.Series(name, cells)), on="event", how="left", maintain_order="left")
        columns[name] = (heading, str)
    return PageTable(frame if len(columns) > 2 else frame.head(0), columns, INCIDENCE_AT)


def _incidence_bounds_table(trace: Trace) -> PageTable:
    is_bounded = (pl.col("without_end") > 0) & pl.col("incidence_low").is_not_null()
    table = trace.table("incidence_at").filter(is_bounded & pl.col("time_s").is_in(BOUNDED_AT_S))
    columns = dict.fromkeys(("time_s", "n", "without_end", "incidence_low", "incidence_high"))
    columns |= {"incidence": CLUSTERED}
    return PageTable(table, columns, INCIDENCE_AT, "event", LONGEST_REMARK)


def _format_share_with_interval(row: dict) -> str | None:
    values = (row[name] for name in ("incidence", "ci_low_clustered", "ci_high_clustered"))
    return words.interval(*(None if value is None else words.share(value) for value in values))


def _logrank_table(trace: Trace) -> PageTable:
    frame = trace.table("logrank").filter(FAILURE & (pl.col("kind") == "overall"))
    columns = dict.fromkeys(("stratum_by", "strata", "n", "events", "statistic", "df"))
    columns |= ADJUSTED | {"clusters": None, "reason": "Remark"}
    return PageTable(label_strata(frame), columns, LOGRANK, longest=LONGEST_REMARK)


def _pairs_table(trace: Trace) -> PageTable:
    pairs = trace.table("logrank").filter(FAILURE & (pl.col("kind") == "pairwise"))
    pairs = pairs.filter(pl.col("p_adjusted_clustered") < SIGNIFICANCE)
    # The statistic orders pairs even if p is too small for a number.
    pairs = pairs.sort("statistic", descending=True, maintain_order=True)
    frame = pairs.group_by("stratum_by", maintain_order=True).head(MOST_PAIRS).sort("stratum_by", maintain_order=True)
    columns = dict.fromkeys(("stratum_a", "stratum_b", "n", "events", "statistic"))
    columns |= ADJUSTED | {"clusters": None}
    return PageTable(label_strata(frame), columns, LOGRANK, "stratum_by", LONGEST_REMARK)


def _cox_table(trace: Trace) -> PageTable:
    columns = dict.fromkeys(("level", "reference", "n", "events")) | {
        "hazard_ratio": CLUSTERED,
        "p_adjusted_clustered": ADJUSTED["p_adjusted_clustered"],
        "proportionality_p": ("p, proportional", words.plain_p_value),
        "reason": "Remark",
    }
    frame = label_strata(trace.table("cox").filter(FAILURE), "covariate")
    return PageTable(frame, columns, COX, "covariate", LONGEST_REMARK)


def _delayed_entry_table(trace: Trace) -> PageTable:
    """Show the estimates with and without delayed entry, if any duration entered late."""
    summary = trace.table("survival_summary_delayed_entry").filter(FAILURE)
    if not summary.height or not summary["entered_late"].sum():
        return PageTable(summary.head(0), {}, SURVIVAL_SUMMARY_DELAYED_ENTRY)
    keys = ["stratum_by", "stratum"]
    at_95 = FAILURE & (pl.col("confidence") == 0.95)
    frame = summary.select(*keys, "n", "entered_late", late_median_s="median_s")
    for table, name in (("mttf_delayed_entry", "late_mttf_s"), ("mttf", "mttf_s")):
        mttf = trace.table(table).filter(at_95).select(*keys, pl.col("mttf_s").alias(name))
        frame = frame.join(mttf, on=keys, how="left", maintain_order="left")
    ordinary = trace.table("survival_summary").filter(FAILURE).select(*keys, "median_s")
    frame = select_largest_strata(frame.join(ordinary, on=keys, how="left", maintain_order="left"))
    columns = {
        **dict.fromkeys(("stratum", "n", "entered_late")),
        "median_s": "Median without",
        "late_median_s": ("with delayed entry", words.duration),
        "mttf_s": ("MTTF without", words.duration),
        "late_mttf_s": ("with delayed entry", words.duration),
    }
    return PageTable(label_strata(frame), columns, SURVIVAL_SUMMARY_DELAYED_ENTRY, "stratum_by", LONGEST_REMARK)

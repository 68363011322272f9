"""The section on the time to failure."""

from collections.abc import Iterator

import polars as pl

from ttf.analyses.outages.measure_availability import OUTAGE_FREE, SPANS
from ttf.analyses.time_to_failure.fit_mttf import MTTF, SURVIVAL_AT
from ttf.analyses.time_to_failure.judge_lifetimes import LIFETIME_VERDICT
from ttf.display.phrases import compare_groups, is_repaired, noun
from ttf.display.report_tables import Interval, PageTable
from ttf.display.report_trace import MOST_STRATA, Trace, label_strata, select_largest_strata
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.statement_rules import choose_shape, limit_keys, r6_ends_unknown
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.stats.durations.missing_ends import RANGE

INTERVAL = Interval(low="ci_low_clustered_s", high="ci_high_clustered_s")


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return the mean times to failure by cause over all units, and by stratum."""
    mttf = trace.table("mttf").filter(pl.col("confidence") == 0.95)
    is_failure = pl.col("event") == "failure"
    causes = mttf.filter((pl.col("stratum_by") == "all") & ~is_failure)
    strata = label_strata(select_largest_strata(mttf.filter(is_failure)))
    columns = dict.fromkeys(("stratum", "n", "events", "exposure_s", "mttf_s", "failures_per_1000_gpu_days"))
    if strata["mttf_low_s"].count():
        columns |= dict.fromkeys(RANGE)
    return {
        "causes": PageTable(causes, {"event": "Cause", "n": None, "events": None, "mttf_s": INTERVAL}, MTTF),
        "mttf": PageTable(strata, columns | {"mttf_s": INTERVAL}, MTTF, "stratum_by"),
    }


def context(trace: Trace, metrics: dict) -> dict:
    """Return what the section's template uses besides numbers: names of the charts by stratum."""
    chart_names = [name for name in trace.figures if name.startswith(("survival_by_", "mttf_by_"))]
    return {"by_stratum": chart_names, "most_strata": MOST_STRATA}


# Words on the hazard by the verdict within groups; if there is none, by the verdict over all units.
_HAZARD_IN_GROUPS = {
    "falls": "; the hazard decreases with age",
    "rises": "; the hazard increases with age",
    "stays": "; the hazard shows no change with age",
}
_HAZARD_OVER_ALL = {"falls": "; their hazard decreases, or {units} differ in risk", "rises": _HAZARD_IN_GROUPS["rises"]}
# The same for repaired units, in fewer words.
_REPAIRED_HAZARD_IN_GROUPS = {
    "falls": "; the hazard decreases after a repair",
    "rises": "; the hazard increases after a repair",
    "stays": "; the hazard shows no change",
}
_REPAIRED_HAZARD_OVER_ALL = {"falls": "; the hazard decreases, or {units} differ"}
_REPAIRED_HAZARD_OVER_ALL["rises"] = _REPAIRED_HAZARD_IN_GROUPS["rises"]


def head(trace: Trace, m: Numbers) -> Head | Line | None:
    """Return the finding on the time to failure, or a line if nothing failed."""
    unit = trace.info["unit"]
    units = words.plural_noun(unit)
    if not m.value("survival.events"):
        return Line("Time to failure", _format_no_failure(m, unit), "tables/mttf.csv")
    if r6_ends_unknown(m):
        text = "Only [mttf.events] of [without_end.failures] failures have a recorded end."
        text += " The others count only in the range, so there are no curves, no rates and no models."
        details = "ranges, counts"
        return Head(_format_claim(trace, m, units), keys=(_make_range_key(m),), text=(text,), details=details)
    charts = "MTTF by stratum" if not trace.has_jobs else "by type and size, competing risks"
    return Head(
        claim=_format_claim(trace, m, units),
        charts=("still_running",),
        keys=tuple(_iterate_key_figures(m, "after a repair" if is_repaired(trace.info) else "of age")),
        text=tuple(_iterate_paragraphs(trace, m)),
        callout=_warn_of_range(m),
        details=f"{charts}, hazard by age, models",
    )


def _format_no_failure(m: Numbers, unit: str) -> str:
    if m.value("without_end.failures"):
        return "[without_end.failures] failures, all of unknown end"
    at_risk = " in [mttf.exposure_s]" if m.value("mttf.exposure_s") else ""
    return f"no {unit} failed{at_risk}"


def _format_claim(trace: Trace, m: Numbers, units: str) -> str:
    is_falling = m.value("lifetimes.verdict") == "falls"
    if limits := limit_keys(m):
        limit_words = [f"[{key}]" for key in limits]
        manner = "in steps at the time limits" if len(limit_words) > 1 else "in a step at the time limit"
        return f"{words.capitalise(units)} fail {'early, and ' * is_falling}{manner} of {words.join_list(limit_words)}"
    hazard_in_groups, hazard_over_all = _HAZARD_IN_GROUPS, _HAZARD_OVER_ALL
    if is_repaired(trace.info):
        hazard_in_groups, hazard_over_all = _REPAIRED_HAZARD_IN_GROUPS, _REPAIRED_HAZARD_OVER_ALL
    hazard = hazard_in_groups.get(m.value("lifetimes.verdict_within"))
    hazard = (hazard or hazard_over_all.get(m.value("lifetimes.verdict"), "")).format(units=units)
    free_span = next((name for name in reversed(SPANS) if f"free.{name}.share" in m), None)
    if free_span and is_repaired(trace.info):
        share, noun_words = f"[free.{free_span}.share]", words.plural_noun(noun(OUTAGE_FREE, trace.info))
        return f"{share} of {noun_words} go {SPANS[free_span][1]} without outage from a random moment{hazard}"
    if "groups.highest.failed_share" in m:
        return compare_groups(m, units)
    noun_words = words.plural_noun(noun(SURVIVAL_AT, trace.info))
    ages = {"1h": ("1 hour", 3_600), "1d": ("1 day", 86_400)}
    if not trace.has_jobs:
        ages = {"1y": ("1 year", 31_536_000), "1d": ages["1d"]}
    for age, (name, seconds) in ages.items():
        low, high = (f"incidence.failure.{seconds}s.incidence_{end}" for end in ("low", "high"))
        if r6_ends_unknown(m) and low in m and high in m:
            return f"{m.span(low, high)} of {noun_words} fail within {name}"
        if f"survival.{age}.survival" in m:
            return f"After {name} [survival.{age}.survival] of {noun_words} have not failed{hazard}"
    if "mttf.mttf_s" in m and "mttf.range.low_s" not in m:
        return "One failure occurred per [mttf.mttf_s] at risk"
    return f"[survival.events] of [survival.n] {noun_words} failed"


def _iterate_key_figures(m: Numbers, age_words: str) -> Iterator[Key]:
    if "lifetimes.split_age_s" in m:
        for label, age in ((f"MTTF, first [lifetimes.split_age_s] {age_words}", "young"), ("MTTF, later", "old")):
            failures = f"[lifetimes.{age}_events failure]"
            if f"lifetimes.{age}_mttf_s" in m:
                yield Key(label, f"[lifetimes.{age}_mttf_s]", failures)
            else:
                yield Key(label, "not estimated", failures)
    if "mttf.range.low_s" in m:
        yield _make_range_key(m)
    elif "mttf.mttf_s" in m:
        yield Key("MTTF over all ages", "[mttf.mttf_s]", "[mttf.mttf_s:interval]")
    shape, weibull_note = choose_shape(m)
    if shape in m:
        yield Key(f"Weibull shape {weibull_note}".strip(), f"[{shape}]", f"[{shape}:interval]")


def _make_range_key(m: Numbers) -> Key:
    low, high = words.in_common_unit(m["mttf.range.high_s"], m["mttf.range.low_s"], m["mttf.range.high_s"])
    bounds = words.join_range(low, high).partition("–")
    cells = [m.tag(f"mttf.range.{bound}_s", text) for bound, text in zip(("low", "high"), bounds[::2], strict=True)]
    return Key("MTTF over all ages, range", "–".join(cells), "depends on what is not recorded")


def _iterate_paragraphs(trace: Trace, m: Numbers) -> Iterator[str]:
    units, durations = words.plural_noun(trace.info["unit"]), words.plural_noun(noun(LIFETIME_VERDICT, trace.info))
    verb, sentences = "go on" if is_repaired(trace.info) else "have not failed", []
    if is_repaired(trace.info) and "survival.1d.survival" in m:
        age, name = next(pair for pair in (("1y", "a year"), ("1d", "a day")) if f"survival.{pair[0]}.survival" in m)
        sentences.append(
            f"After a repair, [survival.{age}.survival] of "
            f"{words.plural_noun(noun(SURVIVAL_AT, trace.info))} last {name}."
        )
    if "lifetimes.largest_gap" in m:
        note = {
            False: " A single MTTF misleads little.",
            None: " There is too little data to tell whether a single MTTF misleads.",
        }.get(m.value("lifetimes.misleads_clustered"), "")
        constant = f"[lifetimes.exponential_survival] of {durations} after [lifetimes.at_s]"
        sentence = f"A constant rate (dashed) would leave {constant}"
        sentences.append(f"{sentence}; [lifetimes.km_survival] {verb}.{note}")
    if sentences:
        yield " ".join(sentences)
    if limits := limit_keys(m):
        sentence = f"The {'steps are' if len(limits) > 1 else 'step is'} {units} ended by their time limit"
        if "survival.median_s" in m and m["survival.median_s"] in [m[key] for key in limits]:
            sentence += ", so the median of [survival.median_s] is a limit, not a property of the hardware"
        yield f"{sentence}."


def _warn_of_range(m: Numbers) -> Callout | None:
    if "mttf.range.low_s" not in m:
        return None
    reason = m["mttf.range.why"].replace("{", "(").replace("}", ")")
    return Callout("care", "The MTTF is a range.", f"{words.capitalise(reason)}.")

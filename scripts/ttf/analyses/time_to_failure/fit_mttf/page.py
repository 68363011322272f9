import polars as pl

from ttf.analyses.outages.measure_availability import OUTAGE_FREE, SPANS
from ttf.analyses.time_to_failure.fit_mttf import MTTF, SURVIVAL_AT
from ttf.analyses.time_to_failure.judge_lifetimes import LIFETIME_VERDICT
from ttf.display.phrases import by_group, is_repaired, noun, own_ends, with_numbers
from ttf.display.report_tables import Interval, Shown
from ttf.display.report_trace import MOST_STRATA, Trace, largest_strata, strata_in_words
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.statement_rules import choose_shape, ends_mostly_unknown, limit_keys
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

INTERVAL = Interval(low="ci_low_clustered_s", high="ci_high_clustered_s")


def tables(trace: Trace) -> dict[str, Shown]:
    """Show the mean time to failure by cause over all units, and by stratum."""
    mttf = trace.table("mttf").filter(pl.col("confidence") == 0.95)
    is_failure = pl.col("event") == "failure"
    causes = mttf.filter((pl.col("stratum_by") == "all") & ~is_failure)
    strata = strata_in_words(largest_strata(mttf.filter(is_failure)))
    columns = dict.fromkeys(("stratum", "n", "events", "exposure_s", "mttf_s", "failures_per_1000_gpu_days"))
    return {
        "causes": Shown(causes, {"event": "Cause", "n": None, "events": None, "mttf_s": INTERVAL}, MTTF),
        "mttf": Shown(strata, columns | {"mttf_s": INTERVAL}, MTTF, "stratum_by"),
    }


def context(trace: Trace, metrics: dict) -> dict:
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


@with_numbers
def head(trace: Trace, m: Numbers) -> Head | Line | None:
    unit = trace.about["unit"]
    units = words.many(unit)
    if not m.value("survival.events", 0):
        return Line("Time to failure", _no_failure(m, unit), "tables/mttf.csv")
    if ends_mostly_unknown(m) and m.has("mttf.range.low_s"):
        text = own_ends(m).strip().replace("left out here", "in the range alone")
        details = "estimates from recorded ends"
        return Head(_claim(trace, m, units), keys=(_range_key(m),), text=(text,), details=details)
    charts = "MTTF by stratum" if not trace.has_jobs else "by type and size, competing risks"
    return Head(
        claim=_claim(trace, m, units),
        charts=("still_running",),
        keys=tuple(_keys(m, "after a repair" if is_repaired(trace.about) else "of age")),
        text=tuple(_texts(trace, m)),
        callout=_callout(m),
        details=f"{charts}, hazard by age, models",
    )


def _no_failure(m: Numbers, unit: str) -> str:
    if m.value("without_end.failures", 0):
        return "[without_end.failures] failures, all of unknown end"
    at_risk = " in [mttf.exposure_s]" if m.value("mttf.exposure_s", 0) else ""
    return f"no {unit} failed{at_risk}"


def _claim(trace: Trace, m: Numbers, units: str) -> str:
    is_falling = m.value("lifetimes.verdict", None) == "falls"
    if limits := limit_keys(m):
        limit_words = [f"[{key}]" for key in limits]
        limit = "time limits of" if len(limit_words) > 1 else "time limit of"
        manner = "early, and in steps" if is_falling else "in steps" if len(limit_words) > 1 else "in a step"
        return f"{words.capital(units)} fail {manner} at the {limit} {words.listed(limit_words)}"
    hazard_in_groups, hazard_over_all = _HAZARD_IN_GROUPS, _HAZARD_OVER_ALL
    if is_repaired(trace.about):
        hazard_in_groups, hazard_over_all = _REPAIRED_HAZARD_IN_GROUPS, _REPAIRED_HAZARD_OVER_ALL
    hazard = hazard_in_groups.get(m.value("lifetimes.verdict_within", None))
    hazard = (hazard or hazard_over_all.get(m.value("lifetimes.verdict", None), "")).format(units=units)
    free_span = next((name for name in reversed(SPANS) if m.has(f"free.{name}.share")), None)
    if free_span and is_repaired(trace.about):
        share, noun_words = f"[free.{free_span}.share]", words.many(noun(OUTAGE_FREE, trace.about))
        return f"{share} of {noun_words} go {SPANS[free_span][1]} without outage from a random moment{hazard}"
    if m.has("groups.highest.failed_share"):
        return by_group(m, units)
    noun_words = words.many(noun(SURVIVAL_AT, trace.about))
    ages = {"1h": ("1 hour", 3_600), "1d": ("1 day", 86_400)}
    if not trace.has_jobs:
        ages = {"1y": ("1 year", 31_536_000), "1d": ages["1d"]}
    for age, (name, seconds) in ages.items():
        bounds = [f"incidence.failure.{seconds}s.incidence_{end}" for end in ("low", "high")]
        if ends_mostly_unknown(m) and all(map(m.has, bounds)):
            return f"{m.span(*bounds)} of {noun_words} fail within {name}"
        if m.has(f"survival.{age}.survival"):
            return f"After {name} [survival.{age}.survival] of {noun_words} have not failed{hazard}"
    if m.has("mttf.mttf_s") and not m.has("mttf.range.low_s"):
        return "One failure occurred per [mttf.mttf_s] at risk"
    return f"[survival.events] of [survival.n] {noun_words} failed"


def _keys(m: Numbers, age_words: str):
    if m.has("lifetimes.split_age_s"):
        for label, age in ((f"MTTF, first [lifetimes.split_age_s] {age_words}", "young"), ("MTTF, later", "old")):
            failures = f"[lifetimes.{age}_events failure]"
            if m.has(f"lifetimes.{age}_mttf_s"):
                yield Key(label, f"[lifetimes.{age}_mttf_s]", failures)
            else:
                yield Key(label, "not estimated", failures)
    if m.has("mttf.range.low_s"):
        yield _range_key(m)
    elif m.has("mttf.mttf_s"):
        mttf = "[mttf.mttf_s]"
        yield Key("MTTF over all ages", mttf, m.interval("mttf.ci_{}_s", "mttf.mttf_s"))
    shape, weibull_note = choose_shape(m)
    if m.has(shape):
        yield Key(f"Weibull shape {weibull_note}".strip(), f"[{shape}]", m.interval(f"{shape}_ci_{{}}"))


def _range_key(m: Numbers) -> Key:
    low, high = words.alike(m["mttf.range.high_s"], m["mttf.range.low_s"], m["mttf.range.high_s"])
    bounds = words.span(low, high).partition("–")
    cells = [m.keyed(f"mttf.range.{bound}_s", text) for bound, text in zip(("low", "high"), bounds[::2], strict=True)]
    return Key("MTTF over all ages, range", "–".join(cells), "depends on what is not recorded")


def _texts(trace: Trace, m: Numbers):
    units, lives = words.many(trace.about["unit"]), words.many(noun(LIFETIME_VERDICT, trace.about))
    verb, sentences = "go on" if is_repaired(trace.about) else "have not failed", []
    if is_repaired(trace.about) and m.has("survival.1d.survival"):
        age, name = next(pair for pair in (("1y", "a year"), ("1d", "a day")) if m.has(f"survival.{pair[0]}.survival"))
        sentences.append(
            f"After a repair, [survival.{age}.survival] of {words.many(noun(SURVIVAL_AT, trace.about))} last {name}."
        )
    if m.has("lifetimes.largest_gap"):
        note = {
            False: " A single MTTF misleads little.",
            None: " There is too little data to tell whether a single MTTF misleads.",
        }.get(m.value("lifetimes.misleads_clustered", None), "")
        sentence = (
            f"A constant rate (dashed) would leave [lifetimes.exponential_survival] of {lives} after [lifetimes.at_s]"
        )
        sentences.append(f"{sentence}; [lifetimes.km_survival] {verb}.{note}")
    if sentences:
        yield " ".join(sentences)
    if limits := limit_keys(m):
        sentence = f"The steps are {units} ended by their time limit"
        if m.has("survival.median_s") and m["survival.median_s"] in [m[key] for key in limits]:
            sentence += ", so the median of [survival.median_s] is a limit, not a property of the hardware"
        yield f"{sentence}."


def _callout(m: Numbers) -> Callout | None:
    if not m.has("mttf.range.low_s"):
        return None
    reason = m["mttf.range.why"].replace("{", "(").replace("}", ")")
    return Callout("care", "The MTTF is a range.", f"{words.capital(reason)}.")

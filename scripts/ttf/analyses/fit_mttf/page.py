import polars as pl

from ttf import words
from ttf.analyses.fit_mttf import MTTF, SURVIVAL_AT
from ttf.analyses.judge_lifetimes import LIFETIME_VERDICT
from ttf.analyses.measure_availability import OUTAGE_FREE, SPANS
from ttf.charts.text import capital, duration, listed, plural
from ttf.page.head import Callout, Head, Key, Line
from ttf.page.numbers import Numbers
from ttf.page.phrases import is_repaired, noun, number, of_trace, own_ends, span
from ttf.page.rules import choose_shape, ends_mostly_unknown, limit_keys
from ttf.page.tables import Interval, Shown
from ttf.page.trace import MOST_STRATA, Trace, largest_strata, strata_in_words

INTERVAL = Interval(low="ci_low_clustered_s", high="ci_high_clustered_s")


def tables(trace: Trace) -> dict[str, Shown]:
    """The mean time to failure of each cause over all lives, and by stratum."""
    mttf = trace.table("mttf").filter(pl.col("confidence") == 0.95)
    of_failure = pl.col("event") == "failure"
    causes = mttf.filter((pl.col("stratum_by") == "all") & ~of_failure)
    strata = strata_in_words(largest_strata(mttf.filter(of_failure)))
    by_stratum = dict.fromkeys(("stratum", "n", "events", "exposure_s", "mttf_s", "failures_per_1000_gpu_days"))
    return {
        "causes": Shown(causes, {"event": "Cause", "n": None, "events": None, "mttf_s": INTERVAL}, MTTF),
        "mttf": Shown(strata, by_stratum | {"mttf_s": INTERVAL}, MTTF, "stratum_by"),
    }


def context(trace: Trace, metrics: dict) -> dict:
    drawn = [name for name in trace.figures if name.startswith(("survival_by_", "mttf_by_"))]
    return {"by_stratum": drawn, "most_strata": MOST_STRATA}


# What the hazard does, by the verdict within groups; where that is lacking, by the one over all.
_WITHIN = {
    "falls": "; the hazard decreases with age",
    "rises": "; the hazard increases with age",
    "stays": "; no change of hazard with age is seen",
}
_OF_ALL = {"falls": "; their hazard decreases, or {units} differ in risk", "rises": _WITHIN["rises"]}
# The same of units that are repaired, in fewer words.
_WITHIN_REPAIRED = {
    "falls": "; the hazard decreases after a repair",
    "rises": "; the hazard increases after a repair",
    "stays": "; the hazard shows no change",
}
_OF_ALL_REPAIRED = {"falls": "; the hazard decreases, or {units} differ", "rises": _WITHIN_REPAIRED["rises"]}


def head(trace: Trace, m: Numbers) -> Head | Line | None:
    unit = trace.about["unit"]
    units = plural(unit)
    if not m.value("survival.events", 0):
        return Line("Time to failure", _no_failure(m, unit), "tables/mttf.csv")
    if ends_mostly_unknown(m) and m.has("mttf.range.low_s"):
        text = own_ends(m).strip().replace("left out here", "in the range alone")
        return Head(_claim(trace, m, units), keys=(_range(m),), text=(text,), details="what the few with an end give")
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
        return f"{number(m, 'without_end.failures', words.count)} failures, all of unknown end"
    at_risk = f" in {number(m, 'mttf.exposure_s', words.duration)}" if m.value("mttf.exposure_s", 0) else ""
    return f"no {unit} failed{at_risk}"


def _claim(trace: Trace, m: Numbers, units: str) -> str:
    falls = m.value("lifetimes.verdict", None) == "falls"
    if limits := limit_keys(m):
        times = [duration(m[key]) for key in limits]
        in_hours = len(times) > 1 and all(time.endswith(" h") for time in times)
        texts = [time.removesuffix(" h") if in_hours else time for time in times]
        said = [number(m, key, text=text) for key, text in zip(limits, texts, strict=True)]
        limit = "time limits of" if len(said) > 1 else "time limit of"
        early = "early, and in steps" if falls else "in steps" if len(said) > 1 else "in a step"
        return f"{capital(units)} fail {early} at the {limit} {listed(said)}{' hours' if in_hours else ''}"
    within, of_all = (_WITHIN_REPAIRED, _OF_ALL_REPAIRED) if is_repaired(trace.about) else (_WITHIN, _OF_ALL)
    hazard = within.get(m.value("lifetimes.verdict_within", None))
    hazard = (hazard or of_all.get(m.value("lifetimes.verdict", None), "")).format(units=units)
    free = next((name for name in reversed(SPANS) if m.has(f"free.{name}.share")), None)
    if free and is_repaired(trace.about):
        share, of = number(m, f"free.{free}.share", words.share), plural(noun(OUTAGE_FREE, trace.about))
        return f"{share} of {of} go {SPANS[free][1]} without outage from a random moment{hazard}"
    if m.has("groups.highest.failed_share"):
        return by_group(m, units)
    of = plural(noun(SURVIVAL_AT, trace.about))
    ages = {"1h": ("1 hour", 3_600), "1d": ("1 day", 86_400)}
    if not trace.has_jobs:
        ages = {"1y": ("1 year", 31_536_000), "1d": ages["1d"]}
    for age, (name, seconds) in ages.items():
        bounds = [f"incidence.failure.{seconds}s.incidence_{end}" for end in ("low", "high")]
        if ends_mostly_unknown(m) and all(map(m.has, bounds)):
            return f"{span(m, *bounds, words.share)} of {of} fail within {name}"
        if m.has(f"survival.{age}.survival"):
            left = number(m, f"survival.{age}.survival", words.share)
            return f"After {name} {left} of {of} have not failed{hazard}"
    if m.has("mttf.mttf_s") and not m.has("mttf.range.low_s"):
        return f"One failure occurred per {number(m, 'mttf.mttf_s', words.duration)} at risk"
    return f"{number(m, 'survival.events', words.count)} of {number(m, 'survival.n', words.count)} {of} failed"


def by_group(m: Numbers, units: str) -> str:
    """How many had failed of the group that fails most often, and of the one that does least."""
    high, low = (of_trace(m[f"groups.{end}.name"], 24) for end in ("highest", "lowest"))
    share = number(m, "groups.highest.failed_share", words.share)
    events, n = (number(m, f"groups.lowest.{of}", words.count) for of in ("events", "n"))
    years = number(m, "groups.highest.years", words.count)
    of = m["groups.by"]
    return f"{share} of {units} of {of} {high} had failed by year {years}, {events} of {n} of {low}"


def _keys(m: Numbers, of_age: str):
    if m.has("lifetimes.split_age_s"):
        split = number(m, "lifetimes.split_age_s", words.duration)
        for label, age in ((f"MTTF, first {split} {of_age}", "young"), ("MTTF, later", "old")):
            failures = number(m, f"lifetimes.{age}_events", lambda n: words.plural(n, "failure"))
            if m.has(f"lifetimes.{age}_mttf_s"):
                yield Key(label, number(m, f"lifetimes.{age}_mttf_s", words.duration), failures)
            else:
                yield Key(label, "not estimated", failures)
    if m.has("mttf.range.low_s"):
        yield _range(m)
    elif m.has("mttf.mttf_s"):
        mttf = number(m, "mttf.mttf_s", words.duration)
        yield Key("MTTF over all ages", mttf, m.interval("mttf.ci_{}_s", "mttf.mttf_s"))
    shape, within = choose_shape(m)
    if m.has(shape):
        yield Key(f"Weibull shape {within}".strip(), number(m, shape), m.interval(f"{shape}_ci_{{}}"))


def _range(m: Numbers) -> Key:
    low, high = words.alike(m["mttf.range.high_s"], m["mttf.range.low_s"], m["mttf.range.high_s"])
    ends = words.span(low, high).partition("–")
    said = [number(m, f"mttf.range.{end}_s", text=text) for end, text in zip(("low", "high"), ends[::2], strict=True)]
    return Key("MTTF over all ages, range", "–".join(said), "depends on what is not recorded")


def _texts(trace: Trace, m: Numbers):
    units, lives = plural(trace.about["unit"]), plural(noun(LIFETIME_VERDICT, trace.about))
    go_on, first = "go on" if is_repaired(trace.about) else "have not failed", []
    if is_repaired(trace.about) and m.has("survival.1d.survival"):
        age, name = next(pair for pair in (("1y", "a year"), ("1d", "a day")) if m.has(f"survival.{pair[0]}.survival"))
        share = number(m, f"survival.{age}.survival", words.share)
        first.append(f"After a repair, {share} of {plural(noun(SURVIVAL_AT, trace.about))} last {name}.")
    if m.has("lifetimes.largest_gap"):
        constant, left = (number(m, f"lifetimes.{of}_survival", words.share) for of in ("exponential", "km"))
        after = number(m, "lifetimes.at_s", words.duration)
        misleads = {
            False: " A single MTTF misleads little.",
            None: " Whether a single MTTF misleads cannot be told.",
        }.get(m.value("lifetimes.misleads_clustered", None), "")
        would = f"A constant rate (dashed) would leave {constant} of {lives} after {after}"
        first.append(f"{would}; {left} {go_on}.{misleads}")
    if first:
        yield " ".join(first)
    if limits := limit_keys(m):
        said = f"The steps are {units} ended by their time limit"
        if m.has("survival.median_s") and m["survival.median_s"] in [m[key] for key in limits]:
            median = number(m, "survival.median_s", words.duration)
            said += f", so the median of {median} is a limit, not a property of the hardware"
        yield f"{said}."


def _callout(m: Numbers) -> Callout | None:
    if not m.has("mttf.range.low_s"):
        return None
    why = m["mttf.range.why"].replace("{", "(").replace("}", ")")
    return Callout("care", "The MTTF is a range.", f"{capital(why)}.")

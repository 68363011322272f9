"""The visible part of the section on node outages, and its tables."""

from collections.abc import Iterator

import polars as pl

from ttf.analyses.outages.measure_availability import AVAILABILITY, OUTAGE_CAUSES
from ttf.display.fault_trend import trend_in_words
from ttf.display.phrases import quote_trace_text
from ttf.display.report_tables import Interval, PageTable
from ttf.display.report_trace import Trace
from ttf.display.section_head import Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_STRATA, MOST_CAUSES = 12, 30
# The claim leads with spares if more than this many times as many are observed as for independent units.
FAIL_TOGETHER = 1.5
_KINDS = {"all": "All outages", "group": "By group", "planned": "By plan", "level": "By level of cause"}


def head(trace: Trace, m: Numbers) -> Head | Line:
    if not m.value("outages.outages"):
        units = f"of [outages.units {m['outages.unit']}] " if "outages.units" in m else ""
        return Line("Node outages", f"no outage {units}is recorded", "tables/availability.csv")
    return Head(
        claim=_format_claim(m),
        charts=("outage_causes",),
        keys=tuple(_iterate_keys(m))[:4],
        text=(summary,) if (summary := " ".join(filter(None, (trend_in_words(m), _excess_sentence(m))))) else (),
        details="by cause and group, change over time",
    )


def _format_claim(m: Numbers) -> str:
    median = "half lasted less than [outages.repair.median_s]" if "outages.repair.median_s" in m else ""
    if "outages.down_share" not in m:
        recorded = "[outages.outages outage is|outages are] recorded"
        burst = next((f"{text} {location}" for location, text, _ in _iterate_bursts(m)), "")
        return "; ".join(filter(None, (recorded, median or burst)))
    unit, share = m["outages.unit"], "[outages.down_share:near_zero]"
    down = f"{words.capitalise(unit)}s were down {share} of the time"
    if m.value("spares.p99.observed", 0) > FAIL_TOGETHER * m.value("spares.p99.binomial", 0):
        spares = (
            f"[spares.p99.observed] spares cover 99% of the time, [spares.p99.binomial] if {unit}s failed independently"
        )
        return f"{spares}; {unit}s were down {share}"
    return f"{down}, in [outages.outages outage]{f'; {median}' if median else ''}"


def _iterate_bursts(m: Numbers) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Yield (phrase, clause, (share, note)) for racks, then nodes, where outages follow others more than by chance."""
    for location in ("rack", "node"):
        key = f"bursts.{location}.30_min"
        if m.value(f"{key}.is_burst"):
            interval = f"[{key}.share:interval], " if f"{key}.ci_low_clustered" in m else ""
            share = f"[{key}.share]"
            yield (
                f"in the same {location} within 30 min",
                f"{share} have another",
                (share, f"{interval}by chance [{key}.chance]"),
            )


def _iterate_keys(m: Numbers) -> Iterator[Key]:
    unit = m["outages.unit"]
    if "outages.up.availability" in m:
        yield Key("Availability", "[outages.up.availability:near_one]", _format_availability_interval(m))
    for label, key in ((f"Outage of a {unit} every", "between.mtbf_s"), ("Mean repair", "repair.mttr_s")):
        key = f"outages.{key}"
        if key in m:
            yield Key(label, f"[{key}]", f"[{key}:interval]")
    if "outages.down_share" not in m:
        yield from (Key(f"Another {location}", *texts) for location, _, texts in _iterate_bursts(m))
    if "spares.p99.observed" in m:
        yield Key("Spares for 99% of time", "[spares.p99.observed]", _spares_note(m))
    elif "outages.most.level.name" in m:
        yield Key(
            "Most time down",
            quote_trace_text(m["outages.most.level.name"], 24),
            "[outages.most.level.downtime_share] of it",
        )


def _format_availability_interval(m: Numbers) -> str:
    for kind in ("_clustered", ""):
        if f"outages.up.ci_low{kind}" in m:
            bounds = (words.near_one(m[f"outages.up.ci_{bound}{kind}"]) for bound in ("low", "high"))
            return f"95% CI {words.join_range(*bounds)}{'' if kind else ', exponential times'}"
    return "no interval"


def _spares_note(m: Numbers) -> str:
    low, high = (m.value(f"spares.p99.{bound}") for bound in ("low", "high"))
    interval = (
        "" if low is None or high is None else f"95% CI {words.join_range(words.count(low), words.count(high))}; "
    )
    return f"{interval}binomial [spares.p99.binomial]"


def _excess_sentence(m: Numbers) -> str:
    if not m.value("drains.listed"):
        return ""
    return (
        f"[drains.listed] of [drains.nodes] nodes {'has' if m['drains.listed'] == 1 else 'have'} "
        "excess outages ([drains.share_of_outages] of all)."
    )


def lines(trace: Trace, m: Numbers) -> list[Line]:
    if "outages.units" in m or not m.value("outages.outages"):
        return []
    reason = "the number of watched units is not known"
    reason += "; repairs are known" if m["outages.repairs"] else ", nor when outages ended"
    return [Line("Availability, time between outages", reason, "tables/availability.csv", checked=False)]


def tables(trace: Trace) -> dict[str, PageTable]:
    strata = trace.table("availability").filter((pl.col("outages") > 0) | (pl.col("stratum_by") == "all"))
    groups = strata.sort("outages", descending=True, maintain_order=True).group_by("stratum_by", maintain_order=True)
    top_strata = strata.join(groups.head(MOST_STRATA), on=["stratum_by", "stratum"], how="semi", maintain_order="left")
    under_way = ["under_way"] if top_strata["under_way"].sum() else []
    columns = {"stratum": ("Stratum", None)} | dict.fromkeys(("units", "outages", *under_way, "open"), None)
    columns |= {
        "mtbf_s": Interval(low="mtbf_ci_low_clustered_s", high="mtbf_ci_high_clustered_s"),
        "mttr_s": Interval(low="mttr_ci_low_s", high="mttr_ci_high_s"),
        **dict.fromkeys(("repair_median_s", "repair_p90_s"), None),
        "availability": Interval(worded=words.near_one, low="availability_ci_low", high="availability_ci_high"),
    }
    present = {name: column for name, column in columns.items() if top_strata[name].count()}
    labelled = top_strata.with_columns(pl.col("stratum_by").replace_strict(_KINDS))
    causes = trace.table("outage_causes").filter(pl.col("depth") != "all").head(MOST_CAUSES)
    labelled_causes = causes.with_columns(depth=pl.format("By {}", "depth"))
    cause_columns = [name for name in ("level", "class", "cause") if causes[name].count()]
    cause_columns += ["events", "share", "downtime_share", "repair_mean_s", "repair_median_s", "planned"]
    return {
        "availability": PageTable(labelled, present, AVAILABILITY, "stratum_by"),
        "outage-causes": PageTable(labelled_causes, cause_columns, OUTAGE_CAUSES, "depth"),
    }

"""What stands open of node outages, and their tables."""

import polars as pl

from ttf.analyses.outages.follow_outages.page import trend_in_words
from ttf.analyses.outages.measure_availability import AVAILABILITY, OUTAGE_CAUSES
from ttf.display.phrases import of_trace, with_numbers
from ttf.display.report_tables import Interval, Shown
from ttf.display.report_trace import Trace
from ttf.display.section_head import Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_STRATA, MOST_CAUSES = 12, 30
# Spares by what was observed, over those of units that fail independently, from which on they lead.
FAIL_TOGETHER = 1.5
_KINDS = {"all": "All outages", "group": "By group", "planned": "By plan", "level": "By level of cause"}


@with_numbers
def head(trace: Trace, m: Numbers) -> Head | Line:
    if not m.value("outages.outages", 0):
        units = f"of [outages.units {m['outages.unit']}] " if m.has("outages.units") else ""
        return Line("Node outages", f"no outage {units}is recorded", "tables/availability.csv")
    return Head(
        claim=_claim(m),
        charts=("outage_causes",),
        keys=tuple(_keys(m))[:4],
        text=(text,) if (text := " ".join(filter(None, (trend_in_words(m), _excess(m))))) else (),
        details="by cause and group, change over time",
    )


def _claim(m: Numbers) -> str:
    outages = "[outages.outages outage]"
    half = ""
    if m.has("outages.repair.median_s"):
        half = "half lasted less than [outages.repair.median_s]"
    if not m.has("outages.down_share"):
        recorded = f"{outages} {'are' if m['outages.outages'] > 1 else 'is'} recorded"
        near = next((f"{said} {where}" for where, said, _ in _near(m)), "")
        return "; ".join(filter(None, (recorded, half or near)))
    unit, share = m["outages.unit"], "[outages.down_share:near_zero]"
    down = f"{words.capital(unit)}s were down {share} of the time"
    if m.value("spares.p99.observed", 0) > FAIL_TOGETHER * m.value("spares.p99.binomial", 0):
        together = (
            f"[spares.p99.observed] spares cover 99% of the time, [spares.p99.binomial] if {unit}s failed independently"
        )
        return f"{together}; {unit}s were down {share}"
    return f"{down}, in {outages}{f'; {half}' if half else ''}"


def _near(m: Numbers):
    """Place, share of outages with another there within half an hour, and the most that chance and drift give; the
    widest place first."""
    for place in ("rack", "node"):
        key = f"bursts.{place}.30_min"
        if m.value(f"{key}.is_burst", False):
            interval = f"{m.interval(key + '.ci_{}')}, " if m.has(f"{key}.ci_low_clustered") else ""
            share = f"[{key}.share]"
            yield (
                f"in the same {place} within 30 min",
                f"{share} have another",
                (share, f"{interval}by chance [{key}.chance]"),
            )


def _keys(m: Numbers):
    unit = m["outages.unit"]
    if m.has("outages.up.availability"):
        yield Key("Availability", "[outages.up.availability:near_one]", _about_availability(m))
    for label, key in ((f"Outage of a {unit} every", "between.mtbf_s"), ("Mean repair", "repair.mttr_s")):
        key = f"outages.{key}"
        if m.has(key):
            yield Key(label, f"[{key}]", _about_time(m, key))
    if not m.has("outages.down_share"):
        yield from (Key(f"Another {where}", *said) for where, _, said in _near(m))
    if m.has("spares.p99.observed"):
        yield Key("Spares for 99% of time", "[spares.p99.observed]", _about_spares(m))
    elif m.has("outages.most.level.name"):
        yield Key(
            "Most time down",
            of_trace(m["outages.most.level.name"], 24),
            "[outages.most.level.downtime_share] of it",
        )


def _about_availability(m: Numbers) -> str:
    """Its interval: the clustered one, or that of few units."""
    for kind in ("_clustered", ""):
        if m.has(f"outages.up.ci_low{kind}"):
            ends = (words.near_one(m[f"outages.up.ci_{end}{kind}"]) for end in ("low", "high"))
            return f"95% CI {words.span(*ends)}{'' if kind else ', exponential times'}"
    return "no interval"


def _about_time(m: Numbers, key: str) -> str:
    ends = f"{key.rpartition('.')[0]}.ci_{{}}_s"
    known = m.has(ends.format("low_clustered")) or m.has(ends.format("low"))
    return m.interval(ends, key) if known else "no interval"


def _about_spares(m: Numbers) -> str:
    low, high = (m.value(f"spares.p99.{end}", None) for end in ("low", "high"))
    ends = "" if low is None or high is None else f"95% CI {words.span(words.count(low), words.count(high))}; "
    return f"{ends}binomial [spares.p99.binomial]"


def _excess(m: Numbers) -> str:
    """How many nodes stand out, by the room that ranks them."""
    if not m.value("drains.listed", 0):
        return ""
    return (
        f"[drains.listed] of [drains.nodes] nodes {'has' if m['drains.listed'] == 1 else 'have'} "
        "excess outages ([drains.share_of_outages] of all)."
    )


@with_numbers
def lines(trace: Trace, m: Numbers) -> list[Line]:
    if m.has("outages.units") or not m.value("outages.outages", 0):
        return []
    why = "no one knows how many units were watched"
    why += "; repairs are known" if m["outages.repairs"] else ", or when outages ended"
    return [Line("Availability, time between outages", why, "tables/availability.csv", checked=False)]


def tables(trace: Trace) -> dict[str, Shown]:
    every = trace.table("availability").filter((pl.col("outages") > 0) | (pl.col("stratum_by") == "all"))
    most = every.sort("outages", descending=True, maintain_order=True).group_by("stratum_by", maintain_order=True)
    kept = every.join(most.head(MOST_STRATA), on=["stratum_by", "stratum"], how="semi", maintain_order="left")
    under_way = ["under_way"] if kept["under_way"].sum() else []
    columns = {"stratum": ("Stratum", None)} | dict.fromkeys(("units", "outages", *under_way, "open"), None)
    columns |= {
        "mtbf_s": Interval(low="mtbf_ci_low_clustered_s", high="mtbf_ci_high_clustered_s"),
        "mttr_s": Interval(low="mttr_ci_low_s", high="mttr_ci_high_s"),
        **dict.fromkeys(("repair_median_s", "repair_p90_s"), None),
        "availability": Interval(worded=words.near_one, low="availability_ci_low", high="availability_ci_high"),
    }
    present = {name: column for name, column in columns.items() if kept[name].count()}
    named = kept.with_columns(pl.col("stratum_by").replace_strict(_KINDS))
    causes = trace.table("outage_causes").filter(pl.col("depth") != "all").head(MOST_CAUSES)
    depths = causes.with_columns(depth=pl.format("By {}", "depth"))
    of_causes = [name for name in ("level", "class", "cause") if causes[name].count()]
    of_causes += ["events", "share", "downtime_share", "repair_mean_s", "repair_median_s", "planned"]
    return {
        "availability": Shown(named, present, AVAILABILITY, "stratum_by"),
        "outage-causes": Shown(depths, of_causes, OUTAGE_CAUSES, "depth"),
    }

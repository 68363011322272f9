"""How often are units down, for how long, what for, and what share of the time are they up?"""

from collections.abc import Callable

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered
from ttf.engine.contract import REASON, Column, count, name, number, seconds, share, table, text, whole_seconds, words

OUTAGE_CAUSES = table(
    "outage_causes",
    "A cause that records of outages name, at one of four depths: all, a level, a class of it, a cause of that.",
    depth=words("Depth", "all, level, class or cause where records name one; of each the 500 with most records."),
    **{
        "level": words("Level", "The widest word for the cause.", "the depth is all, or the records name none"),
        "class": words(
            "Class", "The part, or the kind of work.", "the depth is all or level, or the records name none"
        ),
        "cause": text("Cause", "In the words of the trace.", "the depth is another, or the records name none"),
    },
    events=count("Records", "Records of outages, also those that overlap in one outage.", unit="records"),
    share=share("Share", "Of all records."),
    downtime_s=whole_seconds("Time down", "Sum of their durations, open ones up to when they were last seen."),
    downtime_share=share("of time down", "Of that of all records.", REASON),
    repair_mean_s=seconds("Mean repair", "Time down over the records that have ended.", REASON),
    repair_median_s=seconds("Median repair", "Kaplan-Meier, open records censored.", REASON),
    repair_p90_s=seconds("90% repaired by", "Kaplan-Meier, open records censored.", REASON),
    planned=count("Planned", "Those of them that somebody scheduled.", unit="records"),
)


def _mean(name: str, heading: str, about: str) -> dict[str, Column]:
    """The columns of a mean time between outages, with exact and clustered ends."""
    return {
        f"{name}_s": seconds(heading, about, REASON),
        f"{name}_ci_low_s": seconds("95% from", "Garwood's interval; without an outage a one-sided bound.", REASON),
        f"{name}_ci_high_s": seconds("95% to", "Upper end of Garwood's interval.", REASON),
        f"{name}_ci_low_clustered_s": seconds("from, clustered", "Lower end that holds when units differ.", REASON),
        f"{name}_ci_high_clustered_s": seconds("to, clustered", "Upper end of it.", REASON),
    }


def _ends(of: str, kind: Callable[..., Column], names: str) -> dict[str, Column]:
    """The columns of the ends of an interval that holds when units differ."""
    return {
        names.format("low"): kind("95% from", f"Lower end of {of} that holds when units differ.", REASON),
        names.format("high"): kind("95% to", "Upper end of it.", REASON),
    }


def _per_1000(heading: str, about: str) -> Column:
    return number(heading, about, REASON, "per 1000 unit-days")


AVAILABILITY = table(
    "availability",
    "Units that were watched, or some of them, or their outages of one kind: time between, time to repair, share up.",
    stratum_by=words("Strata", "all; planned and level divide the outages, group the units."),
    stratum=name(
        "Stratum", "The value that those of the row have of it; of levels the 20 with most outages.", by="stratum_by"
    ),
    unit=words("Unit", "What is counted: node or unit."),
    units=count("Units", "Units watched.", REASON, "units"),
    exposure_s=whole_seconds("Watched", "Sum of the time in which the units were watched, down or up.", REASON),
    down_s=whole_seconds("Time down", "Time down of these outages, while watched; of open ones too."),
    down_share=share("Time down", "Over the time watched.", REASON, n="outages"),
    outages=count("Outages", "Outages that began while the unit was watched.", unit="outages"),
    under_way=count(
        "Under way",
        "Outages under way when the watch of their unit began: in the time down and the mean repair, not among the "
        "outages and in no other time to repair.",
        unit="outages",
    ),
    **_mean("mtbf", "Mean time between outages", "Time watched over outages: from start to start."),
    **_mean("mttf", "Mean time to failure", "Time watched and not down by these outages over outages."),
    repairs=count("Repairs", "Outages that ended while the unit was watched, also those under way.", unit="repairs"),
    mttr_s=seconds("Mean repair", "Time down over repairs, so that open outages count.", REASON),
    **_ends("the mean repair", seconds, "mttr_ci_{}_s"),
    repair_median_s=seconds("Median repair", "Of the outages by Kaplan-Meier, open ones censored.", REASON),
    repair_p90_s=seconds("90% repaired by", "Of the outages by Kaplan-Meier, open ones censored.", REASON),
    repair_restricted_mean_s=seconds("Restricted mean repair", "Mean time down up to the horizon.", REASON),
    repair_horizon_s=whole_seconds("Horizon", "30 days, or the longest time down seen if shorter.", REASON),
    open=count("Open", "Those of the outages of which no end was written.", unit="outages"),
    availability=share("Availability", "One less time down over time watched.", REASON),
    **_ends("the availability", share, "availability_ci_{}"),
    availability_method=words(
        "Method", "clustered (by unit), or of few units: exponential up and down times.", "there is no interval"
    ),
    records=count(
        "Faults", "Records that began while watched, but for those that go on or repeat another.", unit="records"
    ),
    records_per_1000_unit_days=_per_1000("Faults per 1000 unit-days", "These records over time watched."),
    records_ci_low=_per_1000("95% from", "Lower end of Garwood's interval."),
    records_ci_high=_per_1000("95% to", "Upper end of it; without a record a one-sided bound."),
    records_ci_low_clustered=_per_1000("from, clustered", "Lower end that holds when units differ."),
    records_ci_high_clustered=_per_1000("to, clustered", "Upper end of it."),
    cluster_by=words("Clustered by", "What fails alike: node, unit or system, and week where these count."),
    clusters=number("Effective clusters", "Kish's effective number of them, by the time watched."),
)
# The spans (s) for which units go without an outage, by their part of a key, and their words.
SPANS = {"1d": (86_400, "a day"), "1w": (604_800, "a week"), "30d": (2_592_000, "a month")}
SPANS["1y"] = (31_536_000, "a year")
_NO_PERIOD = "the trace gives more than outages"
OUTAGES_SUMMARY = table(
    "outages_summary",
    "All outages, and the time of a trace that gives nothing else.",
    outages=count("Outages", "All of them.", unit="outages"),
    units_with_outage=count("Units with an outage", "Of those watched or not.", unit="units", n="outages"),
    units_watched=count("Units watched", "Of which that is known.", "nobody knows which were watched", "units"),
    from_s=whole_seconds("From", "Begin of the first, on the clock of the trace.", _NO_PERIOD),
    to_s=whole_seconds("To", "When the last was seen to go on.", _NO_PERIOD),
    days=count("Days", "Between the two, rounded up.", _NO_PERIOD, "days"),
)
OUTAGE_FREE = table(
    "outage_free",
    "A span: the share of units that have no outage for so long from a random moment at which they are up.",
    span_s=whole_seconds("Span", "A day, a week, 30 days, 365 days."),
    n=count("Units", "Units that were up at some moment and watched for the span from it on.", unit="units"),
    moments_s=whole_seconds("Moments", "Time of all such moments, of all units together."),
    share=share(
        "Free of outage", "Part of these moments after which no outage, planned or not, began by then.", REASON
    ),
    **clustered(share),
)


def _coarser_than_units(trace) -> str | None:
    """What lives are clustered by where that is coarser than a unit: intervals of outages go by the same."""
    clusters = list(trace.format.get("clusters", {}))
    return clusters[0] if len(clusters) > 1 else None


ANALYSIS = Analysis(
    question="How often are nodes down, for how long, what for, and what share of the time are they up?",
    theme="outages",
    rank=10,
    needs=["outages", "outage_records"],
    uses=["exposure"],
    settings={
        "block_days": "inference/block_days",
        "cluster_by": _coarser_than_units,
        "is_all": lambda trace: "lives" not in trace.products,
    },
    tables=[OUTAGE_CAUSES, AVAILABILITY, OUTAGES_SUMMARY, OUTAGE_FREE],
    charts={"outage_causes": "outage_causes"},
    main=["outage_causes"],
    sections=["outages"],
    memory_mb=800,
)

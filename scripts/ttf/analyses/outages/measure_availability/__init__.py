"""How often are units down, for how long, why, and what share of the time are they up?"""

from collections.abc import Callable

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns
from ttf.engine.contract import REASON, Column, count, name, number, seconds, share, table, text, whole_seconds, words

OUTAGE_CAUSES = table(
    "outage_causes",
    "A cause of outage records, at one of four depths: all, a level, a class of that level, a cause of that class.",
    depth=words("Depth", "all, level, class or cause, if records name one; the 500 most frequent of each."),
    **{
        "level": words("Level", "The broadest category of the cause.", "the depth is all, or the records name none"),
        "class": words(
            "Class", "The component, or the kind of work.", "the depth is all or level, or the records name none"
        ),
        "cause": text("Cause", "As recorded in the trace.", "the depth is not cause, or the records name none"),
    },
    events=count("Records", "Outage records, including those that overlap in one outage.", unit="records"),
    share=share("Share", "Of all records."),
    downtime_s=whole_seconds("Time down", "Sum of their durations; open ones until they were last seen."),
    downtime_share=share("of time down", "Of the time down of all records.", REASON),
    repair_mean_s=seconds("Mean repair", "Time down over the records that have ended.", REASON),
    repair_median_s=seconds("Median repair", "Kaplan-Meier, open records censored.", REASON),
    repair_p90_s=seconds("90% repaired by", "Kaplan-Meier, open records censored.", REASON),
    planned=count("Planned", "Scheduled outages among these records.", unit="records"),
)


def _mean_columns(name: str, heading: str, description: str) -> dict[str, Column]:
    return {
        f"{name}_s": seconds(heading, description, REASON),
        f"{name}_ci_low_s": seconds("95% from", "Garwood's interval; without an outage a one-sided bound.", REASON),
        f"{name}_ci_high_s": seconds("95% to", "Upper bound of Garwood's interval.", REASON),
        f"{name}_ci_low_clustered_s": seconds("from, clustered", "Lower bound that holds when units differ.", REASON),
        f"{name}_ci_high_clustered_s": seconds("to, clustered", "Upper bound that holds when units differ.", REASON),
    }


def _interval_columns(measure: str, make_column: Callable[..., Column], names: str) -> dict[str, Column]:
    return {
        names.format("low"): make_column("95% from", f"Lower bound of {measure} that holds when units differ.", REASON),
        names.format("high"): make_column("95% to", "Upper bound that holds when units differ.", REASON),
    }


def _rate_column(heading: str, description: str) -> Column:
    return number(heading, description, REASON, "per 1000 unit-days")


AVAILABILITY = table(
    "availability",
    "All watched units, a group of them, or their outages of one kind: time between outages, repair time, share up.",
    stratum_by=words("Strata", "all; planned and level divide the outages, group divides the units."),
    stratum=name(
        "Stratum", "The value that defines the stratum; only the 20 levels with the most outages.", by="stratum_by"
    ),
    unit=words("Unit", "Kind of unit that is counted: node or unit."),
    units=count("Units", "Units watched.", REASON, "units"),
    exposure_s=whole_seconds("Watched", "Total time that the units were watched, up or down.", REASON),
    down_s=whole_seconds("Time down", "Time down in these outages while watched, including open ones."),
    down_share=share("Time down", "Over the time watched.", REASON, n="outages"),
    outages=count("Outages", "Outages that began while the unit was watched.", unit="outages"),
    under_way=count(
        "Under way",
        "Outages under way when the watch of their unit began. They count in the time down and the mean repair only.",
        unit="outages",
    ),
    **_mean_columns("mtbf", "Mean time between outages", "Time watched over outages, from start to start."),
    **_mean_columns("mttf", "Mean time to failure", "Time watched and not down in these outages, over outages."),
    repairs=count("Repairs", "Outages, also those under way, that ended while watched.", unit="repairs"),
    mttr_s=seconds("Mean repair", "Time down over repairs, so open outages count too.", REASON),
    **_interval_columns("the mean repair", seconds, "mttr_ci_{}_s"),
    repair_median_s=seconds("Median repair", "Kaplan-Meier, open outages censored.", REASON),
    repair_p90_s=seconds("90% repaired by", "Kaplan-Meier, open outages censored.", REASON),
    repair_restricted_mean_s=seconds("Restricted mean repair", "Mean time down up to the horizon.", REASON),
    repair_horizon_s=whole_seconds("Horizon", "30 days, or the longest time down seen if shorter.", REASON),
    open=count("Open", "Outages without a recorded end.", unit="outages"),
    availability=share("Availability", "One minus time down over time watched.", REASON),
    **_interval_columns("the availability", share, "availability_ci_{}"),
    availability_method=words(
        "Method", "clustered (by unit); for few units: exponential up and down times.", "there is no interval"
    ),
    records=count(
        "Faults", "Records that began while watched, except continuations and repeats of others.", unit="records"
    ),
    records_per_1000_unit_days=_rate_column("Faults per 1000 unit-days", "These records over time watched."),
    records_ci_low=_rate_column("95% from", "Lower bound of Garwood's interval."),
    records_ci_high=_rate_column("95% to", "Upper bound; without a record a one-sided bound."),
    records_ci_low_clustered=_rate_column("from, clustered", "Lower bound that holds when units differ."),
    records_ci_high_clustered=_rate_column("to, clustered", "Upper bound that holds when units differ."),
    cluster_by=words("Clustered by", "Units of correlated failures: node, unit or system, and week if weeks count."),
    clusters=number("Effective clusters", "Kish's effective number of clusters, by the time watched."),
)
# Spans without an outage (s) and their labels, by the part of a key that names them.
SPANS = {"1d": (86_400, "a day"), "1w": (604_800, "a week"), "30d": (2_592_000, "a month")}
SPANS["1y"] = (31_536_000, "a year")
_NO_PERIOD = "the trace records more than outages"
OUTAGES_SUMMARY = table(
    "outages_summary",
    "All outages, and the period of a trace that records nothing else.",
    outages=count("Outages", "All of them.", unit="outages"),
    units_with_outage=count("Units with an outage", "Units with an outage, watched or not.", unit="units", n="outages"),
    units_watched=count("Units watched", "Units known to be watched.", "watched units are not known", "units"),
    from_s=whole_seconds("From", "Start of the first outage, on the clock of the trace.", _NO_PERIOD),
    to_s=whole_seconds("To", "When the last outage was last seen.", _NO_PERIOD),
    days=count("Days", "Between the two, rounded up.", _NO_PERIOD, "days"),
)
OUTAGE_FREE = table(
    "outage_free",
    "A span: the share of units that have no outage for that long, from a random moment at which they are up.",
    span_s=whole_seconds("Span", "A day, a week, 30 days, 365 days."),
    n=count("Units", "Units that were up at some moment and watched for the whole span after it.", unit="units"),
    moments_s=whole_seconds("Moments", "Total time of all such moments of all units."),
    share=share("Free of outage", "Share of these moments with no outage, planned or not, within the span.", REASON),
    **clustered_columns(share),
)


def _level_above_units(trace) -> str | None:
    """Return the cluster level of durations if it is coarser than a unit: intervals of outages use the same one."""
    clusters = list(trace.format.get("clusters", {}))
    return clusters[0] if len(clusters) > 1 else None


ANALYSIS = Analysis(
    question="How often are nodes down, for how long, why, and what share of the time are they up?",
    theme="outages",
    rank=10,
    needs=["outages", "outage_records"],
    uses=["exposure"],
    settings={
        "block_days": "inference/block_days",
        "cluster_by": _level_above_units,
        "is_all": lambda trace: "durations" not in trace.products,
    },
    tables=[OUTAGE_CAUSES, AVAILABILITY, OUTAGES_SUMMARY, OUTAGE_FREE],
    charts={"outage_causes": "outage_causes"},
    main=["outage_causes"],
    sections=["outages"],
    memory_mb=800,
)

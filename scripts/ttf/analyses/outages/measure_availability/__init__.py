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
        "class": words("Class", "Failed component or kind of maintenance.", "depth is all or level, or none is named"),
        "cause": text("Cause", "As recorded in the trace.", "the depth is not cause, or the records name none"),
    },
    events=count("Records", "Outage records, including those that overlap in one outage.", unit="records"),
    share=share("Share", "Share of all records."),
    downtime_share=share("of time down", "Share of the downtime of all records.", REASON),
    repair_mean_s=seconds("Mean repair", "Downtime per ended record.", REASON),
    repair_median_s=seconds("Median repair", "Kaplan-Meier, open records censored.", REASON),
    repair_p90_s=seconds("90% repaired by", "Kaplan-Meier, open records censored.", REASON),
    planned=count("Planned", "Scheduled outages among these records.", unit="records"),
)


def _mean_columns(name: str, heading: str, description: str) -> dict[str, Column]:
    """Return the columns of a mean time (s) with its exact and clustered bounds."""
    return {
        f"{name}_s": seconds(heading, description, REASON),
        f"{name}_ci_low_s": seconds(
            "95% from", "Lower bound of Garwood's interval; one-sided without an outage.", REASON
        ),
        f"{name}_ci_high_s": seconds("95% to", "Upper bound of Garwood's interval.", REASON),
        f"{name}_ci_low_clustered_s": seconds("from, clustered", "Lower bound of the clustered interval.", REASON),
        f"{name}_ci_high_clustered_s": seconds("to, clustered", "Upper bound of the clustered interval.", REASON),
    }


def _interval_columns(measure: str, make_column: Callable[..., Column], names: str) -> dict[str, Column]:
    """Return the columns of the clustered bounds of a measure. names: their names, with {} for low or high."""
    return {
        names.format("low"): make_column("95% from", f"Lower bound of the clustered 95% CI of {measure}.", REASON),
        names.format("high"): make_column("95% to", "Upper bound of the clustered interval.", REASON),
    }


def _rate_column(heading: str, description: str) -> Column:
    return number(heading, description, REASON, "per 1000 unit-days")


AVAILABILITY = table(
    "availability",
    "All watched units, a group of them, or their outages of one kind: time between outages, repair time, share up. "
    "Records of a unit that overlap or touch are one outage, so repair times differ from those of single records.",
    stratum_by=words("Strata", "all; planned and level divide the outages, group divides the units."),
    stratum=name("Stratum", "Value that defines the stratum; only the 20 levels with most outages.", by="stratum_by"),
    unit=words("Unit", "Kind of unit: node or unit."),
    units=count("Units", "Observed units.", REASON, "units"),
    exposure_s=whole_seconds("Watched", "Total observed time of the units, up or down.", REASON),
    down_s=whole_seconds("Time down", "Time down within the observed time, including open outages."),
    down_share=share("Time down", "Time down as a share of the observed time.", REASON, n="outages"),
    outages=count("Outages", "Outages that began while the unit was observed.", unit="outages"),
    under_way=count(
        "Under way",
        "Outages open when observation began; they count in time down and mean repair only.",
        unit="outages",
    ),
    **_mean_columns("mtbf", "Mean time between outages", "Observed time per outage, so from start to start."),
    **_mean_columns("mttf", "Mean time to failure", "Uptime per outage."),
    repairs=count("Repairs", "Outages that ended while the unit was observed.", unit="repairs"),
    mttr_s=seconds("Mean repair", "Time down per repair; open outages count too.", REASON),
    **_interval_columns("the mean repair", seconds, "mttr_ci_{}_s"),
    repair_median_s=seconds("Median repair", "Kaplan-Meier, open outages censored.", REASON),
    repair_p90_s=seconds("90% repaired by", "Kaplan-Meier, open outages censored.", REASON),
    repair_restricted_mean_s=seconds(
        "Restricted mean repair", "Mean repair time, each repair cut at the horizon.", REASON
    ),
    repair_horizon_s=whole_seconds("Horizon", "30 days, or the longest repair if that is shorter.", REASON),
    repair_longest_share=share(
        "Longest tenth", "Share of the time down in the longest tenth of the outages.", "fewer than ten, or none lasts"
    ),
    open=count("Open", "Outages without a recorded end.", unit="outages"),
    availability=share("Availability", "Share of the observed time in which units were up.", REASON),
    **_interval_columns("the availability", share, "availability_ci_{}"),
    availability_method=words(
        "Method", "clustered by unit, or, with few units, exponential up and down times.", "there is no interval"
    ),
    records=count(
        "Faults", "Records that began while their unit was observed, without continuations and repeats.", unit="records"
    ),
    records_per_1000_unit_days=_rate_column("Faults per 1000 unit-days", "Records per 1000 days of observed time."),
    records_ci_low=_rate_column("95% from", "Lower bound of Garwood's interval."),
    records_ci_high=_rate_column("95% to", "Upper bound of Garwood's interval; one-sided without a record."),
    records_ci_low_clustered=_rate_column("from, clustered", "Lower bound of the clustered interval."),
    records_ci_high_clustered=_rate_column("to, clustered", "Upper bound of the clustered interval."),
    cluster_by=words("Clustered by", "Kind of clusters, such as node and week."),
    clusters=number("Effective clusters", "Kish's effective number of clusters, by observed time."),
)
# Spans without an outage (s) and their labels, by the part of a key that names them.
SPANS = {"1d": (86_400, "a day"), "1w": (604_800, "a week"), "30d": (2_592_000, "a month")}
SPANS["1y"] = (31_536_000, "a year")
_NO_PERIOD = "the trace records more than outages"
OUTAGES_SUMMARY = table(
    "outages_summary",
    "All outages, and the period of a trace that records nothing else.",
    outages=count("Outages", "All outages.", unit="outages"),
    units_with_outage=count(
        "Units with an outage", "Units with an outage, including unobserved ones.", unit="units", n="outages"
    ),
    outages_outside=count(
        "Outside", "Outages while their unit was not observed.", "watched units are unknown", "outages"
    ),
    from_s=whole_seconds("From", "Start of the first outage, on the clock of the trace.", _NO_PERIOD),
    to_s=whole_seconds("To", "Time at which the last outage was last seen.", _NO_PERIOD),
    days=count("Days", "Days from the first outage to the last, rounded up.", _NO_PERIOD, "days"),
)
OUTAGE_FREE = table(
    "outage_free",
    "A span: the share of units that have no outage for that long, from a random moment at which they are up.",
    span_s=whole_seconds("Span", "A day, a week, 30 days, 365 days."),
    n=count("Units", "Units that were up at a moment and observed for the whole span after it.", unit="units"),
    moments_s=whole_seconds("Moments", "Total length of these moments over all units."),
    share=share("Free of outage", "Share of these moments after which the whole span has no outage.", REASON),
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

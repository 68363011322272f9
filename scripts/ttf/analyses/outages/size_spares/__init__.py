"""How many units are down at once, and how many spares does a run of N nodes need?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, Column, count, name, number, share, table, truth, whole_seconds, words

STRATUM = {
    "stratum_by": words("Strata", "Column that divides the units: all (none) or group."),
    "stratum": name("Stratum", "Value of that column.", by="stratum_by"),
    "outages": words("Outages", "all, or unplanned: scheduled outages are excluded."),
}
FLEET = {
    "n": count("n", "Outages that began while the unit was observed.", unit="outages"),
    "units": number("Units", "Mean number of units observed at once.", REASON, "units"),
}

UNITS_DOWN = table(
    "units_down",
    "One row per number of units down at once: its share of the time, observed and for independent units.",
    **STRATUM,
    down=count("Down", "Units down at once.", REASON, "units"),
    time_s=whole_seconds("Time", "Time with exactly this many down.", REASON),
    time_share=share("Share of the time", "Share of the observed time with exactly this many down.", REASON),
    cumulative=share("At most", "Share of the time with at most this many down.", REASON),
    binomial=share("Binomial", "Share of the time for independent units (binomial).", REASON),
    binomial_cumulative=share("At most, binomial", "Share of the time with at most this many down (binomial).", REASON),
    **FLEET,
    fleet=words("Fleet", "Number of units; if it varies, the binomial is a mixture over time.", REASON),
)
SPARES = table(
    "spares",
    "One row per share of the time: the fewest spares that cover the units down for that share.",
    **STRATUM,
    p=share("Share of the time", "Share of the time that the spares must cover."),
    spares_binomial=count("Binomial", "Fewest spares that suffice if units fail independently.", REASON, "units"),
    spares_observed=count("Observed", "Fewest spares that suffice in the observed time.", REASON, "units"),
    observed_low=count("95% from", "Lower bound of the 95% CI, clustered by block.", REASON, "units"),
    observed_high=count("95% to", "Upper bound of the interval.", REASON, "units"),
    spares_added=count(
        "Beside", "Fewest spares besides the needed units, if units fail independently.", REASON, "units"
    ),
    short_share=share("Short", "Share of the time with more units down than the binomial spares cover.", REASON),
    **FLEET,
    block_s=whole_seconds("Block", "A week (inference.block_days), or the length of four outages if longer.", REASON),
    blocks=count("Blocks", "Blocks in which any unit was observed.", REASON, "blocks"),
)

WEEK_HOURS = 168
_RUN = {
    "stratum": words("Units", "all, or the group with the most observed time, because a run uses one group.", REASON),
    "gpus": count("GPUs", "GPUs of the run.", "the GPUs of a node are not known, or the column reason says why"),
    "nodes": count("Nodes", "Nodes that the run uses.", REASON, "nodes"),
    "hours": count("Hours", "Length of the run.", REASON, "h"),
}
_METHOD = {
    "way": words(
        "Way",
        "Method. exponential: formula; observed: independent nodes with up and repair times drawn from the trace; "
        "weeks: resampled days or weeks of the trace, all nodes together.",
        REASON,
    )
}
_LARGEST = "Whether the row is a week of the largest run that every method covers,"
_NO_ERROR = "it is not simulated, all runs were equal, or the column reason says why"


def _columns_with_se(name: str, heading: str, description: str) -> dict[str, Column]:
    return {
        name: share(heading, description, REASON),
        f"{name}_se": share("Standard error", "Standard error of the simulation.", _NO_ERROR),
    }


CAPACITY = table(
    "capacity",
    "A run, a number of spare nodes, a length and a method: what the run can expect. Planned outages count too.",
    **_RUN,
    spares=count("Spares", "Spare nodes.", REASON, "nodes"),
    **_METHOD,
    **_columns_with_se("p_no_interruption", "Without interruption", "Probability that no node of the run goes down."),
    **_columns_with_se("p_never_short", "Never short", "Probability that the nodes down never exceed the spares."),
    full_share=share("All nodes up", "Share of the time with enough nodes up for the run; not simulated.", REASON),
    capacity_share=share("Capacity", "Node-hours available to the run divided by node-hours needed.", REASON),
    simulations=count("Simulations", "Number of simulated runs.", _NO_ERROR),
    largest=truth("Largest", f"{_LARGEST} with the fewest spares."),
)
SPARES_NEEDED = table(
    "spares_needed",
    "A run, a length, a probability and a method: the fewest spares with which the run is never short.",
    **_RUN,
    target=share("Probability", "Required probability that the spares suffice at all times.", REASON),
    **_METHOD,
    spares=count("Spares", "Fewest spare nodes.", REASON, "nodes"),
    **_columns_with_se("p_never_short", "Never short", "Probability that these spares suffice at all times."),
    largest=truth("Largest", f"{_LARGEST} at the highest probability."),
)

ANALYSIS = Analysis(
    question="How many units are down at once, and how many spares does a run of N nodes need?",
    theme="outages",
    rank=20,
    needs=["outages", "exposure"],
    uses=["node_failure_rate"],
    settings={
        **{name: f"outages/{name}" for name in ("spare_targets", "spares", "simulations", "seed")},
        "block_days": "inference/block_days",
        "sizes": "ettr/gpus",
    },
    tables=(UNITS_DOWN, SPARES, CAPACITY, SPARES_NEEDED),
    charts={"units_down": ["units_down", "spares", "availability"]},
    sections=["spares", "capacity"],
    in_size_unit=True,
    memory_mb=500,
)

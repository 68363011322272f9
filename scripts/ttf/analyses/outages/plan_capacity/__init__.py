"""What can a run of so many nodes expect with so many spares, and how many spares does it take?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, share, table, truth, words

WEEK_HOURS = 168
_RUN = {
    "stratum": words("Units", "all, or the group with the most time watched, as a run lies in one group.", REASON),
    "gpus": count("GPUs", "GPUs of the run.", "the GPUs of a node are not known, or the column reason says why"),
    "nodes": count("Nodes", "Nodes that the run takes.", REASON, "nodes"),
    "hours": count("Hours", "How long it is to last.", REASON, "h"),
}
_WAY = {
    "way": words(
        "Way",
        "exponential: by formula; observed: independent nodes with up and repair times drawn from the trace; "
        "weeks: days or weeks of the trace, of all nodes together, resampled.",
        REASON,
    )
}
_LARGEST = "Whether it is a week of the largest run that every way can be asked about,"
_ERROR = "it is no simulation, all runs were alike, or the column reason says why"


def _estimate(name: str, heading: str, about: str) -> dict:
    return {
        name: share(heading, about, REASON),
        f"{name}_se": share("Standard error", "Of the simulation.", _ERROR),
    }


CAPACITY = table(
    "capacity",
    "A run, a number of spare nodes, a length of time and a way to reckon: how it fares. Planned outages count too.",
    **_RUN,
    spares=count("Spares", "Nodes beside those of the run.", REASON, "nodes"),
    **_WAY,
    **_estimate(
        "p_no_interruption", "Without interruption", "P(no node of the run goes down in that time; no spares)."
    ),
    **_estimate("p_never_short", "Never short", "P(at no moment of it are more nodes down than there are spares)."),
    **_estimate("full_share", "All nodes up", "Share of the time with as many nodes up as the run takes."),
    **_estimate("capacity_share", "Capacity", "Node-hours available to the run over those it asks for."),
    simulations=count("Simulations", "Runs simulated.", _ERROR),
    largest=truth("Largest", f"{_LARGEST} with the fewest spares."),
)
SPARES_NEEDED = table(
    "spares_needed",
    "A run, a length of time, a probability and a way to reckon: the fewest spares with which it is never short.",
    **_RUN,
    target=share("Probability", "With which the run is to be never short.", REASON),
    **_WAY,
    spares=count("Spares", "The fewest nodes beside those of the run.", REASON, "nodes"),
    **_estimate("p_never_short", "Never short", "P(never short) with so many."),
    largest=truth("Largest", f"{_LARGEST} at the highest probability."),
)

ANALYSIS = Analysis(
    question="What can a run of so many nodes expect with so many spares, and how many spares does it take?",
    theme="outages",
    rank=60,
    needs=["outages", "exposure"],
    uses=["node_failure_rate"],
    settings={
        **{name: f"outages/{name}" for name in ("spare_targets", "spares", "simulations", "seed")},
        "sizes": "ettr/gpus",
    },
    tables=(CAPACITY, SPARES_NEEDED),
    sections=["capacity"],
    keeps_freed_memory=True,
    in_size_unit=True,
    memory_mb=500,
)

"""What can a run of N nodes with spare nodes expect, and how many spares does it need?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, Column, count, share, table, truth, words

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
    question="What can a run of N nodes with spare nodes expect, and how many spares does it need?",
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

"""Do units fail together, and do they fail again soon after a repair?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns
from ttf.engine.contract import REASON, count, number, share, table, truth, whole_seconds, words

_CLUSTERED = clustered_columns(share)


BURSTS = table(
    "bursts",
    "For a location and a window, the unplanned outages with another one at the same location within the window.",
    location=words("Location", "The same unit, another unit of the node, or another node of the rack, group or fleet."),
    window_s=whole_seconds("Window", "Time before or after the outage."),
    n=count("n", "Unplanned outages with a known location that began while their unit was observed.", unit="outages"),
    near=count("With another near", "Outages with another at the location within the window.", REASON, "outages"),
    share=share("Share", "Share of the outages with another one near.", REASON),
    **_CLUSTERED,
    chance=share(
        "By chance", "Largest mean share among the simulations: exchanged, shifted and jittered times.", REASON
    ),
    is_burst=truth("In bursts", "Whether the share exceeds the upper bounds of all three simulations.", REASON),
    simulations=count("Simulations", "Simulations of each kind.", REASON),
    chain_share=share(
        "In chains", "Share of the outages in chains, where each is within the window of the next.", REASON
    ),
    longest_chain=count("Longest chain", "Number of outages in the longest chain.", REASON, "outages"),
)
AGAIN_AFTER_REPAIR = table(
    "again_after_repair",
    "Repairs after which the unit was down again within a given time.",
    "repairs",
    within_s=whole_seconds("Within", "Time after the repair."),
    repairs=count("Repairs", "Ends of unplanned outages after which the unit was observed for this time.", REASON),
    again=count("Down again", "Repairs after which an unplanned outage began within this time.", REASON),
    observed=share("Observed", "Share of the repairs that an outage followed.", REASON),
    **_CLUSTERED,
    expected_fleet=share("Expected, fleet", "Expected share if all units fail at one constant rate.", REASON),
    expected_own=share("Expected, own rate", "Expected share if each unit fails at its own constant rate.", REASON),
)
OUTAGE_COUNTS = table(
    "outage_counts",
    "Spread of unplanned outages over periods of one length, including periods without any.",
    period_s=whole_seconds("Period", "Length of a period."),
    periods=count("Periods", "Whole periods in the observed time.", REASON),
    n=count("n", "Unplanned outages that began in these periods.", REASON, "outages"),
    mean=number("Mean", "Mean of the counts.", REASON, "outages"),
    dispersion=number(
        "Dispersion", "Variance divided by mean; 1 if outages are independent at a constant rate.", REASON
    ),
    most=count("Most", "Most outages in one period.", REASON, "outages"),
)

ANALYSIS = Analysis(
    question="Do units fail together, and do they fail again soon after a repair?",
    theme="outages",
    rank=40,
    needs=["outages"],
    uses=["exposure"],
    settings={name: f"outages/{name}" for name in ("seed", "simulations", "jitter_s")},
    tables=(BURSTS, AGAIN_AFTER_REPAIR, OUTAGE_COUNTS),
    charts={"bursts": "bursts"},
    sections=["bursts"],
    memory_mb=600,
)

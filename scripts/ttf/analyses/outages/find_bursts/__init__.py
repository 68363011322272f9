"""Do units fail together, and do they fail again soon after a repair?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered
from ttf.engine.contract import REASON, Column, count, number, share, table, truth, whole_seconds, words

_CLUSTERED = clustered(share)


def _null(name: str, heading: str, moved: str) -> dict[str, Column]:
    """The columns of the share when outages are moved at random, with the ends of 95% of the simulations."""
    return {
        name: share(heading, f"What it is on average when {moved}.", REASON),
        f"{name}_low": share("95% from", "Lower end of 95% of these.", REASON),
        f"{name}_high": share("95% to", "Upper end of them.", REASON),
    }


BURSTS = table(
    "bursts",
    "A place and a window: unplanned outages that have another of the same place so near, before or after.",
    within=words("Within", "The same unit; another unit of its node; another node of its rack, group or of the fleet."),
    window_s=whole_seconds("Window", "To either side."),
    n=count("n", "Unplanned outages that began while their unit was watched, with a known place.", unit="outages"),
    near=count("With another near", "Those with another one of the place within the window.", REASON, "outages"),
    share=share("Share", "Of n.", REASON),
    **_CLUSTERED,
    null_uniform=share("Uniform", "What it would be if the others fell anywhere in the time watched.", REASON),
    **_null("null_permuted", "Times exchanged", "outages, of one kind where kinds are known, exchange times"),
    **_null("null_shifted", "Shifted", "the history of each other member is shifted at random, in a ring"),
    **_null("null_jittered", "Jittered", "each outage is moved by up to outages.jitter_s either way: drift stays"),
    chance=share("By chance", "The highest mean of exchanged, shifted and jittered times.", REASON),
    is_burst=truth("In bursts", "Whether the share is above the upper end of each of these.", REASON),
    simulations=count("Simulations", "Of each way.", REASON),
    chain_share=share(
        "In chains", "Of n, those in chains of two or more in the place with gaps to the window.", REASON
    ),
    longest_chain=count("Longest chain", "The most outages in such a chain, of one unit too.", REASON, "outages"),
)
AGAIN_AFTER_REPAIR = table(
    "again_after_repair",
    "A time after a repair: repairs after which the unit was down again by then.",
    "repairs",
    within_s=whole_seconds("Within", "Of the repair."),
    repairs=count("Repairs", "Ends of unplanned outages after which the unit was watched for so long.", REASON),
    again=count("Down again", "Those after which an unplanned outage began by then.", REASON),
    observed=share("Observed", "Down again over repairs.", REASON),
    **_CLUSTERED,
    expected_fleet=share("Expected, fleet", "At the failure rate of all units while up, constant.", REASON),
    expected_own=share("Expected, own rate", "If the unit's other outages fell anywhere in its time up.", REASON),
)
OUTAGE_COUNTS = table(
    "outage_counts",
    "A length of time: how evenly unplanned outages are spread over periods so long, those without any counted too.",
    period_s=whole_seconds("Period", "Its length."),
    periods=count("Periods", "Whole ones in the time watched.", REASON),
    n=count("n", "Unplanned outages that began in them.", REASON, "outages"),
    mean=number("Mean", "Of the counts.", REASON, "outages"),
    variance=number("Variance", "Of the counts.", REASON),
    dispersion=number("Dispersion", "Variance over mean; 1 if outages are independent at a constant rate.", REASON),
    most=count("Most", "In one period.", REASON, "outages"),
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

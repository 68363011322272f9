"""How many units are down at once, and how many spares does that take?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, name, number, share, table, whole_seconds, words

STRATUM = {
    "stratum_by": words("Strata", "What the units are divided by: all (not at all) or group."),
    "stratum": name("Stratum", "The value that the units of the row have of it.", by="stratum_by"),
    "outages": words("Outages", "all, or unplanned: those that somebody scheduled are left out."),
}
FLEET = {
    "n": count("n", "Outages that began while their unit was watched.", unit="outages"),
    "units": number("Units", "Mean number of units watched at once.", REASON, "units"),
}

UNITS_DOWN = table(
    "units_down",
    "A number of units down at once: for how much of the time, and what independent units would give.",
    **STRATUM,
    down=count("Down", "Units down at once.", REASON, "units"),
    time_s=whole_seconds("Time", "For how long just so many were down.", REASON),
    time_share=share("Share of the time", "The same over the time in which any unit was watched.", REASON),
    cumulative=share("At most", "Share of the time with so many down or fewer.", REASON),
    binomial=share("Binomial", "What the share of the time would be of independent units, each down as often.", REASON),
    binomial_cumulative=share("At most, binomial", "Share with so many down or fewer, of the same.", REASON),
    **FLEET,
    fleet=words("Fleet", "One number of units, or several: then a mixture of binomials, each for its time.", REASON),
)
SPARES = table(
    "spares",
    "A share of the time, and the smallest number of spares with which no more units than spares are down for so long.",
    **STRATUM,
    p=share("Share of the time", "For which at most so many units are to be down."),
    spares_binomial=count(
        "Binomial", "Spares among the units if they are independent, each down as often.", REASON, "units"
    ),
    spares_observed=count(
        "Observed", "Spares among the units by the time in which so many were down.", REASON, "units"
    ),
    observed_low=count("95% from", "Lower end of the observed, blocks of the trace being clusters.", REASON, "units"),
    observed_high=count("95% to", "Upper end of it.", REASON, "units"),
    spares_simulated=count(
        "Simulated", "Spares of independent units with up and repair times drawn from those observed.", REASON, "units"
    ),
    spares_beside=count("Beside", "Spares beside as many units that are all needed, if independent.", REASON, "units"),
    short_share=share("Short", "Share of the time in which more were down than the binomial spares.", REASON),
    **FLEET,
    block_s=whole_seconds("Block", "A week (inference.block_days), or four outages under way if longer.", REASON),
    blocks=count("Blocks", "Those in which any unit was watched.", REASON, "blocks"),
)

ANALYSIS = Analysis(
    question="How many units are down at once, and how many spares does that take?",
    theme="outages",
    rank=20,
    needs=["outages", "exposure"],
    settings={"seed": "outages/seed", "block_days": "inference/block_days"},
    tables=(UNITS_DOWN, SPARES),
    charts={"units_down": ["units_down", "spares"]},
    sections=["spares"],
    memory_mb=350,
)

"""How many units are down at once, and how many spares does that take?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, name, number, share, table, whole_seconds, words

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
    spares_simulated=count(
        "Simulated", "Fewest spares that suffice in a simulation of independent units.", REASON, "units"
    ),
    spares_added=count(
        "Beside", "Fewest spares besides the needed units, if units fail independently.", REASON, "units"
    ),
    short_share=share("Short", "Share of the time with more units down than the binomial spares cover.", REASON),
    **FLEET,
    block_s=whole_seconds("Block", "A week (inference.block_days), or the length of four outages if longer.", REASON),
    blocks=count("Blocks", "Blocks in which any unit was observed.", REASON, "blocks"),
)

ANALYSIS = Analysis(
    question="How many units are down at once, and how many spares does that take?",
    theme="outages",
    rank=20,
    needs=["outages", "exposure"],
    settings={"seed": "outages/seed", "block_days": "inference/block_days"},
    tables=(UNITS_DOWN, SPARES),
    charts={"units_down": ["units_down", "spares", "availability"]},
    sections=["spares"],
    memory_mb=350,
)

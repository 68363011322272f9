"""Claims about LANL's outages: each quantity of a trace of two systems and three nodes."""

import polars as pl
from outage_traces import make_outages
from tested_claims import check_computed, claims_of
from ttf.analyses.outages.measure_availability.compute import availability
from ttf.analyses.time_to_failure.fit_mttf.compute import lifetime_models
from ttf.page.replication.scorecard import scorecard
from ttf.raw.raw_contracts import ROW_ACCOUNT
from ttf.stats.durations.strata import CountedDurations

# Repairs last 0.5 and 1.5 hours in system a, 30 hours in system b.
OUTAGES = {"a/1": [(100, 1900), (9_000, 14_400)], "a/2": [], "b/1": [(500, 108_500)]}
# Each time to failure is ten times the previous one.
DURATIONS = pl.DataFrame({"duration_s": [1, 10, 100, 1_000, 10_000], "event": ["failure"] * 5})


def tables() -> dict[str, pl.DataFrame]:
    outages, records, exposure = make_outages(OUTAGES, 1_000_000)
    group = pl.col("unit_id").str.head(1)
    table = availability(*(frame.with_columns(group=group) for frame in (outages, records, exposure)), 7)
    return {
        "availability": table,
        "lifetime_models": lifetime_models(CountedDurations(DURATIONS, ["failure"]), "failure", ["all"]),
        "row_account": ROW_ACCOUNT.frame([dict(zip(ROW_ACCOUNT.columns, ("outages", 5, 4, 1), strict=True))]),
    }


def test_the_quantity_of_each_claim():
    frames = tables()
    check_computed("lanl", scorecard(claims_of(__file__), {"lanl": ["lanl"]}, lambda _, name: frames[name]))

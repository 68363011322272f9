"""Claims about LANL's outages: each quantity on two systems of three nodes, worked out by hand."""

import polars as pl
import pytest
from of_claims import CLAIMS
from outage_traces import made
from ttf.analyses.outages.measure_availability.compute import availability
from ttf.analyses.time_to_failure.fit_mttf.lifetimes import lifetime_models
from ttf.page.replication.scorecard import scorecard
from ttf.raw.raw_contracts import ROW_ACCOUNT
from ttf.stats.durations.strata import CountedLives

MINE = [claim for claim in CLAIMS if claim["id"].startswith("lanl-")]
# Repairs of half an hour and an hour and a half in one system, of 30 hours in the other.
OUTAGES = {"a/1": [(100, 1900), (9_000, 14_400)], "a/2": [], "b/1": [(500, 108_500)]}
# Times to failure, each ten times the one before.
LIVES = pl.DataFrame({"duration_s": [1, 10, 100, 1_000, 10_000], "event": ["failure"] * 5})


def tables() -> dict[str, pl.DataFrame]:
    outages, records, exposure = made(OUTAGES, 1_000_000)
    group = pl.col("unit_id").str.head(1)
    found = availability(*(frame.with_columns(group=group) for frame in (outages, records, exposure)), 7)
    return {
        "availability": found,
        "lifetime_models": lifetime_models(CountedLives(LIVES, ["failure"]), "failure", ["all"]),
        "row_account": ROW_ACCOUNT.frame([dict(zip(ROW_ACCOUNT.columns, ("outages", 5, 4, 1), strict=True))]),
    }


ANSWERS = {
    "lanl-failures": 5,
    "lanl-systems": 2,
    "lanl-nodes": 3,
    "lanl-repair-shortest": 1,
    "lanl-repair-longest": 30,
}


@pytest.fixture(scope="module")
def found():
    made_tables = tables()
    return {
        row["id"]: row for row in scorecard(MINE, ["lanl"], lambda _, name: made_tables[name]).iter_rows(named=True)
    }


def test_the_quantity_of_each_claim(found):
    computed = {id: row["computed"] for id, row in found.items()}
    shape = computed.pop("lanl-hazard")
    assert computed == pytest.approx(ANSWERS)
    # It solves the equation of the likelihood: the weighted mean of log times less their mean is its inverse.
    powers = [10 ** (k * shape) for k in range(5)]
    weighted = sum(k * power for k, power in enumerate(powers)) / sum(powers)
    assert 2.302585 * (weighted - 2) == pytest.approx(1 / shape, rel=1e-5)


def test_a_bound_is_kept_or_not(found):
    verdicts = {id: row["verdict"] for id, row in found.items()}
    assert (verdicts["lanl-hazard"], verdicts["lanl-repair-longest"]) == ("reproduced", "reproduced")
    assert verdicts["lanl-repair-shortest"] == "differs", "an hour is not less than an hour"

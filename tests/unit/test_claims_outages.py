"""The shares of InfiniteHBD's faults: each quantity on a handful of records, counted by hand."""

from pathlib import Path

import polars as pl
import pytest
from claims_tested import ELSEWHERE
from of_claims import CLAIMS
from outage_traces import made
from ttf.analyses.outages.measure_availability.compute import causes
from ttf.page.replication.scorecard import scorecard
from ttf.records.outages.outage_causes import with_rules
from ttf.records.outages.outage_records import outages_of

BEGINNINGS = tuple(begin for begin, file in ELSEWHERE.items() if file == Path(__file__).name)
MINE = [claim for claim in CLAIMS if claim["id"].startswith(BEGINNINGS)]
WANTED = [claim["quantity"]["where"] for claim in MINE]


def records() -> pl.DataFrame:
    """Of each cause that is asked for as many faults as its place in the list, an hour apart."""
    rows, at = [], 0
    for place, where in enumerate((where for where in WANTED if "class" in where), start=1):
        for _ in range(place):
            rows.append(("a", at, at + 60, where["level"], where["class"], "any"))
            at += 3600
    return pl.DataFrame(rows, schema=["unit_id", "start_s", "end_s", "level", "class", "cause"], orient="row")


@pytest.mark.parametrize("claim", MINE, ids=lambda claim: claim["id"])
def test_the_quantity_of_each_claim(claim):
    faults = records()
    _, _, exposure = made({"a": []}, 3600 * faults.height)
    outages, of_records = outages_of("t", with_rules(faults, []), exposure)
    (row,) = scorecard([claim | {"trace": "t"}], ["t"], lambda *_: causes(outages, of_records)).iter_rows(named=True)
    asked = {name: value for name, value in claim["quantity"]["where"].items() if name != "depth"}
    meant = [fault for fault in faults.to_dicts() if asked.items() <= fault.items()]
    assert row["computed"] == pytest.approx(len(meant) / faults.height)
    assert len(MINE) == 25

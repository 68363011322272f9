"""The shares of InfiniteHBD's faults: each quantity on a few records, counted by hand."""

import polars as pl
import pytest
from claims_tested import claims_of
from outage_traces import make_outages
from ttf.analyses.outages.measure_availability.compute import causes
from ttf.page.replication.scorecard import scorecard
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import merge_records

FAULT_CLAIMS = claims_of(__file__)
CLAIM_FILTERS = [claim["quantity"]["where"] for claim in FAULT_CLAIMS]


def records() -> pl.DataFrame:
    """One fault of the first claimed cause, two of the second and so on, each an hour apart."""
    rows, start_s = [], 0
    for count, criteria in enumerate((criteria for criteria in CLAIM_FILTERS if "class" in criteria), start=1):
        for _ in range(count):
            rows.append(("a", start_s, start_s + 60, criteria["level"], criteria["class"], "any"))
            start_s += 3600
    return pl.DataFrame(rows, schema=["unit_id", "start_s", "end_s", "level", "class", "cause"], orient="row")


@pytest.mark.parametrize("claim", FAULT_CLAIMS, ids=lambda claim: claim["id"])
def test_the_quantity_of_each_claim(claim):
    faults = records()
    _, _, exposure = make_outages({"a": []}, 3600 * faults.height)
    outages, raw_records = merge_records("t", apply_rules(faults, []), exposure)
    (row,) = scorecard([claim | {"trace": "t"}], ["t"], lambda *_: causes(outages, raw_records)).iter_rows(named=True)
    criteria = {name: value for name, value in claim["quantity"]["where"].items() if name != "depth"}
    if claim["id"] == "infinitehbd-faults":
        assert row["computed"] == faults.height
        return
    matches = [fault for fault in faults.to_dicts() if criteria.items() <= fault.items()]
    assert row["computed"] == pytest.approx(len(matches) / faults.height)
    assert len(FAULT_CLAIMS) == 26

"""The shares of InfiniteHBD's faults: each quantity on a few records."""

import polars as pl
from outage_traces import make_outages
from tested_claims import check_computed, claims_of
from ttf.analyses.outages.measure_availability.compute import causes
from ttf.page.replication.scorecard import scorecard
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import merge_records

FAULT_CLAIMS = claims_of(__file__)


def records() -> pl.DataFrame:
    """One fault of the first claimed cause, two of the second and so on, each an hour apart."""
    rows, start_s = [], 0
    filters = [claim["quantity"]["where"] for claim in FAULT_CLAIMS]
    for count, criteria in enumerate((criteria for criteria in filters if "class" in criteria), start=1):
        for _ in range(count):
            rows.append(("a", start_s, start_s + 60, criteria["level"], criteria["class"], "any"))
            start_s += 3600
    return pl.DataFrame(rows, schema=["unit_id", "start_s", "end_s", "level", "class", "cause"], orient="row")


def test_the_quantity_of_each_claim():
    faults = records()
    _, _, exposure = make_outages({"a": []}, 3600 * faults.height)
    table = causes(*merge_records("t", apply_rules(faults, []), exposure))
    check_computed(
        "outages", scorecard([claim | {"of": "t"} for claim in FAULT_CLAIMS], {"t": ["t"]}, lambda *_: table)
    )

"""The published findings on occupancy: their quantities on a micro-trace, worked out by hand."""

import pytest
from made_placements import found, nodes_of, placed
from of_claims import CLAIMS
from ttf.page.replication.scorecard import scorecard

# Three servers of 8 GPUs, 24 in all. From 0 to 1000 there are 8 in use of x, 6 of y and 1 of z, 62.5 % of all; from
# 1000 to 3000 8 of x and 8 of y, two thirds; then 8 of x alone.
HELD = [
    ("a", "x", 0, 3000, 8000),
    ("b", "y", 0, 1000, 6000),
    ("c", "z", 0, 1000, 1000),
    ("d", "y", 1000, 2000, 4000),
    ("e", "y", 1000, 2500, 4000),
    ("f", "y", 2000, 3000, 2000),
    ("g", "y", 2000, 3000, 2000),
    ("h", "y", 2500, 3000, 4000),
    ("i", "x", 3000, 4000, 8000),
]
TABLES = found(placed(HELD), nodes=nodes_of(x=8, y=8, z=8))
# At 60 to 70 % for 3000 s, and for 2000 of them one of three servers is empty.
ANSWERS = {"philly-occupancy-empty": 2 / 9}
COMPUTABLE = [claim for claim in CLAIMS if claim["id"].startswith("philly-occupancy-")]


@pytest.mark.parametrize("claim", COMPUTABLE, ids=lambda claim: claim["id"])
def test_the_quantity_of_each_claim(claim):
    (row,) = scorecard([claim], [claim["trace"]], lambda _, name: TABLES[name]).iter_rows(named=True)
    assert row["computed"] == pytest.approx(ANSWERS[claim["id"]], rel=1e-12), row

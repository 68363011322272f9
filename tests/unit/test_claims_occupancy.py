"""Published findings on occupancy: their quantities on a small trace, worked out by hand."""

import pytest
from made_placements import compute_occupancy, make_nodes, make_placements
from tested_claims import claims_of
from ttf.page.replication.scorecard import scorecard

# Three servers of 8 GPUs. GPUs in use: 8 on x, 6 on y and 1 on z (62.5 %) from 0 to 1000, 8 on x and 8 on y
# (two thirds) from 1000 to 3000, then 8 on x.
ALLOCATIONS = [
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
TABLES = compute_occupancy(make_placements(ALLOCATIONS), nodes=make_nodes(x=8, y=8, z=8))


def test_the_share_of_empty_servers():
    """Occupancy is 60 to 70 % for 3000 s. During 2000 s of them one of three servers is empty."""
    table = scorecard(claims_of(__file__), {"philly": ["philly"]}, lambda _, name: TABLES[name])
    assert table["computed"].to_list() == pytest.approx([2 / 9], rel=1e-12)

"""How far a failure rate is projected, a measured size against the others, and the headlines that follow."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from ttf.analyses.scaling.measure_sizes.sizes import SUMS_SCHEMA, mttf_by_gpus, node_failure_rate
from ttf.stats.large_runs.projection import buckets, reach_of

DAY = 86_400


def sums(*rows):
    return pl.DataFrame(rows, schema=SUMS_SCHEMA, orient="row")


def law(verdict, basis="state", reason=None):
    rows = [{"basis": basis, "verdict": None, "reason": None}, {"basis": basis, "verdict": verdict, "reason": reason}]
    return pl.DataFrame(rows, schema={"basis": pl.String, "verdict": pl.String, "reason": pl.String})


ROWS = sums((1, 90, 40, 90 * DAY), (4, 50, 60, 40 * DAY), (60, 20, 10, 3 * DAY), (128, 9, 9, DAY))


@pytest.mark.parametrize(
    ("verdict", "basis", "nodes", "words"),
    [
        ("agrees", "proxy", 0, "infrastructure failures are not distinguished from others"),
        ("rejected", "event", 0, "does not fall as 1/N"),
        (None, "component", 64, "could not be tested (one size only)"),
        ("too few failures to tell", "state", 64, "could not be tested (one size only)"),
        ("agrees", "state", 512, "no further than 4 times the largest run"),
    ],
)
def test_a_projection_goes_as_far_as_it_can_be_defended(verdict, basis, nodes, words):
    reach = reach_of(ROWS, law(verdict, basis, "one size only"))
    assert (reach.largest_run, reach.nodes) == (128, nodes)
    assert words in reach.reason and reach.needed


def test_a_rate_says_how_far_it_goes_and_the_table_stops_there():
    told = law("too few failures to tell", "state", None)
    rate = node_failure_rate(ROWS, "state", 8, "trace", 0, reach_of(ROWS, told))
    assert rate["projects_to_nodes"].to_list() == [64, 64] and rate["largest_run_nodes"].to_list() == [128, 128]
    table = mttf_by_gpus(ROWS, rate, 8)
    projected = table.filter(pl.col("projected_mttf_s").is_not_null())
    assert projected["gpus_high"].max() == 512
    beyond = table.filter(pl.col("gpus_low") > 512)
    assert beyond["projected_low_s"].count() == 0
    assert beyond["reason"].str.contains("could not be tested (too few failures to tell)", literal=True).all()


def test_nothing_of_a_toy_is_a_rate():
    """259,000 failures per 1,000 node-days stood for 3 failures in 1,000 s."""
    toy = sums((1, 5, 3, 1000))
    rate = node_failure_rate(toy, "state", 8, "trace", 0, reach_of(toy, law("agrees")))
    assert rate["failures_per_1000_node_days"].to_list() == rate["ci_high"].to_list() == [None, None]
    assert set(rate["reason"]) == {"less than one node-day: no rate per node-day"}
    assert mttf_by_gpus(toy, rate, 8)["projected_low_s"].count() == 0


def test_a_size_is_held_against_the_others_exactly():
    """As SciPy's binomial test of the failures of a size among all, by its share of the node-days."""
    table = mttf_by_gpus(ROWS, node_failure_rate(ROWS, "state", 8, "trace", 0, reach_of(ROWS, law("agrees"))), 8)
    row = table.filter(gpus_low=257).row(0, named=True)
    node_days, total = np.array([90, 160, 180, 128]), 119
    share = 180 / node_days.sum()
    assert row["expected_failures"] == pytest.approx(109 * 180 / (node_days.sum() - 180))
    tails = (stats.binomtest(10, total, share, way).pvalue for way in ("less", "greater"))
    assert row["p_value"] == pytest.approx(min(1, 2 * min(tails)), rel=1e-9)
    assert table.filter(pl.col("jobs") == 0)["p_value"].count() == 0
    alone = mttf_by_gpus(sums((2, 9, 4, 5 * DAY)), node_failure_rate(*_alone()), 8)
    assert alone["p_value"].count() == 0, "nothing to hold it against"


def _alone():
    one = sums((2, 9, 4, 5 * DAY))
    return one, "state", 8, "trace", 0, reach_of(one, law(None, reason="one size only"))


def test_under_one_rate_the_test_rejects_as_often_as_it_says():
    rng = np.random.default_rng(12)
    reach, low = reach_of(ROWS, law("agrees")), 0
    for _ in range(400):
        sizes = ((1, 400), (4, 90), (64, 5))
        told = sums(*((nodes, 9, int(rng.poisson(0.05 * nodes * days)), days * DAY) for nodes, days in sizes))
        table = mttf_by_gpus(told, node_failure_rate(told, "state", 8, "trace", 0, reach), 8)
        low += table.filter(gpus_low=257)["p_value"].item() < 0.05
    assert low / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_buckets_double():
    assert list(buckets(20)) == [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 20)]
    assert list(buckets(0)) == []

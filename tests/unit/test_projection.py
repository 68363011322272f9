"""How far a failure rate is projected, a measured size against the others, and the headlines that follow."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from ttf.analyses.scaling.measure_sizes.sizes import SUMS_SCHEMA, mttf_by_gpus, node_failure_rate
from ttf.stats.durations.mttf import NO_NODES
from ttf.stats.large_runs.projection import buckets, projection_limit

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
        ("too few failures to tell", "state", 64, "could not be tested (one size only)"),
        ("agrees", "state", 512, "no further than 4 times the largest run"),
    ],
)
def test_the_projection_limit_depends_on_the_evidence(verdict, basis, nodes, words):
    limit = projection_limit(ROWS, law(verdict, basis, "one size only"))
    assert (limit.largest_run, limit.nodes) == (128, nodes)
    assert words in limit.reason and limit.needed


def test_a_rate_has_a_projection_limit_and_the_table_stops_there():
    verdict = law("too few failures to tell", "state", None)
    rate = node_failure_rate(ROWS, "state", 8, "trace", 0, projection_limit(ROWS, verdict))
    assert rate["projects_to_nodes"].to_list() == [64, 64] and rate["largest_run_nodes"].to_list() == [128, 128]
    table = mttf_by_gpus(ROWS, rate, 8)
    projected = table.filter(pl.col("projected_mttf_s").is_not_null())
    assert projected["gpus_high"].max() == 512
    larger = table.filter(pl.col("gpus_low") > 512)
    assert larger["projected_low_s"].count() == 0
    assert larger["reason"].str.contains("could not be tested (too few failures to tell)", literal=True).all()


def test_a_trace_below_one_node_day_has_no_rate():
    """259,000 failures per 1,000 node-days stood for 3 failures in 1,000 s."""
    tiny = sums((1, 5, 3, 1000))
    unnamed = node_failure_rate(ROWS, "proxy", 8, "default", 0, projection_limit(ROWS, law("agrees")))
    assert unnamed["ci_high"].null_count() == 2 and unnamed["reason"].unique().to_list() == [NO_NODES]
    rate = node_failure_rate(tiny, "state", 8, "trace", 0, projection_limit(tiny, law("agrees")))
    assert rate["failures_per_1000_node_days"].to_list() == rate["ci_high"].to_list() == [None, None]
    assert set(rate["reason"]) == {"less than one node-day: no rate per node-day"}
    assert mttf_by_gpus(tiny, rate, 8)["projected_low_s"].count() == 0


def test_a_size_is_compared_with_the_others_by_an_exact_test():
    """Match SciPy's binomial test of the failures of one size, with its share of the node-days."""
    table = mttf_by_gpus(
        ROWS, node_failure_rate(ROWS, "state", 8, "trace", 0, projection_limit(ROWS, law("agrees"))), 8
    )
    row = table.filter(gpus_low=257).row(0, named=True)
    node_days, total = np.array([90, 160, 180, 128]), 119
    share = 180 / node_days.sum()
    assert row["expected_failures"] == pytest.approx(109 * 180 / (node_days.sum() - 180))
    tails = (stats.binomtest(10, total, share, alternative).pvalue for alternative in ("less", "greater"))
    assert row["p_value"] == pytest.approx(min(1, 2 * min(tails)), rel=1e-9)
    assert table.filter(pl.col("jobs") == 0)["p_value"].count() == 0
    single_size = mttf_by_gpus(sums((2, 9, 4, 5 * DAY)), node_failure_rate(*_single_size()), 8)
    assert single_size["p_value"].count() == 0, "nothing to hold it against"


def _single_size():
    rows = sums((2, 9, 4, 5 * DAY))
    return rows, "state", 8, "trace", 0, projection_limit(rows, law(None, reason="one size only"))


def test_under_one_rate_the_test_keeps_its_level():
    rng = np.random.default_rng(12)
    limit, rejections = projection_limit(ROWS, law("agrees")), 0
    for _ in range(200):
        sizes = ((1, 400), (4, 90), (64, 5))
        rows = sums(*((nodes, 9, int(rng.poisson(0.05 * nodes * days)), days * DAY) for nodes, days in sizes))
        table = mttf_by_gpus(rows, node_failure_rate(rows, "state", 8, "trace", 0, limit), 8)
        rejections += table.filter(gpus_low=257)["p_value"].item() < 0.05
    assert rejections / 200 <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


def test_buckets_double():
    assert list(buckets(20)) == [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 20)]
    assert list(buckets(0)) == []

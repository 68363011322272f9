"""Nodes found on simulated clusters: with and without a health log, and if users' early runs fail."""

import numpy as np
import polars as pl
import pytest
from made_placements import lemon_table, place_attempts
from memory_tables import lemon_inputs
from scipy import stats
from simulated_cluster import judge_cluster, simulate
from ttf.analyses.nodes.find_lemon_nodes.charts import lemon_funnel
from ttf.display.charts.figure import Study
from ttf.stats.nodes.excess_failures import divide_failures, ordinary_nodes

DAY = 86_400


def flagged_nodes(table: pl.DataFrame) -> set[str]:
    return set(table.filter(pl.col("lemon").fill_null(False))["node"])


# --- failures attributed to infrastructure


@pytest.fixture(scope="module")
def cluster():
    return simulate(seed=1)


def test_a_health_log_finds_exactly_the_three_bad_nodes(cluster, tmp_path):
    table, effect = judge_cluster(cluster, tmp_path, has_health_log=True)
    assert flagged_nodes(table) == cluster.bad
    assert lemon_funnel(lemon_inputs(table), Study()).alt.endswith("3 of 200 nodes significant.")
    assert table["attributed_share"].unique().to_list() == [1]
    # The ranking by the shrunken rate agrees, and these rates are closer to the fleet's rate.
    ranked = table.sort("posterior_rate_ratio", descending=True)
    assert set(ranked["node"][:3]) == cluster.bad
    assert (ranked["posterior_above_3"][:3] > 0.9).all()
    assert (ranked["posterior_above_3"][3:] < 0.5).all()
    assert (ranked["posterior_rate_ratio"][:3] < ranked["rate_ratio"][:3]).all()
    assert effect["lemons"][0] == 3


def test_without_the_log_the_chart_reports_unattributed_failures(cluster, tmp_path):
    table, _ = judge_cluster(cluster, tmp_path, has_health_log=False)
    assert flagged_nodes(table) == set()
    failures, attributed = table.select("window_failures", "attributed_failures").row(0)
    multi_node = cluster.dump.filter((pl.col("State") == "NODE_FAIL") & (pl.col("NNodes") > 1)).height
    assert failures - attributed == multi_node > failures / 2
    chart = lemon_funnel(lemon_inputs(table), Study())
    assert f"{multi_node} of {failures} failures could not be attributed to a node." in chart.caption
    # The attributed failures have the power to show only a very bad node.
    ratio = table["detectable_ratio"].drop_nulls().unique().to_list()
    assert len(ratio) == 1 and ratio[0] > 50
    assert "Detectable with 80% power: a typical node with" in chart.caption


def test_unattributed_failures_rank_suspects_without_the_test(tmp_path):
    ranks = []
    for seed in (4, 6):
        cluster = simulate(seed)
        table, _ = judge_cluster(cluster, tmp_path / str(seed), has_health_log=False)
        ranked = table.drop_nulls("likely_ratio").sort("likely_ratio", descending=True)
        unattributed = table["window_failures"][0] - table["attributed_failures"][0]
        assert ranked["likely_failures"].sum() == pytest.approx(unattributed)
        ranks += [rank for rank, node in enumerate(ranked["node"], start=1) if node in cluster.bad]
        assert not flagged_nodes(table)
    # Most of the six bad nodes are among the first ten of 200.
    assert sum(rank <= 10 for rank in ranks) >= 4


def test_a_shared_failure_is_divided_according_to_other_failures():
    """Node 0 takes part in all three two-node failures; every other node takes part in one."""
    attempt, node = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 2, 0, 3])
    failures, ratio = divide_failures(attempt, node, np.zeros(4), np.full(4, 0.75))
    assert failures.sum() == pytest.approx(3) and failures[0] > 2.8
    assert ratio == pytest.approx((1 / 9 + failures) / (1 / 9 + 0.75))
    # A failure attributed to node 1 raises its share.
    assert divide_failures(attempt, node, np.array([0, 5, 0, 0]), np.full(4, 2))[0][1] > 0.5


def test_the_fit_of_ordinary_nodes_is_robust_to_outliers():
    """The tail matches SciPy's negative binomial; three nodes at 18 times the rate do not change the fit."""
    rng = np.random.default_rng(2)
    expected = rng.uniform(5, 20, 400)
    counted = rng.poisson(expected * rng.gamma(4, 1 / 4, 400)).astype(float)
    ordinary = ordinary_nodes(counted, expected)
    assert ordinary.level == pytest.approx(1, abs=0.1) and ordinary.cv == pytest.approx(0.5, abs=0.07)
    with_outliers = counted.copy()
    with_outliers[:3] *= 18
    assert ordinary_nodes(with_outliers, expected).cv == pytest.approx(ordinary.cv, abs=0.03)
    shape = ordinary.cv**-2
    tail = stats.nbinom.sf(counted - 1, shape, shape / (shape + ordinary.level * expected))
    assert ordinary.tail(counted, expected) == pytest.approx(tail)


def test_outages_attribute_failures_without_a_log(cluster, tmp_path):
    table, effect = judge_cluster(cluster, tmp_path, has_health_log=False, has_outages=True)
    assert table["attributed_share"].unique().to_list() == [1]
    assert flagged_nodes(table) == cluster.bad
    assert effect["lemons"][0] == 3


def test_no_node_is_found_in_a_cluster_of_equal_nodes(tmp_path):
    table, _ = judge_cluster(simulate(seed=3, bad=0), tmp_path, has_health_log=True)
    assert flagged_nodes(table) == set()
    chart = lemon_funnel(lemon_inputs(table), Study())
    assert chart.alt.endswith("cannot tell whether any of 200 nodes fails more than the others.")


# --- failures of any kind


def simulate_packed(rng, bad=(), nodes=100, users=25, days=60, spread_s=3_600):
    """Simulate runs that tend to fail early in a user's day; the scheduler fills the lowest free node first.

    The users start within `spread_s`; a run takes its node for hours. A bad node fails any run with probability 0.6.
    """
    rows = []
    for day in range(days):
        runs = []
        for user in np.flatnonzero(rng.random(users) < 0.7):
            count = int(rng.integers(2, 8))
            starts = np.sort(day * DAY + rng.integers(0, spread_s) + rng.integers(0, DAY // 3, count))
            runs += [(start, user, 0.05 + 0.75 * np.exp(-index / 2)) for index, start in enumerate(starts.tolist())]
        free_s = np.full(nodes, day * DAY)
        for start, user, p in sorted(runs):
            node = int(np.argmax(free_s <= start))
            free_s[node] = start + rng.integers(6 * 3_600, 14 * 3_600)
            fails = rng.random() < p or (node in bad and rng.random() < 0.6)
            rows.append((f"n{node}", f"u{user}", start, int(free_s[node]), "failure" if fails else "success"))
    return pl.DataFrame(rows, schema=["node", "user", "start_s", "end_s", "outcome"], orient="row")


def test_early_failures_on_the_lowest_nodes_are_no_excess():
    traces, false_positives, low_nodes = 6, 0, []
    for seed in range(traces):
        table = lemon_table(
            place_attempts(**simulate_packed(np.random.default_rng(seed)).to_dict()), window=(0, 60 * DAY)
        )
        false_positives += bool(flagged_nodes(table))
        low_nodes.append(table.filter(pl.col("node").is_in([f"n{node}" for node in range(20)])))
    assert false_positives <= stats.binom.ppf(0.999, traces, 0.05)
    # The low nodes run the early jobs: as many fail there as are expected.
    low_nodes = pl.concat(low_nodes)
    assert low_nodes["counted"].sum() / low_nodes["expected"].sum() == pytest.approx(1, abs=0.05)


def test_a_bad_node_among_the_low_nodes_is_found():
    traces, bad, hits, false_positives = 4, (7, 20), 0, 0
    for seed in range(traces):
        frame = simulate_packed(np.random.default_rng(seed), bad, users=40, spread_s=DAY // 3)
        table = lemon_table(place_attempts(**frame.to_dict()), window=(0, 60 * DAY))
        hits += len(flagged_nodes(table) & {"n7", "n20"})
        false_positives += len(flagged_nodes(table) - {"n7", "n20"})
    assert hits >= 0.75 * 2 * traces
    assert false_positives <= 0.1 * max(hits, 1)
    assert table["detectable_ratio"].drop_nulls()[0] > 1

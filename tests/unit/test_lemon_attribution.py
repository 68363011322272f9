"""Which nodes are named on simulated clusters: by a health log or not, and where users' early runs fail."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from given_tables import given_lemons
from scipy import stats
from simulated_cluster import judged, simulate
from ttf.analyses.nodes.find_lemon_nodes.charts import lemon_funnel
from ttf.analyses.nodes.find_lemon_nodes.compute import lemon_nodes
from ttf.analyses.nodes.find_lemon_nodes.excess import divide_failures, ordinary_nodes
from ttf.display.charts.figure import Study
from ttf.engine.storage.partitions import Partitions
from ttf.records.jobs import PLACEMENT_COLUMNS

DAY = 86_400


def found(table: pl.DataFrame) -> set[str]:
    return set(table.filter(pl.col("lemon").fill_null(False))["node"])


# --- failures attributed to infrastructure


@pytest.fixture(scope="module")
def cluster():
    return simulate(seed=1)


def test_a_health_log_names_the_three_nodes_and_no_other(cluster, tmp_path):
    table, effect = judged(cluster, tmp_path, with_log=True)
    assert found(table) == cluster.bad
    assert lemon_funnel(given_lemons(table), Study()).alt.endswith("3 of 200 nodes significant.")
    assert table["attributed_share"].unique().to_list() == [1]
    # The ranking by the shrunken rate agrees, and is nearer to the fleet's.
    ranked = table.sort("posterior_rate_ratio", descending=True)
    assert set(ranked["node"][:3]) == cluster.bad
    assert (ranked["posterior_above_3"][:3] > 0.9).all()
    assert (ranked["posterior_above_3"][3:] < 0.5).all()
    assert (ranked["posterior_rate_ratio"][:3] < ranked["rate_ratio"][:3]).all()
    assert effect["lemons"][0] == 3


def test_without_the_log_it_says_that_failures_could_not_be_attributed(cluster, tmp_path):
    table, _ = judged(cluster, tmp_path, with_log=False)
    assert found(table) == set()
    failures, attributed = table.select("window_failures", "attributed_failures").row(0)
    wide = cluster.dump.filter((pl.col("State") == "NODE_FAIL") & (pl.col("NNodes") > 1)).height
    assert failures - attributed == wide > failures / 2
    drawn = lemon_funnel(given_lemons(table), Study())
    assert f"{wide} of {failures} failures could not be attributed to a node." in drawn.caption
    # The power: what is left to go by would show a very bad node only.
    ratio = table["detectable_ratio"].drop_nulls().unique().to_list()
    assert len(ratio) == 1 and ratio[0] > 50
    assert "Found with 80% power: a typical node with" in drawn.caption


def test_failures_that_name_no_node_rank_suspects_apart_from_the_test(tmp_path):
    ranks = []
    for seed in (4, 6, 7):
        cluster = simulate(seed)
        table, _ = judged(cluster, tmp_path / str(seed), with_log=False)
        ranked = table.drop_nulls("likely_ratio").sort("likely_ratio", descending=True)
        unattributed = table["window_failures"][0] - table["attributed_failures"][0]
        assert ranked["likely_failures"].sum() == pytest.approx(unattributed)
        ranks += [place for place, node in enumerate(ranked["node"], start=1) if node in cluster.bad]
        assert not found(table)
    # Of nine bad nodes among 200 most are of the first ten.
    assert sum(rank <= 10 for rank in ranks) >= 6


def test_a_failure_is_divided_by_what_other_failures_say():
    """Node 0 is in all three failures of two nodes; each of the others in one."""
    attempt, node = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 2, 0, 3])
    failures, ratio = divide_failures(attempt, node, np.zeros(4), np.full(4, 0.75))
    assert failures.sum() == pytest.approx(3) and failures[0] > 2.8
    assert ratio == pytest.approx((1 / 9 + failures) / (1 / 9 + 0.75))
    # One that named node 1 counts for it.
    assert divide_failures(attempt, node, np.array([0, 5, 0, 0]), np.full(4, 2))[0][1] > 0.5


def test_ordinary_nodes_are_those_that_do_not_stand_out():
    """Scipy's negative binomial, and three nodes at 18 times that do not fit themselves."""
    rng = np.random.default_rng(2)
    expected = rng.uniform(5, 20, 400)
    counted = rng.poisson(expected * rng.gamma(4, 1 / 4, 400)).astype(float)
    alone = ordinary_nodes(counted, expected)
    assert alone.level == pytest.approx(1, abs=0.1) and alone.cv == pytest.approx(0.5, abs=0.07)
    worse = counted.copy()
    worse[:3] *= 18
    assert ordinary_nodes(worse, expected).cv == pytest.approx(alone.cv, abs=0.03)
    shape = alone.cv**-2
    tail = stats.nbinom.sf(counted - 1, shape, shape / (shape + alone.level * expected))
    assert alone.tail(counted, expected) == pytest.approx(tail)


def test_outages_attribute_what_no_log_does(cluster, tmp_path):
    table, effect = judged(cluster, tmp_path, with_log=False, with_outages=True)
    assert table["attributed_share"].unique().to_list() == [1]
    assert found(table) == cluster.bad
    assert effect["lemons"][0] == 3


def test_a_false_node_is_named_in_few_clusters(tmp_path):
    """At a false-discovery rate of 5 %. Of 200 seeds 11 name a false node, and all find the three."""
    seeds, false, right = 6, 0, 0
    for seed in range(seeds):
        cluster = simulate(100 + seed)
        table, _ = judged(cluster, tmp_path / str(seed), with_log=True)
        false += bool(found(table) - cluster.bad)
        right += len(found(table) & cluster.bad)
    assert false <= stats.binom.ppf(0.99, seeds, 0.1)
    assert right >= 0.95 * 3 * seeds


def test_no_node_is_named_of_a_cluster_of_equal_nodes(tmp_path):
    table, _ = judged(simulate(seed=3, bad=0), tmp_path, with_log=True)
    assert found(table) == set()
    drawn = lemon_funnel(given_lemons(table), Study())
    assert drawn.alt.endswith("0 of 200 nodes significant.")
    assert drawn.caption.endswith(" times the fleet's rate.")


# --- failures of any kind


def packed(rng, bad=(), nodes=100, users=25, days=60, spread_s=3_600):
    """Users' runs of which the early ones of a day fail, and a scheduler that fills the lowest free node first.

    The users begin within `spread_s`; a run holds its node for hours. On a bad node any fails with chance 0.6 besides.
    """
    rows = []
    for day in range(days):
        runs = []
        for user in np.flatnonzero(rng.random(users) < 0.7):
            count = int(rng.integers(2, 8))
            starts = np.sort(day * DAY + rng.integers(0, spread_s) + rng.integers(0, DAY // 3, count))
            runs += [(start, user, 0.05 + 0.75 * np.exp(-place / 2)) for place, start in enumerate(starts.tolist())]
        free_s = np.full(nodes, day * DAY)
        for start, user, chance in sorted(runs):
            node = int(np.argmax(free_s <= start))
            free_s[node] = start + rng.integers(6 * 3_600, 14 * 3_600)
            fails = rng.random() < chance or (node in bad and rng.random() < 0.6)
            rows.append((f"n{node}", f"u{user}", start, int(free_s[node]), "failure" if fails else "success"))
    return pl.DataFrame(rows, schema=["node", "user", "start_s", "end_s", "outcome"], orient="row")


def by_proxy(frame: pl.DataFrame, days: int) -> pl.DataFrame:
    number = pl.int_range(pl.len(), dtype=pl.UInt32)
    told = {"job_id": pl.format("j{}", number), "attempt_id": number, "attempt": 0, "nodes": 1, "own_outcome": True}
    told["runtime_s"] = pl.col("end_s") - pl.col("start_s")
    placements = frame.with_columns(
        **{name: pl.lit(what) if isinstance(what, int) else what for name, what in told.items()}
    )
    blank = [
        pl.lit(None, dtype).alias(name) for name, dtype in PLACEMENT_COLUMNS.items() if name not in placements.columns
    ]
    blank_text = [pl.lit(None, pl.String).alias(name) for name in ("event", "account", "gpu_type", "failed_node")]
    lives = placements.select("attempt_id", "user", "start_s", basis=pl.lit("proxy")).with_columns(
        *blank_text, incident=pl.lit(None, pl.UInt32)
    )
    placements = placements.with_columns(blank).select(pl.col(n).cast(d) for n, d in PLACEMENT_COLUMNS.items())
    (table,) = lemon_nodes(placements.lazy(), lives.lazy(), [(0, days * DAY)], 0.05, Partitions(Path()))
    return table


def test_early_runs_that_fail_on_the_lowest_nodes_make_no_lemons():
    traces, false, low = 20, 0, []
    for seed in range(traces):
        table = by_proxy(packed(np.random.default_rng(seed)), 60)
        false += bool(found(table))
        low.append(table.filter(pl.col("node").is_in([f"n{node}" for node in range(20)])))
    assert false <= stats.binom.ppf(0.999, traces, 0.05)
    # On the nodes that the early runs are given as many fail as are expected there.
    low = pl.concat(low)
    assert low["counted"].sum() / low["expected"].sum() == pytest.approx(1, abs=0.05)


def test_a_really_bad_node_among_the_low_ones_is_found():
    traces, bad, right, false = 8, (7, 20), 0, 0
    for seed in range(traces):
        table = by_proxy(packed(np.random.default_rng(seed), bad, users=40, spread_s=DAY // 3), 60)
        right += len(found(table) & {"n7", "n20"})
        false += len(found(table) - {"n7", "n20"})
    assert right >= 0.75 * 2 * traces
    assert false <= 0.1 * max(right, 1)
    assert table["detectable_ratio"].drop_nulls()[0] > 1

"""Lemon nodes: tests against closed forms and SciPy; false-discovery rate and power by simulation."""

import itertools
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from made_placements import lemon_table, make_infra_durations, place_attempts
from memory_tables import lemon_inputs
from scipy import stats
from ttf.analyses.nodes.find_lemon_nodes import LEMON_EFFECT, LEMON_NODES
from ttf.analyses.nodes.find_lemon_nodes.charts import highest_chance_count, lemon_funnel
from ttf.analyses.nodes.find_lemon_nodes.compute import lemon_effect, lemon_nodes
from ttf.display.charts.figure import Study
from ttf.engine.storage.partitions import Partitions
from ttf.stats.basics.poisson_binomial import poisson_binomial_tail
from ttf.stats.nodes.conditional_logistic import Strata, chances_given_count
from ttf.stats.nodes.excess_failures import compare_by_exposure, compare_by_trials, with_posterior, with_power
from ttf.stats.nodes.node_runs import last_window, order_in_day, split_window
from ttf.stats.nodes.node_tests import (
    compare_components as lemon_components,
)
from ttf.stats.nodes.node_tests import (
    informative_trials,
    split_in_halves,
    trial_chances,
)

DAY = 86_400
WINDOW = (0, 28 * DAY)
WHOLE = Partitions(Path())


def test_a_trace_may_have_more_gpu_types_than_16_bits_can_number():
    runs = place_attempts(node=["n1", "n2"] * 35_000, outcome=["success"] * 70_000)
    durations = make_infra_durations(runs).with_columns(gpu_type=pl.format("type {}", pl.col("attempt_id")))
    (table,) = lemon_nodes(runs.lazy(), durations.lazy(), [WINDOW], 0.05, WHOLE)
    assert table["placements"].to_list() == [35_000, 35_000]


def test_tail_of_the_poisson_binomial_matches_scipy():
    rng = np.random.default_rng(1)
    chances = [rng.uniform(0, 1, size) ** 2 for size in rng.integers(1, 40, 600)]
    counts = [int(rng.integers(0, len(p) + 1)) for p in chances]
    expected = [stats.poisson_binom(p).sf(k - 1) for p, k in zip(chances, counts, strict=True)]
    np.testing.assert_allclose(poisson_binomial_tail(chances, counts), expected, rtol=1e-9, atol=1e-14)


def test_tail_of_equal_chances_is_binomial_to_the_last_digits():
    tails = poisson_binomial_tail([[0.01] * 300, [0.25] * 4, [0.5]], [60, 4, 0])
    np.testing.assert_allclose(tails, [stats.binom.sf(59, 300, 0.01), 0.25**4, 1], rtol=1e-12)


@pytest.mark.parametrize("mean", [1e-9, 0.01, 0.7, 3.0, 250.0])
def test_poisson_limits_are_exact_even_in_tiny_tails(mean):
    """SciPy has no quantile of 1 - 1e-30, which is 1. A p-value of LANL's first 500 outages is that small."""
    for tail in (0.95, 0.5, 0.05, 1e-5, 1e-30):
        limit = highest_chance_count(tail, mean)
        assert stats.poisson.sf(limit, mean) <= tail < stats.poisson.sf(limit - 1, mean)


def test_trials_in_closed_form():
    """Two strata of two nodes have one failure each, both on a: P = 1/4. A stratum with only failures is ignored."""
    trials = pl.DataFrame(
        {
            "node": ["a", "b", "a", "c", "b", "c"],
            "stratum": [1, 1, 2, 2, 3, 3],
            "failed": [True, False, True, False, True, True],
        }
    ).with_columns(before=0, after=0)
    table = compare_by_trials(informative_trials(trials.lazy(), trial_chances([trials.lazy()])))
    assert table.select("node", "trials", "counted", "expected", "p_value").rows() == [
        ("a", 2, 2, 1.0, 0.25),
        ("b", 1, 0, 0.5, 1.0),
        ("c", 1, 0, 0.5, 1.0),
    ]
    # Garwood's interval of a count of 2, divided by 1 expected; a count of 0 has a one-sided bound.
    np.testing.assert_allclose(
        table.select("ci_low", "ci_high").row(0), [stats.chi2.ppf(0.025, 4) / 2, stats.chi2.ppf(0.975, 6) / 2]
    )
    np.testing.assert_allclose(table.select("ci_low", "ci_high").row(2), [0, -np.log(0.05) / 0.5])


def test_comparison_by_exposure_matches_scipys_binomial_test():
    counted, exposure = [7, 1, 0, 2], [1000, 3000, 500, 5500]
    nodes = pl.DataFrame({"fleet": ["x"] * 4, "counted": counted, "exposure_s": exposure})
    table = compare_by_exposure(nodes)
    for row, k, e in zip(table.iter_rows(named=True), counted, exposure, strict=True):
        exact = stats.binomtest(k, 10, e / 10_000, alternative="greater")
        assert row["p_value"] == pytest.approx(exact.pvalue, rel=1e-12)
        # Without a failure, the interval is one-sided: the upper limit has all of the 5 %.
        interval = stats.binomtest(k, 10, alternative="two-sided" if k else "less").proportion_ci(0.95)
        exposure_ratio = (10_000 - e) / e
        limits = [w / (1 - w) * exposure_ratio for w in interval]
        assert [row["ci_low"], row["ci_high"]] == pytest.approx(limits, rel=1e-9)
        assert row["expected"] == pytest.approx(10 * e / 10_000)
        assert row["rate_ratio"] == pytest.approx(k / e / ((10 - k) / (10_000 - e)))


@given(
    st.lists(st.floats(0.05, 20), min_size=2, max_size=7).flatmap(
        lambda odds: st.tuples(st.just(odds), st.integers(1, len(odds) - 1))
    )
)
def test_chances_given_the_count_match_an_enumeration_of_all_sets(case):
    odds, count = case
    sets = list(itertools.combinations(range(len(odds)), count))
    weights = [math.prod(odds[trial] for trial in subset) for subset in sets]
    expected = [
        sum(weight for subset, weight in zip(sets, weights, strict=True) if trial in subset) / sum(weights)
        for trial in range(len(odds))
    ]
    padded = np.array([[*odds, 0.0, 0.0], [*odds, 0.0, 0.0]])
    for row in chances_given_count(padded, np.array([count, count])):
        np.testing.assert_allclose(row[: len(odds)], expected, rtol=1e-10)


def test_odds_by_order_match_conditional_logit_of_statsmodels():
    rng = np.random.default_rng(8)
    size = rng.integers(2, 12, 800)
    stratum = np.repeat(np.arange(size.size), size)
    basis = rng.normal(size=(stratum.size, 2))
    failed = rng.random(stratum.size) < 1 / (1 + np.exp(-(basis @ [0.8, -0.5] + rng.normal(size=size.size)[stratum])))
    groups = pl.DataFrame({"stratum": stratum, "trials": 1, "failed": failed.astype(int)})
    groups = groups.with_columns(pl.col("trials", "failed").sum().over("stratum").name.prefix("all_"))
    mixed = (
        groups.select(pl.col("all_failed").is_between(0, pl.col("all_trials"), closed="none")).to_series().to_numpy()
    )
    slopes = Strata(groups.filter(mixed), basis[mixed]).slopes()
    reference = sm.ConditionalLogit(failed[mixed].astype(int), basis[mixed], groups=stratum[mixed]).fit(disp=False)
    # The prior shifts the slopes by 1 / (variance x precision of the data), about a thousandth.
    np.testing.assert_allclose(slopes, reference.params, atol=0.01)


def test_the_chances_of_many_trials_are_nearly_exact():
    rng = np.random.default_rng(4)
    count = 33
    groups = pl.DataFrame({"stratum": 0, "trials": np.ones(count, int), "all_trials": count, "all_failed": 9})
    eta = rng.normal(0, 1, count)
    strata = Strata(groups.with_columns(failed=pl.lit(0)), eta[:, None])
    exact = chances_given_count(np.exp(eta)[None, :], np.array([9]))[0]
    np.testing.assert_allclose(strata.chances(np.ones(1)), exact, atol=0.02)
    assert strata.chances(np.ones(1)).sum() == pytest.approx(9)


def test_order_in_a_users_day():
    rng = np.random.default_rng(2)
    user, start = rng.integers(0, 4, 300).astype(np.uint32), rng.integers(-20_000, 3 * DAY, 300) // 600 * 600
    rows_before, rows_after = order_in_day(user, start)
    for row in range(300):
        same_day = start[(user == user[row]) & (start >= 0) & (start // DAY == start[row] // DAY)]
        expected = ((same_day < start[row]).sum(), (same_day > start[row]).sum()) if start[row] >= 0 else (0, 0)
        assert (rows_before[row], rows_after[row]) == expected


def test_the_posterior_is_that_of_the_maximum_likelihood_negative_binomial():
    rng = np.random.default_rng(11)
    expected = rng.uniform(0.3, 3, 400)
    counted = rng.poisson(expected * rng.gamma(0.8, 1 / 0.8, 400))
    expected *= counted.sum() / expected.sum()
    table = with_posterior(pl.DataFrame({"fleet": ["x"] * 400, "counted": counted, "expected": expected}))
    # The first node's mean gives the shape: (a + k) / (a + e) = m.
    k, e, mean = counted[0], expected[0], table["posterior_rate_ratio"][0]
    shape = (k - mean * e) / (mean - 1)

    def loss(a):
        return -stats.nbinom.logpmf(counted, a, a / (a + expected)).sum()

    assert loss(shape) < min(loss(0.98 * shape), loss(1.02 * shape))
    assert 0.5 < shape < 1.3
    posterior = stats.gamma(shape + counted, scale=1 / (shape + expected))
    np.testing.assert_allclose(table["posterior_rate_ratio"], posterior.mean(), rtol=1e-6)
    np.testing.assert_allclose(table["posterior_above_3"], posterior.sf(3), rtol=1e-5)


def test_counts_without_overdispersion_have_one_rate():
    table = with_posterior(pl.DataFrame({"fleet": ["x"] * 4, "counted": [2, 1, 1, 0], "expected": [1.0] * 4}))
    assert table["posterior_rate_ratio"].to_list() == [1] * 4
    assert table["posterior_above_3"].to_list() == [0] * 4
    no_expectation = pl.Series([None, None], dtype=pl.Float64)
    blank = with_posterior(pl.DataFrame({"fleet": ["x"] * 2, "counted": [0, 0], "expected": no_expectation}))
    assert blank["posterior_rate_ratio"].to_list() == [None, None]


@pytest.mark.parametrize(("nodes", "failures"), [(200, 150), (40, 1000), (2, 30)])
def test_the_detectable_ratio_has_the_stated_power(nodes, failures):
    """In a fleet at one rate, about 80 % of simulated traces find a node with that ratio."""
    rng = np.random.default_rng(nodes)
    exposure, threshold, traces = np.full(nodes, 1000), 0.05 / nodes, 4000
    fleet = pl.DataFrame({"fleet": ["x"] * nodes, "exposure_s": exposure, "p_value": 0.5})
    even_counts = fleet.with_columns(
        counted=pl.Series([failures // nodes] * (nodes - 1) + [failures // nodes + failures % nodes])
    )
    ratio = with_power(even_counts, threshold)["detectable_ratio"][0]
    # The other nodes have their observed failures.
    other_failures = round(failures * (1 - 1 / nodes))
    node_failures = rng.poisson(ratio * failures / nodes, traces)
    p = stats.binom.sf(node_failures - 1, node_failures + other_failures, 1 / nodes)
    assert np.mean(p <= threshold) == pytest.approx(0.8, abs=0.02)
    assert ratio > 1


# --- counted failures


def test_the_failures_of_a_user_count_once_per_node():
    """A job that is retried a hundred times a day for days is one failure; another user's failure is a second one.

    The first run of a user on a node and day counts: later failures on n2 do not.
    """
    rows = [("bad", "n1", day * DAY + minute, "failure") for day in range(5) for minute in range(100)]
    rows += [
        ("bad", "n2", day * DAY + 60 * late, "failure" if late else "success") for day in range(5) for late in (1, 0)
    ]
    rows += [("good", "n1", 10, "failure"), ("good", "n2", 10, "success")]
    frame = pl.DataFrame(rows, schema=["user", "node", "start_s", "outcome"], orient="row")
    placements = place_attempts(node=frame["node"], start_s=frame["start_s"], outcome=frame["outcome"])
    placements = placements.with_columns(user=frame["user"], end_s=pl.col("start_s") + 30)
    table = lemon_table(placements).sort("node")
    assert table["failures"].to_list() == [501, 5]
    assert table["trials"].to_list() == [2, 2]
    assert table["counted"].to_list() == [2, 0]
    assert table["p_value"].to_list() == [0.25, 1.0]


def test_shared_failures_of_multi_node_attempts_count_for_no_node():
    placements = place_attempts(
        node=["a", "b", "a"], job_id=["g", "g", "s"], nodes=[2, 2, 1], own_outcome=[False, False, True],
        outcome=["failure"] * 3,
    )  # fmt: skip
    shared = lemon_table(placements).sort("node")
    names = ["single_node_failures", "multi_node_failures", "shared_multi_node_failures", "failures"]
    assert shared.select(names).rows() == [(1, 0, 1, 1), (0, 0, 1, 0)]
    own_outcomes = lemon_table(placements.with_columns(own_outcome=pl.lit(True))).sort("node")
    assert own_outcomes.select(names).rows() == [(1, 1, 0, 2), (0, 1, 0, 1)]


def test_infrastructure_failures_count_once_per_attributed_node_and_day():
    placements = place_attempts(
        node=["a", "a", "a", "b", "c"],
        job_id=["j1", "j2", "g", "g", "j3"],
        nodes=[1, 1, 2, 2, 1],
        end_s=[DAY // 2, DAY // 2, 3 * DAY, 3 * DAY, 28 * DAY - 1],
        outcome=["failure"] * 4 + ["success"],
    )
    durations = make_infra_durations(placements, "state", ["infra_failure", "infra_failure", "infra_failure", None])
    durations = durations.with_columns(failed_node=pl.when(pl.col("unit_id") == "g").then(pl.lit("a")))
    (table,) = lemon_nodes(placements.lazy(), durations.lazy(), [WINDOW], 0.05, WHOLE)
    table = table.sort("node")
    assert table["failures"].to_list() == [3, 0, 0]
    assert table["counted"].to_list() == [2, 0, 0]
    assert table["multi_node_failures"].to_list() == [1, 0, 0]
    assert table["incidents"].to_list() == [3, 0, 0]
    assert table.select("window_failures", "attributed_failures", "attributed_share").row(0) == (3, 3, 1)
    exposure = [4 * DAY, 3 * DAY, 28 * DAY - 1]
    assert table["exposure_s"].to_list() == exposure
    a = table.row(0, named=True)
    assert a["p_value"] == pytest.approx((exposure[0] / sum(exposure)) ** 2)
    assert a["rate_ratio"] is None
    assert a["reason"] == "no failure in the rest of its fleet: lower limit of the ratio only"


def test_a_multi_node_failure_by_configured_rules_is_shared():
    """A failure attributed to infrastructure by the configuration, not by Slurm, belongs to no single node."""
    placements = place_attempts(
        node=["a", "b"], job_id=["g", "g"], nodes=[2, 2], infra_failure=[False, False], outcome=["failure"] * 2
    )
    table = lemon_table(placements, "state", ["infra_failure"])
    assert table.select("failures", "shared_multi_node_failures").rows() == [(0, 1), (0, 1)]
    assert table.select("window_failures", "attributed_failures", "attributed_share").rows() == [(1, 0, 0)] * 2


def test_a_health_event_that_ended_several_runs_counts_once():
    """One event ends three runs of a node on two days; only the day of its first run counts."""
    placements = place_attempts(
        node=["a", "a", "a", "b"], end_s=[DAY - 1, DAY + 1, DAY + 2, DAY], outcome=["failure"] * 3 + ["success"]
    )
    durations = make_infra_durations(placements, "event", ["infra_failure"] * 3 + [None]).with_columns(
        incident=pl.when(pl.col("event").is_not_null()).then(pl.lit(2, pl.UInt32)),
    )
    (table,) = lemon_nodes(placements.lazy(), durations.lazy(), [WINDOW], 0.05, WHOLE)
    assert table.sort("node").select("failures", "incidents", "counted").rows() == [(3, 1, 1), (0, 0, 0)]


def test_an_attempt_with_a_retry_did_not_succeed():
    """Philly records an outcome only for the last attempt of a job."""
    placements = place_attempts(
        node=["a", "b", "c"], job_id=["j", "j", "k"], attempt=[0, 1, 0], outcome=[None, "success", "success"]
    )
    placements = placements.with_columns(user=pl.lit("u"))
    table = lemon_table(placements).sort("node")
    assert table["failures"].to_list() == [1, 0, 0]
    assert table["p_value"].to_list() == [pytest.approx(1 / 3), 1.0, 1.0]


def test_the_window_is_the_last_days():
    placements = place_attempts(
        node=["a", "a"], start_s=[0, 40 * DAY], end_s=[DAY, 41 * DAY], outcome=["failure", "success"]
    )
    window = last_window(placements.lazy(), 28)
    assert window == (13 * DAY + 1, 41 * DAY + 1)
    # A window longer than the trace would have an empty half.
    assert last_window(placements.lazy(), 365) == (0, 41 * DAY + 1)
    assert lemon_table(placements, window=window).select("placements", "failures", "exposure_s").row(0) == (1, 0, DAY)
    assert split_window(window) == [(13 * DAY + 1, 27 * DAY + 1), (27 * DAY + 1, 41 * DAY + 1)]


def test_time_before_the_window_is_not_exposure():
    placements = place_attempts(
        node=["a", "b", "c"],
        start_s=[0, 0, 0],
        end_s=[15 * DAY, None, None],
        outcome=["success", "running", "failure"],
    )
    table = lemon_table(placements, window=(10 * DAY, 20 * DAY)).sort("node")
    assert table.select("node", "exposure_s").rows() == [("a", 5 * DAY), ("b", 10 * DAY)]


def test_components_against_their_own_system():
    durations = component_durations(
        [("s/0", "s", [5, 5, 5, 5], True), ("s/1", "s", [30], False), ("t/0", "t", [9, 9], True)]
    )
    table = lemon_components(durations, "system", 0.05).sort("node")
    assert table["out_count"].to_list() == [4, 0, 2]
    assert table["counted"].to_list() == [4, 0, 2]
    assert table["p_value"].to_list() == [pytest.approx((20 / 50) ** 4), 1.0, None]
    assert table["reason"][2] == "no other node of its fleet to compare it with"
    # Outages within a day of the previous repair are one incident.
    repeated = component_durations([("s/0", "s", [5, 0.5, 0.2, 5], True), ("s/1", "s", [30], False)])
    assert lemon_components(repeated, "system", 0.05).sort("node")["counted"].to_list() == [2, 0]


def component_durations(units):
    rows = [
        (unit, system, int(days * DAY), "infra_failure" if fails else None)
        for unit, system, spans, fails in units
        for days in spans
    ]
    return pl.DataFrame(rows, schema=["unit_id", "system", "duration_s", "event"], orient="row")


def test_halves_of_durations_add_up():
    durations = component_durations(
        [("s/0", "s", [1, 2, 7, 0.5], True), ("s/1", "s", [3], False), ("s/2", "s", [4], True)]
    )
    halves = split_in_halves(durations)
    sums = [half.group_by("unit_id").agg(pl.col("duration_s").sum(), pl.col("event").count()) for half in halves]
    assert [sorted(table.rows()) for table in sums] == [
        [("s/0", 5 * DAY + DAY // 4, 2), ("s/1", 3 * DAY // 2, 0), ("s/2", 2 * DAY, 0)],
        [("s/0", 5 * DAY + DAY // 4, 2), ("s/1", 3 * DAY // 2, 0), ("s/2", 2 * DAY, 1)],
    ]


def test_effect_in_closed_form():
    def table(rows):
        blank = {"p_value": None, "fleet": "x"}
        return pl.DataFrame([blank | row for row in rows], schema_overrides={"p_value": pl.Float64})

    whole = table(
        [
            {"node": "a", "failures": 6, "exposure_s": 100, "lemon": True},
            {"node": "b", "failures": 2, "exposure_s": 300, "lemon": False},
        ]
    )
    quiet = whole.with_columns(lemon=pl.lit(False))
    effect = lemon_effect(whole, quiet, quiet)
    assert effect.schema == pl.Schema(LEMON_EFFECT.schema)
    first = effect.row(0, named=True)
    assert (first["mttf_s"], first["mttf_without_s"], first["mttf_ratio"]) == (50, 150, 3)
    assert effect["reason"].to_list() == [None, "no node is significant in the first half"]


# --- simulation: the error rate and the power


def simulate_cluster(rng, nodes=120, users=40, days=28, lemons=0, lemon_chance=0.5):
    """Simulate placements of users whose failures cluster: propensities, bad days, jobs retried on one node.

    A user's good and bad kinds of work each return to one node for days. A lemon also fails any run with the
    probability `lemon_chance`.
    """
    propensity = rng.beta(0.5, 2, users)
    node, user, start, failed = [], [], [], []
    home = rng.integers(0, nodes, (users, 2))
    for day in range(days):
        for u in range(users):
            if rng.random() < 0.5:
                continue
            bad_day = rng.random() < 0.15
            chance = 0.9 if bad_day else propensity[u]
            visits = [(int(n), chance) for n in rng.integers(0, nodes, rng.integers(1, 7))]
            visits += [(int(home[u, 0]), 0.02), (int(home[u, 1]), 0.98)] if u % 4 == 0 else []
            for n, p in visits:
                moment = day * DAY + int(rng.integers(0, DAY // 2))
                # A failed job is retried on the same node.
                for retry in range(8):
                    fails = rng.random() < p or (n < lemons and rng.random() < lemon_chance)
                    node.append(f"n{n}")
                    user.append(f"u{u}")
                    start.append(moment + 600 * retry)
                    failed.append(fails)
                    if not fails or rng.random() < 0.2:
                        break
    frame = place_attempts(
        node=node,
        start_s=start,
        end_s=[s + (30 if f else 500) for s, f in zip(start, failed, strict=True)],
        outcome=["failure" if f else "success" for f in failed],
    )
    return frame.with_columns(user=pl.Series(user))


@pytest.mark.parametrize(("nodes", "users", "traces"), [(120, 40, 16), (30, 60, 16)])
def test_clustered_user_failures_are_no_excess(nodes, users, traces):
    """Under the null hypothesis every discovery is false: at most 5 % of the traces have one."""
    rng = np.random.default_rng(20_241)
    discoveries = naive_hits = 0
    for _ in range(traces):
        table = lemon_table(simulate_cluster(rng, nodes=nodes, users=users))
        discoveries += bool(table["lemon"].any())
        # A naive test compares all failures with the exposure.
        rates = compare_by_exposure(table.select("node", "fleet", "exposure_s", counted="failures"))
        naive_hits += bool((stats.false_discovery_control(rates["p_value"].drop_nulls().to_numpy()) <= 0.05).any())
    # One-sided 99.9 % limit of a binomial count at the stated rate.
    assert discoveries <= stats.binom.ppf(0.999, traces, 0.05)
    assert naive_hits == traces


def test_planted_lemons_are_found_at_the_stated_rate():
    rng = np.random.default_rng(20_242)
    hits, proportions, planted = 0, [], 6
    for _ in range(6):
        table = lemon_table(simulate_cluster(rng, users=120, lemons=planted, lemon_chance=0.6))
        lemons = set(table.filter("lemon")["node"])
        true_lemons = {f"n{n}" for n in range(planted)}
        hits += len(lemons & true_lemons)
        proportions.append(len(lemons - true_lemons) / max(1, len(lemons)))
    assert hits >= 0.8 * 6 * planted
    assert np.mean(proportions) <= 0.05 + 3 * np.std(proportions) / math.sqrt(6)


# --- extreme cases


def test_one_node_no_failure_and_no_placement():
    single_node = lemon_table(place_attempts(node=["only"], outcome=["failure"]))
    assert single_node.select("failures", "p_value", "lemon").row(0) == (1, None, None)
    assert single_node["reason"][0].startswith("no trial tells it from other nodes")
    quiet = lemon_table(place_attempts(node=["a", "b"], outcome=["success"] * 2), "state")
    assert quiet["reason"].to_list() == ["no failure in its fleet"] * 2
    none = place_attempts(node=pl.Series([], dtype=pl.String), outcome=pl.Series([], dtype=pl.String))
    assert last_window(none.lazy(), 28) == (0, 0)
    for table in (single_node, quiet, lemon_table(none, window=(0, 0))):
        assert table.schema == pl.Schema(LEMON_NODES.schema)
        assert lemon_funnel(lemon_inputs(table), Study()).empty
    assert lemon_effect(quiet, quiet, quiet)["lemons"].to_list() == [0, 0]


def test_the_verdict_does_not_depend_on_the_order_of_rows():
    placements = simulate_cluster(np.random.default_rng(5), nodes=30, users=10, days=6, lemons=2)
    # Starts differ, so the first run of a day does not depend on the row order.
    placements = placements.with_columns(start_s=pl.col("start_s") + pl.int_range(pl.len()) % 599)
    placements = placements.unique(["node", "user", "start_s"], keep="first", maintain_order=True)
    assert lemon_table(placements).equals(lemon_table(placements.sample(fraction=1, shuffle=True, seed=3)))


@pytest.mark.parametrize(("number", "basis"), [(2, "state"), (7, "proxy")])
def test_the_verdict_does_not_depend_on_the_partitions(number, basis, tmp_path):
    placements = simulate_cluster(np.random.default_rng(6), nodes=30, users=10, days=6, lemons=2)
    durations = make_infra_durations(placements, basis).with_columns(
        event=pl.when(pl.int_range(pl.len()) % 5 == 0).then(pl.lit("infra_failure")),
        gpu_type=pl.when(pl.col("attempt_id") % 3 > 0).then(pl.format("G{}", pl.col("attempt_id") % 2)),
    )
    windows = [WINDOW, *split_window((0, 6 * DAY))]
    whole = lemon_nodes(placements.lazy(), durations.lazy(), windows, 0.05, WHOLE)
    parts = lemon_nodes(placements.lazy(), durations.lazy(), windows, 0.05, Partitions(tmp_path, number))
    assert whole[0]["fleet"].n_unique() > 1 and whole[0]["p_value"].count()
    for table, table_of_parts in zip(whole, parts, strict=True):
        assert table.equals(table_of_parts)

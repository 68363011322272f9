"""A failure rate that falls, and a mixture of rates that do not: the frailty fit, and what is said by it."""

import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.integrate import quad
from scipy.optimize import approx_fprime, minimize
from scipy.stats import gamma
from ttf.analyses.time_to_failure.fit_mttf.lifetimes import lifetime_models
from ttf.analyses.time_to_failure.judge_lifetimes import LIFETIME_VERDICT, MIXTURE
from ttf.analyses.time_to_failure.judge_lifetimes.compute import lifetime_verdict
from ttf.analyses.time_to_failure.judge_lifetimes.frailty import (
    Ages,
    Units,
    age_bin,
    fit_frailty,
    fit_pooled,
    likelihood,
)
from ttf.analyses.time_to_failure.judge_lifetimes.pooled_shapes import shapes
from ttf.records.clusters import CLUSTER_COLUMNS, with_clusters
from ttf.stats.basics.normal import Z_95
from ttf.stats.durations.survival import survival_tables

FAILED = {"failure": (pl.col("event") == "failure").fill_null(False)}


def rates(rng: np.random.Generator, kind: str, spread: float, users: int) -> np.ndarray:
    return np.exp(rng.normal(0, spread, users)) if kind == "lognormal" else rng.gamma(spread**-2, spread**2, users)


def made(seed: int, shape: float, kind: str = "lognormal", spread: float = 1.0, users=100, n=3_000) -> pl.DataFrame:
    """Jobs of users of Zipf sizes whose rates differ; every job's hazard is a power of age, of one shape for all."""
    rng = np.random.default_rng(seed)
    size = np.arange(1, users + 1) ** -0.9
    user = rng.choice(users, n, p=size / size.sum())
    failure = 10**4 * (rng.exponential(size=n) / rates(rng, kind, spread, users)[user]) ** (1 / shape)
    other = np.exp(rng.normal(8, 1.5, n))
    return with_clusters(
        pl.DataFrame(
            {
                "user": [f"u{number}" for number in user],
                "duration_s": np.minimum(failure, other).astype(np.int64),
                "event": np.where(failure <= other, "failure", "success"),
            }
        )
    )


def units_of(lives: pl.DataFrame) -> Units:
    age = lives.select(age_bin(pl.col("duration_s"))).to_series().to_numpy()
    _, unit = np.unique(lives["cluster"].to_numpy(), return_inverse=True)
    failed, one = (lives["event"] == "failure").to_numpy(), np.ones(lives.height)
    return Units.from_entries(unit, age, one, failed, ages_of(lives))


def ages_of(lives: pl.DataFrame) -> Ages:
    age = lives.select(age_bin(pl.col("duration_s"))).to_series().to_numpy()
    failed, seconds = (lives["event"] == "failure").to_numpy(), lives["duration_s"].to_numpy()
    sums = [np.bincount(age, weights=weights) for weights in (np.ones(age.size), seconds, failed, failed * seconds)]
    return Ages.from_sums(np.arange(sums[0].size), *sums)


def found(lives: pl.DataFrame) -> dict:
    return shapes(lives, FAILED, ["all"])["failure", "all", "all"]


def test_lives_stand_at_the_mean_of_their_bin():
    lives = pl.DataFrame({"duration_s": [0, 1, 2, 3, 1000, 1010, 1010, 10**8], "event": ["failure", "success"] * 4})
    age, ages = lives.select(age_bin(pl.col("duration_s"))).to_series().to_numpy(), ages_of(lives)
    assert np.exp(ages.lives[age[:4]]) == pytest.approx([0.5, 1, 2, 3])
    assert age[4] == age[5] == age[6] < age[7]
    assert np.exp(ages.lives[age[4]]) == pytest.approx((1000 + 2 * 1010) / 3)
    assert np.exp(ages.events[age[4]]) == pytest.approx((1000 + 1010) / 2)


@pytest.mark.parametrize("point", [(-1.0, 0.2), (-1.5, -0.4, 0.3), (0.2, 0.1, 4.0), (-2.0, 0.3, -2.0)])
def test_derivatives_are_those_of_the_likelihood(point):
    units, point = units_of(made(1, 0.8, n=400)), np.array(point)
    _, slope, curvature, scores, _ = likelihood(units, point)
    assert slope == pytest.approx(approx_fprime(point, lambda at: likelihood(units, at)[0], 1e-7), rel=1e-4, abs=1e-3)
    by_hand = np.array(
        [approx_fprime(point, lambda at, k=k: likelihood(units, at)[1][k], 1e-7) for k in range(point.size)]
    )
    assert curvature == pytest.approx(by_hand, rel=1e-4, abs=1e-3)
    assert np.sum(scores, axis=1) == pytest.approx(slope)


def _seen(rate: float, hazard: float, failures: int, theta: float) -> float:
    return rate**failures * math.exp(-rate * hazard) * gamma.pdf(rate, theta, scale=1 / theta)


def test_the_likelihood_is_the_integral_over_the_groups_rates():
    lives = made(2, 0.7, n=60, users=6)
    units, ages = units_of(lives), ages_of(lives)
    place = lives.select(age_bin(pl.col("duration_s"))).to_series().to_numpy()
    failed = (lives["event"] == "failure").to_numpy()
    centre = math.exp(ages.events[place[failed]].mean())
    age, at_failure = np.exp(ages.lives[place]), np.exp(ages.events[place])

    def by_integral(level: float, log_shape: float, log_theta: float) -> float:
        shape, theta = math.exp(log_shape), math.exp(log_theta)
        total = 0.0
        for cluster in np.unique(lives["cluster"]):
            mine = (lives["cluster"] == cluster).to_numpy()
            hazard = math.exp(level) * ((age[mine] / centre) ** shape).sum()
            total += (level + log_shape + shape * np.log(at_failure[mine & failed] / centre)).sum()
            deaths = (mine & failed).sum()
            likely = (deaths + theta) / (hazard + theta)
            integral, _ = quad(_seen, 0, 60, (hazard, deaths, theta), epsabs=0, points=[likely], limit=200)
            total += math.log(integral)
        return total

    points = [(-1.0, -0.3, 0.5), (-0.5, 0.1, 1.2), (-2.0, 0.0, 0.2)]
    ours = np.array([likelihood(units, np.array(point))[0] for point in points])
    theirs = np.array([by_integral(*point) for point in points])
    assert ours - ours[0] == pytest.approx(theirs - theirs[0], abs=1e-6)


def test_the_fit_is_where_an_independent_search_ends():
    units = units_of(made(3, 0.85))
    search = minimize(
        lambda point: -likelihood(units, point)[0],
        [0.0, 0.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-9, "maxiter": 4000},
    )
    fit = fit_frailty(units, fit_pooled(units))
    assert fit.converged
    assert fit.point == pytest.approx(search.x, abs=1e-4)


def test_at_a_constant_hazard_it_is_the_negative_binomial_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    units = units_of(made(4, 1.0))
    exposure = units.hazards(0.0, 1.0)[:, 0]
    fit = sm.NegativeBinomial(units.failures, np.ones_like(exposure), exposure=exposure).fit(
        start_params=[0.0, 1.0], disp=False
    )
    level, variance = fit.params
    slope = likelihood(units, np.array([level, 0.0, -math.log(variance)]))[1]
    assert slope[[0, 2]] == pytest.approx([0, 0], abs=0.02)


def test_pooled_is_the_weibull_of_every_life():
    lives = made(5, 0.7, spread=0.01)
    exact = lifetime_models(lives, "failure", ["all"]).filter(model="weibull").row(0, named=True)
    assert fit_pooled(units_of(lives)).shape == pytest.approx(exact["shape"], rel=5e-4)
    # Where every life is a cluster of its own, the sandwich is the model's error.
    apart = lives.with_columns(
        cluster=pl.int_range(pl.len(), dtype=pl.UInt32), group=pl.int_range(pl.len(), dtype=pl.UInt32)
    )
    of_each = found(apart)
    assert of_each["reach"] == pytest.approx(Z_95 * exact["shape_se"] / exact["shape"], rel=0.1)
    assert "shape_within" not in of_each and "most are alone" in of_each["why_not_within"]


@pytest.mark.parametrize("kind", ["lognormal", "gamma"])
@pytest.mark.parametrize("spread", [0.5, 1.0])
@pytest.mark.parametrize("shape", [0.6, 0.85, 1.0])
def test_true_shapes_are_found_again(shape, spread, kind):
    fits = [units_of(made(seed, shape, kind, spread)) for seed in range(12)]
    assert np.mean([fit_frailty(units, fit_pooled(units)).shape for units in fits]) == pytest.approx(shape, rel=0.025)
    # All jobs taken as alike have a rate that falls the more.
    assert np.mean([fit_pooled(units).shape for units in fits]) < shape * (0.97 if spread == 0.5 else 0.88)


def verdicts(lives: pl.DataFrame) -> dict:
    models, curves = lifetime_models(lives, "failure", ["all"]), survival_tables(lives, "failure", ["all"])[0]
    table = lifetime_verdict(models, curves, shapes(lives, FAILED, ["all"]))
    LIFETIME_VERDICT.check(table)
    return table.row(0, named=True)


def test_constant_hazards_that_differ_are_no_falling_one():
    """At most 5 % of the runs are called falling; nearly all of them were when users were taken as alike."""
    runs, falling, alike = 120, 0, 0
    for seed in range(runs):
        row = found(made(seed, 1.0, spread=0.5 + 0.5 * (seed % 2)))
        falling += row["shape_within_ci_high"] < 0.9
        alike += row["p_clustered"] < 0.05
    assert falling <= 0.05 * runs
    assert alike > 0.5 * runs


@pytest.mark.parametrize(
    ("shape", "n", "said"),
    [(0.6, 3_000, "falls"), (1.0, 3_000, MIXTURE), (1.0, 20_000, "stays"), (1.6, 3_000, "rises")],
)
def test_what_is_said(shape, n, said):
    row = verdicts(made(6 if n < 10_000 else 7, shape, n=n))
    assert row["verdict_within"] in ({said, "stays"} if said == MIXTURE else {said})
    assert row["within"] == row["cluster_by"] == "user"
    assert row["shape_ci_low_clustered"] < row["shape_ci_low"] < row["shape"] < row["shape_ci_high_clustered"]
    assert row["reason"] is None
    if shape == 1.0:
        assert row["verdict"] == "falls"


def test_too_little_repeats_to_see_within():
    lives = made(8, 1.0, n=200)
    few = lives.with_columns(cluster=(pl.int_range(pl.len()) % 3).cast(pl.UInt32))
    row = verdicts(few.with_columns(group="cluster"))
    assert row["verdict_within"] is None and row["misleads_clustered"] is None
    assert "3.0 effective clusters by user, fewer than 4" in row["reason"]
    nothing = verdicts(lives.drop(CLUSTER_COLUMNS))
    assert nothing["cluster_by"] is None and "nothing in the trace" in nothing["reason"]


def test_groups_that_are_lives_give_way_to_clusters_and_a_cluster_alone_to_its_groups():
    lives = made(9, 1.0)
    apart = lives.with_columns(group=pl.int_range(pl.len(), dtype=pl.UInt32), group_by=pl.lit("life"))
    assert found(apart) == pytest.approx(found(lives))
    alone = lives.with_columns(cluster=pl.lit(0, pl.UInt32), cluster_by=pl.lit("system"), group_by=pl.lit("node"))
    inside = found(alone)
    assert inside["cluster_by"] == inside["within"] == "node"
    assert inside["shape_within"] == pytest.approx(found(lives)["shape_within"])


def test_each_stratum_and_event_by_itself_in_any_order():
    lives = pl.concat([made(seed, shape).with_columns(batch=pl.lit(seed)) for seed, shape in ((1, 0.6), (2, 1.0))])
    lives = lives.with_columns(memory=pl.col("duration_s") % 2 == 0)
    events = FAILED | {"memory": FAILED["failure"] & pl.col("memory")}
    both = shapes(lives, events, ["all", "batch"])
    assert sorted(both) == [
        (e, *s) for e in ("failure", "memory") for s in (("all", "all"), ("batch", "1"), ("batch", "2"))
    ]
    assert both["failure", "batch", "2"] == found(lives.filter(batch=2))
    shuffled = shapes(lives.sample(fraction=1, shuffle=True, seed=1), events, ["all", "batch"])
    assert_frame_equal(
        pl.DataFrame(list(both.values())), pl.DataFrame([shuffled[key] for key in both]), check_exact=True
    )

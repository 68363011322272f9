"""Tests of the frailty fit and its verdict: a falling hazard against a mixture of constant hazards."""

import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.stats import gamma
from ttf.analyses.time_to_failure.fit_mttf.compute import lifetime_models
from ttf.analyses.time_to_failure.judge_lifetimes import LIFETIME_VERDICT, MIXTURE
from ttf.analyses.time_to_failure.judge_lifetimes.compute import lifetime_verdict
from ttf.records.clusters import CLUSTER_COLUMNS, add_clusters
from ttf.stats.basics.normal import Z_95
from ttf.stats.durations.survival import survival_tables
from ttf.stats.lifetimes.frailty import Ages, Units, age_bin, fit_frailty, fit_pooled, likelihood
from ttf.stats.lifetimes.pooled_shapes import fit_shapes

FAILED = {"failure": (pl.col("event") == "failure").fill_null(False)}


def draw_rates(rng: np.random.Generator, kind: str, spread: float, users: int) -> np.ndarray:
    return np.exp(rng.normal(0, spread, users)) if kind == "lognormal" else rng.gamma(spread**-2, spread**2, users)


def simulate(seed: int, shape: float, kind: str = "lognormal", spread: float = 1.0, users=100, n=3_000) -> pl.DataFrame:
    """Simulate jobs of users with Zipf sizes and different rates. All hazards are powers of age with one shape."""
    rng = np.random.default_rng(seed)
    size = np.arange(1, users + 1) ** -0.9
    user = rng.choice(users, n, p=size / size.sum())
    failure = 10**4 * (rng.exponential(size=n) / draw_rates(rng, kind, spread, users)[user]) ** (1 / shape)
    competing = np.exp(rng.normal(8, 1.5, n))
    return add_clusters(
        pl.DataFrame(
            {
                "user": [f"u{number}" for number in user],
                "duration_s": np.minimum(failure, competing).astype(np.int64),
                "event": np.where(failure <= competing, "failure", "success"),
            }
        )
    )


def frailty_units(durations: pl.DataFrame) -> Units:
    age = durations.select(age_bin(pl.col("duration_s"))).to_series().to_numpy()
    _, unit = np.unique(durations["cluster"].to_numpy(), return_inverse=True)
    failed, ones = (durations["event"] == "failure").to_numpy(), np.ones(durations.height)
    return Units.from_entries(unit, age, ones, failed, age_sums(durations))


def age_sums(durations: pl.DataFrame) -> Ages:
    age = durations.select(age_bin(pl.col("duration_s"))).to_series().to_numpy()
    failed, seconds = (durations["event"] == "failure").to_numpy(), durations["duration_s"].to_numpy()
    sums = [np.bincount(age, weights=weights) for weights in (np.ones(age.size), seconds, failed, failed * seconds)]
    return Ages.from_sums(np.arange(sums[0].size), *sums)


def overall_shape(durations: pl.DataFrame) -> dict:
    return fit_shapes(durations, FAILED, ["all"])["failure", "all", "all"]


@pytest.mark.parametrize("point", [(-1.0, 0.2), (-1.5, -0.4, 0.3), (-2.0, 0.3, -2.0)])
def test_derivatives_are_those_of_the_likelihood(point):
    units, point = frailty_units(simulate(1, 0.8, n=400)), np.array(point)
    _, slope, curvature, scores, _ = likelihood(units, point)
    assert slope == pytest.approx(approx_fprime(point, lambda x: likelihood(units, x)[0], 1e-7), rel=1e-4, abs=1e-3)
    numerical = np.array(
        [approx_fprime(point, lambda x, k=k: likelihood(units, x)[1][k], 1e-7) for k in range(point.size)]
    )
    assert curvature == pytest.approx(numerical, rel=1e-4, abs=1e-3)
    assert np.sum(scores, axis=1) == pytest.approx(slope)


def integrand(rate: float, hazard: float, failures: int, theta: float) -> float:
    return rate**failures * math.exp(-rate * hazard) * gamma.pdf(rate, theta, scale=1 / theta)


def test_the_likelihood_is_the_integral_over_the_groups_rates():
    durations = simulate(2, 0.7, n=60, users=6)
    units, ages = frailty_units(durations), age_sums(durations)
    bins = durations.select(age_bin(pl.col("duration_s"))).to_series().to_numpy()
    failed = (durations["event"] == "failure").to_numpy()
    centre = math.exp(ages.events[bins[failed]].mean())
    age, at_failure = np.exp(ages.durations[bins]), np.exp(ages.events[bins])

    def log_likelihood(level: float, log_shape: float, log_theta: float) -> float:
        shape, theta = math.exp(log_shape), math.exp(log_theta)
        total = 0.0
        for cluster in np.unique(durations["cluster"]):
            in_cluster = (durations["cluster"] == cluster).to_numpy()
            hazard = math.exp(level) * ((age[in_cluster] / centre) ** shape).sum()
            total += (level + log_shape + shape * np.log(at_failure[in_cluster & failed] / centre)).sum()
            deaths = (in_cluster & failed).sum()
            mode = (deaths + theta) / (hazard + theta)
            integral, _ = quad(integrand, 0, 60, (hazard, deaths, theta), epsabs=0, points=[mode], limit=200)
            total += math.log(integral)
        return total

    points = [(-1.0, -0.3, 0.5), (-0.5, 0.1, 1.2), (-2.0, 0.0, 0.2)]
    fitted = np.array([likelihood(units, np.array(point))[0] for point in points])
    integrated = np.array([log_likelihood(*point) for point in points])
    assert fitted - fitted[0] == pytest.approx(integrated - integrated[0], abs=1e-6)


def test_the_pooled_fit_is_the_weibull_fit_of_all_durations():
    durations = simulate(5, 0.7, spread=0.01)
    exact = lifetime_models(durations, "failure", ["all"]).filter(model="weibull").row(0, named=True)
    assert fit_pooled(frailty_units(durations)).shape == pytest.approx(exact["shape"], rel=5e-4)
    # If every duration is its own cluster, the sandwich error equals the model's error.
    singletons = durations.with_columns(
        cluster=pl.int_range(pl.len(), dtype=pl.UInt32), group=pl.int_range(pl.len(), dtype=pl.UInt32)
    )
    shape = overall_shape(singletons)
    assert shape["reach"] == pytest.approx(Z_95 * exact["shape_se"] / exact["shape"], rel=0.1)
    assert "shape_within" not in shape and "most are alone" in shape["why_not_within"]


@pytest.mark.parametrize(("kind", "spread"), [("lognormal", 1.0), ("gamma", 0.5)])
@pytest.mark.parametrize("shape", [0.6, 1.0])
def test_the_fit_recovers_the_true_shape(shape, spread, kind):
    fits = [frailty_units(simulate(seed, shape, kind, spread)) for seed in range(8)]
    assert np.mean([fit_frailty(units, fit_pooled(units)).shape for units in fits]) == pytest.approx(shape, rel=0.025)
    # The pooled fit ignores the differences among users, so its hazard falls more steeply.
    assert np.mean([fit_pooled(units).shape for units in fits]) < shape * (0.97 if spread == 0.5 else 0.88)


def verdicts(durations: pl.DataFrame) -> dict:
    models, curves = lifetime_models(durations, "failure", ["all"]), survival_tables(durations, "failure", ["all"])[0]
    table = lifetime_verdict(models, curves, fit_shapes(durations, FAILED, ["all"]))
    LIFETIME_VERDICT.check(table)
    return table.row(0, named=True)


def test_a_mixture_of_constant_hazards_is_rarely_called_falling():
    """At most 5 % of the runs are called falling. The pooled fit calls most of them falling."""
    runs, falling, falling_pooled = 60, 0, 0
    for seed in range(runs):
        row = overall_shape(simulate(seed, 1.0, spread=0.5 + 0.5 * (seed % 2)))
        falling += row["shape_within_ci_high"] < 0.9
        falling_pooled += row["p_clustered"] < 0.05
    assert falling <= 0.05 * runs
    assert falling_pooled > 0.5 * runs


@pytest.mark.parametrize(
    ("shape", "n", "verdict"),
    [(0.6, 3_000, "falls"), (1.0, 3_000, MIXTURE), (1.0, 20_000, "stays"), (1.6, 3_000, "rises")],
)
def test_the_verdict_names_the_direction_of_the_hazard(shape, n, verdict):
    row = verdicts(simulate(6 if n < 10_000 else 7, shape, n=n))
    assert row["verdict_within"] in ({verdict, "stays"} if verdict == MIXTURE else {verdict})
    assert row["group_by"] == row["cluster_by"] == "user"
    assert row["shape_ci_low_clustered"] < row["shape_ci_low"] < row["shape"] < row["shape_ci_high_clustered"]
    assert row["reason"] is None
    if shape == 1.0:
        assert row["verdict"] == "falls"


def test_no_verdict_within_groups_if_clusters_are_too_few():
    durations = simulate(8, 1.0, n=200)
    three_clusters = durations.with_columns(cluster=(pl.int_range(pl.len()) % 3).cast(pl.UInt32))
    row = verdicts(three_clusters.with_columns(group="cluster"))
    assert row["verdict_within"] is None and row["misleads_clustered"] is None
    assert "3.0 effective clusters by user, fewer than 4" in row["reason"]
    unclustered = verdicts(durations.drop(CLUSTER_COLUMNS))
    assert unclustered["cluster_by"] is None and "nothing in the trace" in unclustered["reason"]


def test_clusters_replace_groups_of_one_duration_and_groups_replace_a_single_cluster():
    durations = simulate(9, 1.0)
    single_durations = durations.with_columns(
        group=pl.int_range(pl.len(), dtype=pl.UInt32), group_by=pl.lit("duration")
    )
    assert overall_shape(single_durations) == pytest.approx(overall_shape(durations))
    one_cluster = durations.with_columns(
        cluster=pl.lit(0, pl.UInt32), cluster_by=pl.lit("system"), group_by=pl.lit("node")
    )
    shape = overall_shape(one_cluster)
    assert shape["cluster_by"] == shape["group_by"] == "node"
    assert shape["shape_within"] == pytest.approx(overall_shape(durations)["shape_within"])


def test_strata_and_events_are_fitted_separately_and_row_order_does_not_matter():
    durations = pl.concat(simulate(seed, shape).with_columns(batch=seed) for seed, shape in ((1, 0.6), (2, 1.0)))
    events = FAILED | {"memory": FAILED["failure"] & (pl.col("duration_s") % 2 == 0)}
    fits = fit_shapes(durations, events, ["all", "batch"])
    assert len(fits) == 6
    assert fits["failure", "batch", "2"] == overall_shape(durations.filter(batch=2))
    shuffled = fit_shapes(durations.sample(fraction=1, shuffle=True, seed=1), events, ["all", "batch"])
    assert_frame_equal(
        pl.DataFrame(list(fits.values())), pl.DataFrame([shuffled[key] for key in fits]), check_exact=True
    )


def test_a_single_failure_among_three_long_jobs_of_one_user_tells_no_shape():
    """The limits of an interval so wide are no floats."""
    long_ends = {86_400: "failure", 90_000: "success", 100_000: "success"}
    durations = pl.DataFrame(
        {
            "user": [f"u{number % 5}" for number in range(60)] + ["long"] * 3,
            "duration_s": [600 + 30 * number for number in range(60)] + [*long_ends],
            "event": ["success"] * 60 + [*long_ends.values()],
        }
    )
    cells = overall_shape(add_clusters(durations))
    assert cells["why_not"] == "the spread of the shape between clusters cannot be told"
    assert cells["why_not_within"] == "no shape within groups by user can be told"

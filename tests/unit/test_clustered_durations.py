"""Clustered survival estimates agree with closed forms and the jackknife."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from ttf.analyses.factors.estimate_hazards.compute import logrank
from ttf.analyses.factors.estimate_hazards.hazard_ratios import hazard_ratios
from ttf.analyses.factors.estimate_hazards.incidence_tables import cumulative_incidence
from ttf.records.clusters import add_clusters, add_levels
from ttf.stats.clustered import FEWEST, UNCLUSTERED
from ttf.stats.durations import cox_clusters
from ttf.stats.durations.clustered_durations import Influences
from ttf.stats.durations.cox import RiskSets, fit
from ttf.stats.durations.cox_clusters import ClusteredDurations, effects_by_cluster
from ttf.stats.durations.logrank import _scores
from ttf.stats.durations.strata import CountedDurations, iterate_times
from ttf.stats.durations.survival import NOT_WITH_ENTRIES, survival_summary, survival_tables

EVENTS = ["failure", "success", "cancelled"]


def simulate_durations(users: int, count: int, seed: int, group_unit: str = "job") -> pl.DataFrame:
    """Durations of unequal users (log SD 1) with ties and censoring. `group_of` has no effect.

    group_unit: "user" or "job", the unit for which the group is drawn.
    """
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, users + 1) ** 0.9
    user = rng.choice(users, count, p=share / share.sum())
    pace = rng.normal(size=users)[user]
    seconds = np.exp(5 + pace + rng.normal(size=count)).astype(np.int64) + 1
    event = rng.choice([*EVENTS, None], count, p=[0.4, 0.3, 0.1, 0.2])
    group = rng.integers(0, 2, users)[user] if group_unit == "user" else rng.integers(0, 2, count)
    frame = pl.DataFrame({"user": user, "duration_s": seconds, "event": event.tolist(), "group_of": group})
    frame = frame.with_columns(pl.col("group_of").cast(pl.String), entry_s=pl.lit(0, pl.Int64))
    return add_clusters(frame)


def incidence(durations: pl.DataFrame, weight: np.ndarray, event: str) -> np.ndarray:
    """The Aalen-Johansen estimate of weighted durations, by its definition."""
    seconds, events = durations["duration_s"].to_numpy(), durations["event"].to_numpy()
    survival, estimates = 1.0, [0.0]
    for age in np.unique(seconds):
        ends_now, at_risk = seconds == age, weight[seconds >= age].sum()
        estimates.append(estimates[-1] + survival * weight[ends_now & (events == event)].sum() / at_risk)
        survival *= 1 - weight[ends_now & np.isin(events, EVENTS)].sum() / at_risk
    return np.array(estimates)


def test_error_of_an_incidence_is_the_jackknife_over_clusters():
    durations, event = simulate_durations(12, 150, 1), "success"
    durations = durations.with_columns(duration_s=pl.col("duration_s") // 40 * 40 + 40)
    step, influence = 1e-5, []
    for user in range(12):
        change = step * (durations["user"] == user).to_numpy()
        influence.append(
            (incidence(durations, 1 + change, event) - incidence(durations, 1 - change, event)) / (2 * step)
        )
    members = durations["user"].value_counts().sort("user")["count"].to_numpy()
    se = np.sqrt(((np.array(influence) / (1 - members / 150)[:, None]) ** 2).sum(axis=0))
    curve = cumulative_incidence(durations, EVENTS, ["all"]).filter(event=event)
    assert curve["clusters"][0] == pytest.approx(150**2 / (members**2).sum())
    student = CountedDurations(durations, EVENTS).by_cluster("all")["all"].student()
    inside = curve["ci_low_clustered"].is_not_null().to_numpy()
    assert inside.sum() > 10
    estimate = curve["incidence"].to_numpy()[inside]
    power = np.exp(student * se[inside] / (estimate * -np.log(estimate)))
    assert curve["ci_low_clustered"].to_numpy()[inside] == pytest.approx(estimate**power, rel=1e-6)
    assert curve["ci_high_clustered"].to_numpy()[inside] == pytest.approx(estimate ** (1 / power), rel=1e-6)


def test_weeks_widen_an_incidence_as_they_widen_a_ratio():
    """At ages of the grid the width is that of `Clusters.spread` from the influences of users by week."""
    durations = simulate_durations(8, 160, 1)
    week = np.random.default_rng(2).integers(0, 9, 160)
    shifted = (pl.col("duration_s") // 40 * 40 + 40) * pl.Series(1 + week % 3)
    durations = durations.with_columns(duration_s=shifted, block=pl.Series(week), block_by=pl.lit("week"))
    members, event = CountedDurations(durations, EVENTS).by_cluster("all")["all"], "failure"
    cells, step, influence = members.cells, 1e-5, []
    for user, block in zip(cells.cluster, cells.block, strict=True):
        change = (
            step * durations.select((pl.col("cluster") == user) & (pl.col("block") == block)).to_series().to_numpy()
        )
        estimates = (incidence(durations, 1 + sign * change, event) for sign in (1, -1))
        influence.append((next(estimates) - next(estimates)) / (2 * step))
    curve = cumulative_incidence(durations, EVENTS, ["all"]).filter(event=event)
    assert curve["cluster_by"][0] == "user and week" and curve["clusters"][0] == pytest.approx(members.effective)
    for index in Influences(members, curve["time_s"].to_numpy()).grid:
        row, by_cell = curve.row(int(index), named=True), np.array(influence)[:, index]
        if row["ci_low_clustered"] is None:
            continue
        half_width = cells.spread(by_cell, cells.share(cells.members)).half_width(0.95)[0]
        power = np.exp(half_width / (row["incidence"] * -np.log(row["incidence"])))
        assert row["ci_low_clustered"] == pytest.approx(row["incidence"] ** power, rel=1e-5)


def test_curves_and_summary_of_survival():
    durations = simulate_durations(30, 2_000, 2)
    curves, summary = survival_tables(durations, "failure", ["all", "group_of"])
    row = summary.row(0, named=True)
    overall = curves.filter(stratum_by="all")
    for name in ("low", "high"):
        reached = overall.filter(pl.col(f"ci_{name}_clustered") <= 0.5)["time_s"].min()
        assert row[f"median_ci_{name}_clustered_s"] == reached
    assert row["median_ci_low_clustered_s"] < row["median_ci_low_s"] < row["median_s"]
    assert row["restricted_mean_se_clustered_s"] > 1.5 * row["restricted_mean_se_s"]
    assert overall["ci_low_clustered"][0] == overall["ci_high_clustered"][0] == 1
    late = survival_summary(durations, "failure", ["all"], delayed_entry=True).row(0, named=True)
    assert late["median_ci_low_clustered_s"] is None and NOT_WITH_ENTRIES in late["reason"]


def test_error_of_the_restricted_mean_is_the_cluster_jackknife():
    durations = simulate_durations(60, 1_500, 3)
    row = survival_summary(durations, "failure", ["all"]).row(0, named=True)
    means = []
    for user in range(60):
        subset = durations.filter(pl.col("user") != user)
        curve = survival_tables(subset, "failure", ["all"])[0].filter(pl.col("time_s") <= row["horizon_s"])
        time = np.append(curve["time_s"].to_numpy(), row["horizon_s"])
        means.append((curve["survival"].to_numpy() * np.diff(time)).sum())
    jackknife = np.sqrt(((np.array(means) - row["restricted_mean_s"]) ** 2).sum())
    assert row["restricted_mean_se_clustered_s"] == pytest.approx(jackknife, rel=0.1)


def test_durations_without_clusters_have_exact_intervals_only():
    durations = simulate_durations(30, 300, 4).drop("cluster_by", "cluster", "group_by", "group")
    curves, summary = survival_tables(durations, "failure", ["all"])
    assert curves["ci_low_clustered"].null_count() == curves.height
    tables = [test(durations, "failure", ["group_of"]) for test in (logrank, hazard_ratios)]
    assert all(UNCLUSTERED in table["reason"][0] for table in (curves, summary, *tables))
    assert all(table["p_clustered"].null_count() == table.height for table in tables)


def test_too_few_clusters_give_no_interval():
    durations = simulate_durations(3, 300, 5)
    row = cumulative_incidence(durations, ["failure"], ["all"]).row(-1, named=True)
    assert row["ci_low"] and row["ci_low_clustered"] is None
    assert f"effective clusters by user, fewer than {FEWEST}" in row["reason"]
    for test in (logrank, hazard_ratios):
        assert test(durations, "failure", ["group_of"])["p_clustered"].null_count() == 2


def test_strata_of_one_cluster_are_compared_by_their_groups():
    """Two systems of twelve nodes. A single node causes all of the difference between them."""
    rng = np.random.default_rng(6)
    rows = [
        (system, node, int(rng.integers(100, 1000) / (40 if (system, node) == ("b", 0) else 1)) + 1, "failure")
        for system in "ab"
        for node in range(12)
        for _ in range(40 if (system, node) == ("b", 0) else 5)
    ]
    durations = pl.DataFrame(rows, schema=["system", "node", "duration_s", "event"], orient="row")
    durations = add_levels(durations, {"system": ["system"], "node": ["system", "node"]})
    row = logrank(durations, "failure", ["system"]).row(0, named=True)
    assert row["cluster_by"] == "node" and row["clusters"] > FEWEST
    assert row["p_value"] < 0.01 < 0.05 < row["p_clustered"]


def test_scores_by_cluster_add_up_to_the_difference_of_observed_and_expected():
    durations = simulate_durations(20, 400, 7)
    counted = CountedDurations(durations, ["failure"])
    clusters = counted.by_cluster("group_of")
    strata = dict(iterate_times(counted, "failure", "group_of"))
    event_times = np.unique(np.concatenate([times.seconds[times.events > 0] for times in strata.values()]))
    at_risk = np.stack([times.at_risk(event_times) for times in strata.values()])
    events = durations.filter(pl.col("event") == "failure")["duration_s"].value_counts().sort("duration_s")["count"]
    share, hazard = at_risk / at_risk.sum(axis=0), events.to_numpy() / at_risk.sum(axis=0)
    scores = _scores([clusters[label] for label in strata], 1, event_times, share, hazard, np.array([0, 1]))
    difference = [*strata.values()][1].failures - (share[1] * events.to_numpy()).sum()
    assert scores.sum(axis=1) == pytest.approx([-difference, difference])


@pytest.fixture(scope="module")
def fitted():
    durations = simulate_durations(40, 1_200, 8)
    size = np.random.default_rng(1).integers(0, 4, durations.height).astype(float)
    columns = [(durations["group_of"] == "1").to_numpy(), size]
    seconds = (durations["duration_s"] // 20 * 20).to_numpy()
    failed = (durations["event"] == "failure").fill_null(False).to_numpy()
    covariates = np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)
    patterns, pattern = np.unique(covariates, axis=0, return_inverse=True)
    risk_sets = RiskSets(seconds, failed, columns)
    user = durations["user"].to_numpy()
    durations = ClusteredDurations(user, np.arange(1_200) % 12, pattern.ravel(), seconds, failed, patterns)
    return risk_sets, fit(risk_sets), durations, columns


def test_changes_equal_fits_without_each_cluster(fitted):
    risk_sets, cox_fit, data, columns = fitted
    effects = effects_by_cluster(risk_sets, cox_fit, data, np.eye(2))
    deltas = []
    for user in np.unique(data.cluster):
        rest = data.cluster != user
        fit_without = fit(RiskSets(data.seconds[rest], data.failed[rest], [column[rest] for column in columns]))
        deltas.append(cox_fit.coefficients - fit_without.coefficients)
    size = np.sqrt((np.array(deltas) ** 2).sum(axis=0))
    assert np.sqrt((effects.change**2).sum(axis=0)) == pytest.approx(size, rel=0.05)
    assert np.abs(effects.influence.sum(axis=0)).max() < 1e-10
    assert effects.leverage.sum(axis=0) == pytest.approx([1, 1])


def test_parts_of_ages_change_little_and_row_blocks_nothing(fitted, monkeypatch):
    risk_sets, cox_fit, durations, _ = fitted
    changes = effects_by_cluster(risk_sets, cox_fit, durations, np.eye(2)).change
    monkeypatch.setattr(cox_clusters, "BLOCK_ROWS", 50)
    assert effects_by_cluster(risk_sets, cox_fit, durations, np.eye(2)).change == pytest.approx(changes, rel=1e-12)
    monkeypatch.setattr(cox_clusters, "PARTS", 8)
    coarser = effects_by_cluster(risk_sets, cox_fit, durations, np.eye(2)).change
    assert np.sqrt((coarser**2).sum(axis=0)) == pytest.approx(np.sqrt((changes**2).sum(axis=0)), rel=2e-3)


def test_the_order_of_durations_does_not_matter():
    durations = simulate_durations(25, 600, 9)
    shuffled = durations.sample(fraction=1, shuffle=True, seed=3)
    for table in (
        lambda frame: cumulative_incidence(frame, EVENTS, ["all", "group_of"]),
        lambda frame: logrank(frame, "failure", ["group_of"]),
        lambda frame: hazard_ratios(frame, "failure", ["group_of"]),
    ):
        assert_frame_equal(table(durations), table(shuffled), check_exact=True)

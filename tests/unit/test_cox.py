"""Cox regression agrees with PHReg of statsmodels and with an explicit likelihood."""

import math

import numpy as np
import polars as pl
import pytest
from statsmodels.duration.hazard_regression import PHReg
from ttf.analyses.factors.estimate_hazards import COX
from ttf.analyses.factors.estimate_hazards.hazard_ratios import (
    ARE_CLUSTERS,
    COLLINEAR,
    CONSTANT,
    FEWEST_EVENTS,
    MOST_LEVELS,
    NEVER_GIVEN,
    NOT_GIVEN,
    ONE_CLUSTER,
    OTHER,
    SEPARATED,
    TOO_FEW,
    hazard_ratios,
)
from ttf.stats.basics.holm import holm
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.durations import cox
from ttf.stats.durations.cox import NoFit, RiskSets, fit, independent_columns, proportionality_statistics
from ttf.stats.durations.strata import NO_DURATION


def simulated(n=800, seed=1, longest=10_000, slope=0.5):
    """(durations, failed, amount, type). The hazard doubles for type B and grows by `slope` per amount."""
    rng = np.random.default_rng(seed)
    amount, type_ = rng.integers(0, 6, n), rng.integers(0, 3, n)
    time = rng.exponential(longest / 10 * np.exp(-slope * amount - math.log(2) * (type_ == 1)))
    censoring = rng.uniform(0, longest / 5, n)
    return np.ceil(np.minimum(time, censoring)).astype(np.int64), time < censoring, amount, type_


def durations_of(seconds, failed, amount, type_):
    return pl.DataFrame(
        {
            "duration_s": seconds,
            "event": np.where(failed, "failure", "success"),
            "gpu_count": 2**amount,
            "gpu_type": np.array(["A", "B", "C"])[type_],
        }
    )


@pytest.mark.parametrize("longest", [60, 10_000_000])  # many ties and hardly any
@pytest.mark.parametrize("is_continuous", [False, True])
def test_estimates_are_those_of_statsmodels(is_continuous, longest):
    seconds, failed, amount, type_ = simulated(longest=longest)
    noise = np.random.default_rng(7).normal(size=seconds.size) if is_continuous else 0.0
    columns = [amount + noise, type_ == 1, type_ == 2]
    cox_fit = fit(RiskSets(seconds, failed, columns))
    model = PHReg(seconds, np.column_stack(columns).astype(float), status=failed.astype(int), ties="efron")
    reference = model.fit(method="newton", maxiter=100, tol=1e-12)
    assert cox_fit.coefficients == pytest.approx(reference.params, abs=1e-9)
    assert np.sqrt(np.diag(cox_fit.covariance)) == pytest.approx(reference.bse, abs=1e-9)
    assert cox_fit.loglik == pytest.approx(reference.llf, rel=1e-12)
    shuffled = np.random.default_rng(0).permutation(seconds.size)
    refit = fit(RiskSets(seconds[shuffled], failed[shuffled], [column[shuffled] for column in columns]))
    assert refit.coefficients == pytest.approx(cox_fit.coefficients, rel=1e-12)


def test_groups_of_equal_covariates_and_event_blocks_give_the_same_fit(monkeypatch):
    seconds, failed, amount, type_ = simulated(longest=60)
    columns = [amount.astype(float), type_ == 1]
    cox_fit = fit(durations := RiskSets(seconds, failed, columns))
    rows, group, number = np.unique(
        np.column_stack([amount, type_ == 1]), axis=0, return_inverse=True, return_counts=True
    )
    row_columns = [rows[:, 0].astype(float), rows[:, 1] == 1]
    assert rows.shape[0] < seconds.size / 2
    monkeypatch.setattr(cox, "EVENTS_PER_BLOCK", 7)
    grouped = RiskSets(seconds, failed, row_columns, group.ravel())
    refit = fit(grouped)
    assert refit.coefficients == pytest.approx(cox_fit.coefficients, rel=1e-12)
    assert refit.covariance == pytest.approx(cox_fit.covariance, rel=1e-12)
    groups = [[0], [0, 1]]
    assert proportionality_statistics(grouped, refit, groups) == pytest.approx(
        proportionality_statistics(durations, cox_fit, groups), rel=1e-9
    )
    columns.append(columns[0] + columns[1])
    row_columns.append(row_columns[0] + row_columns[1])
    assert independent_columns(row_columns, number) == independent_columns(columns) == [0, 1]


def explicit_proportionality_test(seconds, failed, columns, coefficients, group):
    """Score test of coefficients that change with the rank of the event, summed event by event without ties."""
    x = np.column_stack(columns).astype(float)
    size, order = x.shape[1], np.argsort(seconds)
    events = [duration for duration in order if failed[duration]]
    score, information = np.zeros(2 * size), np.zeros((2 * size, 2 * size))
    for rank, duration in enumerate(events):
        at_risk = x[seconds >= seconds[duration]]
        weight = np.exp(at_risk @ coefficients)
        # Covariates of each duration at risk, and their product with the rank of this event.
        augmented = np.hstack([at_risk, (rank / (len(events) - 1) - 0.5) * at_risk])
        event_row = np.hstack([x[duration], (rank / (len(events) - 1) - 0.5) * x[duration]])
        mean = weight @ augmented / weight.sum()
        score += event_row - mean
        information += (weight[:, None] * augmented).T @ augmented / weight.sum() - np.outer(mean, mean)
    tested = [*range(size), *(size + column for column in group)]
    score, information = score[tested], information[np.ix_(tested, tested)]
    assert np.abs(score[:size]).max() < 1e-6
    return score @ np.linalg.inv(information) @ score


def test_proportionality_against_an_explicit_likelihood():
    seconds, failed, amount, type_ = simulated(n=300, longest=10**9)
    assert np.unique(seconds).size == seconds.size
    columns = [amount.astype(float), type_ == 1, type_ == 2]
    durations = RiskSets(seconds, failed, columns)
    cox_fit = fit(durations)
    groups = [[0], [1, 2], [0, 1, 2]]
    for statistic, group in zip(proportionality_statistics(durations, cox_fit, groups), groups, strict=True):
        reference = explicit_proportionality_test(seconds, failed, columns, cox_fit.coefficients, group)
        assert statistic == pytest.approx(reference, rel=1e-9)


def test_a_constant_column_raises():
    with pytest.raises(NoFit, match="singular"):
        fit(RiskSets(np.arange(1, 41), np.full(40, True), [np.zeros(40)]))


def test_independent_columns():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=50), rng.random(50) < 0.5
    assert independent_columns([a, b, 2 * a - 3 * b + 1, np.ones(50), ~b, rng.normal(size=50)]) == [0, 1, 5]


def test_table():
    seconds, failed, amount, type_ = simulated()
    durations = durations_of(seconds, failed, amount, type_)
    table = hazard_ratios(durations, "failure", ["gpu_count", "gpu_type"])
    COX.check(table)
    reference_level = durations["gpu_type"].value_counts(sort=True)["gpu_type"][0]
    assert {reference_level, *table["level"][1:3]} == {*"ABC"}
    assert table.select("covariate", "reference").rows() == [
        ("gpu_count", None),
        ("gpu_type", reference_level),
        ("gpu_type", reference_level),
        ("all", None),
    ]
    design = [amount.astype(float), *(durations["gpu_type"].to_numpy() == level for level in table["level"][1:3])]
    model = PHReg(seconds, np.column_stack(design).astype(float), status=failed.astype(int), ties="efron")
    reference = model.fit(method="newton", maxiter=100, tol=1e-12)
    rows = table.head(3)
    assert rows["converged"].all()
    assert rows["log_hazard_ratio"].to_numpy() == pytest.approx(reference.params, abs=1e-9)
    assert rows["se"].to_numpy() == pytest.approx(reference.bse, abs=1e-9)
    limits = np.exp(reference.conf_int())
    assert rows.select("ci_low", "ci_high").to_numpy() == pytest.approx(limits, rel=1e-8)
    assert rows["p_value"].to_numpy() == pytest.approx(reference.pvalues, rel=1e-6, abs=1e-300)
    assert rows["p_adjusted"].to_list() == pytest.approx(holm(rows["p_value"].to_list()))
    level = durations.filter(gpu_type=table["level"][1])
    assert table.select("n", "events").row(1) == (level.height, (level["event"] == "failure").sum())
    assert rows["proportionality_df"].to_list() == [1, 2, 2]
    model_row = table.row(-1, named=True)
    assert (model_row["n"], model_row["events"], model_row["proportionality_df"]) == (800, failed.sum(), 3)
    assert model_row["hazard_ratio"] is None and model_row["p_adjusted"] is None


def test_levels():
    """Rare levels are merged, blanks form a level, and a level without events leaves the fit."""
    seconds, failed, amount, _ = simulated(n=4000)
    account = np.array([f"a{index % 30}" for index in range(4000)], dtype=object)
    account[::7] = None
    # 31 levels; one never fails.
    failed &= account != "a3"
    durations = durations_of(seconds, failed, amount, np.zeros(4000, dtype=int)).with_columns(
        account=pl.Series(account.tolist()),
        machine=pl.Series((["x"] * 39 + ["y"]) * 100),
        blank=pl.lit(None, pl.String),
    )
    durations = durations.with_columns(
        event=pl.when((pl.col("machine") == "x") | (pl.col("event") != "failure")).then("event")
    )
    table = hazard_ratios(durations, "failure", ["gpu_count", "account", "machine", "gpu_type", "blank"])
    accounts = table.filter(covariate="account")
    assert accounts.height == MOST_LEVELS
    assert set(accounts["reference"]) == {NOT_GIVEN}  # 571 durations, the most frequent level
    assert accounts["level"][-1] == OTHER and accounts["reason"][-1] == f"19 rarer levels together; {UNCLUSTERED}"
    machine = table.filter(covariate="machine").row(0, named=True)
    assert (machine["level"], machine["n"], machine["events"], machine["reason"]) == ("y", 100, 0, SEPARATED)
    assert not machine["converged"] and machine["hazard_ratio"] is None
    assert table.filter(covariate="gpu_type")["reason"].item() == CONSTANT
    assert table.filter(covariate="blank")["reason"].item() == NEVER_GIVEN
    assert table.filter(covariate="all")["n"].item() == 3900


def test_a_separated_level_does_not_affect_the_fit():
    durations = durations_of(*simulated()).with_row_index()
    durations = durations.with_columns(
        event=pl.when(pl.col("index") >= 50).then("event"),
        machine=pl.when(pl.col("index") >= 50).then(pl.lit("x")).otherwise(pl.lit("y")),
    )
    table = hazard_ratios(durations, "failure", ["gpu_count", "gpu_type", "machine"])
    filtered = hazard_ratios(durations.filter(machine="x"), "failure", ["gpu_count", "gpu_type"])
    assert table.filter(covariate="machine")["reason"].to_list() == [SEPARATED]
    assert table.head(3).equals(filtered.head(3))


def test_collinear_covariates_are_left_out():
    durations = durations_of(*simulated()).with_columns(
        again=pl.col("gpu_type").replace({"A": "x", "B": "y", "C": "y"})
    )
    table = hazard_ratios(durations, "failure", ["gpu_count", "gpu_type", "again"])
    row = table.filter(covariate="again").row(0, named=True)
    assert (row["reason"], row["converged"], row["hazard_ratio"]) == (COLLINEAR, False, None)
    assert table.filter(covariate="gpu_type")["converged"].all()


def test_durations_without_gpus_are_a_level():
    seconds, failed, amount, type_ = simulated()
    durations = durations_of(seconds, failed, amount, type_).with_columns(
        gpu_count=pl.when(pl.col("gpu_type") == "C").then(0).otherwise("gpu_count")
    )
    table = hazard_ratios(durations, "failure", ["gpu_count"])
    assert table.select("level", "reference").rows() == [("per doubling", None), ("0", "1"), (None, None)]
    no_gpu = durations["gpu_count"].to_numpy() == 0
    reference = fit(RiskSets(seconds, failed, [np.where(no_gpu, 0.0, amount), no_gpu]))
    assert table["log_hazard_ratio"].to_list()[:2] == pytest.approx(reference.coefficients.tolist())


def test_job_size_doubles_gpus_and_nodes():
    seconds, failed, amount, type_ = simulated()
    nodes = np.maximum(amount - np.random.default_rng(6).integers(0, 3, amount.size), 0)
    durations = durations_of(seconds, failed, amount, type_).with_columns(nodes=pl.Series(2**nodes))
    table = hazard_ratios(durations, "failure", ["gpu_count", "nodes", "gpu_type"])
    assert table["covariate"].to_list() == ["gpu_count", "nodes", "gpu_type", "gpu_type", "job_size", "all"]
    row = table.row(4, named=True)
    assert (row["level"], row["n"], row["p_adjusted"]) == ("per doubling of GPUs and nodes", 800, None)
    # The same model in other terms: GPUs, and nodes per GPU, which job size does not change.
    levels = [durations["gpu_type"].to_numpy() == name for name in table["level"][2:4]]
    reference = fit(RiskSets(seconds, failed, [amount.astype(float), (nodes - amount).astype(float), *levels]))
    estimate, se = reference.coefficients[0], reference.covariance[0, 0] ** 0.5
    assert (row["log_hazard_ratio"], row["se"]) == pytest.approx((estimate, se), rel=1e-9)
    limits = np.exp([estimate, estimate - 1.959963984540054 * se, estimate + 1.959963984540054 * se])
    assert [row[name] for name in ("hazard_ratio", "ci_low", "ci_high")] == pytest.approx(limits.tolist(), rel=1e-7)
    # It adds no coefficient, so the other rows are unchanged.
    assert table["p_adjusted"].to_list()[:4] == pytest.approx(holm(table["p_value"].to_list()[:4]))


def test_nodes_proportional_to_gpus_add_no_row():
    durations = durations_of(*simulated()).with_columns(nodes=pl.col("gpu_count") * 4)
    table = hazard_ratios(durations, "failure", ["gpu_count", "nodes"])
    assert table["covariate"].to_list() == ["gpu_count", "nodes", "all"]
    gpus_only = hazard_ratios(durations, "failure", ["gpu_count"])
    assert table["hazard_ratio"][0] == pytest.approx(gpus_only["hazard_ratio"][0], rel=1e-12)


def test_a_mostly_blank_amount_is_no_covariate():
    durations = durations_of(*simulated()).with_row_index()
    few_blank = durations.with_columns(nodes=pl.when(pl.col("index") >= 30).then(pl.col("index") % 5 + 1))
    assert hazard_ratios(few_blank, "failure", ["nodes"]).row(-1, named=True)["n"] == 770
    many_blank = durations.with_columns(nodes=pl.when(pl.col("index") >= 300).then(pl.col("index") % 5 + 1))
    table = hazard_ratios(many_blank, "failure", ["nodes", "gpu_type"])
    assert table["reason"][0] == "blank for 300 units at risk"
    assert table.row(-1, named=True)["n"] == 800


def test_too_little_to_fit():
    seconds, failed, amount, type_ = simulated(n=12)
    failed[:] = np.arange(12) < FEWEST_EVENTS - 1
    durations = durations_of(seconds, failed, amount, type_)
    assert hazard_ratios(durations, "failure", ["gpu_type"]).select("covariate", "reason").rows() == [("all", TOO_FEW)]
    assert hazard_ratios(durations.head(0), "failure", ["gpu_type"])["reason"].to_list() == [NO_DURATION]
    with pytest.raises(ValueError, match="rack"):
        hazard_ratios(durations, "failure", ["rack"])
    of_one_type = durations_of(*simulated()).with_columns(gpu_type=pl.lit("A"))
    factor, model = hazard_ratios(of_one_type, "failure", ["gpu_type"]).iter_rows(named=True)
    assert factor["reason"] and model["reason"] == "no factor has two levels: nothing to fit"
    assert model["n"] == of_one_type.height


def test_the_table_reports_a_fit_that_does_not_converge():
    # The covariate gives the order of the events, so its coefficient is unbounded.
    durations = pl.DataFrame(
        {"duration_s": range(1, 41), "event": ["failure"] * 40, "gpu_count": [2 ** (40 - n) for n in range(40)]}
    )
    table = hazard_ratios(durations, "failure", ["gpu_count"])
    assert table["converged"].to_list() == [False, False]
    assert all("separation" in reason for reason in table["reason"])


def test_a_diverging_estimate_is_reported():
    # The three durations with two GPUs fail at once, that with sixteen does not, the others have none.
    durations = pl.DataFrame(
        {
            "duration_s": [*range(100, 1096), 1, 1, 1, 5000],
            "event": ["failure"] * 12 + ["success"] * 984 + ["failure"] * 3 + ["success"],
            "gpu_count": [0] * 996 + [2] * 3 + [16],
        }
    )
    table = hazard_ratios(durations, "failure", ["gpu_count"])
    ratios = table.filter(pl.col("covariate") == "gpu_count")
    assert ratios["hazard_ratio"].null_count() == ratios.height
    assert ratios["converged"].to_list() == [False] * ratios.height
    assert ratios["reason"].null_count() == 0


def clustered_durations(systems, types):
    """Failures clustered by system; each node is a group of two."""
    rng = np.random.default_rng(7)
    system = np.repeat(np.arange(systems), 40)
    return pl.DataFrame(
        {
            "duration_s": np.ceil(rng.exponential(1_000 * np.exp(rng.normal(size=systems))[system])).astype(np.int64),
            "event": "failure",
            "system": system.astype(str),
            "machine_type": np.array(types)[system],
            "cluster_by": "system",
            "cluster": system.astype(np.uint32),
            "group_by": "node",
            "group": (np.arange(system.size) // 2).astype(np.uint32),
        }
    )


def test_a_factor_that_equals_the_clusters_is_left_out():
    durations = clustered_durations(12, ["numa", "smp", "smp"] * 4)
    table = hazard_ratios(durations, "failure", ["system", "machine_type"])
    rows = {row["covariate"]: row for row in table.iter_rows(named=True)}
    assert rows["system"]["reason"] == ARE_CLUSTERS and rows["system"]["hazard_ratio"] is None
    plain = hazard_ratios(durations, "failure", ["machine_type"]).row(0, named=True)
    ratio = rows["machine_type"]
    assert (ratio["hazard_ratio"], ratio["ci_high_clustered"]) == (plain["hazard_ratio"], plain["ci_high_clustered"])
    assert (ratio["cluster_by"], ratio["clusters"]) == ("system", pytest.approx(12))


def test_a_level_of_one_cluster_has_no_clustered_interval():
    table = hazard_ratios(clustered_durations(12, ["numa", *["smp", "power"] * 5, "smp"]), "failure", ["machine_type"])
    rows = {row["level"]: row for row in table.iter_rows(named=True) if row["level"]}
    assert rows["power"]["ci_low_clustered"] < rows["power"]["hazard_ratio"]
    assert rows["numa"]["hazard_ratio"] and rows["numa"]["ci_low_clustered"] is None
    assert ONE_CLUSTER in rows["numa"]["reason"]

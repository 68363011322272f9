"""A model after each window: its training jobs, its promotion, and its files."""

import json

import numpy as np
import polars as pl
import pytest
from made_risk import FEATURES, FIRST_S, WEEK_S, coin, shuffle_failures, with_users
from ttf.analyses.risk.train_model import LINEAGE
from ttf.analyses.risk.train_model.cache import Cache
from ttf.analyses.risk.train_model.checks import Summary, code_features, largest_drift
from ttf.analyses.risk.train_model.gate import INCONCLUSIVE, PROMOTED, WORSE, compute_tolerance, decide
from ttf.analyses.risk.train_model.lineage import (
    DRIFT,
    ONLY_MODEL,
    PENDING,
    SCHEMA,
    settled_jobs,
    train_after,
    train_lineage,
    warm_prior,
)
from ttf.analyses.risk.train_model.training_windows import split_windows
from ttf.analyses.shared.risk import LOGISTIC
from ttf.analyses.shared.risk.encoder import Encoder
from ttf.analyses.shared.risk.features import Data, parse_features
from ttf.analyses.shared.risk.model import TOO_FEW, Model
from ttf.engine.storage.tables import write_folder
from ttf.records.jobs import OUTCOMES
from ttf.stats.predictions import Estimate
from ttf.stats.regression.logistic import fit

N, WEEKS = 25_000, 5
WEEKLY = {"by": "week"}


def load_data(jobs: pl.DataFrame, features=FEATURES) -> Data:
    return Data.load(jobs.lazy(), parse_features(features), "UTC")


def build_lineage(jobs, windows=WEEKLY, parts=(), limit=1.0, features=FEATURES):
    """Train the lineage, check its contract, and return (table, files)."""
    data = load_data(jobs, features)
    lineage = train_lineage(data, split_windows(data.jobs, windows, parts), limit)
    table = LINEAGE.frame(lineage.rows)
    LINEAGE.check(table)
    return table, lineage.files


def steady_jobs(n: int = N, weeks: int = WEEKS) -> pl.DataFrame:
    """Make jobs without the late GPU type, for which only a model trained from nothing has a term."""
    return with_users(n, 1, weeks).with_columns(pl.col("gpu_type").replace({"C": "A"}))


@pytest.fixture(scope="module")
def steady():
    return build_lineage(steady_jobs())


def is_in_week(number: int) -> pl.Expr:
    """Select a week of a frame of all jobs; windows begin with the first submission."""
    return (pl.col("submit_s") - pl.col("submit_s").min()) // WEEK_S == number


# The gate -----------------------------------------------------------------------------------------------------


def estimate(value: float, half: float | None = 0.001) -> Estimate:
    if half is None:
        return Estimate(9, value, reason="too few clusters")
    return Estimate(9, value, value - half, value + half, value - half, value + half, "user", 50.0)


GAIN, LOSS, WIDE_GAIN = estimate(0.1), estimate(-0.01), estimate(0.1, 0.2)
# With a current model whose gain is 0.1 the tolerance is 0.005.
BETTER, LEVEL, WITHIN, BEYOND = estimate(-0.02), estimate(0.0), estimate(0.0039), estimate(0.0061)
SLIGHTLY, WIDE, WIDE_WORSE = estimate(0.0045), estimate(0.0, 0.02), estimate(0.02, 0.03)
DECISIONS = [
    # difference, gain, decision
    (None, GAIN, PROMOTED),
    (None, LOSS, WORSE),
    (None, WIDE_GAIN, INCONCLUSIVE),
    (None, estimate(-0.1, None), WORSE),
    (None, Estimate(0, reason="no job"), INCONCLUSIVE),
    (BETTER, GAIN, PROMOTED),
    (LEVEL, GAIN, PROMOTED),
    (WITHIN, GAIN, PROMOTED),
    (SLIGHTLY, GAIN, INCONCLUSIVE),  # within the tolerance, but its upper bound is not
    (BEYOND, GAIN, WORSE),
    (WIDE, GAIN, INCONCLUSIVE),
    (WIDE_WORSE, GAIN, INCONCLUSIVE),  # beyond the tolerance, but perhaps no worse at all
    (BETTER, LOSS, WORSE),  # better than the current model, but useless
    (BETTER, WIDE_GAIN, INCONCLUSIVE),
    (BETTER, estimate(0.0), WORSE),
    # Without a bound of either, nothing is promoted.
    (estimate(0.0, None), GAIN, INCONCLUSIVE),
    (estimate(-0.02, None), GAIN, INCONCLUSIVE),
    (BETTER, estimate(0.1, None), INCONCLUSIVE),
]


@pytest.mark.parametrize(("difference", "gain", "decision"), DECISIONS)
def test_the_gate(difference, gain, decision):
    verdict = decide(difference, gain, 0.1)
    assert verdict.name == decision
    assert verdict.reason
    assert verdict.tolerance == (None if difference is None else pytest.approx(0.005))


def test_the_tolerance_is_a_share_of_the_gain_and_never_zero():
    assert compute_tolerance(0.2) == pytest.approx(0.01)
    assert compute_tolerance(0.001) == compute_tolerance(0) == compute_tolerance(-1) == 0.0005


# Windows ------------------------------------------------------------------------------------------------------


def test_windows_have_the_names_and_ends_of_drift_windows():
    data = load_data(with_users(2_000, 1, 3))
    windows = split_windows(data.jobs, WEEKLY, [])
    assert [window.name for window in windows] == ["week 1", "week 2", "week 3"]
    first_s = int(data.jobs.submit_s[0])
    assert [window.end_s for window in windows[:2]] == [first_s + WEEK_S, first_s + 2 * WEEK_S]
    assert windows[2].end_s == FIRST_S + 3 * WEEK_S + 1, "no later than the trace"


def test_parts_are_windows_and_their_names_are_safe():
    jobs = with_users(600, 1, 3)
    names = ["b.csv", "../a b|{x}\u202e.csv", "gone.csv"]
    jobs = jobs.with_columns(part=pl.when(is_in_week(0)).then(pl.lit(names[1])).otherwise(pl.lit(names[0])))
    data = load_data(jobs)
    second, first = split_windows(data.jobs, {}, names)
    assert (second.name, second.model_name) == ("part 1: b.csv", "part_1_b.csv")
    assert (first.name, first.model_name) == (f"part 2: {names[1]}", "part_2_.._a_b_x_.csv")
    # The second file has earlier jobs; the jobs known when it arrives do not decrease.
    assert second.end_s == first.end_s == int(data.jobs.submit_s[-1]) + 1
    (only_window,) = split_windows(data.jobs, {"against": "other"}, names[:1])
    assert (only_window.name, only_window.is_all, len(only_window.rows)) == ("all", True, len(data.jobs))


def test_only_jobs_that_had_time_to_end_train_the_model():
    """A job is submitted each second; in odd seconds it ends after 1 s, in even ones after 60 s."""
    n = 1_000
    data = load_data(with_users(n, 1, 2))
    submit = np.arange(n)
    runtime = np.where(submit % 2, 1, 60)
    jobs = data.jobs.__class__(
        **{name: getattr(data.jobs, name) for name in data.jobs.__dataclass_fields__}
        | {"submit_s": submit, "known_s": submit + runtime, "ended": np.ones(n, dtype=bool)}
    )
    assert np.flatnonzero(settled_jobs(jobs, 500)).tolist() == list(range(440))
    assert not settled_jobs(jobs, 0).any()


# Lineage ------------------------------------------------------------------------------------------------------


def test_steady_jobs_promote_each_model_and_warm_equals_cold(steady):
    table, files = steady
    assert table["decision"].to_list() == [PROMOTED] * 4 + [PENDING]
    assert table["parent"].to_list() == [None, "week_1", "week_2", "week_3", "week_4"]
    assert table["current"].to_list() == ["week_1", "week_2", "week_3", "week_4", "week_4"]
    assert sorted(files) == ["current.json", *(f"week_{number}.json" for number in range(1, 6))]
    assert files["current.json"] == files["week_4.json"]
    compared = table.drop_nulls("warm_minus_cold")
    assert compared.height == 3
    assert (compared["ci_low_clustered"] < 0).all() and (compared["ci_high_clustered"] > 0).all()
    assert ((compared["log_loss_base_rate"] - compared["log_loss_new"]) > 0.05).all()
    compared = table.drop_nulls("difference")
    losses = compared.select(pl.col("log_loss_new") - pl.col("log_loss_current"))["log_loss_new"]
    assert compared["difference"].to_list() == pytest.approx(losses.to_list(), abs=1e-12)


def test_a_model_of_shuffled_failures_is_not_promoted():
    table, files = build_lineage(shuffle_failures(N, 1, 3, WEEKS))
    fourth = table.row(3, named=True)
    assert fourth["decision"] == WORSE
    assert fourth["difference"] > fourth["tolerance"] > 0
    assert fourth["current"] in ("week_1", "week_2")
    assert json.loads(files["current.json"])["model"] == fourth["current"]


@pytest.mark.parametrize("seed", range(2))
def test_no_model_of_a_coin_is_promoted(seed):
    """In 60 such samples with four gates each, one model was promoted."""
    table, files = build_lineage(coin(N, seed, WEEKS))
    assert table["trained"].all()
    assert PROMOTED not in table["decision"].to_list()
    assert table["current"].null_count() == WEEKS
    content = json.loads(files["current.json"])
    assert content["model"] is None and "promoted" in content["why"]


def test_a_feature_that_drifts_stops_the_training_and_is_named():
    jobs = steady_jobs().with_columns(gpu_milli=pl.when(is_in_week(2)).then(16_000).otherwise("gpu_milli"))
    table, files = build_lineage(jobs, limit=0.6)
    third = table.row(2, named=True)
    assert (third["decision"], third["drift_feature"]) == (DRIFT, "gpus")
    assert third["drift_max"] > 0.99
    assert "gpus" in third["reason"] and "cliff_delta" in third["reason"] and "0.6" in third["reason"]
    assert "week_3.json" not in files
    # The next model is not compared with the refused one.
    assert table["decision"].to_list()[3] == PROMOTED and table["parent"][3] == "week_2"
    assert third["current"] == "week_2"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpu_milli": pl.lit(None, pl.Int64)}, "column gpu_milli of the feature gpus is blank"),
        ({"user": pl.lit(None, pl.String)}, "column user of the feature history is blank"),
        ({"gpu_type": pl.lit("D")}, "no value of the feature gpu_type was there before"),
    ],
)
def test_a_missing_column_stops_the_training(change, message):
    (column, value), *_ = change.items()
    jobs = steady_jobs(8_000, 3).with_columns(pl.when(is_in_week(1)).then(value).otherwise(column).alias(column))
    table, _ = build_lineage(jobs)
    second = table.row(1, named=True)
    assert (second["decision"], second["trained"]) == (SCHEMA, False)
    assert message in second["reason"]
    assert table["trained"].to_list() == [True, False, True]


def test_a_window_of_few_jobs_waits_for_the_next():
    jobs = steady_jobs(8_000, 3)
    few_jobs = jobs.filter(is_in_week(1)).head(150)
    # The two days without submissions let all jobs of the first week end.
    first = jobs.filter(pl.col("submit_s") < FIRST_S + WEEK_S - 2 * 86_400)
    third = jobs.filter(is_in_week(2))
    table, _ = build_lineage(pl.concat([first, few_jobs, third]))
    assert table["decision"].to_list() == [PROMOTED, "not trained: too few", PENDING]
    assert "fewer than 200" in table["reason"][1]
    assert table["parent"][2] == "week_1"
    # The jobs of the second week train the model of the third.
    table_of_two, _ = build_lineage(pl.concat([first, third]))
    assert table_of_two["n"][1] + 100 <= table["n"][2] <= table_of_two["n"][1] + 150


def test_a_model_needs_200_ended_jobs_that_its_parent_had_not_used():
    data = load_data(with_users(3_000, 1, 2))
    ended, (window,) = np.flatnonzero(data.jobs.ended), split_windows(data.jobs, {}, [])

    def train(count, parent=None):
        """Train on the first `count` of the jobs that ended."""
        return train_after(data, window, np.isin(np.arange(len(data.jobs)), ended[:count]), parent, Cache(data))

    parent = train(1_000)
    assert train(1_199, parent) == TOO_FEW
    # The fifth that recalibrated the parent trains too, and a fifth of all these recalibrates.
    assert train(1_200, parent).model.n == (200 + 200) * 4 // 5


@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_jobs_of_one_kind_train_nothing(outcome):
    jobs = with_users(3_000, 1, 2).with_columns(outcome=pl.lit(outcome))
    for windows in (WEEKLY, {}):
        table, files = build_lineage(jobs, windows)
        assert set(table["decision"]) == {"not trained: one kind"}
        assert list(files) == ["current.json"]
        assert "failed" in json.loads(files["current.json"])["why"]


def test_one_window_is_one_model_of_all_that_ended():
    jobs = with_users(3_000, 1, 2)
    table, files = build_lineage(jobs, {})
    assert table["decision"].to_list() == [ONLY_MODEL]
    ended = jobs.filter(pl.col("outcome").is_in(["success", "failure", "cancelled", "unknown"])).height
    assert table["n"].to_list() == [ended - ended // 5]
    assert files["current.json"] == files["all.json"]
    assert json.loads(files["all.json"])["decision"] == ONLY_MODEL


@pytest.mark.parametrize("windows", [WEEKLY, {"by": "part"}, {}])
def test_without_jobs_a_file_states_so(windows):
    table, files = build_lineage(with_users(100, 1, 2).clear().with_columns(part=pl.lit("a")), windows, ["a"])
    assert json.loads(files["current.json"])["model"] is None
    assert "current.json" in files and table["trained"].sum() == 0


def test_a_trace_without_users_is_inconclusive():
    jobs = steady_jobs(8_000, 3).with_columns(
        cluster_by=pl.lit(None, pl.String), cluster=pl.lit(None, pl.UInt32), group=pl.lit(None, pl.UInt32)
    )
    table, _ = build_lineage(jobs.with_columns(group_by=pl.lit(None, pl.String)))
    assert table["decision"].to_list() == [INCONCLUSIVE, INCONCLUSIVE, PENDING]
    assert table["reason"][0], "why there is no bound"


def test_later_jobs_change_no_earlier_model():
    jobs = with_users(12_000, 1, 4)
    # The outcome of jobs that end after the third week is not known earlier.
    is_late = pl.col("end_s").is_null() | (pl.col("end_s") >= FIRST_S + 3 * WEEK_S)
    changed_jobs = jobs.with_columns(
        outcome=pl.when(is_late & (pl.col("outcome") == "success")).then(pl.lit("cancelled")).otherwise("outcome")
    )
    settled = jobs.filter(pl.col("end_s").is_not_null() | ~pl.col("outcome").is_in(list(OUTCOMES)[:4]))
    changed = changed_jobs.filter(pl.col("job_id").is_in(settled["job_id"].implode()))
    files, changed_files = (build_lineage(frame)[1] for frame in (settled, changed))
    for name in ("week_1.json", "week_2.json"):
        model, changed_model = json.loads(files[name]), json.loads(changed_files[name])
        assert model["coefficients"] == changed_model["coefficients"]
        assert model["recalibration"] == changed_model["recalibration"]


# Warm starts --------------------------------------------------------------------------------------------------


def test_a_feature_without_warm_start_is_fitted_anew():
    data = load_data(with_users(10_000, 1, 4))
    rows = np.flatnonzero(data.jobs.ended)
    encoder = Encoder.fit(data.features, data.job_features.take(rows))
    design = encoder.design(data.job_features.take(rows))
    base = fit(design, data.jobs.failed[rows])
    features = [
        feature if feature.name != "gpus" else type(feature)(**vars(feature) | {"warm": False})
        for feature in encoder.features
    ]
    weights, centre = base.coefficients, np.zeros(design.width)
    parent = Model(Encoder(tuple(features), encoder.params), base, LOGISTIC, weights, 0.0, 1.0, None, centre, 1, 1, 1)
    prior = warm_prior(parent)
    mask = np.array([False, *(term.feature == "gpus" for term in encoder.terms)])
    assert mask.any()
    assert (prior.mean[mask] == 0).all() and (prior.mean[~mask] == base.coefficients[~mask]).all()
    assert prior.precision[np.ix_(mask, mask)].tolist() == np.eye(mask.sum()).tolist()
    assert not prior.precision[np.ix_(mask, ~mask)].any()
    # The remaining terms have the covariance of the fit: the inverse information without those rows.
    covariance = np.linalg.inv(prior.precision[np.ix_(~mask, ~mask)])
    assert covariance == pytest.approx(np.linalg.inv(base.information)[np.ix_(~mask, ~mask)], rel=1e-6, abs=1e-12)


def test_drift_equals_the_statistics_of_scipy():
    scipy_stats = pytest.importorskip("scipy.stats")
    data = load_data(with_users(4_000, 3, 2))
    parts = np.split(np.arange(len(data.jobs)), [2_500])
    values, codes = data.job_features.numbers["gpus"], data.job_features.codes["gpu_type"]
    u = scipy_stats.mannwhitneyu(*(values[part] for part in parts)).statistic
    table = np.array([np.bincount(codes[part], minlength=codes.max() + 1) for part in parts])
    expected = {
        "gpus": abs(2 * u / (len(parts[0]) * len(parts[1])) - 1),
        "gpu_type": scipy_stats.contingency.association(table[:, table.any(axis=0)], method="cramer"),
    }
    coded = code_features(data.features, data.job_features)
    for features in ([coded[0]], [coded[1]], coded):
        drift = largest_drift(
            features, *(Summary.summarise(data.jobs, data.features, features, part) for part in parts)
        )
        names = [feature.feature.name for feature in features]
        assert drift.effect == pytest.approx(max(expected[name] for name in names), rel=1e-9)
        assert drift.effect == pytest.approx(expected[drift.feature], rel=1e-9)


# Products -----------------------------------------------------------------------------------------------------


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "models"
    assert write_folder({"a.json": "1", "b.json": "é\n"}, folder) == 2
    assert write_folder({"c.json": "2"}, folder) == 1
    assert [file.name for file in folder.iterdir()] == ["c.json"]
    for name in ("../d.json", "e/f.json", "", ".."):
        with pytest.raises(ValueError, match="is no name of a file"):
            write_folder({"g.json": "3", name: "4"}, folder)
    assert [file.name for file in tmp_path.rglob("*")] == ["models", "c.json"], "as it was"

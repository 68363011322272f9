"""A model: its training jobs, when their ends are known, recalibration, and JSON exact to the last bit."""

import json

import made_risk
import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from made_risk import OF_EACH_KIND as FEATURES
from scipy.optimize import minimize
from scipy.special import expit, logit
from ttf.analyses.shared.risk.features import NUMERIC, Feature, compute_job_features
from ttf.analyses.shared.risk.model import (
    FEWEST_JOBS,
    FEWEST_PER_OUTCOME,
    NO_FEATURES,
    ONE_KIND,
    SLOPE_SD,
    TOO_FEW,
    Model,
    TrainingData,
    fit_platt,
    log_odds,
    reason_untrainable,
    train_model,
)
from ttf.analyses.shared.risk.splits import split_at_origins, split_at_random
from ttf.analyses.shared.risk.training_jobs import ENDED_OUTCOMES, LATE_QUANTILE, NEVER, load_population
from ttf.records.jobs import JOB_COLUMNS
from ttf.stats.regression.design import Design


def make_jobs(n: int = 3_000, seed: int = 5):
    """Make (jobs, their information at submission, the last origin)."""
    jobs = load_population(made_risk.with_users(n, seed).lazy(), ["gpu_milli", "recurrence_group", "outcome"])
    return jobs, compute_job_features(jobs.jobs, FEATURES, "UTC", jobs), split_at_origins(jobs)[-1]


def by_feature(model: Model, design: Design) -> tuple[list[str], np.ndarray]:
    """Return each feature's contribution to the log-odds of each job."""
    return model.contributions(design, lambda term: term.feature)


@pytest.fixture(scope="module")
def trained():
    jobs, info, split = make_jobs()
    return jobs, info, split, made_risk.train(jobs, info, FEATURES, split.learn, split.recalibrate, split.until_s)


# The jobs ----------------------------------------------------------------------------------------------------


def few_jobs(*rows: tuple) -> pl.LazyFrame:
    """Rows of (submit_s, start_s, end_s, outcome, trace_end_s, gpu_milli, size)."""
    names = ("submit_s", "start_s", "end_s", "outcome", "trace_end_s", "gpu_milli", "size")
    frame = pl.DataFrame(rows, {name: JOB_COLUMNS[name] for name in names}, orient="row")
    return frame.with_columns(runtime_s=pl.col("end_s") - pl.col("start_s")).lazy()


def test_jobs_without_submission_or_that_ended_before_it_take_no_part():
    jobs = load_population(
        few_jobs(
            (50, 60, 70, "success", 99, 1000, 1),
            (None, 1, 2, "failure", 99, 1000, 1),
            (30, 10, 29, "failure", 99, 1000, 1),
            (40, 40, 40, "failure", 99, 1000, 1),
        )
    )
    assert jobs.submit_s.tolist() == [40, 50]
    assert jobs.exclusions == {"no submission": 1, "ended before it was submitted": 1}


def test_what_became_of_a_job_is_told_at_its_end():
    jobs = load_population(
        few_jobs(
            (0, 10, 3_610, "success", 9_000, 2000, 4),
            (1, 10, 20, "failure", 9_000, 500, None),
            (2, 10, None, "running", 7_210, None, 1),
            (3, None, None, "waiting", 9_000, 1000, 1),
            (4, 10, 30, "cancelled", 9_000, 0, 3),
            (5, None, 30, "unknown", 9_000, 1000, 1),
        )
    )
    assert jobs.ended.tolist() == [True, True, False, False, True, True]
    assert jobs.failed.tolist() == [False, True, False, False, False, False]
    assert jobs.running.tolist() == [False, False, True, False, False, False]
    assert jobs.known_s.tolist() == [3_610, 20, NEVER, NEVER, 30, 30]
    assert jobs.started_s.tolist() == [10, 10, 10, NEVER, 10, NEVER]
    assert jobs.hours[:3] == pytest.approx([1, 10 / 3600, 2])
    assert np.isnan(jobs.hours[[3, 5]]).all()
    assert jobs.gpus.tolist() == [8, 0.5, 0, 1, 0, 1]


def test_an_unwritten_end_is_known_once_99_in_100_of_its_outcome_had_ended():
    """Failures that take 100 s each, and one of whose end nothing is written: known as soon as one may know so."""
    ended = [(1_000 * index, 1_000 * index, 1_000 * index + 100, "failure", 10**6, 1000, 1) for index in range(50)]
    open_ = [(20_500, 20_500, None, "failure", 10**6, 1000, 1), (20_600, 20_600, None, "cancelled", 10**6, 1000, 1)]
    jobs = load_population(few_jobs(*ended, *open_))
    known_s = dict(zip(jobs.submit_s.tolist(), jobs.known_s.tolist(), strict=True))
    assert known_s[20_500] == 20_600
    # Of an outcome without any written end nothing is known before the trace's end.
    assert known_s[20_600] == 10**6


@given(st.lists(st.tuples(st.integers(0, 10**6), st.one_of(st.none(), st.integers(0, 10**5))), min_size=1, max_size=60))
def test_an_unwritten_end_is_known_by_the_ends_before_that_moment_alone(runs):
    rows = [(sent, sent, None if run_s is None else sent + run_s, "failure", None, 1000, 1) for sent, run_s in runs]
    jobs = load_population(few_jobs(*rows))
    is_late = (jobs.ended_s == NEVER) & (jobs.known_s < NEVER)
    for job in np.flatnonzero(is_late):
        moment = jobs.known_s[job]
        is_before = (jobs.ended_s < moment) & (jobs.ended_s < NEVER)
        assert is_before.any()
        durations = np.sort((jobs.ended_s - jobs.submit_s)[is_before])
        # Not before the least of what was ever said by then.
        assert moment - jobs.submit_s[job] >= durations[0]
        # Nothing that ended from that moment on moves it.
        later = [(sent, sent, end if end is None or end < moment else end + 777, *rest) for sent, _, end, *rest in rows]
        repeated = load_population(few_jobs(*later))
        assert repeated.known_s[job] == moment
    assert 0 < LATE_QUANTILE < 1


def test_a_trace_without_users_is_clustered_by_nothing():
    jobs = load_population(made_risk.with_users(300, 1).drop("cluster_by", "cluster", "group_by", "group").lazy())
    assert jobs.cluster_by is None
    assert set(jobs.cluster) == {-1}


def test_jobs_of_one_user_are_clustered_by_their_groups():
    cluster = pl.lit(0, dtype=pl.UInt32)
    frame = made_risk.with_users(300, 1)
    jobs = load_population(frame.with_columns(cluster=cluster).lazy())
    assert jobs.cluster_by == "recurrence group"
    assert len(set(jobs.cluster)) == frame["group"].n_unique()


def test_codes_tell_values_apart_and_blanks_are_0():
    frame = made_risk.with_users(300, 1).with_columns(user=pl.when(pl.int_range(pl.len()) % 3 > 0).then("user"))
    jobs = load_population(frame.lazy())
    codes, users = jobs.codes("user"), jobs.jobs["user"].cast(pl.String)
    assert ((codes == 0) == users.is_null().to_numpy()).all()
    assert len({*zip(codes, users, strict=True)}) == len(set(codes)) == users.n_unique()
    assert jobs.codes("nobody_has_it") is None


# Splits ------------------------------------------------------------------------------------------------------


def test_origins_learn_from_what_had_ended_and_test_what_came_after():
    jobs, _, _ = make_jobs()
    tested = np.zeros(len(jobs), dtype=bool)
    for split in split_at_origins(jobs):
        parts = (split.learn, split.recalibrate, split.test)
        assert not (split.learn & split.recalibrate).any()
        assert not ((split.learn | split.recalibrate) & split.test).any()
        assert not (split.running & jobs.ended).any()
        assert all(part.sum() > 100 for part in parts)
        first_recalibrate, first_test = jobs.submit_s[split.recalibrate].min(), jobs.submit_s[split.test].min()
        assert jobs.submit_s[split.learn].max() < first_recalibrate
        assert jobs.known_s[split.learn].max() < first_recalibrate
        assert jobs.submit_s[split.recalibrate].max() < split.until_s <= first_test
        assert jobs.known_s[split.recalibrate].max() < split.until_s
        assert jobs.ended[split.learn | split.recalibrate | split.test].all()
        # What an origin was tested on, no other is.
        assert not (tested & split.test).any()
        tested |= split.test
    assert np.isin(jobs.jobs["outcome"].cast(pl.String).to_numpy()[tested], ENDED_OUTCOMES).all()


def test_a_random_split_deals_all_jobs_that_ended_out_once():
    jobs, _, _ = make_jobs()
    split = split_at_random(jobs, 7)
    parts = split.learn.astype(int) + split.recalibrate + split.test
    assert (parts == jobs.ended).all()
    assert (split_at_random(jobs, 7).learn == split.learn).all()
    assert (split_at_random(jobs, 8).learn != split.learn).any()


@pytest.mark.parametrize("n", [0, 5])
def test_a_few_jobs_can_be_split(n):
    jobs = load_population(made_risk.with_users(300, 1).head(n).lazy())
    assert len(jobs) == n
    for split in [*split_at_origins(jobs), split_at_random(jobs, 1)]:
        assert len(split.learn) == len(split.test) == n


# Training ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "failures", "reason"),
    [
        (FEWEST_JOBS - 1, 100, TOO_FEW),
        (FEWEST_JOBS, FEWEST_PER_OUTCOME - 1, ONE_KIND),
        (FEWEST_JOBS, FEWEST_PER_OUTCOME, None),
        (FEWEST_JOBS, FEWEST_JOBS - FEWEST_PER_OUTCOME + 1, ONE_KIND),
    ],
)
def test_untrainable_data_have_a_reason(jobs, failures, reason):
    assert reason_untrainable(np.arange(jobs) < failures) == reason


def test_what_does_not_differ_is_no_model():
    jobs, info, split = make_jobs()
    only = [Feature("gpus", NUMERIC, "trace_end_s")]
    info = compute_job_features(jobs.jobs, only, None, jobs)
    assert made_risk.train(jobs, info, only, split.learn, split.recalibrate, split.until_s) == NO_FEATURES
    assert made_risk.train(jobs, info, [], split.learn, split.recalibrate, split.until_s) == NO_FEATURES


def test_a_model_read_again_gives_the_same_scores_to_the_last_bit(trained):
    _, info, _, model = trained
    text = json.dumps(model.to_json(), allow_nan=False)
    restored = Model.from_json(json.loads(text), FEATURES)
    design, restored_design = model.encoder.design(info), restored.encoder.design(info)
    assert restored.probability(restored_design).tobytes() == model.probability(design).tobytes()
    assert restored.hours.median(restored_design).tobytes() == model.hours.median(design).tobytes()
    assert restored.hours.mean(restored_design).tobytes() == model.hours.mean(design).tobytes()
    assert by_feature(restored, restored_design)[1].tobytes() == by_feature(model, design)[1].tobytes()
    assert json.dumps(restored.to_json()) == text


def test_two_trainings_are_one(trained):
    jobs, info, split, model = trained
    second = made_risk.train(jobs, info, FEATURES, split.learn, split.recalibrate, split.until_s)
    assert json.dumps(second.to_json()) == json.dumps(model.to_json())


def test_contributions_are_what_the_log_odds_are_made_of(trained):
    _, info, split, model = trained
    design = model.encoder.design(info)
    names, parts = by_feature(model, design)
    assert names == ["gpus", "clock", "history", "gpu_type", "group"]
    centre = model.shift + model.slope * float(model.centre @ model.weights)
    assert parts.sum(axis=1) + centre == pytest.approx(logit(model.probability(design)))
    # Against the mean of the training data: there they come to nothing.
    assert parts[split.learn].mean(axis=0) == pytest.approx(np.zeros(5), abs=1e-9)


def test_the_encoder_of_a_warm_start_is_kept(trained):
    jobs, info, split, model = trained
    lesson = TrainingData.select(jobs, info, split.recalibrate, split.test, NEVER - 1)
    assert train_model(lesson, FEATURES, encoder=model.encoder).encoder is model.encoder


# Recalibration -----------------------------------------------------------------------------------------------


def test_recalibration_is_the_logistic_regression_on_the_log_odds(monkeypatch):
    """But for the prior of its slope, which draws it towards 1."""
    rng = np.random.default_rng(1)
    eta = rng.normal(-1, 1.5, 1_000)
    failed = rng.random(1_000) < expit(0.4 + 0.6 * eta)
    actual = fit_platt(eta, failed)
    expected = sm.Logit(failed.astype(float), sm.add_constant(eta)).fit(disp=0, tol=1e-12).params
    assert expected[1] < actual[1] < 1
    best = minimize(
        lambda point: (
            np.logaddexp(0, point[0] + point[1] * eta).sum()
            - failed @ (point[0] + point[1] * eta)
            + ((point[1] - 1) / SLOPE_SD) ** 2 / 2
        ),
        [0, 1],
        method="BFGS",
        options={"gtol": 1e-4},
    )
    assert actual == pytest.approx(tuple(best.x), abs=1e-5)
    monkeypatch.setattr("ttf.analyses.shared.risk.model.SLOPE_SD", 1e6)
    assert fit_platt(eta, failed) == pytest.approx(tuple(expected), abs=1e-6)


def test_log_odds_in_the_wrong_order_are_not_recalibrated():
    rng = np.random.default_rng(1)
    eta = rng.normal(size=1_000)
    assert fit_platt(eta, rng.random(1_000) < expit(-eta)) == (0, 1)


def test_too_few_later_jobs_recalibrate_nothing():
    assert fit_platt(np.zeros(10), np.arange(10) < 5) == (0, 1)
    assert fit_platt(np.zeros(0), np.zeros(0, dtype=bool)) == (0, 1)


def test_log_odds_perfectly_in_order_are_recalibrated_to_finite_ones():
    eta = np.linspace(-3, 3, 400)
    shift, slope = fit_platt(eta, eta > 0)
    assert np.isfinite([shift, slope]).all()
    assert slope > 0
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()

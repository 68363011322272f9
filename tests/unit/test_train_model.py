"""A model after each window: what it learns from, when it is promoted, and what is written of it."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from made_risk import FEATURES, FIRST_S, WEEK_S, coin, shuffled_in, with_users
from ttf.analyses.risk.train_model import LINEAGE
from ttf.analyses.risk.train_model.checks import Summary, code_features, largest_drift
from ttf.analyses.risk.train_model.gate import INCONCLUSIVE, PROMOTED, WORSE, compute_tolerance, decide
from ttf.analyses.risk.train_model.lineage import (
    DRIFT,
    ONLY_MODEL,
    PENDING,
    SCHEMA,
    settled_jobs,
    train_lineage,
    warm_prior,
)
from ttf.analyses.risk.train_model.training_windows import split_windows
from ttf.analyses.shared.risk import LOGISTIC
from ttf.analyses.shared.risk.encoder import Encoder
from ttf.analyses.shared.risk.features import Data, features_of
from ttf.analyses.shared.risk.logistic import Prior, fit
from ttf.analyses.shared.risk.model import Model
from ttf.engine.storage.tables import write_folder
from ttf.records.jobs import OUTCOMES
from ttf.stats.predictions import Estimate

N, WEEKS = 25_000, 5
WEEKLY = {"by": "week"}


def data_of(jobs: pl.DataFrame, features=FEATURES) -> Data:
    return Data.load(jobs.lazy(), features_of(features), "UTC")


def lineage_of(jobs, windows=WEEKLY, parts=(), limit=1.0, features=FEATURES):
    """(table, files); the contract holds."""
    data = data_of(jobs, features)
    found = train_lineage(data, split_windows(data.jobs, windows, parts), limit)
    table = LINEAGE.frame(found.rows)
    LINEAGE.check(table)
    return table, found.files


def steady_jobs(n: int = N, weeks: int = WEEKS) -> pl.DataFrame:
    """Without the GPU type that comes late: a warm model has no term for it, one trained from nothing has."""
    return with_users(n, 1, weeks).with_columns(pl.col("gpu_type").replace({"C": "A"}))


@pytest.fixture(scope="module")
def steady():
    return lineage_of(steady_jobs())


def in_week(number: int) -> pl.Expr:
    """Of frames of all jobs: windows begin with the first submission."""
    return (pl.col("submit_s") - pl.col("submit_s").min()) // WEEK_S == number


# The gate -----------------------------------------------------------------------------------------------------


def estimate(value: float, away: float | None = 0.001) -> Estimate:
    if away is None:
        return Estimate(9, value, reason="too few clusters")
    return Estimate(9, value, value - away, value + away, value - away, value + away, "user", 50.0)


GAIN, NO_GAIN, WIDE_GAIN = estimate(0.1), estimate(-0.01), estimate(0.1, 0.2)
# With a current model whose gain is 0.1 the tolerance is 0.005.
BETTER, LEVEL, WITHIN, BEYOND = estimate(-0.02), estimate(0.0), estimate(0.0039), estimate(0.0061)
SLIGHTLY, WIDE, WIDE_WORSE = estimate(0.0045), estimate(0.0, 0.02), estimate(0.02, 0.03)
TRUTH = [
    # difference, gain, decision
    (None, GAIN, PROMOTED),
    (None, NO_GAIN, WORSE),
    (None, WIDE_GAIN, INCONCLUSIVE),
    (None, estimate(0.1, None), INCONCLUSIVE),
    (None, estimate(-0.1, None), WORSE),
    (None, Estimate(0, reason="no job"), INCONCLUSIVE),
    (BETTER, GAIN, PROMOTED),
    (LEVEL, GAIN, PROMOTED),
    (WITHIN, GAIN, PROMOTED),
    (SLIGHTLY, GAIN, INCONCLUSIVE),  # within the tolerance, but its upper bound is not
    (BEYOND, GAIN, WORSE),
    (WIDE, GAIN, INCONCLUSIVE),
    (WIDE_WORSE, GAIN, INCONCLUSIVE),  # beyond the tolerance, but perhaps no worse at all
    (estimate(0.02, None), GAIN, INCONCLUSIVE),
    (estimate(-0.02, None), GAIN, INCONCLUSIVE),
    (BETTER, NO_GAIN, WORSE),  # better than what is in use, and of no use
    (BETTER, WIDE_GAIN, INCONCLUSIVE),
    (BEYOND, WIDE_GAIN, WORSE),
    (BEYOND, NO_GAIN, WORSE),
    (BETTER, estimate(0.0), WORSE),
]


@pytest.mark.parametrize(("difference", "gain", "decision"), TRUTH)
def test_the_gate(difference, gain, decision):
    found = decide(difference, gain, 0.1)
    assert found.name == decision
    assert found.reason
    assert found.tolerance == (None if difference is None else pytest.approx(0.005))


def test_the_tolerance_is_a_share_of_the_gain_and_never_nothing():
    assert compute_tolerance(0.2) == pytest.approx(0.01)
    assert compute_tolerance(0.001) == compute_tolerance(0) == compute_tolerance(-1) == 0.0005


def test_nothing_is_promoted_without_both_bounds():
    for change, gain in itertools.product((-0.02, 0.0, 0.004, 0.02), (-0.1, 0.0, 0.1)):
        for one, other in ((None, 0.001), (0.001, None), (None, None)):
            assert decide(estimate(change, one), estimate(gain, other), 0.1).name != PROMOTED


# Windows ------------------------------------------------------------------------------------------------------


def test_windows_are_named_and_end_as_those_of_drift():
    data = data_of(with_users(2_000, 1, 3))
    windows = split_windows(data.jobs, WEEKLY, [])
    assert [window.name for window in windows] == ["week 1", "week 2", "week 3"]
    assert [window.model_name for window in windows] == ["week_1", "week_2", "week_3"]
    first = int(data.jobs.submit_s[0])
    assert [window.end_s for window in windows[:2]] == [first + WEEK_S, first + 2 * WEEK_S]
    assert windows[2].end_s == FIRST_S + 3 * WEEK_S + 1, "no later than the trace"
    assert np.concatenate([window.rows for window in windows]).tolist() == list(range(len(data.jobs)))


def test_parts_are_windows_and_their_names_are_safe():
    jobs = with_users(600, 1, 3)
    names = ["b.csv", "../a b|{x}\u202e.csv", "gone.csv"]
    jobs = jobs.with_columns(part=pl.when(in_week(0)).then(pl.lit(names[1])).otherwise(pl.lit(names[0])))
    data = data_of(jobs)
    second, first = split_windows(data.jobs, {}, names)
    assert (second.name, second.model_name) == ("part 1: b.csv", "part_1_b.csv")
    assert (first.name, first.model_name) == (f"part 2: {names[1]}", "part_2_.._a_b_x_.csv")
    # The second file is of earlier jobs: what is known when it comes is no less than before.
    assert second.end_s == first.end_s == int(data.jobs.submit_s[-1]) + 1
    (alone,) = split_windows(data.jobs, {"against": "other"}, names[:1])
    assert (alone.name, alone.is_all, len(alone.rows)) == ("all", True, len(data.jobs))


def test_only_jobs_that_had_time_to_end_are_learnt_from():
    """Submitted one a second; those of odd seconds end after 1 s, of even ones after 60 s."""
    n = 1_000
    data = data_of(with_users(n, 1, 2))
    submit = np.arange(n)
    took = np.where(submit % 2, 1, 60)
    jobs = data.jobs.__class__(
        **{name: getattr(data.jobs, name) for name in data.jobs.__dataclass_fields__}
        | {"submit_s": submit, "known_s": submit + took, "ended": np.ones(n, dtype=bool)}
    )
    found = settled_jobs(jobs, 500)
    assert np.flatnonzero(found).tolist() == list(range(440))
    assert not settled_jobs(jobs, 0).any()


# Lineage ------------------------------------------------------------------------------------------------------


def test_where_nothing_changes_each_model_is_promoted_and_warm_equals_cold(steady):
    table, files = steady
    assert table["decision"].to_list() == [PROMOTED] * 4 + [PENDING]
    assert table["parent"].to_list() == [None, "week_1", "week_2", "week_3", "week_4"]
    assert table["current"].to_list() == ["week_1", "week_2", "week_3", "week_4", "week_4"]
    assert sorted(files) == ["current.json", *(f"week_{number}.json" for number in range(1, 6))]
    assert files["current.json"] == files["week_4.json"]
    apart = table.drop_nulls("warm_minus_cold")
    assert apart.height == 3
    assert (apart["ci_low_clustered"] < 0).all() and (apart["ci_high_clustered"] > 0).all()
    assert (table.drop_nulls("gain")["gain"] > 0.05).all()


def test_the_difference_of_two_models_is_that_of_their_losses(steady):
    table = steady[0].drop_nulls("difference")
    assert table["difference"].to_list() == pytest.approx(
        (table["log_loss_new"] - table["log_loss_current"]).to_list(), abs=1e-12
    )
    gain = (table["log_loss_base_rate"] - table["log_loss_current"]).to_list()
    assert table["tolerance"].to_list() == pytest.approx([compute_tolerance(value) for value in gain], abs=1e-12)
    tested = steady[0].head(4)
    assert (tested["n_test"] <= steady[0]["jobs"].slice(1, 4)).all()


def test_a_model_is_read_again_to_the_last_bit(steady):
    said = json.loads(steady[1]["week_3.json"])
    assert (said["model"], said["window"], said["parent"], said["decision"]) == ("week_3", "week 3", "week_2", PROMOTED)
    model = Model.from_json(said, features_of(said["features"]))
    again = json.loads(json.dumps(model.to_json()))
    assert all(said[name] == value for name, value in again.items())
    data = data_of(steady_jobs())
    rows = split_windows(data.jobs, WEEKLY, [])[3].rows
    rows = rows[data.jobs.ended[rows]]
    p = model.probability(model.encoder.design(data.job_features.take(rows)))
    loss = -np.log(np.where(data.jobs.failed[rows], p, 1 - p)).mean()
    assert loss == pytest.approx(steady[0]["log_loss_new"][2], abs=1e-12)
    assert said["metrics"]["n_test"] == len(rows)


def test_a_model_of_shuffled_failures_is_not_promoted():
    table, files = lineage_of(shuffled_in(N, 1, 3, WEEKS))
    fourth = table.row(3, named=True)
    assert fourth["decision"] == WORSE
    assert fourth["difference_lower"] > fourth["tolerance"] > 0
    assert fourth["current"] in ("week_1", "week_2")
    assert json.loads(files["current.json"])["model"] == fourth["current"]


@pytest.mark.parametrize("seed", range(4))
def test_no_model_of_a_coin_is_promoted(seed):
    """Of 60 such samples with four gates each one let a model through."""
    table, files = lineage_of(coin(N, seed, WEEKS))
    assert table["trained"].all()
    assert PROMOTED not in table["decision"].to_list()
    assert table["current"].null_count() == WEEKS
    said = json.loads(files["current.json"])
    assert said["model"] is None and "promoted" in said["why"]


def test_a_feature_that_drifts_stops_the_training_and_is_named():
    jobs = steady_jobs().with_columns(gpu_milli=pl.when(in_week(2)).then(16_000).otherwise("gpu_milli"))
    table, files = lineage_of(jobs, limit=0.6)
    third = table.row(2, named=True)
    assert (third["decision"], third["drift_feature"], third["drift_effect"]) == (DRIFT, "gpus", "cliff_delta")
    assert third["drift_max"] > 0.99
    assert "gpus" in third["reason"] and "cliff_delta" in third["reason"] and "0.6" in third["reason"]
    assert "week_3.json" not in files
    # What was refused is no measure of what comes.
    assert table["decision"].to_list()[3] == PROMOTED and table["parent"][3] == "week_2"
    assert third["current"] == "week_2"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gpu_milli": pl.lit(None, pl.Int64)}, "column gpu_milli of the feature gpus is blank"),
        ({"user": pl.lit(None, pl.String)}, "column user of the feature history is blank"),
        ({"gpu_type": pl.lit("D")}, "no value of the feature gpu_type was there before"),
    ],
)
def test_a_column_that_goes_missing_stops_the_training(change, said):
    (column, value), *_ = change.items()
    jobs = steady_jobs(8_000, 3).with_columns(pl.when(in_week(1)).then(value).otherwise(column).alias(column))
    table, _ = lineage_of(jobs)
    second = table.row(1, named=True)
    assert (second["decision"], second["trained"]) == (SCHEMA, False)
    assert said in second["reason"]
    assert table["trained"].to_list() == [True, False, True]


def test_a_window_of_few_jobs_waits_for_the_next():
    jobs = steady_jobs(8_000, 3)
    few = jobs.filter(in_week(1)).head(150)
    # Two days without submissions, in which all that began in the first week have time to end.
    first = jobs.filter(pl.col("submit_s") < FIRST_S + WEEK_S - 2 * 86_400)
    third = jobs.filter(in_week(2))
    table, _ = lineage_of(pl.concat([first, few, third]))
    assert table["decision"].to_list() == [PROMOTED, "not trained: too few", PENDING]
    assert "fewer than 200" in table["reason"][1]
    assert table["parent"][2] == "week_1"
    # The jobs of the second week are learnt from with the third's.
    alone, _ = lineage_of(pl.concat([first, third]))
    assert alone["n"][1] + 100 <= table["n"][2] <= alone["n"][1] + 150


@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_jobs_of_one_kind_train_nothing(outcome):
    jobs = with_users(3_000, 1, 2).with_columns(outcome=pl.lit(outcome))
    for windows in (WEEKLY, {}):
        table, files = lineage_of(jobs, windows)
        assert set(table["decision"]) == {"not trained: one kind"}
        assert list(files) == ["current.json"]
        assert "failed" in json.loads(files["current.json"])["why"]


def test_one_window_is_one_model_of_all_that_ended():
    jobs = with_users(3_000, 1, 2)
    table, files = lineage_of(jobs, {})
    assert table["decision"].to_list() == [ONLY_MODEL]
    ended = jobs.filter(pl.col("outcome").is_in(["success", "failure", "cancelled", "unknown"])).height
    assert table["n"].to_list() == [ended - ended // 5]
    assert files["current.json"] == files["all.json"]
    assert json.loads(files["all.json"])["decision"] == ONLY_MODEL


@pytest.mark.parametrize("windows", [WEEKLY, {"by": "part"}, {}])
def test_without_jobs_there_is_a_file_that_says_so(windows):
    table, files = lineage_of(with_users(100, 1, 2).clear().with_columns(part=pl.lit("a")), windows, ["a"])
    assert json.loads(files["current.json"])["model"] is None
    assert "current.json" in files and table["trained"].sum() == 0


def test_a_trace_that_names_no_users_tells_nothing():
    jobs = steady_jobs(8_000, 3).with_columns(
        cluster_by=pl.lit(None, pl.String), cluster=pl.lit(None, pl.UInt32), group=pl.lit(None, pl.UInt32)
    )
    table, _ = lineage_of(jobs.with_columns(group_by=pl.lit(None, pl.String)))
    assert table["decision"].to_list() == [INCONCLUSIVE, INCONCLUSIVE, PENDING]
    assert table["reason"][0], "why there is no bound"


def test_what_comes_later_changes_no_earlier_model():
    jobs = with_users(12_000, 1, 4)
    # What ends after the third week is not known before it.
    late = pl.col("end_s").is_null() | (pl.col("end_s") >= FIRST_S + 3 * WEEK_S)
    other = jobs.with_columns(
        outcome=pl.when(late & (pl.col("outcome") == "success")).then(pl.lit("cancelled")).otherwise("outcome")
    )
    known = jobs.filter(pl.col("end_s").is_not_null() | ~pl.col("outcome").is_in(list(OUTCOMES)[:4]))
    same = other.filter(pl.col("job_id").is_in(known["job_id"].implode()))
    before, after = (lineage_of(frame)[1] for frame in (known, same))
    for name in ("week_1.json", "week_2.json"):
        one, two = json.loads(before[name]), json.loads(after[name])
        assert one["coefficients"] == two["coefficients"]
        assert one["recalibration"] == two["recalibration"]


# Warm starts --------------------------------------------------------------------------------------------------


def designs(seed=1):
    data = data_of(with_users(20_000, seed, 4))
    rows = np.flatnonzero(data.jobs.ended)
    encoder = Encoder.fit(data.features, data.job_features.take(rows))
    return data, encoder, rows[: len(rows) // 2], rows[len(rows) // 2 :]


def test_a_warm_start_is_the_fit_of_all():
    data, encoder, first, then = designs()
    fits, prior = {}, None
    for name, rows in (("first", first), ("then", then), ("both", np.concatenate([first, then]))):
        design = encoder.design(data.job_features.take(rows))
        fits[name] = fit(design, data.jobs.failed[rows], prior if name == "then" else None)
        prior = Prior(fits["first"].coefficients, fits["first"].information)
    both = fits["both"]
    se = np.sqrt(np.diag(np.linalg.inv(both.information)))
    assert np.abs((fits["then"].coefficients - both.coefficients) / se).max() < 0.02, "of a standard error"
    assert np.abs((fits["first"].coefficients - both.coefficients) / se).max() > 0.3


def test_a_feature_that_is_not_warm_begins_anew():
    data, encoder, first, _ = designs()
    design = encoder.design(data.job_features.take(first))
    found = fit(design, data.jobs.failed[first])
    cold = [
        feature if feature.name != "gpus" else type(feature)(**vars(feature) | {"warm": False})
        for feature in encoder.features
    ]
    weights, centre = found.coefficients, np.zeros(design.width)
    parent = Model(Encoder(tuple(cold), encoder.params), found, LOGISTIC, weights, 0.0, 1.0, None, centre, 1, 1, 1)
    prior = warm_prior(parent)
    of = np.array([False, *(term.feature == "gpus" for term in encoder.terms)])
    assert of.any()
    assert (prior.mean[of] == 0).all() and (prior.mean[~of] == found.coefficients[~of]).all()
    assert prior.precision[np.ix_(of, of)].tolist() == np.eye(of.sum()).tolist()
    assert not prior.precision[np.ix_(of, ~of)].any()
    # What is left knows of the others what the fit did: the inverse of the information without those rows.
    covariance = np.linalg.inv(prior.precision[np.ix_(~of, ~of)])
    assert covariance == pytest.approx(np.linalg.inv(found.information)[np.ix_(~of, ~of)], rel=1e-6, abs=1e-12)


def test_drift_is_that_of_the_statistics():
    scipy_stats = pytest.importorskip("scipy.stats")
    data = data_of(with_users(4_000, 3, 2))
    counts = code_features(data.features, data.job_features)
    rows = np.arange(len(data.jobs))
    before, after = rows[:2_500], rows[2_500:]

    def looked_at(which, of=counts):
        return Summary.summarise(data.jobs, data.features, of, which)

    numbers_of = data.job_features.numbers["gpus"]
    u = scipy_stats.mannwhitneyu(numbers_of[after], numbers_of[before]).statistic
    delta = abs(2 * u / (len(before) * len(after)) - 1)
    table = pd_crosstab(data.job_features.codes["gpu_type"], before, after)
    v = scipy_stats.contingency.association(table, method="cramer")
    found = {of.feature.name: largest_drift([of], looked_at(before, [of]), looked_at(after, [of])) for of in counts}
    assert set(found) == {"gpus", "gpu_type"}
    assert found["gpus"].effect == pytest.approx(delta, rel=1e-9)
    assert found["gpu_type"].effect == pytest.approx(v, rel=1e-9)
    assert largest_drift(counts, looked_at(before), looked_at(after)) == max(
        found.values(), key=lambda moved: moved.effect
    )


def pd_crosstab(codes, *sets):
    table = np.array([np.bincount(codes[rows], minlength=codes.max() + 1) for rows in sets])
    return table[:, table.sum(axis=0) > 0]


# Products -----------------------------------------------------------------------------------------------------

SAME = """
import hashlib, sys
sys.path[:0] = sys.argv[1:3]
from made_risk import with_users
from test_train_model import lineage_of
table, files = lineage_of(with_users(8_000, 1, 3))
written = table.write_csv() + "".join(f"{name}{text}" for name, text in files.items())
print(hashlib.sha256(written.encode()).hexdigest())
"""


def test_the_same_bytes_with_any_number_of_threads():
    here = Path(__file__).parent
    found = set()
    for threads in ("1", "2"):
        environment = os.environ | {
            "POLARS_MAX_THREADS": threads,
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(here.parents[1] / "scripts"), str(here.parent)]),
        }
        command = [sys.executable, "-c", SAME, str(here), str(here.parent)]
        found.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1


def test_a_folder_is_written_whole_and_without_what_was_there(tmp_path):
    folder = tmp_path / "models"
    assert write_folder({"a.json": "1", "b.json": "é\n"}, folder) == 2
    assert write_folder({"c.json": "2"}, folder) == 1
    assert [file.name for file in folder.iterdir()] == ["c.json"]
    for name in ("../d.json", "e/f.json", "", ".."):
        with pytest.raises(ValueError, match="is no name of a file"):
            write_folder({"g.json": "3", name: "4"}, folder)
    assert [file.name for file in tmp_path.rglob("*")] == ["models", "c.json"], "as it was"

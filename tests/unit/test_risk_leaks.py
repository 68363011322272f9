"""Nothing written after a submission reaches a job's features, and nothing after its day reaches a model."""

import json

import made_risk
import numpy as np
import polars as pl
import pytest
from format_tables import FORMATS
from hypothesis import given
from hypothesis import strategies as st
from ttf.analyses.shared.risk.encoder import Encoder
from ttf.analyses.shared.risk.features import HISTORY, NUMERIC, Data, Feature, compute_job_features, parse_features
from ttf.analyses.shared.risk.training_jobs import NEVER, load_population
from ttf.study.configuration.model_features import COLUMNS_AFTER_SUBMISSION, build_risk_options

JOB_FORMATS = sorted(name for name, declaration in FORMATS.items() if declaration["gives"] == "jobs")
OUTCOMES = ["success", "failure", "cancelled", "unknown"]
ZONE = "Asia/Shanghai"
LEARN_SHARE, RECALIBRATE_SHARE = 0.57, 0.67


def features_of_format(name: str) -> list[Feature]:
    """As a trace of the format has them, all columns mapped."""
    columns = FORMATS[name]["at_submission"]
    back = {"gpu_milli": "gpus", "cpu_milli": "cpus", "mem_mib": "memory"}
    mapping = {back.get(column, column): column for column in columns}
    entry = {"format": name, "mapping": mapping | {"submit": "a"}}
    return parse_features(build_risk_options("mine", entry, FORMATS[name], {}, ZONE)["features"])


def jobs_of_format(name: str, n: int = 600, seed: int = 1) -> pl.DataFrame:
    """Jobs with a column for all that the format says of a job, known at the submission or written later.

    What is known says something of the risk: it goes by the user or the group.
    """
    jobs, declaration = made_risk.with_users(n, seed), FORMATS[name]
    group = jobs["recurrence_group"].str.strip_prefix("group").cast(pl.Int64)
    numbers = {feature.column for feature in features_of_format(name) if feature.kind == NUMERIC}
    columns = {}
    for index, column in enumerate(declaration["at_submission"]):
        if column not in jobs.columns or jobs[column].null_count() == n:
            varied = group * (index + 3) % (7 + index)
            columns[column] = varied * 1000 if column in numbers else pl.Series([f"v{value}" for value in varied])
    rng = np.random.default_rng(seed)
    later = {
        column: pl.Series(rng.integers(0, 9, n))
        for column in declaration["written_later"]
        if column not in jobs.columns
    }
    return jobs.with_columns(**columns, **later)


def rewrite(jobs: pl.DataFrame, moment: int, seed: int, later: list[str], started_too: bool = True) -> pl.DataFrame:
    """The jobs with all else that was written of those whose end was not known before a moment.

    later: the columns of the format that are written later. started_too: also when they started, which is known at the
    moment of some.
    """
    rng, n = np.random.default_rng(seed), jobs.height
    job_features = load_population(jobs.with_row_index("row").lazy(), ["row"])
    open_ = np.zeros(n, dtype=bool)
    open_[job_features.jobs["row"].to_numpy()[job_features.known_s >= moment]] = True
    ended = rng.random(n) < 0.8
    start_s = np.maximum(jobs["submit_s"].to_numpy(), moment if not started_too else 0) + rng.integers(0, 5_000, n)
    started = jobs["start_s"].fill_null(NEVER).to_numpy()
    start_s = start_s if started_too else np.where(started < moment, started, start_s)
    end_s = np.maximum(start_s, moment) + rng.integers(0, 500_000, n)
    outcome = np.where(ended, rng.choice(OUTCOMES, n), "running")
    new = pl.DataFrame(
        {
            "start_s": start_s,
            "end_s": end_s,
            "queue_s": start_s - jobs["submit_s"].to_numpy(),
            "runtime_s": end_s - start_s,
            "outcome": outcome,
            "status_raw": pl.Series(rng.choice(["x", "y"], n)),
            "attempts": rng.integers(1, 9, n),
            "trace_end_s": np.full(n, jobs["trace_end_s"][0] + 10**6),
            "runtime_max_s": rng.integers(1, 9, n),
            "block": rng.integers(0, 9, n),
            **{column: rng.integers(10, 99, n) for column in later},
        }
    ).with_columns(pl.when(pl.Series(ended)).then(pl.col("end_s", "runtime_s")))
    assert set(COLUMNS_AFTER_SUBMISSION) <= set(new.columns)
    changed = pl.when(pl.Series(open_))
    text_columns = {column for column in later if jobs[column].dtype == pl.String}
    return jobs.with_columns(
        changed.then(new[name].cast(pl.String) if name in text_columns else new[name].cast(jobs[name].dtype))
        .otherwise(pl.col(name))
        .alias(name)
        for name in new.columns
    )


def info_of(jobs: pl.DataFrame, features: list[Feature], until_s: int):
    """Return all information about the jobs submitted up to a moment, as of their submission."""
    data = Data.load(jobs.lazy(), features, ZONE)
    past, job_features = data.jobs, data.job_features
    rows = past.submit_s <= until_s
    texts = {
        name: np.array([*labels, "(blank)"], dtype=object)[job_features.codes[name][rows]].tolist()
        for name, labels in job_features.labels.items()
    }
    part = job_features.take(rows)
    encoder = Encoder.fit(features, part)
    return {
        "texts": texts,
        **{f"number of {name}": values for name, values in part.numbers.items()},
        **{f"rates of {name}": values for name, values in part.rates.items()},
        **{f"ended of {name}": values for name, values in part.ended_counts.items()},
        **{f"weekend of {name}": values for name, values in part.weekend.items()},
        "encoder": json.dumps(encoder.to_json()),
        "design": made_risk.dense(encoder.design(part)),
    }


def differences(first: dict, second: dict) -> list[str]:
    def same(a, b):
        return np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a == b

    assert first.keys() == second.keys()
    return [name for name in first if not same(first[name], second[name])]


# Features ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JOB_FORMATS)
def test_what_is_written_later_of_jobs_that_had_not_ended_changes_no_feature(name):
    jobs, features = jobs_of_format(name), features_of_format(name)
    assert features
    later = FORMATS[name]["written_later"]
    for row in (60, 480):
        moment = int(jobs["submit_s"][row])
        changed = rewrite(jobs, moment, row, later)
        assert any((jobs[column] != changed[column]).any() for column in later)
        assert differences(info_of(jobs, features, moment), info_of(changed, features, moment)) == []


@pytest.mark.parametrize("column", [*COLUMNS_AFTER_SUBMISSION, "size"])
def test_a_feature_of_what_is_written_later_would_be_found_out(column):
    """This checks the comparison above: each such column changes the design when it is a feature."""
    jobs = jobs_of_format("openb").with_columns(attempts=pl.lit(1, dtype=pl.Int64))
    kind = "numeric" if jobs[column].dtype.is_numeric() else "category"
    leak = parse_features({"leak": {"kind": kind, "column": column, "vocabulary": 5}})
    moment = int(jobs["submit_s"][300])
    changed = rewrite(jobs, moment, 1, ["size"])
    assert "design" in differences(info_of(jobs, leak, moment), info_of(changed, leak, moment))


def test_what_is_written_of_jobs_that_had_ended_does_change_them():
    jobs = jobs_of_format("pai2020")
    moment = int(jobs["submit_s"][480])
    swapped = jobs.with_columns(
        outcome=pl.when(pl.col("end_s") < moment)
        .then(pl.col("outcome").replace({"failure": "success", "success": "failure"}))
        .otherwise("outcome")
    )
    features = features_of_format("pai2020")
    assert "rates of history" in differences(info_of(jobs, features, moment), info_of(swapped, features, moment))


@given(st.integers(0, 2**32 - 1), st.integers(0, 399))
def test_permuting_outcomes_of_later_ends_changes_no_feature(seed, row):
    """No feature of a job depends on an outcome that is written after its submission."""
    jobs = made_risk.with_users(400, 2)
    features = parse_features({"history": {"kind": HISTORY, "keys": [["user"], ["recurrence_group"]]}})
    moment = int(jobs["submit_s"][row])
    rows = np.flatnonzero((jobs["end_s"] >= moment).fill_null(False))
    outcome = jobs["outcome"].to_numpy().copy()
    outcome[rows] = np.random.default_rng(seed).permutation(outcome[rows])
    changed = jobs.with_columns(outcome=pl.Series(outcome))
    actual, expected = (
        compute_job_features(past.jobs, features, None, past).take(past.submit_s <= moment)
        for past in (load_population(frame.lazy(), ["gpu_milli", "recurrence_group"]) for frame in (jobs, changed))
    )
    assert (actual.rates["history"] == expected.rates["history"]).all()
    assert (actual.ended_counts["history"] == expected.ended_counts["history"]).all()


# Models ------------------------------------------------------------------------------------------------------


def model_at(jobs: pl.DataFrame, features: list[Feature], learn_s: int, until_s: int) -> str:
    """The model made at `until_s`, of jobs submitted before `learn_s` and recalibrated on those after; as JSON."""
    data = Data.load(jobs.lazy(), features, ZONE)
    past = data.jobs
    learn = past.ended & (past.submit_s < learn_s) & (past.known_s < learn_s)
    recalibrate = past.ended & (past.submit_s >= learn_s) & (past.submit_s < until_s) & (past.known_s < until_s)
    model = made_risk.train(past, data.job_features, features, learn, recalibrate, until_s)
    return json.dumps(model.to_json())


@pytest.mark.parametrize("name", JOB_FORMATS)
def test_what_comes_after_a_model_was_made_changes_nothing_of_it(name):
    """Ends, outcomes and all that is written later; and jobs submitted later, which may be any.

    Of a job that ended, when nobody wrote, nobody knows whether it ran at that moment: such ends are written here.
    """
    jobs, features = jobs_of_format(name, 1_000), features_of_format(name)
    jobs = jobs.filter(pl.col("end_s").is_not_null() | pl.col("outcome").is_in(["running", "waiting"]))
    # Runs so long that at any time some are under way.
    jobs = jobs.with_columns(runtime_s=20 * pl.col("runtime_s"), end_s=pl.col("start_s") + 20 * pl.col("runtime_s"))
    learn_s, until_s = (int(jobs["submit_s"][int(share * jobs.height)]) for share in (LEARN_SHARE, RECALIBRATE_SHARE))
    model = model_at(jobs, features, learn_s, until_s)
    assert json.loads(model)["hours"]["censored"] > 0
    changed = rewrite(jobs, until_s, 1, FORMATS[name]["written_later"], started_too=False)
    assert (changed["outcome"] != jobs["outcome"]).sum() > 60
    assert model_at(changed, features, learn_s, until_s) == model
    # Of the jobs to come only the first half, and these of other users and sizes.
    is_new = pl.col("submit_s") >= until_s
    other_jobs = changed.filter(~is_new | (pl.int_range(pl.len()) < 0.8 * jobs.height))
    shuffled = other_jobs["user"].gather(np.random.default_rng(1).permutation(other_jobs.height))
    other_jobs = other_jobs.with_columns(
        user=pl.when(is_new).then(shuffled).otherwise("user"), gpu_milli=pl.when(is_new).then(77).otherwise("gpu_milli")
    )
    assert model_at(other_jobs, features, learn_s, until_s) == model


def test_what_came_before_a_model_was_made_does_change_it():
    jobs, features = jobs_of_format("pai2020", 1_500), features_of_format("pai2020")
    learn_s, until_s = (int(jobs["submit_s"][int(share * jobs.height)]) for share in (LEARN_SHARE, RECALIBRATE_SHARE))
    changed = rewrite(jobs, learn_s - 86_400, 1, [])
    assert model_at(changed, features, learn_s, until_s) != model_at(jobs, features, learn_s, until_s)

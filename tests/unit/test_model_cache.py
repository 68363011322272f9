"""Models and tests of earlier windows are reused only if their inputs have not changed."""

import made_risk
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_risk import FIRST_S, WEEK_S
from ttf.analyses.risk.train_model import MODEL_CACHE
from ttf.analyses.risk.train_model import lineage as lineages
from ttf.analyses.risk.train_model.cache import Cache
from ttf.analyses.risk.train_model.lineage import train_lineage
from ttf.analyses.risk.train_model.training_windows import split_windows
from ttf.analyses.shared.risk.features import Data, compute_job_features, parse_features
from ttf.engine.provenance.digests import MEMORY, DigestCache, is_unchanged

WEEKS = 5
DECLARED = {
    "gpus": {"kind": "numeric", "column": "gpu_milli"},
    "gpu_type": {"kind": "category", "column": "gpu_type", "vocabulary": 12},
    "work": {"kind": "hashed", "column": "recurrence_group", "buckets": 4},
    "clock": {"kind": "clock"},
    "history": {"kind": "history", "keys": [["user"]]},
}


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    """Simulate jobs whose requests predict better than history, so a regression with warm starts is used."""
    return made_risk.with_requests(6_000, 2, WEEKS)


def truncated_after(jobs: pl.DataFrame, weeks: int) -> pl.DataFrame:
    """Return the record at the end of these weeks, without later submissions, starts and ends."""
    end_s = FIRST_S + weeks * WEEK_S
    is_running, is_waiting = pl.col("end_s") >= end_s, pl.col("start_s") >= end_s
    outcome = pl.when(is_waiting).then(pl.lit("waiting")).when(is_running).then(pl.lit("running")).otherwise("outcome")
    return jobs.filter(pl.col("submit_s") < end_s).with_columns(
        outcome=outcome,
        start_s=pl.when(is_waiting).then(None).otherwise("start_s"),
        end_s=pl.when(is_running).then(None).otherwise("end_s"),
        runtime_s=pl.when(is_running).then(None).otherwise("runtime_s"),
        trace_end_s=pl.lit(end_s, pl.Int64),
    )


class TrainingCounter:
    """Train a lineage and count the models that the cache did not provide."""

    def __init__(self, monkeypatch):
        self.models = 0
        train_model = lineages.train_model

        def count_and_train(*arguments, **options):
            self.models += 1
            return train_model(*arguments, **options)

        monkeypatch.setattr(lineages, "train_model", count_and_train)

    def __call__(self, jobs, table=None, declared=DECLARED, code=("code",)):
        """Return (the lineage, models trained, MODEL_CACHE)."""
        self.models = 0
        data = Data.load(jobs.lazy(), parse_features(declared), "UTC")
        cache = Cache(data, table, code)
        lineage = train_lineage(data, split_windows(data.jobs, {"by": "week"}, []), 1.0, cache)
        MODEL_CACHE.check(cache.table())
        return lineage, self.models, cache.table()


@pytest.fixture
def count(monkeypatch):
    return TrainingCounter(monkeypatch)


def is_equal(lineage_a, lineage_b) -> bool:
    return lineage_a.rows == lineage_b.rows and lineage_a.files == lineage_b.files


def test_a_new_week_trains_only_new_models(jobs, count):
    uncached_runs = [count(truncated_after(jobs, weeks)) for weeks in (WEEKS - 1, WEEKS)]
    # Every week has a warm model. All weeks but the first and last have a cold model to compare it with.
    assert [uncached[1] for uncached in uncached_runs] == [2 * (WEEKS - 1) - 2, 2 * WEEKS - 2]
    with_cache = count(truncated_after(jobs, WEEKS), uncached_runs[0][2])
    assert is_equal(with_cache[0], uncached_runs[1][0]) and with_cache[2].equals(uncached_runs[1][2])
    # Four models are new: that of the new week, the warm and the cold model of the week before, whose end has moved,
    # and that of the test on that week, in which more jobs have ended.
    assert with_cache[1] == 4
    repeated = count(truncated_after(jobs, WEEKS), with_cache[2])
    assert is_equal(repeated[0], uncached_runs[1][0]) and repeated[1] == 0 and repeated[2].equals(with_cache[2])
    assert count(truncated_after(jobs, WEEKS), with_cache[2], code=("other code",))[1] == uncached_runs[1][1]


def test_a_cache_that_was_edited_is_not_intact(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    (tmp_path / "cache").write_text("as the manifest has it")
    assert not is_unchanged("cache"), "no manifest lists it"
    memory = DigestCache(MEMORY)
    memory.store(memory.digests(["cache"]))
    assert is_unchanged("cache")
    (tmp_path / "cache").write_text("as somebody edited it.")
    assert not is_unchanged("cache")
    (tmp_path / "cache").unlink()
    assert not is_unchanged("cache")


def change_job40(column: str, value) -> pl.Expr:
    """Change a value of one early job, which ended within the first week."""
    return pl.when(pl.col("job_id") == "job40").then(value).otherwise(column).alias(column)


@pytest.mark.parametrize(
    "change",
    [
        change_job40("gpu_milli", 16_000),
        change_job40("gpu_type", pl.lit("another")),
        change_job40("recurrence_group", pl.lit("group of its own")),
        (change_job40("user", pl.lit("somebody else")), change_job40("cluster", pl.col("cluster").max() + 1)),
        change_job40("submit_s", pl.col("submit_s") + 7_200),
        change_job40("outcome", pl.when(outcome="failure").then(pl.lit("success")).otherwise(pl.lit("failure"))),
        change_job40("end_s", pl.col("end_s") + 5 * 86_400),
    ],
)
def test_a_changed_job_retrains_all_models_that_use_it(jobs, count, change):
    job = jobs.filter(job_id="job40").row(0, named=True)
    assert job["end_s"] < FIRST_S + 2 * 86_400 and job["outcome"] in ("success", "failure")
    changed_jobs = jobs.with_columns(change)
    lineage, trained, _ = count(changed_jobs, count(jobs)[2])
    assert is_equal(lineage, count(changed_jobs)[0])
    assert trained >= WEEKS, "at least every warm model"


@pytest.mark.parametrize(
    "declared",
    [
        DECLARED | {"gpus": DECLARED["gpus"] | {"warm": False}},
        DECLARED | {"gpu_type": DECLARED["gpu_type"] | {"vocabulary": 2}},
        {name: DECLARED[name] for name in reversed(DECLARED)},
    ],
)
def test_changed_features_retrain_all_models(jobs, count, declared):
    lineage, trained, _ = count(jobs, count(jobs)[2], declared)
    assert is_equal(lineage, count(jobs, None, declared)[0])
    assert trained == 2 * WEEKS - 2


TEXTS = st.lists(st.sampled_from(["a", "b", "ü", "", None]), min_size=1, max_size=8)


@given(TEXTS, TEXTS)
def test_digests_of_jobs_do_not_depend_on_other_jobs(texts, other_texts):
    """Digests of two sets of jobs are equal only if the jobs are equal."""
    features = parse_features({"x": {"kind": "category", "column": "x"}})

    def digest_parts(values, rows):
        frame = pl.DataFrame({"submit_s": [0] * len(values), "x": pl.Series(values, dtype=pl.String)})
        return list(compute_job_features(frame, features, None).take(np.array(rows)).digest_parts())

    n = len(texts)
    parts, m = digest_parts(texts, range(n)), len(other_texts)
    assert digest_parts([*texts, *other_texts], range(n)) == parts
    assert digest_parts([*other_texts, *texts], range(m, m + n)) == parts
    assert (digest_parts(other_texts, range(m)) == parts) == (texts == other_texts)

"""Models and tests of earlier windows are used again where nothing that they rest on has changed, and only there."""

from dataclasses import replace

import made_risk
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_risk import FIRST_S, WEEK_S
from ttf.analyses.risk.train_model import MODEL_CACHE
from ttf.analyses.risk.train_model import lineage as lineages
from ttf.analyses.risk.train_model.cache import Cache
from ttf.analyses.risk.train_model.lineage import train_lineage
from ttf.analyses.risk.train_model.training_windows import split_windows
from ttf.analyses.shared.risk.features import Data, features_of, submitted
from ttf.analyses.shared.risk.model import TrainingData
from ttf.engine.provenance.digests import MEMORY, Memory, is_intact

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
    """Where a regression serves, which has a warm start: requests tell more than history."""
    return made_risk.with_requests(6_000, 2, WEEKS)


def as_known_after(jobs: pl.DataFrame, weeks: int) -> pl.DataFrame:
    """The record as it stood after some weeks: later submissions are not in it, and later ends not yet seen."""
    end_s = FIRST_S + weeks * WEEK_S
    runs, waits = pl.col("end_s") >= end_s, pl.col("start_s") >= end_s
    outcome = pl.when(waits).then(pl.lit("waiting")).when(runs).then(pl.lit("running")).otherwise("outcome")
    return jobs.filter(pl.col("submit_s") < end_s).with_columns(
        outcome=outcome,
        start_s=pl.when(waits).then(None).otherwise("start_s"),
        end_s=pl.when(runs).then(None).otherwise("end_s"),
        runtime_s=pl.when(runs).then(None).otherwise("runtime_s"),
        trace_end_s=pl.lit(end_s, pl.Int64),
    )


class Counting:
    """How many lessons were learnt, rather than found: a lesson is one of a model of a window, or from nothing."""

    def __init__(self, monkeypatch):
        self.models = 0
        trained = lineages.train_model

        def counted(*given, **more):
            self.models += 1
            return trained(*given, **more)

        monkeypatch.setattr(lineages, "train_model", counted)

    def __call__(self, jobs, table=None, declared=DECLARED, code=("code",)):
        """(the lineage, models trained, MODEL_CACHE)."""
        self.models = 0
        data = Data.load(jobs.lazy(), features_of(declared), "UTC")
        cache = Cache(data, table, code)
        found = train_lineage(data, split_windows(data.jobs, {"by": "week"}, []), 1.0, cache)
        MODEL_CACHE.check(cache.table())
        return found, self.models, cache.table()


@pytest.fixture
def count(monkeypatch):
    return Counting(monkeypatch)


def same(one, other) -> bool:
    return one.rows == other.rows and one.files == other.files


def test_a_new_week_trains_what_is_new(jobs, count):
    alone = [count(as_known_after(jobs, weeks)) for weeks in (WEEKS - 1, WEEKS)]
    # Warm after each week, and from nothing after each but the first, and but the last as nothing tests it.
    assert [made[1] for made in alone] == [2 * (WEEKS - 1) - 2, 2 * WEEKS - 2]
    later = count(as_known_after(jobs, WEEKS), alone[0][2])
    assert same(later[0], alone[1][0]) and later[2].equals(alone[1][2])
    # The new week's model; that of the week before, which ended with the trace and now ends with the next submission's
    # week, with the one from nothing that it is compared with; and that of the test on that week, more of which ended.
    assert later[1] == 4
    again = count(as_known_after(jobs, WEEKS), later[2])
    assert same(again[0], alone[1][0]) and again[1] == 0 and again[2].equals(later[2])
    assert count(as_known_after(jobs, WEEKS), later[2], code=("other code",))[1] == alone[1][1]


def test_a_cache_that_was_edited_is_not_intact(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    (tmp_path / "cache").write_text("as the manifest has it")
    assert not is_intact("cache"), "no manifest has it"
    memory = Memory(MEMORY)
    memory.keep(memory.digests(["cache"]))
    assert is_intact("cache")
    (tmp_path / "cache").write_text("as somebody edited it.")
    assert not is_intact("cache")
    (tmp_path / "cache").unlink()
    assert not is_intact("cache")


def changed(column: str, value) -> pl.Expr:
    """One job of the first days has another value; it had ended by the end of the first week."""
    return pl.when(pl.col("job_id") == "job40").then(value).otherwise(column).alias(column)


@pytest.mark.parametrize(
    "change",
    [
        changed("gpu_milli", 16_000),
        changed("gpu_type", pl.lit("another")),
        changed("recurrence_group", pl.lit("group of its own")),
        changed("user", pl.lit("somebody else")),
        changed("submit_s", pl.col("submit_s") + 7_200),
        changed("outcome", pl.when(outcome="failure").then(pl.lit("success")).otherwise(pl.lit("failure"))),
        changed("end_s", pl.col("end_s") + 5 * 86_400),
    ],
)
def test_another_value_of_one_job_trains_all_anew_that_learnt_from_it(jobs, count, change):
    of_it = jobs.filter(job_id="job40").row(0, named=True)
    assert of_it["end_s"] < FIRST_S + 2 * 86_400 and of_it["outcome"] in ("success", "failure")
    other = jobs.with_columns(change)
    found = count(other, count(jobs)[2])
    assert same(found[0], count(other)[0])
    assert found[1] >= WEEKS, "at least every warm one"


@pytest.mark.parametrize(
    "declared",
    [
        DECLARED | {"gpus": DECLARED["gpus"] | {"warm": False}},
        DECLARED | {"gpu_type": DECLARED["gpu_type"] | {"vocabulary": 2}},
        {name: DECLARED[name] for name in reversed(DECLARED)},
    ],
)
def test_other_features_train_all_anew(jobs, count, declared):
    found = count(jobs, count(jobs)[2], declared)
    assert same(found[0], count(jobs, None, declared)[0])
    assert found[1] == 2 * WEEKS - 2


def test_other_clusters_test_anew_and_train_nothing_on(jobs, count):
    other = jobs.with_columns(cluster=pl.col("cluster") // 2)
    found = count(other, count(jobs)[2])
    assert same(found[0], count(other)[0])
    # From nothing alone, for the tests.
    assert found[1] == WEEKS - 2


# What a key is made of ----------------------------------------------------------------------------------------


def data_of(jobs: pl.DataFrame) -> Data:
    return Data.load(jobs.lazy(), features_of(DECLARED), "UTC")


def lesson_of(data: Data) -> tuple[np.ndarray, TrainingData]:
    ended = data.jobs.ended & (np.arange(len(data.jobs)) < 400)
    again = ended & (np.arange(len(data.jobs)) >= 300)
    return ended, TrainingData.select(data.jobs, data.job_features, ended & ~again, again, int(data.jobs.submit_s[500]))


def key_of(data: Data, lesson: TrainingData, ended: np.ndarray):
    return Cache(replace(data, job_features=lesson.job_features)).lesson_digest(ended, lesson, None)


@pytest.mark.parametrize("field", ["running", "hours", "until_s"])
def test_a_key_tells_every_part_of_a_lesson(jobs, field):
    data = data_of(jobs)
    ended, lesson = lesson_of(data)
    value = getattr(lesson, field)
    if field == "until_s":
        other = value + 1
    else:
        other = value.copy()
        of_it = 7 if field == "hours" else np.flatnonzero(lesson.running)[7]
        other[of_it] = other[of_it] + 1 if field == "hours" else ~other[of_it]
    assert key_of(data, lesson, ended) == key_of(data, lesson, ended)
    assert key_of(data, replace(lesson, **{field: other}), ended) != key_of(data, lesson, ended)


@pytest.mark.parametrize("part", ["numbers", "codes", "rates", "ended_counts", "weekend"])
def test_a_key_tells_all_that_is_known_of_its_jobs_and_nothing_of_others(jobs, part):
    data = data_of(jobs)
    ended, lesson = lesson_of(data)
    for name, values in getattr(lesson.job_features, part).items():
        for row, is_other in ((3, True), (len(data.jobs) - 1, False)):
            other = values.copy()
            other[row] = -1 if part == "codes" else ~other[row] if part == "weekend" else other[row] + 1
            known = replace(lesson.job_features, **{part: getattr(lesson.job_features, part) | {name: other}})
            key = key_of(data, replace(lesson, job_features=known), ended)
            assert (key != key_of(data, lesson, ended)) == is_other
    assert ended[3] and not ended[-1] and not lesson.running[-1]


class Jobs:
    """So many jobs, none of which failed."""

    def __init__(self, n: int) -> None:
        self.failed = np.zeros(n, dtype=bool)

    def __len__(self) -> int:
        return len(self.failed)


TEXTS = st.lists(st.sampled_from(["a", "b", "ü", "", None]), min_size=1, max_size=8)


@settings(max_examples=50, deadline=None)
@given(TEXTS, TEXTS)
def test_what_is_told_of_jobs_is_so_whichever_others_there_are(texts, others):
    """And two sets of jobs say the same only where they are alike."""
    features = features_of({"x": {"kind": "category", "column": "x"}})

    def told(values, rows):
        frame = pl.DataFrame({"submit_s": [0] * len(values), "x": pl.Series(values, dtype=pl.String)})
        return list(submitted(frame, features, None).take(np.array(rows)).digest_parts())

    n = len(texts)
    alone = told(texts, range(n))
    assert told([*texts, *others], range(n)) == told([*others, *texts], range(len(others), len(others) + n)) == alone
    assert (told(others, range(len(others))) == alone) == (texts == others)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12))
def test_jobs_that_came_in_elsewhere_are_others(steps):
    """Jobs come in at steps, some of them twice alike: one digest for the same steps, another for any others."""
    step_of, alike = (np.array(values) for values in zip(*steps, strict=True))
    frame = pl.DataFrame({"submit_s": [0] * len(steps), "x": pl.Series(alike.astype(float))})
    known = submitted(frame, features_of({"x": {"kind": "numeric", "column": "x"}}), None)
    data = Data(Jobs(len(steps)), known, ())

    def digests(of):
        cache = Cache(data)
        return [cache._add_ended(of <= step) or cache._digest.hexdigest() for step in range(4)]

    assert digests(step_of) == digests(step_of)
    for job in range(len(steps)):
        other = step_of.copy()
        other[job] = (other[job] + 1) % 4
        assert digests(other) != digests(step_of)
    # Where jobs go away it begins anew.
    before, anew = Cache(data), Cache(data)
    for of_it, limits in ((before, (3, 1)), (anew, (1,))):
        for limit in limits:
            of_it._add_ended(step_of <= limit)
    assert before._digest.hexdigest() == anew._digest.hexdigest()

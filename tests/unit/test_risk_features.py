"""What a job has at submission, and its columns in a design, against plain loops and sums by hand."""

import zlib

import made_risk
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_risk import OF_EACH_KIND as FEATURES
from scipy.special import logit
from ttf.analyses.shared.risk.encoder import BLANK_VALUE, OTHER_VALUE, Encoder
from ttf.analyses.shared.risk.features import (
    CATEGORY,
    CLOCK,
    HASHED,
    INITIAL_RATE,
    NUMERIC,
    PRIOR_JOBS,
    Data,
    Feature,
    compute_job_features,
    count_ended_before,
    history_rates,
)
from ttf.analyses.shared.risk.training_jobs import EARLIER, load_population
from ttf.stats.regression.design import BLOCK, Design

# A summer and a winter noon in Berlin, and the hours beside the end of summer time (29 October 2023, 01:00 UTC).
SUMMER_NOON, WINTER_NOON = 1_688_205_600, 1_700_910_000
BEFORE_THE_CHANGE, AFTER_THE_CHANGE = 1_698_539_400, 1_698_543_000


def jobs_of(*rows: tuple, **columns: list) -> pl.DataFrame:
    """Rows of (submit_s, end_s, outcome), and more columns."""
    frame = pl.DataFrame(rows, {"submit_s": pl.Int64, "end_s": pl.Int64, "outcome": pl.String}, orient="row")
    blank = pl.lit(None, dtype=pl.Int64)
    return frame.with_columns(
        start_s="submit_s",
        runtime_s=pl.col("end_s") - pl.col("submit_s"),
        trace_end_s=blank,
        gpu_milli=blank,
        size=blank,
    ).with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def numeric(*values: float | None, train=None):
    """Return (encoder of one number, its design); `train` are the rows to learn from, default all."""
    features = [Feature("x", NUMERIC, "x")]
    frame = pl.DataFrame({"submit_s": [0] * len(values), "x": pl.Series(values, dtype=pl.Float64)})
    info = compute_job_features(frame, features, None)
    encoder = Encoder.fit(features, info.take(np.arange(len(values)) if train is None else np.array(train)))
    return encoder, encoder.design(info)


def category(values, train, kind=CATEGORY, size=2):
    """Return (encoder of one text, the levels of its design); it learns from the first `train` values."""
    features = [Feature("x", kind, "x", size=size)]
    frame = pl.DataFrame({"submit_s": [0] * len(values), "x": pl.Series(values, dtype=pl.String)})
    info = compute_job_features(frame, features, None)
    encoder = Encoder.fit(features, info.take(np.arange(train)))
    return encoder, encoder.design(info).levels


# As of a moment ----------------------------------------------------------------------------------------------

TIMES = st.integers(-3, 8)
KEYS = st.integers(0, 2)


def loop_counts(events, questions):
    """Compute the expected counts, one question and one event at a time."""
    counts = []
    for key, moment in questions:
        outcomes = [failed for event_key, time_s, failed in events if event_key == key and time_s < moment]
        counts.append((len(outcomes), sum(outcomes)))
    return np.array(counts, dtype=np.int64).reshape(-1, 2).T


@given(st.lists(st.tuples(KEYS, TIMES, st.integers(0, 1)), max_size=25), st.lists(st.tuples(KEYS, TIMES), max_size=25))
def test_events_before_a_moment_are_those_of_a_plain_loop(events, questions):
    key, time_s, failed = (np.array([event[i] for event in events], dtype=np.int64) for i in range(3))
    query_key, query_s = (np.array([question[i] for question in questions], dtype=np.int64) for i in (0, 1))
    assert (count_ended_before(key, time_s, failed > 0, query_key, query_s) == loop_counts(events, questions)).all()


# Times in which many ends fall together with submissions; a blank key is one of the values.
RUNS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.one_of(st.none(), st.integers(0, 4)),
        st.sampled_from(["success", "failure", "cancelled", "unknown", "running"]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["x", "y", None]),
    ),
    max_size=20,
)


@given(RUNS)
def test_history_is_that_of_a_plain_loop(runs):
    rows = [(submit, None if run_s is None else submit + run_s, outcome) for submit, run_s, outcome, _, _ in runs]
    users, groups = (pl.Series([run[index] for run in runs], dtype=pl.String) for index in (3, 4))
    past = load_population(jobs_of(*rows, user=users, group_of=groups).lazy(), ["group_of"])
    rates, ended = history_rates(past.jobs, [["user"], ["group_of"]], past)
    keys = list(zip(past.jobs["user"].to_list(), past.jobs["group_of"].to_list(), strict=True))
    for job in range(len(past)):
        rate = INITIAL_RATE
        for level in range(3):
            outcomes = [
                bool(past.failed[earlier])
                for earlier in range(len(past))
                if past.known_s[earlier] < past.submit_s[job] and keys[earlier][:level] == keys[job][:level]
            ]
            rate = (sum(outcomes) + PRIOR_JOBS * rate) / (len(outcomes) + PRIOR_JOBS)
            assert rates[job, level] == pytest.approx(rate, rel=1e-14)
            assert ended[job, level] == len(outcomes)


def test_history_may_be_that_of_other_jobs():
    """Jobs in a separate table with other text codes have the same history as in place."""
    jobs = made_risk.with_users(800, 5)
    past = load_population(jobs.lazy(), ["gpu_milli", "recurrence_group"])
    in_place, _ = history_rates(past.jobs, FEATURES[-1].keys, past)
    separate = jobs.select("submit_s", "user", "recurrence_group").filter(pl.col("submit_s").is_not_null())
    sample = separate.sort("submit_s", maintain_order=True)[::7]
    rates, _ = history_rates(sample, FEATURES[-1].keys, past)
    assert (rates == in_place[::7]).all()


def test_a_number_is_a_key_whatever_its_width():
    past = load_population(made_risk.with_users(400, 5).lazy(), ["gpu_milli"])
    in_place, _ = history_rates(past.jobs, [["gpu_milli"]], past)
    rates, _ = history_rates(past.jobs.with_columns(pl.col("gpu_milli").cast(pl.Int32)), [["gpu_milli"]], past)
    assert (rates == in_place).all()


# What else is known ------------------------------------------------------------------------------------------


def test_jobs_taken_are_those_jobs():
    past = load_population(made_risk.with_users(300, 5).lazy(), ["gpu_milli", "recurrence_group"])
    info = compute_job_features(past.jobs, FEATURES, "UTC", past)
    rows = np.array([200, 3, 3, 77])
    subset, encoder = info.take(rows), Encoder.fit(FEATURES, info)
    assert subset.n == 4
    assert (made_risk.dense(encoder.design(subset)) == made_risk.dense(encoder.design(info))[rows]).all()
    mask = np.zeros(300, dtype=bool)
    mask[[3, 200]] = True
    assert (info.take(mask).rates["history"] == info.rates["history"][[3, 200]]).all()


def test_the_latest_jobs_are_known_as_among_all():
    jobs = made_risk.with_users(300, 5).lazy()
    all_, latest = (Data.load(jobs, FEATURES, "UTC", max_jobs=max_jobs) for max_jobs in (None, 120))
    rows = np.arange(180, 300)
    assert len(latest.jobs) == 120
    assert latest.jobs.exclusions == {EARLIER: 180}
    assert latest.jobs.jobs.equals(all_.jobs.jobs[180:])
    assert (latest.jobs.cluster == all_.jobs.cluster[rows]).all()
    assert b"".join(latest.job_features.digest_parts()) == b"".join(all_.job_features.take(rows).digest_parts())
    assert Data.load(jobs, FEATURES, "UTC", max_jobs=300).jobs.exclusions == {}


def test_hours_follow_the_clock_of_the_trace():
    frame = pl.DataFrame(
        {"submit_s": [SUMMER_NOON, WINTER_NOON, BEFORE_THE_CHANGE, AFTER_THE_CHANGE]}, {"submit_s": pl.Int64}
    )
    info = compute_job_features(frame, [Feature("clock", CLOCK)], "Europe/Berlin")
    # The half hours before and after the change are the same by the clock.
    assert info.numbers["clock"].tolist() == [12, 12, 2.5, 2.5]
    # 1 July and 25 November 2023 are Saturdays, 29 October is a Sunday.
    assert info.weekend["clock"].tolist() == [True, True, True, True]
    in_utc = compute_job_features(frame, [Feature("clock", CLOCK)], "UTC")
    assert in_utc.numbers["clock"].tolist() == [10, 11, 0.5, 1.5]


def test_the_weekend_is_that_of_the_zone():
    """Friday 23:00 in London is Saturday in Shanghai."""
    frame = pl.DataFrame({"submit_s": [1_700_866_800, 1_700_866_800 - 86_400]}, {"submit_s": pl.Int64})
    clock = [Feature("clock", CLOCK)]
    assert compute_job_features(frame, clock, "Europe/London").weekend["clock"].tolist() == [False, False]
    assert compute_job_features(frame, clock, "Asia/Shanghai").weekend["clock"].tolist() == [True, False]


def test_the_hour_of_day_is_cyclic():
    """A minute before midnight is near a minute after it, and far from noon."""
    frame = pl.DataFrame({"submit_s": [86_340, 86_460, 86_400 + 43_200]}, {"submit_s": pl.Int64})
    features = [Feature("clock", CLOCK)]
    info = compute_job_features(frame, features, "UTC")
    numbers = Encoder.fit(features, info).design(info).numbers[:, :2]
    assert np.hypot(*(numbers[0] - numbers[1])) < 0.01
    assert np.hypot(*(numbers[0] - numbers[2])) == pytest.approx(2, abs=1e-4)


@pytest.mark.parametrize("texts", [["b", "a", None, "b"], [None, None], []])
def test_labels_are_in_order_of_their_texts_and_codes_point_at_them(texts):
    frame = pl.DataFrame({"submit_s": [0] * len(texts), "x": pl.Series(texts, dtype=pl.String)})
    job_features = compute_job_features(frame, [Feature("x", CATEGORY, "x", size=5)], None)
    assert job_features.labels["x"] == sorted({text for text in texts if text is not None})
    assert [job_features.labels["x"][code] if code >= 0 else None for code in job_features.codes["x"]] == texts


@pytest.mark.parametrize("dtype", [pl.Boolean, pl.Float64, pl.Categorical])
def test_any_column_can_be_a_category(dtype):
    values = pl.Series([1, 0, None, 1])
    frame = pl.DataFrame({"submit_s": [0] * 4, "x": values.cast(pl.String if dtype == pl.Categorical else dtype)})
    codes = compute_job_features(frame, [Feature("x", CATEGORY, "x", size=5)], None).codes["x"]
    assert codes.tolist() == [1, 0, -1, 1]


# Columns of a design -----------------------------------------------------------------------------------------


def test_a_number_is_in_logarithms_to_base_2_in_standard_deviations_with_a_knot_at_the_median():
    values = [0.0, 1.0, 3.0, 3.0, 7.0, 63.0]
    encoder, design = numeric(*values)
    log = np.log2(1 + np.array(values))
    expected = [(log - log.mean()) / log.std(), np.maximum(log - np.median(log), 0) / log.std()]
    assert design.numbers == pytest.approx(np.column_stack(expected))
    assert [term.name for term in encoder.terms] == ["x", "x above the median"]
    assert encoder.params["x"]["knot"] == 2


def test_a_blank_number_lies_at_the_mean_and_has_a_column():
    encoder, design = numeric(0.0, 1.0, 3.0, None)
    assert [term.name for term in encoder.terms] == ["x", "x above the median", f"x {BLANK_VALUE}"]
    assert design.numbers[3].tolist() == [0, 0, 1]
    assert (design.numbers[:3, 2] == 0).all()


def test_there_is_no_knot_at_the_end_of_the_range():
    """The median of mostly zeros is the least value: above it there is nothing but the number itself."""
    encoder, _ = numeric(0.0, 0.0, 0.0, 7.0)
    assert [term.name for term in encoder.terms] == ["x"]


@pytest.mark.parametrize(
    ("values", "columns", "reason"),
    [
        ([4.0, 4.0, 4.0], [], "the same in all jobs"),
        ([None, None], [], "blank in all jobs"),
        ([], [], "blank in all jobs"),
        ([4.0, None], [f"x {BLANK_VALUE}"], None),
    ],
)
def test_a_constant_or_blank_number_is_left_out(values, columns, reason):
    encoder, design = numeric(*values)
    assert [term.name for term in encoder.terms] == columns
    assert encoder.params["x"].get("why") == reason
    assert design.numbers.shape == (len(values), len(columns))
    assert np.isfinite(design.numbers).all()


def test_a_vocabulary_is_of_the_commonest_values_and_the_rest_are_another():
    values = ["a", "b", "b", "c", "c", "c", "d", None, "never seen", "d"]
    encoder, ((indices, size),) = category(values, train=8)
    assert encoder.params["x"]["levels"] == ["c", "b", OTHER_VALUE, BLANK_VALUE]
    assert encoder.params["x"]["seen"] == ["a", "b", "c", "d"]
    assert indices.tolist() == [2, 1, 1, 0, 0, 0, 2, 3, 2, 2]
    assert size == 4


def test_values_of_one_frequency_stand_in_order_of_their_texts():
    encoder, _ = category(["b", "c", "a", "c", "a", "b"], train=6)
    assert encoder.params["x"]["levels"] == ["a", "b", OTHER_VALUE]


def test_what_training_never_saw_counts_as_the_commonest_where_there_is_no_other():
    _, ((indices, _),) = category(["a", "a", "b", "new", None], train=3)
    assert indices.tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("values", "reason"),
    [(["a", "a"], "the same in all jobs"), ([None, None], "blank in all jobs"), ([], "blank in all jobs")],
)
def test_a_constant_or_blank_category_is_left_out(values, reason):
    encoder, levels = category(values, train=len(values))
    assert (encoder.terms, levels) == ([], ())
    assert encoder.params["x"]["why"] == reason


@given(st.lists(st.text(max_size=8), min_size=1, max_size=10), st.integers(2, 64))
def test_buckets_are_of_the_text_alone_and_in_range(texts, buckets):
    """Stable from run to run, as Python's own hash is not, and whatever other texts there are."""
    values = ["one", "another", *texts]
    _, ((indices, size),) = category(values, len(values), HASHED, buckets)
    assert size == buckets
    assert indices.tolist() == [zlib.crc32(text.encode()) % buckets for text in values]


def test_jobs_outside_the_training_range_are_marked():
    features = [Feature("x", NUMERIC, "x"), Feature("y", CATEGORY, "y", size=1)]
    frame = pl.DataFrame(
        {
            "submit_s": [0] * 8,
            "x": [1.0, 2.0, 4.0, 0.5, 4.5, None, 2.0, 2.0],
            "y": ["a", "b", "c", "a", "a", "a", "new", None],
        }
    )
    info = compute_job_features(frame, features, None)
    encoder = Encoder.fit(features, info.take(np.arange(3)))
    # A value that training saw and has no column is within the range; a blank is no value.
    assert encoder.is_out_of_range(info).tolist() == [False, False, False, True, True, False, True, False]


def test_another_number_than_the_one_of_all_training_jobs_is_beyond():
    features = [Feature("x", NUMERIC, "x")]
    job_features = compute_job_features(pl.DataFrame({"submit_s": [0] * 4, "x": [2, 2, 3, None]}), features, None)
    encoder = Encoder.fit(features, job_features.take(np.arange(2)))
    assert encoder.terms == []
    assert encoder.is_out_of_range(job_features).tolist() == [False, False, True, False]


def fit_encoder(jobs: int = 500):
    past = load_population(made_risk.with_users(jobs, 5).lazy(), ["gpu_milli", "recurrence_group"])
    info = compute_job_features(past.jobs, FEATURES, "UTC", past)
    return info, Encoder.fit(FEATURES, info)


@pytest.mark.parametrize("jobs", [1, BLOCK + 1])
def test_sums_and_products_are_those_of_the_dense_design(jobs):
    job_features, encoder = fit_encoder()
    rng = np.random.default_rng(1)
    encoded = encoder.design(job_features.take(np.arange(jobs) % 500))
    design = Design(encoded.numbers, (*encoded.levels, (rng.integers(0, 3, jobs), 3)))
    whole, weights = made_risk.dense(design), rng.normal(size=jobs)
    assert whole.shape == (jobs, design.width)
    coefficients = rng.normal(size=(design.width, 2))
    assert design.dot(coefficients) == pytest.approx(whole @ coefficients)
    assert design.dot(coefficients[:, 0]) == pytest.approx(whole @ coefficients[:, 0])
    assert design.sums(weights) == pytest.approx(whole.T @ weights)
    assert design.gram(weights) == pytest.approx(whole.T @ (whole * weights[:, None]))
    assert (made_risk.dense(design.take(slice(1, None, 2))) == whole[1::2]).all()


def test_the_columns_of_a_design_are_its_terms():
    job_features, encoder = fit_encoder()
    design = encoder.design(job_features)
    rows = made_risk.dense(design)
    assert (rows[:, 0] == 1).all()
    assert design.width == 1 + len(encoder.terms)
    position_by_term = {(term.feature, term.name): position for position, term in enumerate(encoder.terms, start=1)}
    levels = encoder.params["gpu_type"]["levels"]
    types = load_population(made_risk.with_users(500, 5).lazy()).jobs["gpu_type"].cast(pl.String).to_list()
    for level in levels[1:]:
        is_level = [gpu_type == level or (level == OTHER_VALUE and gpu_type not in levels) for gpu_type in types]
        assert (rows[:, position_by_term["gpu_type", level]] == is_level).all()
    assert len(encoder.params["group"]["levels"]) == 8
    by_user = position_by_term["history", "history by user"]
    assert (rows[:, by_user] == np.diff(logit(job_features.rates["history"]), axis=1)[:, 0]).all()


def test_the_digest_depends_on_the_declaration_not_on_the_data():
    job_features, encoder = fit_encoder()
    other = Encoder.fit(FEATURES, job_features.take(np.arange(100)))
    assert other.digest == encoder.digest
    assert Encoder.fit(FEATURES[:-1], job_features).digest != encoder.digest
    wider = [*FEATURES[:1], Feature("gpu_type", CATEGORY, "gpu_type", size=3), *FEATURES[2:]]
    assert Encoder.fit(wider, job_features).digest != encoder.digest

"""Scores of jobs against the model, scikit-learn and SciPy; refused files; the choice of the model."""

import gzip
import json
import re
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_risk import WEEK_S, train, with_users
from scipy.special import logit
from scipy.stats import mannwhitneyu
from scipy.stats.contingency import association
from ttf.analyses.shared.risk import served_models
from ttf.analyses.shared.risk.features import Feature, compute_job_features
from ttf.analyses.shared.risk.new_jobs import FileRequirements, read_new_jobs
from ttf.analyses.shared.risk.score import (
    NO_GPUS,
    NO_HOURS,
    SCORES,
    SKEW,
    compute_skew,
    count_requested_gpus,
    list_gpu_columns,
    read_model,
    score_jobs,
)
from ttf.analyses.shared.risk.training_jobs import load_population
from ttf.engine.errors import StudyError
from ttf.formats.table.read import submission_columns

FEATURES = [
    Feature("gpus", "numeric", "gpu_milli"),
    Feature("gpu_type", "category", "gpu_type", size=2),
    Feature("history", "history", keys=(("user",), ("recurrence_group",))),
]
GPUS, CLOCK = ("gpu_milli", "size"), "America/Denver"


@pytest.fixture(scope="module")
def pool():
    return load_population(with_users(6_000, seed=7).lazy(), ["job_id", "true_risk", "recurrence_group", *GPUS])


@pytest.fixture(scope="module")
def inputs(pool):
    return compute_job_features(pool.jobs, FEATURES, None, pool)


@pytest.fixture(scope="module")
def model(pool, inputs):
    """A model of the first five of eight weeks, which have no GPU type C."""
    until_s = int(pool.submit_s[0]) + 5 * WEEK_S
    is_known = pool.ended & (pool.known_s < until_s)
    is_late = pool.submit_s >= until_s - WEEK_S
    return train(pool, inputs, FEATURES, is_known & ~is_late, is_known & is_late, until_s)


@pytest.fixture(scope="module")
def is_new(pool, model):
    return pool.submit_s >= model.until_s


@pytest.fixture(scope="module")
def is_old(pool, model):
    return pool.ended & (pool.known_s < model.until_s)


@pytest.fixture(scope="module")
def scores(pool, inputs, model, is_new, is_old):
    return score_jobs(model, pool.jobs.filter(is_new), inputs.take(is_new), pool.jobs.filter(is_old), GPUS, CLOCK)


def test_scores_are_the_models_and_gpu_hours_at_stake_their_product(pool, inputs, model, is_new, scores):
    SCORES.check(scores)
    design = model.encoder.design(inputs.take(is_new))
    assert np.array_equal(scores["probability"], model.probability(design))
    assert np.array_equal(scores["expected_hours_to_failure"], model.hours.mean(design))
    expected = scores["probability"] * pool.gpus[is_new] * scores["expected_hours_to_failure"]
    assert np.allclose(scores["gpu_hours_at_stake"], expected, rtol=1e-12)
    assert scores["job_id"].to_list() == pool.jobs.filter(is_new)["job_id"].to_list()
    local = datetime.fromtimestamp(int(pool.submit_s[is_new][0]), ZoneInfo(CLOCK))
    assert scores["submit"][0] == local.isoformat()
    assert scores["at_risk"].to_list() == (scores["probability"] >= model.failures / model.n).to_list()


def test_reasons_add_up_to_the_log_odds_against_the_mean_of_the_training(pool, inputs, is_new, is_old):
    """A model of one number and two levels of history has three reasons, and all are shown."""
    two_features = [FEATURES[0], FEATURES[2]]
    design = compute_job_features(pool.jobs, two_features, None, pool)
    model = train(pool, design, two_features, is_old, is_old & False, pool.submit_s[-1], with_hours=False)
    table = score_jobs(model, pool.jobs.filter(is_new), design.take(is_new), pool.jobs.filter(is_old), GPUS)
    mean = model.shift + model.slope * model.centre @ model.weights
    for row in table.head(300).iter_rows(named=True):
        log_odds = [float(row[f"reason_{rank}"].rsplit(": ", 1)[1]) for rank in (1, 2, 3) if row[f"reason_{rank}"]]
        assert logit(row["probability"]) - mean == pytest.approx(sum(log_odds), abs=0.0151)
        assert [abs(value) for value in log_odds] == sorted(map(abs, log_odds), reverse=True)
        assert row["expected_hours_to_failure"] is row["gpu_hours_at_stake"] is None
        assert row["reason"] == NO_HOURS


def test_a_reason_counts_the_jobs_of_the_user_that_had_ended_before(pool, is_new, scores):
    jobs = pool.jobs.filter(is_new)
    pattern = re.compile(r"history by user = (?:([\d,]+) of ([\d,]+) failed|none ended yet): ")
    matches = 0
    for job, row in zip(jobs.iter_rows(named=True), scores.iter_rows(named=True), strict=True):
        for rank in (1, 2, 3):
            if match := pattern.match(row[f"reason_{rank}"] or ""):
                is_earlier = (pool.jobs["user"] == job["user"]).to_numpy() & (pool.known_s < job["submit_s"])
                failed, ended = (int((match[group] or "0").replace(",", "")) for group in (1, 2))
                assert (failed, ended) == (pool.failed[is_earlier].sum(), is_earlier.sum())
                matches += 1
    assert matches > 500


def test_values_absent_from_training_are_flagged(pool, is_new, is_old, scores):
    jobs, training_jobs = pool.jobs.filter(is_new), pool.jobs.filter(is_old)
    is_new_user = ~jobs["user"].cast(pl.String).is_in(training_jobs["user"].cast(pl.String).unique().to_list())
    assert scores["unseen_user"].to_list() == is_new_user.to_list()
    pair = pl.concat_str(pl.col("user", "recurrence_group").cast(pl.String), separator="/")
    is_new_pair = ~jobs.select(pair).to_series().is_in(training_jobs.select(pair).to_series().unique().to_list())
    assert scores["unseen_group"].to_list() == is_new_pair.to_list()
    assert 0 < is_new_user.sum() < is_new_pair.sum() < jobs.height


def test_a_job_beyond_the_range_names_the_feature(pool, model, is_old):
    jobs = pl.DataFrame(
        {
            "job_id": ["inside", "large", "both", "blank"],
            "submit_s": [model.until_s] * 4,
            "user": ["user0", "user0", None, "user0"],
            "recurrence_group": ["group0"] * 4,
            "gpu_milli": [1000, 64_000, 64_000, None],
            "gpu_type": ["A", "A", '=HYPERLINK("x")', "A"],
        }
    )
    table = score_jobs(model, jobs, compute_job_features(jobs, FEATURES, None, pool), pool.jobs.filter(is_old), GPUS)
    assert table["beyond_range"].to_list() == [False, True, True, False]
    assert table["beyond_feature"].to_list() == [None, "gpus", "gpus, gpu_type", None]
    assert table["submit"].to_list() == [str(model.until_s)] * 4, "of a trace without a clock"
    # A blank user is no new user.
    assert table["unseen_user"].to_list()[2] is False
    assert table["reason"].to_list() == [None, None, None, NO_GPUS]
    assert table["gpu_hours_at_stake"].null_count() == 1
    assert table["expected_hours_to_failure"].null_count() == 0


def test_a_model_from_its_file_gives_the_same_scores(pool, inputs, model, is_new, is_old, scores):
    """Keys are sorted in the file; the columns of the design have another order."""
    copy = read_model(json.loads(json.dumps(model.to_json(), sort_keys=True)))
    jobs = pool.jobs.filter(is_new), inputs.take(is_new), pool.jobs.filter(is_old)
    assert score_jobs(copy, *jobs, GPUS, CLOCK).equals(scores)


@pytest.mark.parametrize(
    "edit",
    [
        lambda content: content.pop("centre"),
        lambda content: content.update(weights=content["weights"][1:]),
        lambda content: content["terms"].reverse(),
        lambda content: content["features"]["gpus"].update(column="end_s"),
        lambda content: content["hours"]["coefficients"].pop(),
        lambda content: content["recalibration"].update(shift=float("nan")),
    ],
)
def test_an_edited_model_is_refused(model, edit):
    content = json.loads(json.dumps(model.to_json()))
    edit(content)
    with pytest.raises(StudyError, match="not a model as it was written"):
        read_model(content)


def test_gpus_are_those_known_at_submission():
    assert list_gpu_columns(["user", "gpu_requested_milli", "gpu_milli"]) == ("gpu_requested_milli",)
    assert list_gpu_columns(["gpu_milli", "inst_num"]) == ("gpu_milli", "inst_num")
    assert list_gpu_columns(["user"]) == ()
    jobs = pl.DataFrame({"gpu_milli": [500, 2000], "size": [None, 3]})
    assert count_requested_gpus(jobs, GPUS).tolist() == [0.5, 6.0]
    assert np.isnan(count_requested_gpus(jobs, ("gpu_requested_milli",))).all()


# Skew ----------------------------------------------------------------------------------------------------------


def test_skew_equals_scipy(pool, inputs, model, is_new, is_old):
    table = compute_skew(
        model, pool.jobs.filter(is_new), inputs.take(is_new), pool.jobs.filter(is_old), inputs.take(is_old)
    )
    SKEW.check(table)
    sizes = table["effect"].abs().to_list()
    assert sizes == sorted(sizes, reverse=True)
    rows = {row["feature"]: row for row in table.iter_rows(named=True)}
    old_jobs, new_jobs = (pool.jobs.filter(mask) for mask in (is_old, is_new))
    u = mannwhitneyu(new_jobs["gpu_milli"], old_jobs["gpu_milli"]).statistic
    assert rows["gpus"]["effect"] == pytest.approx(2 * u / (old_jobs.height * new_jobs.height) - 1)
    assert rows["gpus"]["training"] == old_jobs["gpu_milli"].median()
    counts = np.array([[(part_jobs["gpu_type"] == name).sum() for name in "ABC"] for part_jobs in (old_jobs, new_jobs)])
    assert counts[0, 2] == 0
    assert rows["gpu_type"]["effect"] == pytest.approx(association(counts, correction=False))
    u = mannwhitneyu(inputs.rates["history"][is_new, 1], inputs.rates["history"][is_old, 1]).statistic
    assert rows["history by user"]["effect"] == pytest.approx(2 * u / (old_jobs.height * new_jobs.height) - 1)


def test_a_column_gone_missing_is_the_largest_skew(pool, inputs, model, is_new, is_old):
    jobs = pool.jobs.filter(is_new).with_columns(gpu_milli=pl.lit(None, dtype=pl.Int64))
    table = compute_skew(
        model, jobs, compute_job_features(jobs, FEATURES, None, pool), pool.jobs.filter(is_old), inputs.take(is_old)
    )
    cells = ("feature", "statistic", "training", "scored", "effect_name", "effect")
    assert table.select(cells).row(0) == ("gpus", "blank", 0, 1, "cohen_h", pytest.approx(np.pi))
    indices = np.flatnonzero(is_new)[:5]
    table = compute_skew(model, pool.jobs[indices], inputs.take(indices), pool.jobs.filter(is_old), inputs.take(is_old))
    assert table["effect"].null_count() == table.height, "few jobs have no skew"


# The file ------------------------------------------------------------------------------------------------------

COLUMNS = FileRequirements(
    needed={"user": ["history"], "gpu_milli": ["gpus"]},
    types={
        "user": pl.String(),
        "gpu_milli": pl.Int64(),
        "size": pl.Int64(),
        "share": pl.Float64(),
        "late": pl.Boolean(),
    },
    may=["size", "share", "late"],
    later=["runtime_s", "outcome"],
    clock=True,
    seen=(1_700_000_000, 1_710_000_000),
)
HEADER = "job_id,submit_s,user,gpu_milli"


def read_text(tmp_path, text: str | bytes, columns: FileRequirements = COLUMNS, name: str = "new.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_new_jobs(path, columns)


def test_cells_are_read_as_the_job_record_has_them(tmp_path):
    text = f'{HEADER},colour,late\n"a, ""b""",1700000000,"=1+1",8000.0,red,True\nb,1700000060,,,,\n'
    table, unused_columns = read_text(tmp_path, text)
    assert table.rows() == [('a, "b"', 1_700_000_000, "=1+1", 8000, True), ("b", 1_700_000_060, None, None, None)]
    assert table.columns == ["job_id", "submit_s", "user", "gpu_milli", "late"]
    assert unused_columns == ["colour"]


def test_the_delimiter_is_read_from_the_header(tmp_path):
    text = f"\ufeff{HEADER}\r\na,1700000000,u,1\r\n".replace(",", ";")
    assert read_text(tmp_path, text)[0].rows() == [("a", 1_700_000_000, "u", 1)]


def test_a_time_is_read_with_its_offset(tmp_path):
    times = ("2023-11-14T22:13:20Z", "2023-11-14T22:13:20", "2023-11-14T23:13:20+01:00", "1700000000")
    text = "job_id,submit,user,gpu_milli\n" + "".join(f"{number},{time},u,1\n" for number, time in enumerate(times))
    assert read_text(tmp_path, text)[0]["submit_s"].to_list() == [1_700_000_000] * 4


def test_parquet_is_read_like_csv(tmp_path):
    frame = pl.DataFrame({"job_id": [1, 2], "user": ["u", ""], "gpu_milli": [1000.0, None], "size": [1, 2]})
    frame = frame.with_columns(submit=pl.from_epoch(pl.Series([1_700_000_000, 1_700_000_060])))
    frame.write_parquet(tmp_path / "new.parquet")
    table, _ = read_new_jobs(tmp_path / "new.parquet", COLUMNS)
    assert table.sort("job_id").rows() == [("1", 1_700_000_000, "u", 1000, 1), ("2", 1_700_000_060, None, None, 2)]
    frame.with_columns(gpu_milli=pl.lit([1, 2])).write_parquet(tmp_path / "new.parquet")
    with pytest.raises(StudyError, match="row 1, column gpu_milli"):
        read_new_jobs(tmp_path / "new.parquet", COLUMNS)


REFUSED = {
    "no column gpu_milli \\(feature gpus\\), which the model needs": "job_id,submit_s,user\na,1700000000,u\n",
    "no column job_id, submit_s or submit, user": "a\nb\n",
    "line 3: job_id 'a' is that of line 2 too": f"{HEADER}\na,1700000000,u,1\n a ,1700000000,u,1\n",
    "line 2: job_id is blank": f"{HEADER}\n  ,1700000000,u,1\n",
    "column share: '-0.5' is less than 0": f"{HEADER},share\na,1700000000,u,1,-0.5\n",
    "column size: '0' is less than 1": f"{HEADER},size\na,1700000000,u,1,0\n",
    "line 3, column gpu_milli: 'eight' is no whole number": f"{HEADER}\na,1700000000,u,1\nb,1700000000,u,eight\n",
    "'1.5' is no whole number": f"{HEADER}\na,1700000000,u,1.5\n",
    "'nan' is no whole number": f"{HEADER}\na,1700000000,u,nan\n",
    "column share: 'inf' is no number": f"{HEADER},share\na,1700000000,u,1,inf\n",
    "column late: 'maybe' is no true or false": f"{HEADER},late\na,1700000000,u,1,maybe\n",
    "outcome, runtime_s are written after submission": f"{HEADER},outcome,runtime_s\na,1700000000,u,1,failure,3\n",
    "no rows": f"{HEADER}\n",
    "line 1 is blank": "\n",
    "line 2, column submit_s: 'soon'": f"{HEADER}\na,soon,u,1\n",
    "line 2, column submit_s: blank": f"{HEADER}\na,,u,1\n",
    "column submit_s: '9999999999999'": f"{HEADER}\na,9999999999999,u,1\n",
    "both say when": f"{HEADER},submit\na,1700000000,u,1,1\n",
    "more than one column is called user": f"{HEADER},user\na,1700000000,u,1,u\n",
    "line 3: the line has more or fewer fields": f"{HEADER}\na,1700000000,u,1\na,1700000000,u,1,2,3,4\n",
    "line 2: the line is not valid UTF-8": HEADER.encode() + b"\na,1700000000,\xff,1\n",
    "line 1: the text is UTF-16": b"\xff\xfe\x00",
    "line 1: its lines end in CR": f"{HEADER}\ra,1700000000,u,1\r",
    r"'\\x1b\[31m": f"{HEADER}\na,1700000000,u,\x1b[31m\n",
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_malformed_file_is_refused_by_name(tmp_path, message):
    with pytest.raises(StudyError, match=message) as raised:
        read_text(tmp_path, REFUSED[message])
    assert str(raised.value).isprintable()


MAPPED_ENTRY = {
    "mapping": {
        "job_id": "run_id",
        "user": "owner",
        "submit": "created_at",
        "end": "finished_at",
        "status": "state",
        "gpus": {"column": "gpus", "unit": "percent"},
        "memory": {"column": "ram", "unit": "GB"},
        "size": "workers",
    },
    "times": {"format": "%d.%m.%Y %H:%M", "zone": "America/Denver"},
    "outcomes": {"success": ["done"]},
    "blank": ["n/a"],
}
MAPPED = FileRequirements(
    COLUMNS.needed,
    COLUMNS.types | {"mem_mib": pl.Int64()},
    ["size", "mem_mib"],
    COLUMNS.later,
    True,
    COLUMNS.seen,
    submission_columns(MAPPED_ENTRY, ("user", "gpu_milli", "mem_mib", "size")),
    {"finished_at", "state"},
)
MAPPED_HEADER = "run_id,owner,created_at,gpus"


def test_new_jobs_may_have_the_names_units_and_times_of_the_traces_own_table(tmp_path):
    """Denver is 7 hours behind UTC in November, so 15:13 there is 22:13 UTC."""
    text = f"""{MAPPED_HEADER},ram,workers,state,finished_at,note
a,u1,14.11.2023 15:13,50,1.5,2,queued,,x
b,n/a,2023-11-14T22:13:20Z,,,,queued,,x
c,u3,2023-11-14T15:13:20,800,n/a,1,,,x
"""
    table, unused_columns = read_text(tmp_path, text, MAPPED)
    assert table.select("job_id", "submit_s", "user", "gpu_milli", "size", "mem_mib").rows() == [
        ("a", 1_699_999_980, "u1", 500, 2, 1431),
        ("b", 1_700_000_000, None, None, None, None),
        ("c", 1_700_000_000, "u3", 8000, 1, None),
    ]
    assert unused_columns == ["state", "finished_at", "note"]
    text = "job_id,submit,owner,gpu_milli\na,2023-11-14T22:13:20Z,u1,500\n"
    assert read_text(tmp_path, text, MAPPED)[0].row(0) == ("a", 1_700_000_000, "u1", 500)


def test_times_of_parquet_without_a_zone_are_in_that_of_the_trace(tmp_path):
    times = pl.Series([datetime(2023, 11, 14, 15, 13, 20)])
    frame = pl.DataFrame({"run_id": [1], "owner": ["u"], "gpus": [100]})
    for created_at in (times, times.dt.replace_time_zone("America/Denver")):
        frame.with_columns(created_at=created_at).write_parquet(tmp_path / "new.parquet")
        assert read_new_jobs(tmp_path / "new.parquet", MAPPED)[0]["submit_s"].item() == 1_700_000_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\na\n", "no column run_id or job_id, created_at or submit_s or submit, owner or user \\(feature history"),
        (f"{MAPPED_HEADER}\na,u,soon,1\n", "line 2: created_at is not a time .*: 'soon'; expected %d.%m.%Y %H:%M, as"),
        (f"{MAPPED_HEADER}\na,u,,1\n", "line 2, column created_at: blank is not a time"),
        (f"{MAPPED_HEADER}\na,u,2023-11-14T22:13:20Z,-1\n", "line 2: gpus is negative or beyond .*: '-1'"),
        (f"{MAPPED_HEADER}\n,u,2023-11-14T22:13:20Z,1\n", "line 2: run_id is blank"),
        (f"{MAPPED_HEADER},user\na,u,2023-11-14T22:13:20Z,1,u\n", "owner and user hold the same; give one"),
        (f"{MAPPED_HEADER},outcome\na,u,2023-11-14T22:13:20Z,1,1\n", "outcome is written after submission"),
    ],
)
def test_a_malformed_file_with_names_of_the_table_is_refused_by_these(tmp_path, text, message):
    with pytest.raises(StudyError, match=message):
        read_text(tmp_path, text, MAPPED)


def test_times_from_an_unknown_origin_have_no_date(tmp_path):
    columns = FileRequirements(COLUMNS.needed, COLUMNS.types, (), (), clock=False, seen=(0, 1000))
    assert read_text(tmp_path, f"{HEADER}\na,5,u,1\n", columns)[0]["submit_s"].item() == 5
    with pytest.raises(StudyError, match="unknown origin; give submit_s"):
        read_text(tmp_path, "job_id,submit,user,gpu_milli\na,5,u,1\n", columns)
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(StudyError, match=rf"{name}: .*[Nn]o such file"):
            read_new_jobs(tmp_path / name, COLUMNS)
    with pytest.raises(StudyError, match="cannot be read"):
        read_new_jobs(tmp_path, COLUMNS)
    with pytest.raises(StudyError, match="cannot be read"):
        read_text(tmp_path, "no parquet", name="new.parquet")


def test_a_packed_file_and_one_whose_name_is_a_pattern(tmp_path):
    text = f"{HEADER}\na,1700000000,u,1\n"
    read_text(tmp_path, text.replace("a,", "b,"), name="new1.csv")
    assert read_text(tmp_path, text, name="new[1].csv")[0]["job_id"].to_list() == ["a"]
    assert read_text(tmp_path, gzip.compress(text.encode()), name="new.csv.gz")[0].height == 1


@given(cells=st.lists(st.text(max_size=12), min_size=4, max_size=4), junk=st.binary(max_size=40))
def test_any_cell_is_read_or_refused(tmp_path_factory, cells, junk):
    folder = tmp_path_factory.mktemp("any")
    row = ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)
    for text in (f"{HEADER}\n{row}\n".encode("utf-8", "replace"), HEADER.encode() + b"\n" + junk, junk):
        try:
            table, _ = read_text(folder, text)
        except StudyError as error:
            assert len(str(error)) < 2_000
        else:
            assert table.height and table["job_id"].null_count() == table["submit_s"].null_count() == 0


# The model that scores -----------------------------------------------------------------------------------------


def write_model(folder, name: str, window: str, until_s: int, decision: str = "promoted") -> dict:
    folder.mkdir(exist_ok=True)
    content = {"window": window, "decision": decision, "coefficients": [0.0], "trained_on": {"until_s": until_s}}
    (folder / f"{name}.json").write_text(json.dumps(content))
    return content


def test_the_serving_model_is_read(tmp_path):
    with pytest.raises(StudyError, match="there is no model yet"):
        served_models.current_model(tmp_path)
    write_model(tmp_path, "week_1", "week 1", 10, "not promoted: worse")
    (tmp_path / "current.json").write_text(json.dumps({"model": None, "why": "none was better than the base rate"}))
    with pytest.raises(StudyError, match=r"none was better than the base rate.*--model 'week 1'"):
        served_models.current_model(tmp_path)
    write_model(tmp_path, "week_2", "week 2", 20)
    write_model(tmp_path, "current", "week 2", 20)
    assert served_models.current_model(tmp_path).window == "week 2"
    assert (
        served_models.model_of_window(tmp_path, "week 1").until_s
        == served_models.model_of_window(tmp_path, "week_1").until_s
        == 10
    )
    for name in ("../week_1", "week 3", "current"):
        with pytest.raises(StudyError, match="there: week 1, week 2"):
            served_models.model_of_window(tmp_path, name)
    for text in ("{", "[]", "{}", '{"coefficients": []}', '{"trained_on": {"until_s": "x"}}'):
        (tmp_path / "week_2.json").write_text(text)
        with pytest.raises(StudyError, match=r"week_2.json: .*not as train_model wrote it"):
            served_models.model_of_window(tmp_path, "week 1")


def test_a_part_has_the_newest_promoted_model_made_before_it(tmp_path):
    parts = ["a.txt", "b.txt", "c.txt"]
    write_model(tmp_path, "1", "part 1: a.txt", 10)
    write_model(tmp_path, "2", "part 2: b.txt", 20, "not promoted: too few to tell")
    write_model(tmp_path, "3", "part 3: c.txt", 30, "pending")
    for week in (1, 2, 3):
        write_model(tmp_path / "weeks", f"week_{week}", f"week {week}", 10 * week)
    for first_s, window in ((10, "week 1"), (29, "week 2")):
        assert served_models.model_before_part(tmp_path / "weeks", "b", ["a", "b"], first_s).window == window
    # Part b has a job that was submitted before the last of a: the order of the parts counts.
    assert served_models.model_before_part(tmp_path, "b.txt", parts, 8).window == "part 1: a.txt"
    assert served_models.model_before_part(tmp_path, "c.txt", parts, 25).window == "part 1: a.txt"
    with pytest.raises(StudyError, match=r"no promoted model was made before the part a\.txt"):
        served_models.model_before_part(tmp_path, "a.txt", parts, 0)
    write_model(tmp_path, "1", "part 1: a.txt", 10, "not promoted: worse")
    with pytest.raises(StudyError, match=r"not promoted: part 1: a\.txt, part 2: b\.txt \(--model\)"):
        served_models.model_before_part(tmp_path, "c.txt", parts, 25)


# Its evaluation ------------------------------------------------------------------------------------------------

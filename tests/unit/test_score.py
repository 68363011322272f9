"""Jobs scored by a model: against the model itself, scikit-learn and SciPy; what is refused; which model scores."""

import gzip
import json
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_risk import WEEK_S, train, with_users
from scipy.special import logit
from scipy.stats import mannwhitneyu
from scipy.stats.contingency import association
from sklearn.metrics import average_precision_score
from ttf.analyses.risk.predict_failure import EVALUATION, trust
from ttf.analyses.risk.predict_failure.risk_labels import CANNOT_SAY, NONE, UNPRICED, VERDICT_TEXTS
from ttf.analyses.shared.risk import served_models
from ttf.analyses.shared.risk.features import Feature, submitted
from ttf.analyses.shared.risk.new_jobs import Asked, read_new_jobs
from ttf.analyses.shared.risk.score import (
    NO_GPUS,
    NO_HOURS,
    SCORES,
    SKEW,
    count_requested_gpus,
    format_value,
    gpu_columns,
    model_of,
    needed,
    scored,
    skew,
)
from ttf.analyses.shared.risk.training_jobs import population
from ttf.engine.errors import StudyError

FEATURES = [
    Feature("gpus", "numeric", "gpu_milli"),
    Feature("gpu_type", "category", "gpu_type", size=2),
    Feature("history", "history", keys=(("user",), ("recurrence_group",))),
]
GPUS = ("gpu_milli", "size")


@pytest.fixture(scope="module")
def past():
    return population(with_users(6_000, seed=7).lazy(), ["job_id", "true_risk", "recurrence_group"])


@pytest.fixture(scope="module")
def known(past):
    return submitted(past.jobs, FEATURES, None, past)


@pytest.fixture(scope="module")
def model(past, known):
    """Of the first five of eight weeks, which have no GPU type C."""
    until = int(past.submit_s[0]) + 5 * WEEK_S
    ended = past.ended & (past.known_s < until)
    late = past.submit_s >= until - WEEK_S
    return train(past, known, FEATURES, ended & ~late, ended & late, until)


@pytest.fixture(scope="module")
def later(past, model):
    return past.submit_s >= model.until_s


@pytest.fixture(scope="module")
def trained(past, model):
    return past.ended & (past.known_s < model.until_s)


@pytest.fixture(scope="module")
def scores(past, known, model, later, trained):
    return scored(model, past.jobs.filter(later), known.take(later), past.jobs.filter(trained), GPUS)


def test_scores_are_the_models_and_what_is_at_stake_is_their_product(past, known, model, later, scores):
    SCORES.check(scores)
    part = known.take(later)
    design = model.encoder.design(part)
    assert np.array_equal(scores["probability"], model.probability(design))
    assert np.array_equal(scores["expected_hours_to_failure"], model.hours.mean(design))
    staked = scores["probability"] * past.gpus[later] * scores["expected_hours_to_failure"]
    assert np.allclose(scores["gpu_hours_at_stake"], staked, rtol=1e-12)
    assert scores["job_id"].to_list() == past.jobs.filter(later)["job_id"].to_list()
    assert scores["at_risk"].to_list() == (scores["probability"] >= model.failures / model.n).to_list()


def test_later_failures_have_higher_scores(past, later, scores):
    ended = past.ended[later]
    failed, p = past.failed[later][ended], scores["probability"].to_numpy()[ended]
    assert average_precision_score(failed, p) > 1.5 * failed.mean()
    # The truth that the jobs were drawn by is nearer to the score than to the share of failures.
    risk = past.jobs["true_risk"].to_numpy()[later][ended]
    assert np.square(p - risk).mean() < 0.8 * np.square(failed.mean() - risk).mean()


def test_reasons_add_up_to_the_log_odds_against_the_mean_of_the_training(past, known, later, trained):
    """Of a model of three parts all are told: one number and two levels of history."""
    two = [FEATURES[0], FEATURES[2]]
    of_two = submitted(past.jobs, two, None, past)
    model = train(past, of_two, two, trained, trained & False, past.submit_s[-1], with_hours=False)
    found = scored(model, past.jobs.filter(later), of_two.take(later), past.jobs.filter(trained), GPUS)
    mean = model.shift + model.slope * model.centre @ model.weights
    for row in found.head(300).iter_rows(named=True):
        adds = [float(row[f"reason_{place}"].rsplit(": ", 1)[1]) for place in (1, 2, 3) if row[f"reason_{place}"]]
        assert logit(row["probability"]) - mean == pytest.approx(sum(adds), abs=0.0151)
        assert [abs(add) for add in adds] == sorted(map(abs, adds), reverse=True)
        assert row["expected_hours_to_failure"] is row["gpu_hours_at_stake"] is None
        assert row["reason"] == NO_HOURS


def test_a_reason_counts_the_jobs_of_the_user_that_had_ended_before(past, later, scores):
    jobs = past.jobs.filter(later)
    by_user = re.compile(r"history by user = (?:([\d,]+) of ([\d,]+) failed|none ended yet): ")
    told = 0
    for job, row in zip(jobs.iter_rows(named=True), scores.iter_rows(named=True), strict=True):
        for place in (1, 2, 3):
            if found := by_user.match(row[f"reason_{place}"] or ""):
                before = (past.jobs["user"] == job["user"]).to_numpy() & (past.known_s < job["submit_s"])
                failed, ended = (int((found[group] or "0").replace(",", "")) for group in (1, 2))
                assert (failed, ended) == (past.failed[before].sum(), before.sum())
                told += 1
    assert told > 500


def test_what_training_did_not_have_is_flagged(past, later, trained, scores):
    jobs, before = past.jobs.filter(later), past.jobs.filter(trained)
    is_new = ~jobs["user"].cast(pl.String).is_in(before["user"].cast(pl.String).unique().to_list())
    assert scores["unseen_user"].to_list() == is_new.to_list()
    pair = pl.concat_str(pl.col("user", "recurrence_group").cast(pl.String), separator="/")
    of_pair = ~jobs.select(pair).to_series().is_in(before.select(pair).to_series().unique().to_list())
    assert scores["unseen_group"].to_list() == of_pair.to_list()
    assert 0 < is_new.sum() < of_pair.sum() < jobs.height


def test_a_job_beyond_the_range_names_the_feature(past, model, trained):
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
    found = scored(model, jobs, submitted(jobs, FEATURES, None, past), past.jobs.filter(trained), GPUS)
    assert found["beyond_range"].to_list() == [False, True, True, False]
    assert found["beyond_feature"].to_list() == [None, "gpus", "gpus, gpu_type", None]
    # Who is blank is nobody, and so is no new user.
    assert found["unseen_user"].to_list()[2] is False
    assert found["reason"].to_list() == [None, None, None, NO_GPUS]
    assert found["gpu_hours_at_stake"].null_count() == 1
    assert found["expected_hours_to_failure"].null_count() == 0


def test_without_history_nobody_is_new(past, trained):
    gpus = FEATURES[:1]
    known = submitted(past.jobs, gpus, None, past)
    model = train(past, known, gpus, trained, trained & False, past.submit_s[-1], with_hours=False)
    found = scored(model, past.jobs, known, past.jobs.filter(trained), ())
    assert found["unseen_user"].null_count() == found["unseen_group"].null_count() == found.height
    assert found["reason"].unique().to_list() == [f"{NO_HOURS}; {NO_GPUS}"]
    assert needed(model) == {"gpu_milli": ["gpus"]}


def test_a_model_from_its_file_gives_the_same_scores(past, known, model, later, trained, scores):
    """Keys are sorted in the file; the columns of the design have another order."""
    again = model_of(json.loads(json.dumps(model.to_json(), sort_keys=True)))
    assert scored(again, past.jobs.filter(later), known.take(later), past.jobs.filter(trained), GPUS).equals(scores)


@pytest.mark.parametrize(
    "edit",
    [
        lambda said: said.pop("centre"),
        lambda said: said.update(coefficients=said["coefficients"][1:]),
        lambda said: said.update(weights=said["weights"][1:]),
        lambda said: said.update(kind="oracle"),
        lambda said: said["terms"].reverse(),
        lambda said: said["features"]["gpus"].update(column="end_s"),
        lambda said: said.update(features=[]),
        lambda said: said["centre"].__setitem__(0, "x"),
        lambda said: said["hours"]["coefficients"].pop(),
        lambda said: said["recalibration"].update(slope=None),
        lambda said: said["recalibration"].update(shift=float("nan")),
    ],
)
def test_an_edited_model_is_refused(model, edit):
    said = json.loads(json.dumps(model.to_json()))
    edit(said)
    with pytest.raises(StudyError, match="not a model as it was written"):
        model_of(said)


def test_gpus_are_those_known_at_submission():
    assert gpu_columns(["user", "gpu_requested_milli", "gpu_milli"]) == ("gpu_requested_milli",)
    assert gpu_columns(["gpu_milli", "inst_num"]) == ("gpu_milli", "inst_num")
    assert gpu_columns(["user"]) == ()
    jobs = pl.DataFrame({"gpu_milli": [500, 2000, None], "size": [None, 3, 2]})
    assert count_requested_gpus(jobs, ("gpu_milli", "size")).tolist()[:2] == [0.5, 6.0]
    assert np.isnan(count_requested_gpus(jobs, ("gpu_milli", "size"))[2])
    assert np.isnan(count_requested_gpus(jobs, ("gpu_requested_milli",))).all()
    assert [
        format_value(*pair) for pair in (("timelimit_s", 86_400), ("gpu_milli", 1500), ("mem_mib", 10), ("x", None))
    ] == [
        "86,400 s",
        "1.5",
        "10 MiB",
        "blank",
    ]


# Skew ----------------------------------------------------------------------------------------------------------


def test_skew_is_that_of_scipy(past, known, model, later, trained):
    found = skew(model, past.jobs.filter(later), known.take(later), past.jobs.filter(trained), known.take(trained))
    SKEW.check(found)
    sizes = found["effect"].abs().to_list()
    assert sizes == sorted(sizes, reverse=True)
    rows = {row["feature"]: row for row in found.iter_rows(named=True)}
    before, after = (past.jobs.filter(rows) for rows in (trained, later))
    u = mannwhitneyu(after["gpu_milli"], before["gpu_milli"]).statistic
    assert rows["gpus"]["effect"] == pytest.approx(2 * u / (before.height * after.height) - 1)
    assert rows["gpus"]["training"] == before["gpu_milli"].median()
    counts = np.array([[(part["gpu_type"] == name).sum() for name in "ABC"] for part in (before, after)])
    assert counts[0, 2] == 0
    assert rows["gpu_type"]["effect"] == pytest.approx(association(counts, correction=False))
    u = mannwhitneyu(known.rates["history"][later, 1], known.rates["history"][trained, 1]).statistic
    assert rows["history by user"]["effect"] == pytest.approx(2 * u / (before.height * after.height) - 1)


def test_a_column_gone_missing_is_the_largest_skew(past, known, model, later, trained):
    jobs = past.jobs.filter(later).with_columns(gpu_milli=pl.lit(None, dtype=pl.Int64))
    found = skew(model, jobs, submitted(jobs, FEATURES, None, past), past.jobs.filter(trained), known.take(trained))
    assert found.row(0, named=True) | {"effect": 0} == {
        "feature": "gpus",
        "statistic": "blank",
        "n_training": int(trained.sum()),
        "n_scored": jobs.height,
        "training": 0.0,
        "scored": 1.0,
        "effect_name": "cohen_h",
        "effect": 0,
        "reason": None,
    }
    assert found["effect"][0] == pytest.approx(np.pi)
    assert trust.of_skew(found).startswith("Largest skew: gpus being blank, Cohen's h 3.14 (n = ")


def test_of_few_jobs_no_skew_is_told(past, known, model, later, trained):
    few = np.flatnonzero(later)[:5]
    found = skew(model, past.jobs[few], known.take(few), past.jobs.filter(trained), known.take(trained))
    assert found["effect"].null_count() == found.height
    assert trust.of_skew(found) == "Skew: not known, too few jobs."


# The file ------------------------------------------------------------------------------------------------------

ASKED = Asked(
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
HEAD = "job_id,submit_s,user,gpu_milli"


def read(tmp_path, text: str | bytes, asked: Asked = ASKED, name: str = "new.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_new_jobs(path, asked)


def test_cells_are_read_as_the_job_record_has_them(tmp_path):
    text = f'{HEAD},colour,late\n"a, ""b""",1700000000,"=1+1",8000.0,red,True\nb,1700000060,,,,\n'
    found, left_out = read(tmp_path, text)
    assert found.rows() == [('a, "b"', 1_700_000_000, "=1+1", 8000, True), ("b", 1_700_000_060, None, None, None)]
    assert found.columns == ["job_id", "submit_s", "user", "gpu_milli", "late"]
    assert left_out == ["colour"]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_the_header_tells_the_delimiter(tmp_path, delimiter):
    text = f"\ufeff{HEAD}\r\na,1700000000,u,1\r\n".replace(",", delimiter)
    assert read(tmp_path, text)[0].rows() == [("a", 1_700_000_000, "u", 1)]


def test_a_time_is_read_with_its_offset(tmp_path):
    text = "job_id,submit,user,gpu_milli\n" + "".join(
        f"{name},{time},u,1\n"
        for name, time in zip(
            "abcd",
            ("2023-11-14T22:13:20Z", "2023-11-14T22:13:20", "2023-11-14T23:13:20+01:00", "1700000000"),
            strict=True,
        )
    )
    assert read(tmp_path, text)[0]["submit_s"].to_list() == [1_700_000_000] * 4


def test_parquet_is_read_alike(tmp_path):
    frame = pl.DataFrame({"job_id": [1, 2], "user": ["u", ""], "gpu_milli": [1000.0, None], "size": [1, 2]})
    frame = frame.with_columns(submit=pl.from_epoch(pl.Series([1_700_000_000, 1_700_000_060])))
    frame.write_parquet(tmp_path / "new.parquet")
    found, _ = read_new_jobs(tmp_path / "new.parquet", ASKED)
    assert found.sort("job_id").rows() == [("1", 1_700_000_000, "u", 1000, 1), ("2", 1_700_000_060, None, None, 2)]
    frame.with_columns(gpu_milli=pl.lit([1, 2])).write_parquet(tmp_path / "new.parquet")
    with pytest.raises(StudyError, match="row 1, column gpu_milli"):
        read_new_jobs(tmp_path / "new.parquet", ASKED)


REFUSED = {
    "no column gpu_milli \\(feature gpus\\), which the model needs": "job_id,submit_s,user\na,1700000000,u\n",
    "no column job_id, submit_s or submit, user": "a\nb\n",
    "line 3: job_id 'a' is that of line 2 too": f"{HEAD}\na,1700000000,u,1\n a ,1700000000,u,1\n",
    "line 2: job_id is blank": f"{HEAD}\n  ,1700000000,u,1\n",
    "line 3, column gpu_milli: '-8' is less than 0": f"{HEAD}\na,1700000000,u,0\nb,1700000000,u,-8\n",
    "column share: '-0.5' is less than 0": f"{HEAD},share\na,1700000000,u,1,-0.5\n",
    "column size: '0' is less than 1": f"{HEAD},size\na,1700000000,u,1,0\n",
    "line 3, column gpu_milli: 'eight' is no whole number": f"{HEAD}\na,1700000000,u,1\nb,1700000000,u,eight\n",
    "'1.5' is no whole number": f"{HEAD}\na,1700000000,u,1.5\n",
    "'1e300' is no whole number": f"{HEAD}\na,1700000000,u,1e300\n",
    "'nan' is no whole number": f"{HEAD}\na,1700000000,u,nan\n",
    "column share: 'inf' is no number": f"{HEAD},share\na,1700000000,u,1,inf\n",
    "column late: 'maybe' is no true or false": f"{HEAD},late\na,1700000000,u,1,maybe\n",
    "outcome, runtime_s are written after submission": f"{HEAD},outcome,runtime_s\na,1700000000,u,1,failure,3\n",
    "runtime_s is written after submission": f"{HEAD},runtime_s\na,1700000000,u,1,\n",
    "line 3: job_id is blank": f"{HEAD}\na,1700000000,u,1\n,1700000000,u,1\n",
    "no rows": f"{HEAD}\n",
    "line 2, column submit_s: 'soon'": f"{HEAD}\na,soon,u,1\n",
    "line 2, column submit_s: blank": f"{HEAD}\na,,u,1\n",
    "column submit_s: '9999999999999'": f"{HEAD}\na,9999999999999,u,1\n",
    "both say when": f"{HEAD},submit\na,1700000000,u,1,1\n",
    "more than one column is called user": f"{HEAD},user\na,1700000000,u,1,u\n",
    "line 3: the line has more or fewer fields": f"{HEAD}\na,1700000000,u,1\na,1700000000,u,1,2,3,4\n",
    "line 2: the line is not valid UTF-8": HEAD.encode() + b"\na,1700000000,\xff,1\n",
    "line 1: the text is UTF-16": b"\xff\xfe\x00",
    "line 1: its lines end in CR": f"{HEAD}\ra,1700000000,u,1\r",
    r"'\\x1b\[31m": f"{HEAD}\na,1700000000,u,\x1b[31m\n",
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_file_that_is_not_so_is_refused_by_name(tmp_path, message):
    with pytest.raises(StudyError, match=message) as raised:
        read(tmp_path, REFUSED[message])
    assert str(raised.value).isprintable()


def test_where_times_count_from_an_unknown_origin_there_is_no_date(tmp_path):
    asked = Asked(ASKED.needed, ASKED.types, (), (), clock=False, seen=(0, 1000))
    assert read(tmp_path, f"{HEAD}\na,5,u,1\n", asked)[0]["submit_s"].item() == 5
    with pytest.raises(StudyError, match="unknown origin; give submit_s"):
        read(tmp_path, "job_id,submit,user,gpu_milli\na,5,u,1\n", asked)
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(StudyError, match=rf"{name}: .*[Nn]o such file"):
            read_new_jobs(tmp_path / name, ASKED)
    with pytest.raises(StudyError, match="cannot be read"):
        read_new_jobs(tmp_path, ASKED)
    with pytest.raises(StudyError, match="cannot be read"):
        read(tmp_path, "no parquet", name="new.parquet")


def test_a_packed_file_and_one_whose_name_is_a_pattern(tmp_path):
    text = f"{HEAD}\na,1700000000,u,1\n"
    read(tmp_path, text.replace("a,", "b,"), name="new1.csv")
    assert read(tmp_path, text, name="new[1].csv")[0]["job_id"].to_list() == ["a"]
    assert read(tmp_path, gzip.compress(text.encode()), name="new.csv.gz")[0].height == 1


@given(cells=st.lists(st.text(max_size=12), min_size=4, max_size=4), junk=st.binary(max_size=40))
def test_any_cell_is_read_or_refused(tmp_path_factory, cells, junk):
    folder = tmp_path_factory.mktemp("any")
    row = ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)
    for text in (f"{HEAD}\n{row}\n".encode("utf-8", "replace"), HEAD.encode() + b"\n" + junk, junk):
        try:
            found, _ = read(folder, text)
        except StudyError as error:
            assert len(str(error)) < 2_000
        else:
            assert found.height and found["job_id"].null_count() == found["submit_s"].null_count() == 0


# The model that scores -----------------------------------------------------------------------------------------


def stored(folder, name: str, window: str, until_s: int, decision: str = "promoted") -> dict:
    said = {"window": window, "decision": decision, "coefficients": [0.0], "trained_on": {"until_s": until_s}}
    (folder / f"{name}.json").write_text(json.dumps(said))
    return said


def test_the_model_that_serves(tmp_path):
    with pytest.raises(StudyError, match="there is no model yet"):
        served_models.current(tmp_path)
    stored(tmp_path, "week_1", "week 1", 10, "not promoted: worse")
    (tmp_path / "current.json").write_text(json.dumps({"model": None, "why": "none was better than the base rate"}))
    with pytest.raises(StudyError, match=r"none was better than the base rate.*MODEL='week 1'"):
        served_models.current(tmp_path)
    stored(tmp_path, "week_2", "week 2", 20)
    stored(tmp_path, "current", "week 2", 20)
    assert served_models.current(tmp_path).window == "week 2"
    assert served_models.chosen(tmp_path, "week 1").until_s == served_models.chosen(tmp_path, "week_1").until_s == 10
    for wrong in ("../week_1", "week 3", "current"):
        with pytest.raises(StudyError, match="there: week 1, week 2"):
            served_models.chosen(tmp_path, wrong)
    for text in ("{", "[]", "{}", '{"coefficients": []}', '{"trained_on": {"until_s": "x"}}'):
        (tmp_path / "week_2.json").write_text(text)
        with pytest.raises(StudyError, match=r"week_2.json: .*not as train_model wrote it"):
            served_models.chosen(tmp_path, "week 1")


def test_a_part_has_the_newest_promoted_model_made_before_it(tmp_path):
    parts = ["a.txt", "b.txt", "c.txt"]
    stored(tmp_path, "1", "part 1: a.txt", 10)
    stored(tmp_path, "2", "part 2: b.txt", 20, "not promoted: too few to tell")
    stored(tmp_path, "3", "part 3: c.txt", 30, "pending")
    # Part b has a job that was submitted before the last of a: the order of the parts counts.
    assert served_models.before_part(tmp_path, "b.txt", parts, 8).window == "part 1: a.txt"
    assert served_models.before_part(tmp_path, "c.txt", parts, 25).window == "part 1: a.txt"
    with pytest.raises(StudyError, match=r"no promoted model was made before the part a\.txt"):
        served_models.before_part(tmp_path, "a.txt", parts, 0)
    stored(tmp_path, "1", "part 1: a.txt", 10, "not promoted: worse")
    with pytest.raises(StudyError, match=r"not promoted: part 1: a\.txt, part 2: b\.txt \(MODEL=\)"):
        served_models.before_part(tmp_path, "c.txt", parts, 25)


def test_windows_of_time_count_by_their_last_moment(tmp_path):
    for week in (1, 2, 3):
        stored(tmp_path, f"week_{week}", f"week {week}", 10 * week)
    for first_s, window in ((10, "week 1"), (29, "week 2"), (99, "week 3")):
        assert served_models.before_part(tmp_path, "b", ["a", "b"], first_s).window == window


# What it is worth ----------------------------------------------------------------------------------------------


def evaluation(*above: tuple[float | None, float | None], reason: str | None = None) -> pl.DataFrame:
    """above: PR-AUC above the share of failures by origin, and the lower end of its interval."""
    about = {"stage": "probability", "model": "logistic", "slice": "all", "n": 100, "failures": 25, "reason": reason}
    about["serves"] = True
    rows = [about | {"split": "random", "metric": "pr_auc_above_base_rate", "estimate": 0.7, "ci_low_clustered": 0.6}]
    for number, (estimate, low) in enumerate(above, start=1):
        ends = {"ci_low_clustered": low, "ci_high_clustered": None if low is None else 0.3}
        row = about | {"split": f"temporal_{number}", "metric": "pr_auc_above_base_rate", "estimate": estimate} | ends
        other = row | {"model": "nested_rate", "ci_low_clustered": 0.2, "serves": False}
        rows += [row, other, row | {"stage": "landmark"}]
        ends = {"estimate": 0.4, "ci_low_clustered": 0.3, "ci_high_clustered": 0.5}
        rows.append(row | {"metric": "pr_auc"} | (ends if estimate is not None else {}))
    last = about | {"split": "temporal_3"}
    rows.append(last | {"slice": "unseen_user", "metric": "pr_auc", "n": 0, "reason": "no test job is one"})
    return EVALUATION.frame(rows)


GOOD, BAD, OPEN, UNTESTED = (0.15, 0.01), (0.15, 0.0), (0.15, None), (None, None)
ABOVE = "PR-AUC of logistic regression is above the share of failures at"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (evaluation(GOOD, BAD, GOOD), f"{VERDICT_TEXTS[UNPRICED]}: {ABOVE} 2 of 3 tested origins; at the last by 0.15"),
        (evaluation(GOOD, BAD, BAD), f"{VERDICT_TEXTS[NONE]}: {ABOVE} 1 of 3 tested origins"),
        (evaluation(GOOD, BAD, OPEN, reason="3 clusters"), f"{VERDICT_TEXTS[CANNOT_SAY]}: {ABOVE} 1 of 2"),
        (
            evaluation(GOOD, GOOD, UNTESTED, reason="no failure"),
            f"{VERDICT_TEXTS[UNPRICED]}: {ABOVE} 2 of 2 tested origins",
        ),
        (None, f"{VERDICT_TEXTS[CANNOT_SAY]}: it was not evaluated"),
    ],
)
def test_the_verdict_comes_first(table, said):
    assert next(iter(trust.of_evaluation(table))).startswith(said)


def test_an_origin_that_was_left_out_is_named():
    first, second = trust.of_evaluation(evaluation(GOOD, GOOD, UNTESTED, reason="no failure"))
    assert first.endswith("; last origin left out: no failure.")
    assert second.startswith("PR-AUC of logistic regression in the last test: all jobs 0.40")


def test_the_last_origin_says_how_far_a_score_can_be_trusted():
    *_, last = trust.of_evaluation(evaluation(GOOD, GOOD, GOOD))
    assert last == (
        "PR-AUC of logistic regression in the last test: all jobs 0.40 (95% CI 0.30–0.50), 25 of 100 failed; "
        "users never seen: not known (no test job is one)."
    )


def test_how_many_are_new(scores):
    said = trust.of_scores(scores, "week 5", "nested_rate")
    beyond, new = scores["beyond_range"].sum(), scores["unseen_user"].sum()
    assert said == (
        f"Scored: {scores.height:,} by the model of week 5 (history alone); {beyond:,} beyond the range of its "
        f"training (gpu_type); {new:,} of users not in it."
    )

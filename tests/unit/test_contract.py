"""The contract of a table: violations are named, and valid tables round-trip."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.engine.contract import REASON, Column, count, parquet, reason, seconds, share, table, text, truth
from ttf.engine.contract import whole_seconds as integer_seconds
from ttf.engine.errors import StudyError
from ttf.engine.storage.tables import read_table, write_product

TABLE = table(
    "durations",
    "A stratum.",
    stratum=text("Stratum", "Its value."),
    n=count("n", "Durations.", unit="durations"),
    mttf_s=seconds("MTTF", "Mean time to failure.", blank=REASON),
    median_s=integer_seconds("Median", "Half end by then.", blank="fewer than half ended"),
    failed=share("Failed", "Of n."),
    best=truth("Best", "Whether it fits best.", blank="there is one"),
    reason=reason(),
)
ROW = {"stratum": "all", "n": 3, "mttf_s": 1.5, "median_s": None, "failed": 0.5, "best": None, "reason": None}


def frame(*rows, **columns):
    return TABLE.frame([ROW | row for row in rows or [{}]]).with_columns(**columns)


@pytest.mark.parametrize("valid", [frame(), frame({"mttf_s": None, "reason": "no failure"}, {}), TABLE.frame([])])
def test_a_valid_frame_passes(valid, tmp_path):
    TABLE.check(valid)
    assert write_product(valid, TABLE, str(tmp_path / "durations.csv")) == valid.height
    assert read_table(tmp_path / "durations.csv", TABLE).equals(valid)


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        (frame().drop("n", "best"), "table durations: no best, n, unlike its declaration"),
        (frame().select("n", pl.exclude("n")), "table durations: another order, unlike its declaration"),
        (
            frame(n=pl.lit(3, pl.Int32)),
            r"table durations, column n: is declared as whole number \(Int64\), but is Int32",
        ),
        (frame({"stratum": None}, {}), "table durations, column stratum: blank in 1 rows, but declared never blank"),
        (frame({"mttf_s": None}), "table durations, column mttf_s: blank in 1 rows whose reason is blank too"),
        (frame({"mttf_s": math.nan}, {}), "table durations, column mttf_s: contains NaN or infinity"),
        (frame({"mttf_s": -math.inf}, {}), "table durations, column mttf_s: contains NaN or infinity"),
    ],
)
def test_a_violation_names_table_column_and_rule(invalid, message, tmp_path):
    with pytest.raises(StudyError, match=message):
        TABLE.check(invalid)
    with pytest.raises(StudyError, match=message):
        write_product(invalid, TABLE, str(tmp_path / "durations.csv"))
    assert not list(tmp_path.iterdir()), "nothing is written"


LABELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
ROWS = st.fixed_dictionaries(
    {
        "stratum": LABELS,
        "n": st.integers(-(2**63), 2**63 - 1),
        "mttf_s": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "median_s": st.none() | st.integers(0, 10**12),
        "failed": st.floats(0, 1),
        "best": st.none() | st.booleans(),
        "reason": LABELS,
    }
)


@given(st.lists(ROWS, max_size=4))
def test_a_table_round_trips_exactly_with_its_types(tmp_path_factory, rows):
    """This includes all-blank columns and labels such as 100."""
    path = str(tmp_path_factory.getbasetemp() / "durations.csv")
    expected = TABLE.frame(rows)
    assert write_product(expected, TABLE, path) == len(rows)
    assert read_table(path, TABLE).equals(expected)
    assert read_table(path, TABLE).schema == TABLE.schema


def test_an_open_table_has_more_columns_than_its_own(tmp_path):
    columns = {"job_id": text("Job", "Its name."), "user": text("User", "Who.", blank="not said")}
    jobs = parquet("jobs", "A job.", "jobs.parquet", open=True, **columns)
    frame = pl.DataFrame({"job_id": ["a"], "extra": [1], "user": ["b"]})
    jobs.check(frame)
    with pytest.raises(StudyError, match="table jobs: no job_id, unlike"):
        jobs.check(frame.drop("job_id"))
    with pytest.raises(StudyError, match="table jobs: another order, unlike"):
        jobs.check(frame.select("user", "job_id"))
    closed = parquet("jobs", "A job.", "jobs.parquet", **columns)
    with pytest.raises(StudyError, match="table jobs: also extra"):
        closed.check(frame)


def test_lazy_products_are_checked_while_written(tmp_path):
    jobs = parquet("jobs", "A job.", "jobs.parquet", job_id=text("Job", "Its name."), n=count("n", "Tasks."))
    path = tmp_path / "jobs.parquet"
    with pytest.raises(StudyError, match="table jobs, column n: is declared as whole number"):
        write_product(pl.LazyFrame({"job_id": ["a"], "n": ["1"]}), jobs, str(path))
    assert not path.exists()
    with pytest.raises(StudyError, match="table jobs, column job_id: blank in 2 rows, but declared never blank"):
        write_product(pl.LazyFrame({"job_id": ["a", None, None], "n": [1, 2, 3]}), jobs, path)
    assert not path.exists()
    rows = pl.DataFrame({"job_id": ["a", "b"], "n": [1, 2]})
    for product in (rows.lazy(), rows.iter_slices(1)):
        write_product(product, jobs, str(path))
        assert pl.read_parquet(path).equals(rows)


def types(**fields) -> str:
    column = Column(**{"kind": "number", "unit": "s", "heading": "A", "description": "B.", "blank": None} | fields)
    return table("t", "About.", a=column).types

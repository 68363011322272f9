"""An independent check of the rows kept: it agrees with ingest, and it would notice if ingest slipped."""

import polars as pl
import pytest
from of_formats import raw_schemas
from ttf.quality import validation
from ttf.quality.validation import validate
from ttf.stages import VALIDATION
from ttf.tables import read_table, write_csv

SCHEMAS = raw_schemas("pai2020")
TASK = {
    "line": 1,
    "job_name": "j",
    "task_name": "worker",
    "inst_num": 1,
    "status": "Failed",
    "start_s": 10,
    "end_s": 20,
    "cpu_milli": 6000,
    "mem_mib": 30000,
    "gpu_milli": 500,
    "gpu_type": None,
}


def checked(*rows):
    schema = {"file": pl.Int32} | SCHEMAS["task"].stored
    frame = pl.DataFrame([{"file": 0} | TASK | row for row in rows], schema=schema, orient="row")
    return validate({"task": frame.lazy()}, SCHEMAS)


def failures(table):
    bad = table.filter(pl.col("rows_failed") != 0)
    return dict(bad.select(pl.concat_str("column", "check", separator=" "), "rows_failed").iter_rows())


def test_sound_rows_pass():
    table = checked({}, {"task_name": "ps", "start_s": None, "end_s": None, "cpu_milli": None, "inst_num": None})
    assert table.schema == pl.Schema(VALIDATION.schema)
    assert (table["rows_failed"] == 0).all()
    assert (table["rows"] == table["rows_passed"]).all()
    assert table.filter(pl.col("check") == "col_vals_in_set")["sentence"].to_list() == [
        "one of Terminated, Failed, Running, Waiting"
    ]


@pytest.mark.parametrize(
    ("row", "noticed"),
    [
        ({"status": "Lost"}, "status col_vals_in_set"),
        ({"job_name": None}, "job_name col_vals_not_null"),
        ({"cpu_milli": -10}, "plan_cpu col_vals_ge"),
        ({"inst_num": 1_000_001}, "inst_num col_vals_le"),
        ({"end_s": 9}, "end_time col_vals_ge"),
    ],
)
def test_a_slip_is_noticed(row, noticed):
    table = checked({"task_name": "ps"}, row)
    assert failures(table) == {noticed: 1}


def test_sound_columns_are_asked_of_their_extremes_alone(monkeypatch):
    asked = []
    monkeypatch.setattr(
        validation,
        "_answers",
        lambda rows, steps, answer=validation._answers: (
            asked.append([step.method for step in steps]) or answer(rows, steps)
        ),
    )
    checked({}, {"task_name": "ps", "start_s": None, "inst_num": None})
    assert asked[2] == ["col_schema_match", "col_vals_ge"]
    asked.clear()
    checked({}, {"task_name": "ps", "inst_num": -1})
    assert asked[2] == ["col_schema_match", "col_vals_ge", "col_vals_ge"]


def test_a_repeated_key_and_a_wrong_type_are_noticed():
    assert failures(checked({}, {})) == {"job_name, task_name rows_distinct": 2}
    frame = pl.DataFrame(
        [{"file": 0} | TASK], schema={"file": pl.Int32} | SCHEMAS["task"].stored | {"start_s": pl.Float64}
    )
    table = validate({"task": frame.lazy()}, SCHEMAS)
    assert table.filter(pl.col("rows_failed") > 0)["check"].to_list() == ["col_schema_match"]


def test_a_column_that_is_missing_is_told_not_raised():
    frame = pl.DataFrame([{"file": 0} | TASK]).drop("status")
    table = validate({"task": frame.lazy()}, SCHEMAS)
    told = table.filter(pl.col("reason").is_not_null())
    assert set(told["column"]) == {"status"}
    assert told["rows"].to_list() == [None] * told.height


def test_the_table_comes_back(tmp_path):
    table = checked({}, {"task_name": "ps"})
    write_csv(table, tmp_path / "validation.csv")
    assert read_table(tmp_path / "validation.csv", VALIDATION).equals(table)


def test_a_key_whose_column_is_missing_is_told_not_raised():
    frame = pl.DataFrame([{"file": 0} | TASK]).drop("task_name")
    told = validate({"task": frame.lazy()}, SCHEMAS).filter(pl.col("check") == "rows_distinct")
    assert told["reason"].null_count() == 0


def test_keys_with_one_number_are_told_apart_by_their_texts(monkeypatch):
    monkeypatch.setattr(pl.Expr, "hash", lambda self, *seeds: self.is_null().cast(pl.UInt64))
    sound = checked({}, {"task_name": "ps"})
    assert (sound["rows_failed"] == 0).all()

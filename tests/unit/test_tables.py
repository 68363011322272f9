"""Tables of the results contract: the same numbers give the same bytes, and are read as they were written."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.engine.contract import count, number, table, text
from ttf.engine.storage.tables import (
    read_blocks_with_attempts,
    read_table,
    scan_columns,
    stream_parquet,
    write_blocks,
    write_csv,
    write_parquet,
)
from ttf.page.results_tables import load_all_contracts
from ttf.records.inputs import Inputs

CONTRACT = table("t", "A row.", value=text("", ""), n=count("", ""), estimate=number("", ""))


def test_bytes(tmp_path):
    frame = pl.DataFrame(
        {"value": ["100", "a,b", 'say "x"', None], "n": [1, None, 3, 4], "estimate": [0.1, 1e-300, 1e22, None]}
    )
    write_csv(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == (
        b'value,n,estimate\n100,1,0.1\n"a,b",,1e-300\n"say ""x""",3,1e+22\n,4,\n'
    )
    assert read_table(tmp_path / "t.csv", CONTRACT).equals(frame)


LABEL = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


@given(st.lists(st.tuples(LABEL, st.just(1), st.floats(allow_nan=False, allow_infinity=False))))
def test_labels_and_floats_come_back_to_the_last_bit(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    frame = pl.DataFrame(rows, schema=CONTRACT.schema, orient="row")
    write_csv(frame, path)
    assert read_table(path, CONTRACT).equals(frame)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_non_number_is_refused(tmp_path, value):
    with pytest.raises(ValueError, match=r"t\.csv: column estimate holds NaN"):
        write_csv(pl.DataFrame({"estimate": [1.0, None, value]}), tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize("rows", [0, 2])
def test_every_table_is_read_with_its_types_even_where_all_is_blank(tmp_path, rows):
    for name, contract in load_all_contracts().items():
        if contract.path.endswith(".csv"):
            frame = pl.DataFrame({column: [None] * rows for column in contract.schema}, schema=contract.schema)
            write_csv(frame, tmp_path / "t.csv")
            assert read_table(tmp_path / "t.csv", contract).equals(frame), name


def test_parquet_does_not_depend_on_the_pieces(tmp_path):
    frame = pl.DataFrame({"a": range(10)})
    write_parquet(frame, tmp_path / "whole")
    write_parquet(pl.concat([frame.head(3), frame.tail(7)], rechunk=False), tmp_path / "pieces")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "pieces").read_bytes()


def test_blocks_are_written_like_the_whole_table(tmp_path):
    frame = pl.DataFrame({"n": range(700), "label": [f"s{n // 7}" for n in range(700)]})
    stream_parquet(frame.lazy(), tmp_path / "whole.parquet")
    for rows in (1, 300):
        write_blocks(frame.iter_slices(rows), frame.schema, tmp_path / "blocks.parquet")
        assert (tmp_path / "blocks.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_missing_columns_are_omitted(tmp_path):
    pl.DataFrame({"a": [1], "b": [2], "c": [3]}).write_parquet(tmp_path / "some.parquet")
    assert scan_columns(tmp_path / "some.parquet", ["c", "x", "a", "c"]).collect().to_dicts() == [{"c": 3, "a": 1}]


def test_a_table_is_read_at_its_first_use(tmp_path):
    write_csv(pl.DataFrame({"value": ["a"], "n": [1], "estimate": [0.5]}), tmp_path / "a.csv")
    inputs = Inputs({"a": tmp_path / "a.csv", "b": tmp_path / "missing.csv"}, {"a": CONTRACT, "b": CONTRACT}, {"x": 1})
    assert inputs["a"] is inputs["a"] and inputs["a"]["n"].to_list() == [1]
    assert "b" in inputs and "c" not in inputs and inputs.settings.x == 1


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(1, 13))
def test_blocks_have_all_rows_and_the_attempts_of_each_job(tries, size):
    jobs = pl.DataFrame({"job_id": [f"j{number}" for number in range(len(tries))], "tries": tries})
    rows = jobs.with_row_index("job").select("job", "job_id", attempt=pl.int_ranges("tries"))
    attempts = rows.explode("attempt", empty_as_null=False)
    blocks = list(read_blocks_with_attempts(jobs.lazy(), attempts.lazy(), size))
    assert len(blocks) == max(-(-jobs.height // size), 1)
    assert pl.concat(block for block, _ in blocks).equals(jobs)
    assert pl.concat(block_attempts.drop("job") for _, block_attempts in blocks).equals(attempts.drop("job"))
    for block, block_attempts in blocks:
        assert block["job_id"].gather(block_attempts["job"]).equals(block_attempts["job_id"])
    assert [
        block.height for block, no_attempts in read_blocks_with_attempts(jobs.lazy(), None, size) if no_attempts is None
    ] == [block.height for block, _ in blocks]

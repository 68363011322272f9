"""Statistics of the raw columns: exact, whatever the order of the rows, and safe to show."""

import statistics as reference

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.raw.quality import statistics
from ttf.raw.quality.statistics import ALL_BLANK, NO_ROWS, NOT_STORED, table_statistics
from ttf.raw.raw_contracts import STATISTICS
from ttf.raw.raw_tables import Column, TableSchema

SCHEMA = TableSchema(
    name="t",
    header=True,
    columns=(
        Column("name", "text", "name", required=True),
        Column("plan_gpu", "number", "gpu_milli", scale=10),
        Column("status", "text", "status", keep=False),
    ),
)


def describe_rows(rows, schema=SCHEMA):
    frame = pl.DataFrame(rows, schema={"name": pl.String, "gpu_milli": pl.Int64}, orient="row")
    return table_statistics({"t": frame.lazy()}, {"t": schema})


def test_numbers_and_texts():
    table = describe_rows([("a", 500), ("b", None), ("b", 1000), ("a", 0), ("b", 500)])
    assert table.schema == pl.Schema(STATISTICS.schema)
    text, number, not_stored = table.rows(named=True)
    assert {key: text[key] for key in ("column", "rows", "blank", "distinct", "longest", "most_common", "mean")} == {
        "column": "name",
        "rows": 5,
        "blank": 0,
        "distinct": 2,
        "longest": 1,
        "most_common": "b (60.0%), a (40.0%)",
        "mean": None,
    }
    assert (number["column"], number["stored_as"], number["blank"], number["blank_share"]) == (
        *("plan_gpu", "gpu_milli"),
        *(1, 0.2),
    )
    quartiles = [number[key] for key in ("minimum", "first_quartile", "middle", "third_quartile", "maximum")]
    assert quartiles == [0, 0, 500, 500, 1000]
    assert (number["distinct"], number["mean"]) == (3, 500.0)
    assert (not_stored["stored_as"], not_stored["reason"]) == (None, NOT_STORED)


def test_blank_means_a_reason():
    assert describe_rows([]).head(2)["reason"].to_list() == [NO_ROWS] * 2
    assert describe_rows([("a", None)])["reason"][1] == ALL_BLANK
    assert describe_rows([(None, 1)])["reason"][0] == ALL_BLANK


@given(st.lists(st.integers(-(10**11), 10**11), min_size=1, max_size=40), st.randoms())
def test_exact_in_any_order(values, random):
    rows = [("a", value) for value in values]
    number = describe_rows(rows).row(1, named=True)
    sorted_values = sorted(values)
    assert number["mean"] == sum(values) / len(values)
    assert number["middle"] == reference.median_low(values)
    assert number["first_quartile"] == sorted_values[-(-len(values) // 4) - 1]
    assert number["third_quartile"] == sorted_values[-(-3 * len(values) // 4) - 1]
    assert number["distinct"] == len(set(values))
    random.shuffle(rows)
    assert describe_rows(rows).rows() == describe_rows([("a", value) for value in values]).rows()


def test_sums_beyond_64_bits():
    largest = 2**62
    assert describe_rows([("a", largest)] * 4).row(1, named=True)["mean"] == float(largest)


def test_equally_common_values_stand_in_the_order_of_their_text():
    names = [*"fedcba"]
    assert describe_rows([(name, 1) for name in names])["most_common"][0].startswith("a (16.6%), b (16.6%)")


@pytest.mark.parametrize("names", ["fedcba", "aabbccddeeff", "aaabbbccdeeffg", "aaaaab"])
def test_many_different_texts_give_the_same_table_as_few(monkeypatch, names):
    rows = [(name, 1) for name in names] + [(None, 1)]
    monkeypatch.setattr(statistics, "DIVERSE_ROWS", 0)
    expected = describe_rows(rows).rows()
    monkeypatch.setattr(statistics, "DIVERSE_ROWS", 1000)
    assert describe_rows(rows).rows() == expected


def test_a_key_need_not_be_counted():
    keyed = TableSchema(name="t", header=True, columns=SCHEMA.columns, key=("name",))
    rows = [(name, 1) for name in "fedcba"]
    assert describe_rows(rows, keyed).rows() == describe_rows(rows).rows()


@pytest.mark.parametrize("text", ["\x1b[2J", "x" * 3000, "a\nb", "\u202e"])
def test_a_hostile_value_is_harmless(text):
    cell = describe_rows([(text, 1)])["most_common"][0]
    assert cell.isprintable()
    assert len(cell) < 60

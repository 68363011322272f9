"""Tables in the archive as Parquet and as one workbook, read back by other libraries."""

import io

import openpyxl
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from ttf.engine.contract import count, number, table, text, truth
from ttf.page.publish import table_copies as module
from ttf.page.publish.dictionary import to_table
from ttf.page.publish.table_copies import CONTENTS, TableRows, export_tables, name_sheets, write_parquet, write_workbook
from ttf.page.report_contracts import DICTIONARY

EXAMPLES = table(
    "things",
    "A thing.",
    name=text("What", "Its name.", blank="it has none"),
    is_valid=truth("Is it", "Whether it is.", blank="nobody knows"),
    n=count("n", "How many.", blank="nobody counted"),
    share=number("Share", "Of all.", blank="nobody knows", unit="share"),
)
COUNTS = table("counts", "A count.", trace=text("Trace", "Which."), n=count("n", "How many.", blank="none"))
DAY = "2025-01-31"
ROWS = [
    {"name": "=1+1", "is_valid": True, "n": 3, "share": 0.1},
    {"name": "+cmd|' /C calc'!A0", "is_valid": False, "n": -(2**60), "share": -0.5},
    {"name": "https://example.org", "is_valid": None, "n": None, "share": None},
    {"name": None, "is_valid": True, "n": 0, "share": 1e-300},
]


def make_table(rows=ROWS, path="results/sample/tables/things.csv") -> TableRows:
    return TableRows(path, EXAMPLES, EXAMPLES.frame(rows))


def read(content: bytes) -> dict[str, list[tuple]]:
    book = openpyxl.load_workbook(io.BytesIO(content))
    return {sheet.title: [tuple(cell.value for cell in row) for row in sheet.iter_rows()] for sheet in book}


def test_numbers_are_numbers_texts_are_texts_and_blanks_are_blank():
    content = write_workbook([make_table()], to_table({"made: why": (EXAMPLES,)}), DAY)
    sheet = openpyxl.load_workbook(io.BytesIO(content))["things"]
    assert [cell.value for cell in sheet[1]] == ["trace", "name", "is_valid", "n", "share"]
    assert [cell.value for cell in sheet[2]] == ["sample", "=1+1", True, 3, 0.1]
    assert [cell.value for cell in sheet[3]] == ["sample", "+cmd|' /C calc'!A0", False, str(-(2**60)), -0.5]
    assert [cell.value for cell in sheet[4]] == ["sample", "https://example.org", None, None, None]
    assert [cell.value for cell in sheet[5]] == ["sample", None, True, 0, 1e-300]
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} == {"s", "n", "b"}, "no formula"
    assert not any(cell.hyperlink for row in sheet.iter_rows() for cell in row)


def test_the_first_sheet_describes_every_column():
    content = write_workbook([make_table()], to_table({"made: why": (EXAMPLES, COUNTS)}), DAY)
    head, *rows = read(content)[CONTENTS]
    assert list(read(content)) == [CONTENTS, "things"]
    columns = [dict(zip(head, row, strict=True)) for row in rows]
    assert [row["column"] for row in columns] == ["name", "is_valid", "n", "share"]
    assert {(row["sheet"], row["rows"], row["row"]) for row in columns} == {("things", 4, "A thing.")}
    assert columns[3]["unit"] == "share" and columns[3]["meaning"] == "Of all."


def test_a_table_of_two_traces_is_one_sheet_with_a_trace_column():
    tables = [make_table(), make_table(ROWS[:1], "results/other/tables/things.csv")]
    tables.append(TableRows("results/studies/a/counts.csv", COUNTS, COUNTS.frame([{"trace": "other", "n": 1}])))
    sheets = name_sheets(tables)
    assert list(sheets) == ["counts", "things"]
    assert sheets["things"][1]["trace"].to_list() == ["sample"] * 4 + ["other"]
    assert sheets["counts"][1].columns == ["trace", "n"]


def test_names_of_sheets_fit_excel():
    contracts = [table(f"{'a' * 40}_{number}", "A.", n=count("n", "How many.")) for number in range(12)]
    tables = [
        TableRows(f"results/sample/{contract.path}", contract, contract.frame([{"n": 1}])) for contract in contracts
    ]
    contents = table(CONTENTS, "A.", n=count("n", "How many."))
    names = [*name_sheets([*tables, TableRows(f"results/sample/{contents.path}", contents, contents.frame([]))])]
    assert len(names) == 13 and max(map(len, names)) == 31 and CONTENTS not in names
    assert len(read(write_workbook(tables, to_table({}), DAY))) == 13


def test_a_table_too_large_for_a_sheet_is_listed_as_omitted(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 4)
    sheets = read(write_workbook([make_table()], to_table({"made: why": (EXAMPLES,)}), DAY))
    assert [*sheets] == [CONTENTS]
    assert sheets[CONTENTS][1][:2] == ("left out: too many rows", 4)


def test_the_same_tables_give_the_same_bytes_and_another_day_others():
    dictionary = to_table({"made: why": (EXAMPLES,)})
    assert write_workbook([make_table()], dictionary, DAY) == write_workbook([make_table()], dictionary, DAY)
    assert write_workbook([make_table()], dictionary, DAY) != write_workbook([make_table()], dictionary, "2025-02-01")


@given(
    st.lists(st.fixed_dictionaries({"name": st.none() | st.text(), "share": st.floats(allow_nan=False)}), max_size=5)
)
def test_parquet_holds_the_rows_of_the_table(rows):
    frame = EXAMPLES.frame(rows)
    assert_frame_equal(pl.read_parquet(write_parquet(frame)), frame)
    assert write_parquet(frame) == write_parquet(pl.concat([frame[:2], frame[2:]], rechunk=False))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=20), max_size=4))
def test_any_text_comes_back_from_the_workbook(texts):
    frame = EXAMPLES.frame({"name": text, "n": 1} for text in texts)
    rows = read(write_workbook([TableRows("results/a/tables/things.csv", EXAMPLES, frame)], to_table({}), DAY))[
        "things"
    ]
    # Excel and its readers write characters that XML lacks as _x0007_.
    values = [openpyxl.utils.escape.unescape(row[1]) for row in rows[1:]]
    assert values == texts


@pytest.mark.parametrize(("formats", "paths"), [(["parquet"], [".parquet"] * 2), (["xlsx"], [".xlsx"]), ([], [])])
def test_requested_formats_are_written(formats, paths):
    dictionary = TableRows("results/studies/a/dictionary.csv", DICTIONARY, to_table({}))
    files = export_tables(formats, [make_table(), dictionary], DAY)
    assert [path[path.rindex(".") :] for path, _, _ in files] == paths

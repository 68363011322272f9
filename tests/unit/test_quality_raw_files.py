"""Which files the rows of a trace came from, and what else lay in its folder."""

import os

import polars as pl
from ttf.raw.quality.file_account import raw_files
from ttf.raw.raw_contracts import RAW_FILES, ROW_ACCOUNT, ROW_ACCOUNT_BY_PART
from ttf.study.trace import Trace


def account(contract, *raw_file_rows):
    return pl.DataFrame([(*row, row[-1], 0) for row in raw_file_rows], schema=contract.schema, orient="row")


def entries(**changes):
    blank = dict.fromkeys(Trace.__dataclass_fields__)
    return Trace(**blank | {"entry": {}, "parts": {}, "unread_entries": {}} | changes).entries


def raw_file_rows(*inputs):
    table = raw_files(*inputs)
    RAW_FILES.check(table)
    return table.rows()


def test_every_file_has_its_rows_and_every_other_entry_its_reason():
    pod_files = entries(
        raw_files={"pods": ["raw/pods.csv"], "nodes": ["raw/all.zip/x/nodes.csv"], "events": ["a.csv", "b.csv"]},
        unread_entries={"old": "a folder", os.fsdecode(b"\xff.pdf"): "not a table of this format"},
    )
    assert raw_file_rows(pod_files, account(ROW_ACCOUNT, ("pods", 5), ("nodes", 2), ("events", 9))) == [
        ("pods.csv", "pods", 5, None),
        ("all.zip/x/nodes.csv", "nodes", 2, None),
        ("a.csv", "events", None, "several files are read as one table"),
        ("b.csv", "events", None, "several files are read as one table"),
        ("old", None, None, "a folder"),
        ("\\xff.pdf", None, None, "not a table of this format"),
    ]


def test_every_part_has_its_own():
    dumps = {"2025-a.txt": {"record": "raw/2025-a.txt"}, "2025-b.zip": {"record": "raw/2025-b.zip"}}
    dump_files = entries(raw_files={"record": ["raw/2025-a.txt", "raw/2025-b.zip"]}, parts=dumps)
    by_part = account(ROW_ACCOUNT_BY_PART, ("2025-a.txt", "record", 159), ("2025-b.zip", "record", 157))
    assert raw_file_rows(dump_files, account(ROW_ACCOUNT, ("record", 316)), by_part) == [
        ("2025-a.txt", "record", 159, None),
        ("2025-b.zip", "record", 157, None),
    ]
    months = {"jan": {"pods": "x/jan/pods.csv"}, "feb": {"pods": "x/feb/pods.csv"}}
    month_files = entries(
        entry={"folder": ["x/jan", "x/feb"]},
        raw_files={"pods": ["x/jan/pods.csv", "x/feb/pods.csv"]},
        parts=months,
        unread_entries={"feb/notes.txt": "not a table of this format"},
    )
    by_part = account(ROW_ACCOUNT_BY_PART, ("jan", "pods", 1), ("feb", "pods", 2))
    assert raw_file_rows(month_files, account(ROW_ACCOUNT, ("pods", 3)), by_part) == [
        ("jan/pods.csv", "pods", 1, None),
        ("feb/pods.csv", "pods", 2, None),
        ("feb/notes.txt", None, None, "not a table of this format"),
    ]

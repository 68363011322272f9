"""A trace in parts that is read part by part and merged equals the trace that is read at once."""

import os
import re

import polars as pl
import pytest
from format_tables import FORMATS, raw_schemas
from hypothesis import given
from hypothesis import strategies as st
from ttf.analyses.quality.measure_drift.compute import by_window, drift_table
from ttf.engine.errors import StudyError
from ttf.engine.storage.tables import write_parquet
from ttf.formats.table import read as table
from ttf.raw import ingest as ingest_module
from ttf.raw.ingest import NO_READERS, Part, anomalies, ingest, ingest_part, merge
from ttf.raw.raw_tables import table_schemas
from ttf.records.jobs import add_part_names
from ttf.study.configuration.messages import ConfigError
from ttf.study.trace_files import find_parts, find_raw_tables

PAI, SACCT = raw_schemas("pai2020"), raw_schemas("sacct")
ENTRY = {
    "mapping": {"job_id": "id", "start": "start", "end": "end", "status": "state"},
    "times": {"format": "seconds"},
    "outcomes": {"success": ["ok"], "failure": ["bad"]},
}
ROWS = table_schemas(table.schema_document(ENTRY))


def ingest_at_once(folder, files, schemas, readers=NO_READERS, max_share=1.0):
    (folder / "whole").mkdir()
    account, quarantine = ingest(files, schemas, folder / "whole", max_share, readers)
    write_parquet(quarantine, folder / "whole" / "quarantine.parquet")
    return account, quarantine


def ingest_in_parts(folder, parts, schemas, readers=NO_READERS, max_share=1.0):
    """Ingest parts (name -> table -> file) into folder/merged; return account, quarantine and account by part."""
    ingested_parts = []
    for number, (name, files) in enumerate(parts.items()):
        part_folder = folder / f"part{number}"
        part_folder.mkdir()
        account, quarantine = ingest_part(files, schemas, part_folder, readers=readers)
        ingested_parts.append(Part(name, files, part_folder, account, quarantine))
    (folder / "merged").mkdir()
    account, quarantine, by_part = merge(ingested_parts, schemas, folder / "merged", max_share, readers)
    write_parquet(quarantine, folder / "merged" / "quarantine.parquet")
    return account, quarantine, by_part


def read_products(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def compare(folder, parts, schemas, readers=NO_READERS):
    """Check that both ways of reading give the same; return the account by part."""
    tables = [name for name in schemas if any(name in files for files in parts.values())]
    files = {name: [tables[name] for tables in parts.values() if name in tables] for name in tables}
    whole_account, quarantine = ingest_at_once(folder, files, schemas, readers)
    account, merged, by_part = ingest_in_parts(folder, parts, schemas, readers)
    assert account.equals(whole_account)
    assert merged.equals(quarantine)
    assert read_products(folder / "merged") == read_products(folder / "whole")
    assert (by_part["rows_read"] == by_part["rows_accepted"] + by_part["rows_quarantined"]).all()
    columns = ["rows_read", "rows_accepted", "rows_quarantined"]
    assert by_part.group_by("table", maintain_order=True).agg(pl.col(columns).sum()).equals(account)
    return by_part


def job(name, user="u"):
    return f"{name},i{name},{user},Terminated,1.0,2.0\n"


def task(name, gpus="50.0"):
    return f"{name},worker,1.0,Terminated,1.0,2.0,600.0,29.0,{gpus},T4\n"


def write_tables(folder, **tables):
    folder.mkdir()
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return {name: folder / f"{name}.csv" for name in tables}


def test_keys_and_owners_are_matched_across_parts(tmp_path):
    """A row that repeats one of an earlier part is quarantined with its text; an owner may be in a later part."""
    parts = {
        "jan": write_tables(tmp_path / "jan", job=job("a") + job("b"), task=task("a") + task("c") + "short\n"),
        "feb": write_tables(tmp_path / "feb", job=job("b", "again") + job("c"), task=task("a") + task("nobody")),
    }
    by_part = compare(tmp_path, parts, PAI)
    assert by_part.rows() == [("jan", "job", 2, 2, 0), ("feb", "job", 2, 1, 1), ("jan", "task", 3, 2, 1),
                              ("feb", "task", 2, 1, 1)]  # fmt: skip
    quarantine = pl.read_parquet(tmp_path / "merged/quarantine.parquet")
    assert quarantine.select("table", "file", "line", "reason", "text").rows() == [
        ("job", "feb/job.csv", 1, "duplicate_key", job("b", "again").strip()),
        ("task", "jan/task.csv", 3, "wrong_column_count", "short"),
        ("task", "feb/task.csv", 1, "duplicate_key", task("a").strip()),
    ]
    assert pl.read_parquet(tmp_path / "merged/task.parquet")["file"].to_list() == [0, 0, 1]


def test_anomalies_name_the_file_of_a_line(tmp_path):
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    files[0].write_text("id,start,end,state\n1,1,2,ok\n2,1,2,huh\n3,x,2,ok\n")
    files[1].write_text("id,start,end,state\n4,1,2,huh\n5,1,2,huh\n1,1,2,ok\n")
    account, quarantine = ingest_at_once(tmp_path, {"rows": files}, ROWS, table.READERS)
    table_of_anomalies = anomalies(quarantine, account, files={"rows": files})
    assert dict(table_of_anomalies.select("code", "first_lines").iter_rows()) == {
        "unknown_value": "3 of a.csv; 2, 3 of b.csv",
        "not_a_number": "4 of a.csv",
        "duplicate_key": "4 of b.csv",
    }
    assert quarantine.filter(reason="duplicate_key")["text"].to_list() == ["1,1,2,ok"]


def test_a_repeated_row_of_parquet_has_its_text(tmp_path):
    frame = pl.DataFrame({"id": ["a", "b", "a"], "start": [1, 1, 3], "end": [2, 2, 4], "state": ["ok", "ok", "bad"]})
    frame.write_parquet(tmp_path / "t.parquet")
    compare(tmp_path, {"t.parquet": {"rows": tmp_path / "t.parquet"}}, ROWS, table.READERS)
    quarantine = pl.read_parquet(tmp_path / "merged/quarantine.parquet")
    assert quarantine.select("line", "reason", "text").rows() == [
        (3, "duplicate_key", "id=a, start=3, end=4, state=bad")
    ]


# Also an end before its start, and one far beyond the others.
times = st.sampled_from(["1,2", "1,2", "3,2", "1,999999999"])
csv_rows = st.tuples(st.integers(0, 99), times, st.sampled_from(["ok", "bad", "huh"])).map(
    lambda row: ",".join(map(str, row))
)
lines = st.lists(csv_rows | st.sampled_from(["", "x", "7,2,1,ok", ",,,", "1,1,2,ok,more"]), max_size=12)


@given(st.lists(lines, min_size=1, max_size=4), st.integers(1, 5))
def test_any_parts_equal_the_whole_trace(tmp_path_factory, parts, piece_rows):
    folder = tmp_path_factory.mktemp("any")
    files = {}
    for number, rows in enumerate([["0,1,2,ok"], *parts]):  # one accepted row
        files[f"w{number}.csv"] = {"rows": folder / f"w{number}.csv"}
        files[f"w{number}.csv"]["rows"].write_text("\n".join(["id,start,end,state", *rows]) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_module, "PIECE_ROWS", piece_rows)
        compare(folder, files, ROWS, table.READERS)


def test_part_names_are_added_in_a_stream():
    """No step loads the whole table into memory; the rows stay in their order."""
    jobs = pl.LazyFrame({"file": [1, 0, None, 1]}, schema={"file": pl.Int32}).with_row_index("row")
    with_names = add_part_names(jobs, ["jan", "feb"])
    plan = with_names.show_graph(engine="streaming", plan_stage="physical", raw_output=True)
    assert 'fillcolor="0.0 0.3 1.0"' not in plan  # colour of "in-memory engine fallback" in the graph's legend
    assert with_names.collect(engine="streaming").rows() == [(0, "feb"), (1, "jan"), (2, None), (3, "feb")]


def test_max_share_applies_to_the_whole_trace(tmp_path):
    """One part with many broken rows is no error. Too many in all parts are; the message names their files."""
    parts = {}
    for name, rows in {"a.csv": ["1,1,2,ok", "2,1,2,huh"], "b.csv": [f"{n},1,2,ok" for n in range(3, 9)]}.items():
        parts[name] = {"rows": tmp_path / name}
        (tmp_path / name).write_text("\n".join(["id,start,end,state", *rows]) + "\n")
    (tmp_path / "fits").mkdir()
    (tmp_path / "too_many").mkdir()
    account, *_ = ingest_in_parts(tmp_path / "fits", parts, ROWS, table.READERS, 0.2)
    assert account.rows() == [("rows", 8, 7, 1)]
    with pytest.raises(StudyError, match=r"1 of 8 rows \(12\.50%\) break a rule(.|\n)*first at line 3 of a\.csv"):
        ingest_in_parts(tmp_path / "too_many", parts, ROWS, table.READERS, 0.1)


def test_reading_stops_early_in_a_part_with_too_many_broken_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest_module, "STOP_ROWS", 10)
    (tmp_path / "a.csv").write_text("id,start,end,state\n" + "1,1,2,huh\n" * 30)
    with pytest.raises(StudyError, match=r"30 of 30 rows .* break a rule; reading has stopped"):
        ingest_part({"rows": tmp_path / "a.csv"}, ROWS, tmp_path, readers=table.READERS)


# Parts of an entry ----------------------------------------------------------------------------------------


def make_folder(folder, *names):
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    return str(folder)


def test_each_folder_of_a_list_is_a_part(tmp_path):
    pods, nodes = "openb_pod_list_default.csv", "openb_node_list_all_node.csv"
    jan, feb = make_folder(tmp_path / "jan", pods), make_folder(tmp_path / "feb", nodes, pods)
    entry = {"format": "openb", "folder": [jan, feb]}
    assert find_parts("t", entry, FORMATS) == {
        "jan": {"pods": f"{jan}/{pods}"},
        "feb": {"pods": f"{feb}/{pods}", "nodes": f"{feb}/{nodes}"},
    }
    assert find_raw_tables("t", entry, FORMATS) == {
        "pods": [f"{jan}/{pods}", f"{feb}/{pods}"],
        "nodes": [f"{feb}/{nodes}"],
    }
    assert find_parts("t", {"format": "openb", "folder": jan}, FORMATS) == {}
    assert find_parts("t", {"format": "pai2020", "embedded": True}, FORMATS) == {}


@pytest.mark.parametrize(
    ("format_", "folders", "message"),
    [
        ("sacct", ["jan"], "in the format sacct each file is a part"),
        ("openb", ["jan", "deep/jan"], "two parts are called jan"),
        ("openb", ["jan", "gone"], r"registry\.t\.folder: .*gone: there is no such folder"),
        ("openb", ["jan", "empty"], "the table pods is missing"),
    ],
)
def test_invalid_parts_are_an_error(tmp_path, format_, folders, message):
    (tmp_path / "deep").mkdir()
    make_folder(tmp_path / "empty")
    for name in ("jan", "deep/jan"):
        make_folder(tmp_path / name, "openb_pod_list_default.csv")
    with pytest.raises(ConfigError, match=message):
        find_raw_tables("t", {"format": format_, "folder": [str(tmp_path / name) for name in folders]}, FORMATS)


@pytest.mark.parametrize("name", ["a{b}.txt", "a\nb.txt", os.fsdecode(b"\xfc.txt")])
def test_an_unsupported_file_name_is_an_error(tmp_path, name):
    """For example, the library that writes the parts cannot encode Latin-1 bytes in a name."""
    folder = make_folder(tmp_path / "dumps", name)
    with pytest.raises(ConfigError, match=f"{re.escape(repr(name))} has a brace, < or >, a line break, or bytes"):
        find_parts("t", {"format": "sacct", "folder": folder}, FORMATS)


# Drift ----------------------------------------------------------------------------------------------------


def test_each_part_is_compared_with_previous_parts():
    numbers = [0] * 50 + [1] * 50 + [3] * 50  # no job in the third part
    frame = pl.DataFrame(
        {"file": numbers, "outcome": ["success"] * 100 + ["failure"] * 50}, schema_overrides={"file": pl.Int32}
    )
    blanks = dict.fromkeys(("gpu_type",), pl.String) | dict.fromkeys(
        ("submit_s", "runtime_s", "queue_s", "gpu_milli", "cpu_milli", "mem_mib", "size"), pl.Int64
    )
    frame = frame.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in blanks.items())
    names = ["b", "a", "none", "c"]
    drift = drift_table(by_window(add_part_names(frame.lazy(), names).collect(), "part", names))
    assert set(drift.select("window", "against").iter_rows()) == {
        ("part 2: a", "part 1: b"), ("part 4: c", "part 2: a"), ("part 4: c", "all before")
    }  # fmt: skip
    newest = drift.filter(window="part 4: c", against="all before", statistic="failure_share")
    assert newest.select("before", "after", "n_before", "n_after").row(0) == (0.0, 1.0, 100, 50)

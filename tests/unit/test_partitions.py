"""Partitions and shares give the same rows in the same order as one piece and leave the folder empty."""

from functools import partial

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pai_products import derive_jobs, derive_placements
from polars.testing import assert_frame_equal
from ttf.engine.errors import StudyError
from ttf.engine.storage import partitions
from ttf.engine.storage.partitions import (
    Partitions,
    choose_partitions,
    compute_results,
    hash_columns,
    join_results,
    make_spill_folder,
)
from ttf.engine.storage.tables import read_blocks
from ttf.formats.format_declaration import load_outcomes
from ttf.formats.pai2020 import derive as pai2020

moment = st.none() | st.integers(1, 50)
JOBS = st.integers(0, 8).map("j{}".format)
TASKS = st.lists(
    st.tuples(
        JOBS, st.sampled_from(["ps", "worker"]), st.sampled_from(sorted(load_outcomes("pai2020"))), moment, moment
    ),
    unique_by=lambda task: task[:2],
    min_size=1,
    max_size=12,
)
TIMES = {"start_s": pl.Int64, "end_s": pl.Int64}
NAMES = {"job_name": pl.String, "task_name": pl.String}
USE = dict.fromkeys(("gpu_used_milli", "cpu_used_milli", "mem_used_mib"), pl.Int64)


@st.composite
def raw_tables(draw):
    """Draw the tables of a trace: every row belongs to a task, and some tasks have no rows."""
    tasks = draw(TASKS)
    owner = st.sampled_from([task[:2] for task in tasks])
    number = st.sampled_from([1, 2, 3, None])
    instance = st.tuples(
        owner, number, moment, moment, st.sampled_from(["m0", "m1", "m2", None]), st.sampled_from(["Failed", None])
    )
    instances = draw(st.lists(instance, max_size=40))
    sensors = draw(st.lists(st.tuples(owner, *[st.none() | st.integers(0, 10**6)] * 3), max_size=20))
    jobs = draw(st.lists(st.tuples(JOBS, st.sampled_from(["i0", "i1", "i2", None])), unique_by=lambda job: job[0]))

    def table(rows, schema):
        return pl.LazyFrame(rows, schema=schema, orient="row")

    request = dict.fromkeys(("gpu_milli", "cpu_milli", "mem_mib", "inst_num"), pl.Int64)
    return {
        "job": table(
            [(job, f"u{job}", inst, 1, 2) for job, inst in jobs],
            {"job_name": pl.String, "user": pl.String, "inst_id": pl.String} | TIMES,
        ),
        "task": table(
            [(*task, 500, 600, 700, 1, "T4", 0) for task in tasks],
            NAMES | {"status": pl.String} | TIMES | request | {"gpu_type": pl.String, "file": pl.Int32},
        ),
        "instance": table(
            [(*owner, *values, line) for line, (owner, *values) in enumerate(instances, 1)],
            NAMES | {"instance": pl.UInt64} | TIMES | {"machine": pl.String, "status": pl.String, "line": pl.Int64},
        ).with_columns(file=pl.lit(0, pl.Int32)),
        "sensor": table([(*owner, *values) for owner, *values in sensors], NAMES | USE),
        "group_tag": table(
            [("i0", "g0", "bert"), ("i2", "g2", None)],
            dict.fromkeys(("inst_id", "group", "workload"), pl.String),
        ),
    }


@given(raw_tables(), st.integers(1, 5), st.integers(1, 4), st.sampled_from([1, 3, 1000]))
def test_any_partitions_give_the_same_jobs(raw, partitions_per_share, shares, block_rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "BLOCK_ROWS", block_rows)
        patch.setattr(pai2020, "JOINED_ROWS", block_rows)
        assert_frame_equal(derive_jobs(raw, partitions_per_share * shares, shares), derive_jobs(raw))


@given(raw_tables(), st.sampled_from([["group_tag"], ["task"]]), st.sampled_from([1, 3, 1000]))
def test_placements_match_a_loop_over_the_instances(raw, missing_tables, block_rows):
    assume(raw["instance"].collect().height)  # ingest rejects a table without rows
    raw = {name: table for name, table in raw.items() if name not in missing_tables}
    tasks = {
        (row["job_name"], row["task_name"]): (index, row) for index, row in enumerate(_rows(pai2020.read_tasks(raw)))
    }
    instances = [row for row in _rows(raw["instance"]) if row["machine"]]
    expected = []
    for row in instances:
        task_row, task = tasks[row["job_name"], row["task_name"]]
        siblings = [other for other in instances if _is_same(row, other, "job_name", "task_name")]
        attempts = [other for other in siblings if row["instance"] and other["instance"] == row["instance"]] or [row]
        keys = sorted({_attempt_key(attempt, attempts) for attempt in attempts})
        machines = {other["machine"] for other in siblings}
        outcome = load_outcomes("pai2020").get(row["status"] or task["status"], "unknown")
        is_own = row["status"] is not None or len(machines) == 1
        number, first_line = keys.index(_attempt_key(row, attempts)), min(attempt["line"] for attempt in attempts)
        ids = (task_row, number, first_line, row["machine"])
        expected.append((*ids, task["gpu_milli"], len(machines), outcome, is_own))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pai2020, "read_blocks", partial(read_blocks, rows=block_rows))
        placements = derive_placements(raw)
    columns = ("attempt_id", "attempt", "placement", "node", "gpu_milli", "nodes", "outcome", "own_outcome")
    assert placements.select(columns).rows() == expected


def _rows(table):
    return table.collect().to_dicts()


def _is_same(row, other, *names):
    return all(row[name] == other[name] for name in names)


def _attempt_key(row, attempts):
    """Return the sort key of an attempt: its time, or last without one, then the first line of the same attempt."""
    times = [time for time in (row["start_s"], row["end_s"]) if time is not None]
    lines = [other["line"] for other in attempts if _is_same(row, other, "start_s", "end_s", "machine")]
    return not times, tuple(times[:1]), min(lines)


def test_the_number_of_partitions_depends_on_the_rows(tmp_path):
    tables = [pl.LazyFrame({"a": range(rows)}) for rows in (3, 21, 0)]

    def number(max_rows, shares=1):
        return choose_partitions(tables, max_rows, tmp_path, 0, shares).number

    assert [number(100), number(21), number(20), number(7), number(1)] == [1, 1, 2, 3, 21]
    # All shares have the same number.
    assert [number(100, 4), number(6, 4), number(5, 4)] == [4, 4, 8]


def test_no_files_remain_on_the_disk(tmp_path):
    raw = {"row": pl.LazyFrame({"name": [f"n{number}" for number in range(50)]}).with_row_index("row")}

    def fails(tables, parts):
        for rows in parts.split("row", tables["row"], "name", "row"):
            yield rows.collect()
        raise RuntimeError

    (tmp_path / ".spill-product/left").mkdir(parents=True)  # from a killed run
    with pytest.raises(RuntimeError), make_spill_folder(tmp_path / "product") as folder:
        assert list(folder.iterdir()) == []
        assert list(tmp_path.iterdir()) == [folder]
        compute_results(fails, raw, Partitions(folder, 3))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows", [[0, 1, 3], [0, 1, 1, 2, 3], [0, 1, 2, 3, 4]])
def test_results_with_missing_or_duplicate_rows_are_an_error(rows):
    result = pl.LazyFrame({"row": rows}, schema={"row": pl.get_index_type()})
    with pytest.raises(StudyError, match="do not match"):
        join_results(pl.LazyFrame({"a": range(4)}), {0: result}, lambda rows: rows).collect()


def test_results_with_more_rows_than_the_table_are_an_error(monkeypatch):
    monkeypatch.setattr(partitions, "BLOCK_ROWS", 2)
    monkeypatch.setattr(partitions, "CHUNK_BLOCKS", 2)
    row = pl.LazyFrame({"row": range(5)}, schema={"row": pl.get_index_type()})
    with pytest.raises(StudyError, match="do not match"):
        join_results(pl.LazyFrame({"a": range(4)}), {0: row.head(4), 1: row.slice(4)}, lambda rows: rows).collect()


def test_memory_does_not_grow_with_the_table(tmp_path, monkeypatch):
    """Rows are processed in blocks; a result is stored in chunks and read one chunk at a time."""
    monkeypatch.setattr(partitions, "BLOCK_ROWS", 10)
    monkeypatch.setattr(partitions, "CHUNK_BLOCKS", 2)
    table = pl.LazyFrame({"name": [f"n{number}" for number in range(95)]})
    heights = []

    def names(tables, parts):
        for rows in parts.split("name", tables["name"].with_row_index("row"), "name", "row"):
            yield rows.collect()

    def record_height(rows):
        heights.append(rows.select(pl.len()).collect().item())
        return rows

    results = compute_results(names, {"name": table}, Partitions(tmp_path, 3))
    assert [results[chunk].collect().height for chunk in range(5)] == [20, 20, 20, 20, 15]
    assert join_results(table, results, record_height).collect().equals(table.collect())
    assert heights == [0, *[10] * 9, 5]


def test_reordered_names_have_different_hashes():
    names = pl.DataFrame({"a": ["x", "y"], "b": ["y", "x"]})
    assert names.select(hash_columns(["a", "b"])).to_series().n_unique() == 2

"""Eighteen weekly dumps plus one give the same bytes as all dumps at once."""

from itertools import pairwise

import polars as pl
import pytest
import weeks

WEEKS, JOBS = 18, 60
TARGETS = ("--", "results/mine/metrics.json")
CONFIG = {"study": ["mine"], "registry": {"mine": {"format": "sacct", "folder": "dumps"}}}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Return dumps that overlap: each repeats jobs unfinished at the end of the previous week."""
    folder = weeks.write_weeks(tmp_path_factory.mktemp("year") / "dumps", WEEKS + 1, JOBS)
    return sorted(folder.iterdir())


def test_dumps_overlap(dumps):
    """There are runs and requeues across the border, and records in two dumps."""
    rows_by_dump = [[line.split("|") for line in dump.read_text().splitlines()[1:]] for dump in dumps]
    columns = dumps[0].read_text().splitlines()[0].split("|")
    job, state, start = (columns.index(name) for name in ("JobIDRaw", "State", "Start"))
    repeated_jobs = [
        (row[state], next_row[state], row[start] == next_row[start])
        for dump_rows, next_dump_rows in pairwise(rows_by_dump)
        for row in dump_rows
        for next_row in next_dump_rows
        if row[job] == next_row[job]
    ]
    assert ("RUNNING", "COMPLETED", True) in repeated_jobs
    assert {before for before, _, is_same_run in repeated_jobs if not is_same_run} & {"REQUEUED", "PREEMPTED"}
    assert any(row[state] == "RUNNING" for dump in rows_by_dump for row in dump)


def test_a_week_more_gives_the_bytes_of_all_at_once(checkout, dumps):
    folder = checkout.folder / "dumps"
    folder.mkdir()
    for dump in dumps[:-1]:
        (folder / dump.name).write_bytes(dump.read_bytes())
    checkout.snakemake(*TARGETS, one_process=True, **CONFIG)
    cache = checkout.folder / "results/mine/model_cache.parquet"
    lessons = pl.read_parquet(cache)["lesson"]

    (folder / dumps[-1].name).write_bytes(dumps[-1].read_bytes())
    process = checkout.snakemake(*TARGETS, one_process=True, **CONFIG)
    assert f"ingest_part: {dumps[-1].name}" in process.stderr
    assert process.stderr.count("ingest_part: ") == 1

    # Models of earlier windows are unchanged.
    assert lessons.is_in(pl.read_parquet(cache)["lesson"].implode()).mean() > 0.5

    hashes = checkout.hashes()
    (checkout.folder / "results").rename(checkout.folder / "in_steps")
    checkout.snakemake(*TARGETS, one_process=True, **CONFIG)
    assert checkout.hashes() == hashes

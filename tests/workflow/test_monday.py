"""A year of weekly dumps and one week more give what all dumps at once give."""

from itertools import pairwise

import polars as pl
import pytest
import weeks

WEEKS, JOBS = 52, 60
CONFIG = {"study": ["mine"], "registry": {"mine": {"format": "sacct", "folder": "dumps"}}}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Dumps of which each has jobs of the week before that ran, waited or were requeued when it ended."""
    folder = weeks.write_weeks(tmp_path_factory.mktemp("year") / "dumps", WEEKS + 1, JOBS)
    return sorted(folder.iterdir())


def test_dumps_overlap(dumps):
    """Jobs that run over the border, requeues over it, and records that two dumps have."""
    read = [[line.split("|") for line in dump.read_text().splitlines()[1:]] for dump in dumps]
    columns = weeks.HEADER.split("|")
    job, state, start = (columns.index(name) for name in ("JobIDRaw", "State", "Start"))
    seen_again = [
        (before[state], after[state], before[start] == after[start])
        for one, other in pairwise(read)
        for before in one
        for after in other
        if before[job] == after[job]
    ]
    assert ("RUNNING", "COMPLETED", True) in seen_again
    assert {first for first, _, same_run in seen_again if not same_run} & {"REQUEUED", "PREEMPTED"}
    assert any(row[state] == "RUNNING" for dump in read for row in dump)


def test_a_week_more_gives_the_bytes_of_all_at_once(checkout, dumps):
    folder = checkout.folder / "dumps"
    folder.mkdir()
    for dump in dumps[:-1]:
        (folder / dump.name).write_bytes(dump.read_bytes())
    checkout.snakemake(one_process=True, **CONFIG)
    cache = checkout.folder / "results/mine/model_cache.parquet"
    lessons = pl.read_parquet(cache)["lesson"]
    page = (checkout.folder / "results/studies/mine/report/index.html").read_text(encoding="utf-8")
    assert f"What changed with <bdi>{dumps[-2].name}</bdi>" in page

    (folder / dumps[-1].name).write_bytes(dumps[-1].read_bytes())
    done = checkout.snakemake(one_process=True, **CONFIG)
    assert f"ingest_part: {dumps[-1].name}" in done.stderr
    assert done.stderr.count("ingest_part: ") == 1
    page = (checkout.folder / "results/studies/mine/report/index.html").read_text(encoding="utf-8")
    assert f"What changed with <bdi>{dumps[-1].name}</bdi>" in page

    # Models of earlier windows are as they were.
    assert lessons.is_in(pl.read_parquet(cache)["lesson"].implode()).mean() > 0.5

    hashes = checkout.hashes()
    # Nothing is made of a cache that somebody edited.
    pl.read_parquet(cache).with_columns(pl.col("tested").str.replace_all("0\\.", "0.9")).write_parquet(cache)
    checkout.snakemake("--forcerun", "train_model", one_process=True, **CONFIG)
    assert checkout.hashes() == hashes
    (checkout.folder / "results").rename(checkout.folder / "in_steps")
    checkout.snakemake(one_process=True, **CONFIG)
    assert checkout.hashes() == hashes

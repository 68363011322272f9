"""Dumps are looked at one by one, and what came of them is kept: the same jobs and attempts as of all at once."""

import functools
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from of_formats import raw_schemas
from polars.testing import assert_frame_equal
from ttf.formats.protocol import Source
from ttf.formats.sacct import derive
from ttf.formats.sacct import read as sacct_reader
from ttf.ingest import ingest
from ttf.kept import Kept

COLUMNS = "JobIDRaw|JobID|Cluster|User|State|Submit|Start|End|ElapsedRaw|NNodes|NodeList|ReqTRES|AllocTRES|Restarts"
DAY = 86_400
STATES = ("COMPLETED", "FAILED", "REQUEUED", "PREEMPTED", "RESIZING", "NODE_FAIL", "RUNNING", "PENDING")

records = st.tuples(
    st.integers(1, 6),  # few ids: requeued, resized, and given out anew after days
    st.sampled_from(STATES),
    st.integers(0, 6 * DAY),
    st.integers(0, DAY),
    st.sampled_from(["ana", "bo"]),
    st.sampled_from(["", "c1"]),
)
dumps = st.lists(st.lists(records, min_size=1, max_size=8), min_size=1, max_size=4)


def line(job, state, submit, took, user, cluster):
    start, end = ("Unknown", "Unknown") if state == "PENDING" else (submit + 5, submit + 5 + took)
    end = "Unknown" if state == "RUNNING" else end
    cells = (job, job, cluster, user, state, submit, start, end, took, 1, f"n{job}", "cpu=1", "cpu=1,gres/gpu=2", 0)
    return "|".join(map(str, cells))


def source_of(folder, texts):
    """The raw records of dumps with these lines."""
    files = []
    for number, lines in enumerate(texts):
        files.append(folder / f"dump{number}.txt")
        files[-1].write_text("\n".join([COLUMNS, *lines]) + "\n")
    ingest({"record": files}, raw_schemas("sacct"), folder, 1.0, sacct_reader.READERS)
    return Source({"record": pl.scan_parquet(folder / "record.parquet")})


def derived(source):
    source = replace(source, records=derive.records(source))
    return [table(source).collect() for table in (derive.jobs, derive.attempts)]


def at_once(source):
    """The same of all dumps as one piece."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derive, "_by_first_dump", lambda raw: [(0, raw.collect())])
        patch.setattr(derive, "_in_order_of_jobs", lambda pieces: pieces)
        return derived(source)


@settings(max_examples=60, deadline=None)
@given(dumps)
def test_dump_by_dump_gives_what_all_at_once_give(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("dumps")
    source = source_of(folder, [[line(*record) for record in dump] for dump in texts])
    whole = at_once(source)
    kept = Kept(folder / "kept", ["code"])
    for _ in range(2):
        for ours, theirs in zip(derived(replace(source, kept=kept)), whole, strict=True):
            assert_frame_equal(ours, theirs)


def test_a_new_dump_is_looked_at_with_those_whose_jobs_it_tells_of(tmp_path, monkeypatch):
    week = [[line(job, "COMPLETED", 7 * DAY * number + job, 60, "ana", "") for job in (10 * number, 10 * number + 1)]
            for number in range(4)]  # fmt: skip
    week[2].append(line(29, "RUNNING", 20 * DAY, DAY, "bo", ""))
    looked_at, of_piece = [], derive._of_piece

    @functools.wraps(of_piece)
    def noted(raw, number, *more):
        looked_at.append(number)
        return of_piece(raw, number, *more)

    monkeypatch.setattr(derive, "_of_piece", noted)

    def look(name, texts):
        """Which dumps were looked at anew."""
        (tmp_path / name).mkdir()
        source = source_of(tmp_path / name, texts)
        kept = Kept(tmp_path / "kept", ["code"])
        looked_at.clear()
        found, anew = derived(replace(source, kept=kept)), sorted(looked_at)
        kept.forget_others()
        for ours, theirs in zip(found, derived(source), strict=True):
            assert_frame_equal(ours, theirs)
        return anew

    assert look("three", week[:3]) == [0, 1, 2]
    # Of the last week before, a job still ran, and of the first an id is given out anew.
    week[3] += [line(29, "COMPLETED", 20 * DAY, 2 * DAY, "bo", ""), line(1, "FAILED", 22 * DAY, 9, "ana", "")]
    assert look("four", week) == [0, 2, 3]
    assert look("again", week) == []

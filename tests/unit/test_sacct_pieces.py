"""Dumps are looked at one by one: the same jobs and attempts as of all at once."""

from dataclasses import replace

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from of_formats import raw_schemas
from polars.testing import assert_frame_equal
from ttf.formats.protocol import Source
from ttf.formats.sacct import derive
from ttf.formats.sacct import read as sacct_reader
from ttf.raw.ingest import ingest

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
    return tables_of(source, derive.records(source))


def tables_of(source, records):
    return [table(replace(source, records=records)).collect() for table in (derive.jobs, derive.attempts)]


def at_once(source):
    """The same of all dumps as one piece."""
    raw, place = source.raw["record"], ["file", "line"]
    found = derive._prepare_records(raw.collect(), derive._summarise_dumps(raw))
    jobs, attempts = derive._summarise_jobs(found, "UTC"), derive._summarise_attempts(found, "UTC")
    attempts = attempts.join(jobs.select(place).with_row_index("job"), on=place, how="left", maintain_order="left")
    last_seen = found.select(pl.max_horizontal("submit_s", "start_s", "end_s").max()).item()
    return tables_of(source, derive.Records(jobs.lazy(), attempts.lazy(), last_seen))


@settings(max_examples=60, deadline=None)
@given(dumps)
def test_dump_by_dump_gives_what_all_at_once_give(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("dumps")
    source = source_of(folder, [[line(*record) for record in dump] for dump in texts])
    whole = at_once(source)
    for spilled in (None, folder):
        jobs, attempts = derived(replace(source, spilled=spilled))
        assert_frame_equal(jobs, whole[0])
        assert_frame_equal(attempts, whole[1])
        assert jobs["job_id"].gather(attempts["job"]).equals(attempts["job_id"])
        assert attempts["job"].is_sorted()

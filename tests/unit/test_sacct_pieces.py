"""Dumps derived one by one give the same jobs and attempts as all dumps at once."""

from dataclasses import replace

import polars as pl
from format_tables import raw_schemas
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from ttf.formats.format_declaration import resolve_outcomes
from ttf.formats.protocol import Source
from ttf.formats.sacct import derive
from ttf.formats.sacct import read as sacct_reader
from ttf.raw.ingest import ingest

COLUMNS = "JobIDRaw|JobID|Cluster|User|State|Submit|Start|End|ElapsedRaw|NNodes|NodeList|ReqTRES|AllocTRES|Restarts"
DAY = 86_400
STATES = ("COMPLETED", "FAILED", "REQUEUED", "PREEMPTED", "RESIZING", "NODE_FAIL", "RUNNING", "PENDING")

records = st.tuples(
    st.integers(1, 6),  # few ids, so that jobs are requeued and resized, and ids reused after days
    st.sampled_from(STATES),
    st.integers(0, 6 * DAY),
    st.integers(0, DAY),
    st.sampled_from(["ana", "bo"]),
    st.sampled_from(["", "c1"]),
)
dumps = st.lists(st.lists(records, min_size=1, max_size=8), min_size=1, max_size=4)


def format_record(job, state, submit, time, user, cluster):
    start, end = ("Unknown", "Unknown") if state == "PENDING" else (submit + 5, submit + 5 + time)
    end = "Unknown" if state == "RUNNING" else end
    cells = (job, job, cluster, user, state, submit, start, end, time, 1, f"n{job}", "cpu=1", "cpu=1,gres/gpu=2", 0)
    return "|".join(map(str, cells))


def write_source(folder, texts):
    """Ingest dumps with these lines."""
    files = []
    for number, lines in enumerate(texts):
        files.append(folder / f"dump{number}.txt")
        files[-1].write_text("\n".join([COLUMNS, *lines]) + "\n")
    ingest({"record": files}, raw_schemas("sacct"), folder, 1.0, sacct_reader.READERS)
    return Source({"record": pl.scan_parquet(folder / "record.parquet")})


def derive_by_dump(source):
    return collect_tables(source, derive.records(source))


def collect_tables(source, records):
    return [derive_table(replace(source, records=records)).collect() for derive_table in (derive.jobs, derive.attempts)]


def derive_at_once(source):
    """Derive the same tables from all dumps in one piece."""
    raw, row_key = source.raw["record"], ["file", "line"]
    prepared = derive._prepare_records(raw.collect(), derive._summarise_dumps(raw))
    outcomes = resolve_outcomes("sacct", source.meaning)
    jobs = derive._summarise_jobs(prepared.lazy(), "UTC", outcomes)
    attempts = derive._summarise_attempts(prepared, "UTC", outcomes)
    attempts = attempts.join(jobs.select(row_key).with_row_index("job"), on=row_key, how="left", maintain_order="left")
    last_seen_s = prepared.select(pl.max_horizontal("submit_s", "start_s", "end_s").max()).item()
    return collect_tables(source, derive.Records(jobs.lazy(), attempts.lazy(), last_seen_s))


@given(dumps, st.booleans())
def test_single_dumps_give_the_tables_of_all_dumps(tmp_path_factory, texts, is_spilled):
    folder = tmp_path_factory.mktemp("dumps")
    source = write_source(folder, [[format_record(*record) for record in dump] for dump in texts])
    expected = derive_at_once(source)
    jobs, attempts = derive_by_dump(replace(source, spilled=folder if is_spilled else None))
    assert_frame_equal(jobs, expected[0])
    assert_frame_equal(attempts, expected[1])
    assert jobs["job_id"].gather(attempts["job"]).equals(attempts["job_id"])
    assert attempts["job"].is_sorted()

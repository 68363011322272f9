"""Slurm accounting: records of sacct -> jobs and attempts."""

import gzip
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from format_tables import FILES, FORMATS, derive_table, raw_schemas
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sacct_story import EXPECTED, FIXTURES, check_story, derive_tables
from ttf.formats.protocol import load_schemas_and_readers
from ttf.formats.sacct import read as sacct_reader
from ttf.formats.sacct.tres import parse_mib, parse_tres
from ttf.raw.ingest import anomalies, ingest
from ttf.records.durations import durations_of_jobs
from ttf.records.jobs import JOB_COLUMNS
from ttf.records.record_contracts import ATTEMPTS
from ttf.study.recognition.format_declarations import read_schema_text

COLUMNS = ["JobIDRaw", "User", "State", "Submit", "Start", "End", "NodeList", "AllocTRES"]


@pytest.fixture
def derive(tmp_path):
    """Write rows of COLUMNS, or of other columns, as dumps; derive their jobs and attempts."""

    def run(*rows, columns=COLUMNS, files=None, **options):
        texts = files or ["|".join(columns) + "\n" + "".join("|".join(map(str, row)) + "\n" for row in rows)]
        paths = []
        for number, text in enumerate(texts):
            paths.append(tmp_path / f"dump{number}.txt")
            paths[-1].write_text(text)
        _, jobs, attempts = derive_tables(*paths, folder=tmp_path / "raw", **options)
        return jobs, attempts

    return run


def record(job, state, submit=0, start=10, end=20, user="ana", node_list="n1", tres="cpu=1,node=1"):
    return job, user, state, submit, start, end, node_list, tres


def test_columns(derive):
    jobs, attempts = derive(record(1, "COMPLETED"))
    assert list(jobs.schema.items())[: len(JOB_COLUMNS)] == list(JOB_COLUMNS.items())
    ATTEMPTS.check(attempts.select(pl.lit("mine").alias("trace"), pl.all()))


# --- a real Slurm 22.05


@pytest.mark.parametrize("name", ["readme", "steps"])
def test_the_story_of_a_real_slurm(tmp_path, name):
    account, jobs, attempts = derive_tables(FIXTURES / f"real_{name}.txt", folder=tmp_path)
    assert account["rows_quarantined"].item() == 0
    assert jobs.height == len(EXPECTED)
    check_story(jobs, attempts)


def test_dumps_that_overlap_count_each_run_once(tmp_path):
    files = [FIXTURES / f"real_{name}.txt" for name in ("halfway", "readme", "steps")]
    _, jobs, attempts = derive_tables(*files, folder=tmp_path)
    assert jobs.height == len(EXPECTED)
    check_story(jobs, attempts)
    _, jobs_reversed, _ = derive_tables(*reversed(files), folder=tmp_path / "again")
    assert jobs_reversed.select(*JOB_COLUMNS).sort("job_id").equals(jobs.select(*JOB_COLUMNS).sort("job_id"))


def test_a_later_dump_with_blanks_keeps_earlier_values(derive):
    columns = [*COLUMNS, "Planned", "TimelimitRaw"]
    text = "|".join(columns) + "\n" + "|".join([*map(str, record(1, "RUNNING", end="Unknown")), "{}", "{}"]) + "\n"
    jobs, _ = derive(files=[text.format("00:00:10", 5), text.format("INVALID", "Partition_Limit")])
    assert jobs.select("planned_s", "timelimit_s").rows() == [(10, 300)]


# --- cases that one machine cannot show


def test_older_words_and_typed_gpus_only(tmp_path):
    account, jobs, attempts = derive_tables(FIXTURES / "older.txt", folder=tmp_path)
    assert account.rows() == [("record", 8, 8, 0)]
    may_1 = 1556697600  # 2019-05-01T08:00:00Z
    columns = ["job_id", "start_s", "runtime_s", "outcome", "gpu_type", "gpu_milli", "cpu_milli", "mem_mib", "nodes"]
    assert jobs.select(columns).rows() == [
        ("811", may_1 + 600, 90001, "success", "p100|v100", 6000, 8000, 32768, 2),
        ("812_7", may_1 + 3605, 1200, "failure", None, None, 4000, 16384, 1),
        ("812_[8-20%4]", None, None, "waiting", None, None, 4000, None, None),
        ("813", None, None, "cancelled", None, None, 1000, 512, None),
        ("814+0", may_1 + 10800, 72000, "running", None, 0, 1000, 1536, 1),
    ]
    assert jobs["planned_s"].to_list() == [600, 5, 0, 300, None]
    assert jobs["cancelled_by"].to_list() == [None, None, None, 2001, None]
    running = jobs.row(4, named=True)
    assert running["end_s"] == running["start_s"] + 72000 + 1800
    assert running["trace_end_s"] == may_1 + 600 + 90001
    assert attempts["job_id"].to_list() == ["811", "812_7", "814+0"]
    assert attempts["node_list"].to_list() == [["tux08", "tux09"], ["tux08"], ["tux10"]]


@pytest.mark.parametrize(
    ("state", "outcome", "attempt_outcome", "infra_failure"),
    [
        ("COMPLETED", "success", "success", False),
        ("TIMEOUT", "failure", "failure", False),
        ("NODE_FAIL", "failure", "failure", True),
        ("BOOT_FAIL", "failure", "failure", True),
        ("CANCELLED by 1007", "cancelled", "cancelled", False),
        ("REQUEUED", "running", "cancelled", False),
        ("RESIZING", "running", "running", False),
    ],
)
def test_ended_states(derive, state, outcome, attempt_outcome, infra_failure):
    jobs, attempts = derive(record(5, state))
    raw_state = state.split()[0]
    assert jobs.select("outcome", "status_raw", "end_s", "runtime_s").row(0) == (outcome, raw_state, 20, 10)
    assert attempts.select("state", "outcome", "infra_failure").row(0) == (raw_state, attempt_outcome, infra_failure)
    assert jobs["infra_failures"].item() == infra_failure
    event = outcome if outcome != "running" else None
    assert durations_of_jobs(jobs).select("duration_s", "event").row(0) == (10, event)


# The states of Slurm 24 and 25: job_states and its flags in slurm.h.
MEANINGS = {
    "success": "COMPLETED",
    "failure": "FAILED TIMEOUT NODE_FAIL BOOT_FAIL DEADLINE OUT_OF_MEMORY LAUNCH_FAILED RECONFIG_FAIL",
    "cancelled": "CANCELLED PREEMPTED REVOKED",
    "running": "RUNNING SUSPENDED REQUEUED RESIZING CONFIGURING COMPLETING STOPPED POWER_UP_NODE SIGNALING STAGE_OUT "
    "UPDATE_DB EXPEDITING",
    "waiting": "PENDING REQUEUE_HOLD SPECIAL_EXIT REQUEUE_FED RESV_DEL_HOLD",
}


def test_every_state_of_slurm_has_a_meaning(derive):
    outcomes = [(state, outcome) for outcome, states in MEANINGS.items() for state in states.split()]
    assert dict(outcomes) == sacct_reader.OUTCOMES
    jobs, _ = derive(*(record(n, state) for n, (state, _) in enumerate(outcomes)))
    assert jobs.select("status_raw", "outcome").rows() == outcomes


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED", "RESIZING"])
def test_a_running_job_is_censored_at_its_last_record(derive, state):
    columns = [*COLUMNS, "ElapsedRaw", "Suspended"]
    row = (*record(5, state, end="Unknown"), 30, "00:00:05")
    jobs, attempts = derive(row, (*record(6, "FAILED", end=500), 490, ""), columns=columns)
    assert jobs.select("outcome", "end_s", "runtime_s", "suspended_s").row(0) == ("running", 45, 30, 5)
    assert attempts["outcome"][0] == "running"
    assert durations_of_jobs(jobs).select("duration_s", "event").row(0) == (30, None)


def test_a_running_job_without_elapsed_is_censored_at_the_end_of_the_trace(derive):
    jobs, _ = derive(record(5, "RUNNING", end="Unknown"), record(6, "COMPLETED", end=500))
    assert jobs.select("outcome", "end_s", "runtime_s").row(0) == ("running", None, None)
    assert durations_of_jobs(jobs)["duration_s"].to_list() == [490, 490]


def test_jobs_that_never_started(derive):
    unallocated = {"node_list": "None assigned", "tres": ""}
    jobs, attempts = derive(
        record(1, "PENDING", start="Unknown", end="Unknown", **unallocated),
        record(2, "CANCELLED by 7", start="None", end=30, **unallocated),
        record(3, "CANCELLED by 7", start=30, end=30, **unallocated),
        record(4, "FAILED", start=30, end=30, **unallocated),
        record(5, "FAILED", start=30, end=30),  # with a node, though for less than a second
    )
    assert jobs.select("outcome", "start_s", "end_s", "runtime_s", "queue_s", "attempts").rows() == [
        ("waiting", None, None, None, None, None),
        *[("cancelled", None, None, None, None, None)] * 2,
        ("failure", None, None, None, None, None),
        ("failure", 30, 30, 0, 30, 1),
    ]
    assert attempts["job_id"].to_list() == ["5"]
    # Without nodes in the dump, equal start and end mean "never started" for cancelled jobs only.
    columns = ["JobIDRaw", "State", "Submit", "Start", "End"]
    jobs, _ = derive((2, "CANCELLED by 7", 0, 30, 30), (4, "FAILED", 0, 30, 30), columns=columns)
    assert jobs["start_s"].to_list() == [None, 30]


@pytest.mark.parametrize("columns", [["ElapsedRaw", "NodeList"], ["NodeList"], ["Elapsed"], []])
def test_a_job_that_never_ran_has_no_run_time(derive, columns):
    submit = 1_735_700_000
    starts = [0, "1970-01-01T00:00:00", "Unknown", "None", "N/A", "2001-01-01T00:00:00", "", submit + 900]
    starts += [submit + 10] if "Elapsed" in columns or "ElapsedRaw" in columns else []

    def job(n, state, start, end, elapsed_s=0, node="None assigned"):
        cells = {"ElapsedRaw": elapsed_s, "Elapsed": f"{elapsed_s // 60:02}:00", "NodeList": node}
        return n, state, submit, start, end, *(cells[name] for name in columns)

    jobs, attempts = derive(
        job(98, "COMPLETED", submit + 5, submit + 65, 60, "n1"),
        job(99, "RUNNING", submit + 5, 0, 300, "n1"),
        *(job(n, "CANCELLED by 32874", start, submit + 900) for n, start in enumerate(starts)),
        columns=["JobIDRaw", "State", "Submit", "Start", "End", *columns],
        minimum=None,
    )
    assert attempts["job_id"].to_list() == ["98", "99"]
    assert jobs.select(pl.col("start_s", "runtime_s").count()).row(0) == (2, 1 + any("Elapsed" in c for c in columns))
    assert jobs["outcome"].to_list() == ["success", "running", *["cancelled"] * len(starts)]


RUNS = st.tuples(
    st.datetimes(datetime(2025, 11, 1, 20), datetime(2025, 11, 2, 12))
    | st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)),
    st.integers(1, 200_000),
    st.integers(0, 3_000),
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(RUNS, min_size=4, max_size=12), st.booleans())
def test_elapsed_is_the_run_time_whatever_the_clocks_did(derive, runs, has_suspended):
    """Start and End are printed in New York and read as UTC. Slurm counts no suspended time as elapsed."""
    rows = []
    for job, (start, elapsed_s, suspended_s) in enumerate(runs):
        start = start.replace(microsecond=0, tzinfo=UTC)
        times = (start, start + timedelta(seconds=elapsed_s + suspended_s))
        texts = [f"{time.astimezone(ZoneInfo('America/New_York')):%Y-%m-%dT%H:%M:%S}" for time in times]
        suspended = [f"{suspended_s // 60}:{suspended_s % 60:02}"] if has_suspended else []
        rows.append((job, "COMPLETED", *texts, elapsed_s, *suspended))
    columns = ["JobIDRaw", "State", "Start", "End", "ElapsedRaw", *["Suspended"] * has_suspended]
    jobs = derive(*rows, columns=columns)[0].sort(pl.col("job_id").cast(pl.Int64))
    assert jobs["runtime_s"].to_list() == [elapsed_s for _, elapsed_s, _ in runs]
    assert (jobs["wall_s"] >= jobs["runtime_s"]).all()


def test_a_requeued_job_is_one_job(derive):
    jobs, attempts = derive(  # the order of the records does not matter
        record(5, "COMPLETED", 51, 60, 160),
        record(5, "NODE_FAIL", 0, 10, 20),
        record(6, "COMPLETED", 0, 5, 25),
        record(5, "REQUEUED", 20, 40, 45, node_list="n[2-3]"),
        record(5, "PREEMPTED", 45, 50, 51),
    )
    jobs = jobs.sort("job_id")
    assert jobs["job_id"].to_list() == ["5", "6"]
    job = jobs.row(0, named=True)
    assert (job["submit_s"], job["start_s"], job["end_s"], job["queue_s"]) == (0, 10, 160, 10)
    assert (job["runtime_s"], job["wall_s"], job["attempts"]) == (10 + 5 + 1 + 100, 150, 4)
    assert (job["outcome"], job["infra_failures"]) == ("success", 1)
    runs = attempts.filter(pl.col("job_id") == "5")
    assert runs.select("attempt", "state", "outcome", "infra_failure", "runtime_s").rows() == [
        (0, "NODE_FAIL", "failure", True, 10),
        (1, "REQUEUED", "cancelled", False, 5),
        (2, "PREEMPTED", "cancelled", False, 1),
        (3, "COMPLETED", "success", False, 100),
    ]
    assert runs["node_list"].to_list() == [["n1"], ["n2", "n3"], ["n1"], ["n1"]]


def test_a_job_whose_nodes_did_not_boot_goes_on_or_has_ended(derive):
    """The records come from a real Slurm 22.05, which does not requeue a job from BOOT_FAIL."""
    columns = ["JobIDRaw", "User", "State", "Submit", "Start", "End", "Restarts"]
    jobs, _ = derive(
        (1, "root", "BOOT_FAIL", 520, 521, 521, 0),
        (2, "root", "REQUEUED", 520, 521, 521, 0),
        (2, "root", "COMPLETED", 521, 531, 533, 1),
        (1, "root", "COMPLETED", 600, 601, 602, 0),
        # No known version does this; the count of restarts would show it.
        (3, "root", "BOOT_FAIL", 520, 521, 521, 0),
        (3, "root", "COMPLETED", 521, 531, 533, 1),
        columns=columns,
    )
    assert jobs.select("job_id", "outcome", "attempts", "infra_failures").rows() == [
        ("1", "failure", 1, 1),
        ("2", "success", 2, 0),
        ("1@2", "success", 1, 0),
        ("3", "success", 2, 1),
    ]


def test_between_two_runs_a_job_is_running_and_censored_at_its_last_end(derive):
    unallocated = {"node_list": "None assigned", "tres": ""}
    jobs, attempts = derive(
        record(5, "REQUEUED", 0, 10, 20),
        record(5, "PENDING", 20, "Unknown", "Unknown", **unallocated),
        record(6, "PREEMPTED", 0, 10, 30),
        record(7, "REQUEUED", 0, 10, 20),
        record(7, "CANCELLED by 1", 20, "None", 90, **unallocated),
    )
    assert jobs.select("outcome", "status_raw", "end_s", "runtime_s", "attempts").rows() == [
        ("running", "PENDING", 20, 10, 1),
        ("cancelled", "PREEMPTED", 30, 20, 1),
        ("cancelled", "CANCELLED", 20, 10, 1),
    ]
    assert attempts.height == 3
    assert durations_of_jobs(jobs)["event"].to_list() == [None, "cancelled", "cancelled"]


def test_a_reused_id_is_another_job(derive):
    day = 86400
    jobs, attempts = derive(
        record(5, "COMPLETED", 0, 10, 20),
        record(5, "FAILED", 100 * day, 100 * day + 5, 100 * day + 9),
        record(5, "NODE_FAIL", 200 * day, 200 * day, 200 * day + 1),
        record(5, "COMPLETED", 200 * day + 1, 200 * day + 2, 200 * day + 3),
        # The end could be continued, but the next record is another user's or much later.
        record(6, "NODE_FAIL", 0, 10, 20),
        record(6, "COMPLETED", 20, 30, 40, user="bo"),
        record(7, "REQUEUED", 0, 10, 20),
        record(7, "COMPLETED", 90 * day, 90 * day, 90 * day + 7),
    )
    assert jobs.select("job_id", "attempts", "outcome").rows() == [
        ("5", 1, "success"),
        ("5@2", 1, "failure"),
        ("5@3", 2, "success"),
        ("6", 1, "failure"),
        ("6@2", 1, "success"),
        ("7", 1, "unknown"),  # no later record continues this job
        ("7@2", 1, "success"),
    ]
    assert attempts["job_id"].to_list() == ["5", "5@2", "5@3", "5@3", "6", "6@2", "7", "7@2"]


def test_several_clusters_and_arrays(derive):
    columns = ["Cluster", "JobIDRaw", "JobID", "State", "Submit", "Start", "End"]
    jobs, _ = derive(
        ("a", 12, "10_2", "COMPLETED", 0, 1, 2),
        ("b", 12, "12", "FAILED", 0, 1, 3),
        ("a", 13, "10_3", "FAILED", 0, 1, 3),
        ("a", 14, "10_[4-9%2]", "PENDING", 0, "Unknown", "Unknown"),
        columns=columns,
    )
    assert jobs["job_id"].to_list() == ["a:12", "b:12", "a:13", "a:14"]
    assert jobs["job_id_shown"].to_list() == ["10_2", "12", "10_3", "10_[4-9%2]"]
    assert jobs["outcome"].to_list() == ["success", "failure", "failure", "waiting"]


def test_restarts_where_the_dump_has_the_last_run_only(derive):
    columns = ["JobIDRaw", "State", "Submit", "Start", "End", "Restarts"]
    jobs, attempts = derive(
        (1, "COMPLETED", 0, 1, 2, 3),
        (2, "FAILED", 0, 1, 5, 0),
        # A finished job that somebody requeued: the restart count shows that it is the same job.
        (2, "COMPLETED", 5, 6, 8, 1),
        columns=columns,
    )
    assert jobs.select("job_id", "attempts", "runtime_s").rows() == [("1", 4, 1), ("2", 2, 6)]
    assert attempts["attempt"].to_list() == [0, 0, 1]


def test_a_dump_before_a_job_ran_and_one_after(derive):
    header = "|".join(COLUMNS) + "\n"
    pending = record(7, "PENDING", 0, "Unknown", "Unknown", node_list="None assigned", tres="")
    running, ended = record(7, "RUNNING", 0, 10, "Unknown"), record(7, "TIMEOUT", 0, 10, 99)
    files = [header + "|".join(map(str, row)) + "\n" for row in (pending, running, ended, ended)]
    for ordered_files in (files, files[::-1]):
        jobs, attempts = derive(files=ordered_files)
        assert jobs.select("job_id", "outcome", "runtime_s", "attempts").rows() == [("7", "failure", 89, 1)]
        assert attempts.height == 1


def test_requested_and_allocated_gpus_are_separate(derive):
    columns = ["JobIDRaw", "State", "Submit", "Start", "End", "ReqTRES", "AllocTRES"]
    jobs, attempts = derive(
        (1, "FAILED", 0, 1, 2, "cpu=2,gres/gpu=2,mem=1G", "cpu=64,gres/gpu=8,gres/gpu:a100=8,mem=2G"),
        (2, "FAILED", 0, 1, 2, "cpu=2,mem=0", "cpu=64,gres/gpu:h100=8,mem=2T"),
        (3, "FAILED", 0, 1, 2, "", ""),
        columns=columns,
    )
    columns_allocated = ["gpu_milli", "gpu_allocated_milli", "gpu_type", "cpu_milli", "mem_mib"]
    assert jobs.select(columns_allocated).rows() == [
        (2000, 8000, "a100", 2000, 1024),
        (8000, 8000, "h100", 2000, 2 * 1024**2),
        (None, None, None, None, None),
    ]
    assert attempts["gpu_milli"].to_list() == [8000, 8000, None]
    # Only ReqTRES is known at submission.
    columns_requested = ["gpu_requested_milli", "gpu_type_requested", "cpu_requested_milli", "mem_requested_mib"]
    assert jobs.select(columns_requested).rows() == [(2000, None, 2000, 1024), (0, None, 2000, None), (None,) * 4]


def test_requests_come_from_the_first_record(derive):
    columns = ["JobIDRaw", "State", "Submit", "Start", "End", "ReqTRES", "AllocTRES"]
    jobs, _ = derive(
        (1, "RESIZING", 0, 1, 5, "cpu=8,gres/gpu:a100=4,mem=1G", "cpu=8,gres/gpu:a100=4"),
        (1, "COMPLETED", 5, 1, 9, "cpu=2,gres/gpu:a100=1,mem=1G", "cpu=2,gres/gpu:a100=1"),
        columns=columns,
    )
    names = ["gpu_milli", "gpu_requested_milli", "gpu_type_requested", "cpu_requested_milli", "mem_requested_mib"]
    assert jobs.select(names).rows() == [(1000, 4000, "a100", 8000, 1024)]


def test_a_dump_without_requests_has_none(derive):
    columns = ["JobIDRaw", "State", "Submit", "Start", "End", "ReqCPUS", "ReqMem", "AllocTRES"]
    jobs, _ = derive((1, "FAILED", 0, 1, 2, 4, "1G", "cpu=4,gres/gpu:a100=4,mem=1G"), columns=columns)
    names = ["gpu_milli", "cpu_milli", "mem_mib", "gpu_requested_milli", "cpu_requested_milli", "mem_requested_mib"]
    assert jobs.select(names).row(0) == (4000, 4000, 1024, None, None, None)


def test_no_duration_is_negative(derive):
    jobs, _ = derive(record(1, "COMPLETED", submit=15, start=10, end=20))
    assert jobs.select("queue_s", "negative_queue").row(0) == (None, True)
    columns = ["JobIDRaw", "State", "Submit", "Start", "End", "Suspended"]
    jobs, _ = derive((1, "FAILED", 0, 10, 20, "1-00:00:00"), (2, "FAILED", 0, 10, 20, "00:04"), columns=columns)
    assert jobs["runtime_s"].to_list() == [0, 6]


# --- the parts


TRES = {
    "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1": (4000, "a100", 8000, 65536),
    "gres/gpu=4,gres/gpu:a100=4": (4000, "a100", None, None),
    "gres/gpu:a100=4,gres/gpu:h100=2": (6000, "a100|h100", None, None),
    "gres/gpu:1g.5gb=2,cpu=1": (2000, "1g.5gb", 1000, None),
    "gres/gpu=0,gres/gpu:a100=0": (0, None, None, None),
    "mem=0": (0, None, None, None),
    None: (None, None, None, None),
    "gres/shard=3": (None, None, None, None),
    "gres/gpu=1,gres/shard=3": (1000, None, None, None),
    "gres/gpumem=80G,gres/gpuutil=50": (0, None, None, None),
    "gres/gpu=99999999999999999999999": (0, None, None, None),
    "nonsense": (0, None, None, None),
}


def test_tres_keeps_the_order_and_blanks():
    texts = [*TRES, *TRES]
    assert parse_tres(pl.Series(texts)).rows() == [TRES[text] for text in texts]
    assert parse_tres(pl.Series([None, None], dtype=pl.String)).null_count().row(0) == (2, 2, 2, 2)


def test_mebibytes():
    frame = pl.DataFrame({"mem": ["1G", "1.5G", "1536M", "3T", "2048K", "7", "", "G", "9" * 30, None]})
    assert frame.select(parse_mib(pl.col("mem")))["mem"].to_list() == [1024, 1536, 1536, 3 * 1024**2, 2, 7] + [None] * 4


# --- reading


def run_ingest(tmp_path, *files, max_share=1.0):
    (tmp_path / "raw").mkdir(exist_ok=True)
    schemas = raw_schemas("sacct")
    return ingest({"record": list(files)}, schemas, tmp_path / "raw", max_share, sacct_reader.READERS)


def test_times_in_the_zone_of_the_cluster(tmp_path):
    """Read wall clock times in the zone of the registry; flag the hour that occurs twice."""
    lines = [
        "JobIDRaw|State|Submit|Start|End",
        "1|COMPLETED|2025-11-02T00:10:00|2025-11-02T00:30:00|2025-11-02T00:59:59",
        "2|COMPLETED|2025-11-02T00:30:00|2025-11-02T01:30:00|2025-11-02T04:00:00",
        "3|COMPLETED|2025-03-09T01:00:00|2025-03-09T02:30:00|2025-03-09T04:00:00",
        "4|COMPLETED|1762064400|1762065000|1762070000",
    ]
    (tmp_path / "dump.txt").write_text("\n".join(lines) + "\n")
    entry = {"times": {"zone": "America/New_York"}}
    schemas, readers = load_schemas_and_readers(FORMATS["sacct"]["reader"], entry, read_schema_text(FILES["sacct"]))
    _, quarantine = ingest({"record": [tmp_path / "dump.txt"]}, schemas, tmp_path, 1.0, readers)
    # There was no 02:30 on 9 March: the clocks went from 02:00 to 03:00.
    assert quarantine.select("line", "reason", "column").rows() == [(4, "not_a_time", "Start")]
    raw = {"record": pl.scan_parquet(tmp_path / "record.parquet")}
    jobs = derive_table("sacct", "jobs", raw, entry).sort("job_id")
    first_submit_s = datetime(2025, 11, 2, 4, 10, tzinfo=UTC).timestamp()  # 00:10 at UTC-4
    assert jobs["submit_s"].to_list() == [first_submit_s, first_submit_s + 1200, 1762064400]
    # 01:30 is read as its first occurrence; 04:00 was five hours after midnight, not four.
    assert jobs["runtime_s"].to_list() == [1799, 3.5 * 3600, 5000]
    assert jobs["dst_ambiguous"].to_list() == [False, True, True]
    assert list(derive_table("sacct", "attempts", raw, entry).sort("job_id")["dst_ambiguous"]) == [False, True, True]
    assert not derive_table("sacct", "jobs", raw)["dst_ambiguous"].any()


def test_rows_that_are_no_records_are_quarantined(tmp_path, small_blocks):
    lines = [
        "JobIDRaw|State|Submit|Start|End",
        "1|COMPLETED|0|1|2",
        "2|EXPLODED|0|1|2",
        "x|COMPLETED|0|1|2",
        "3|COMPLETED|0|5|2",
        "4|COMPLETED|yesterday|1|2",
        "JobIDRaw|State|Submit|Start|End",
        "5|COMPLETED|0|1|2|3",
        "6@2|COMPLETED|0|1|2",
        "7.batch|COMPLETED|0|1|2",
        "8|CANCELLED by 12|0|1|2",
    ]
    file = tmp_path / "dump.csv.gz"
    file.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    account, quarantine = run_ingest(tmp_path, file)
    assert account.rows() == [("record", 10, 4, 6)]
    assert quarantine.select("line", "reason", "column", "text").rows() == [
        (3, "unknown_value", "State", lines[2]),
        (4, "wrong_form", "JobIDRaw", lines[3]),
        (5, "before_previous_blanked", "End", None),
        (6, "not_a_time", "Submit", lines[5]),
        (7, "wrong_form", "JobIDRaw", lines[6]),
        (8, "wrong_column_count", None, lines[7]),
        (9, "wrong_form", "JobIDRaw", lines[8]),
    ]
    assert anomalies(quarantine, account).height == 5
    jobs = derive_table("sacct", "jobs", {"record": pl.scan_parquet(tmp_path / "raw/record.parquet")})
    assert jobs.select("job_id", "runtime_s").rows() == [("1", 1), ("3", None), ("8", 1)]


def test_only_steps_make_no_jobs(derive):
    jobs, attempts = derive(record("1.batch", "FAILED"), record("1.0", "FAILED"))
    assert (jobs.height, attempts.height) == (0, 0)
    assert jobs.schema == derive(record(1, "FAILED"))[0].schema


# --- rows that are no lines


def format_dump(*rows, columns, delimiter="|"):
    return "".join(delimiter.join(map(str, row)) + "\n" for row in (columns, *rows))


def test_a_line_break_in_a_cell(derive):
    columns = ["JobName", *COLUMNS, "Comment"]
    rows = [("a", *record(1, "COMPLETED"), "one\n\ntwo"), ("b\nb", *record(2, "FAILED"), "")]
    jobs, _ = derive(files=[format_dump(*rows, ("c", *record(3, "COMPLETED"), "x"), columns=columns)])
    assert jobs.select("job_id", "outcome", "user").rows() == [
        ("1", "success", "ana"),
        ("2", "failure", "ana"),
        ("3", "success", "ana"),
    ]


def test_lines_that_make_no_row_together_are_quarantined(tmp_path):
    columns = [*COLUMNS, "Comment"]
    text = format_dump((*record(1, "COMPLETED"), "x"), columns=columns)
    lines = ["2|ana|FAILED", "0|10|20", "3|ana|FAILED|0|10|20|n1|cpu=1|x|y|z", *text.splitlines()[1:], "4|ana|COM"]
    (tmp_path / "dump.txt").write_text("\n".join([text.splitlines()[0], *lines]))
    account, jobs, _ = derive_tables(tmp_path / "dump.txt", folder=tmp_path / "raw")
    assert account.select("rows_read", "rows_accepted", "rows_quarantined").row(0) == (5, 1, 4)
    assert jobs["job_id"].to_list() == ["1"]


def test_the_delimiter_that_leaves_bars_in_cells(derive):
    columns = ["SubmitLine", *COLUMNS]
    jobs, _ = derive(files=[format_dump(("a || b | c", *record(1, "COMPLETED")), columns=columns, delimiter="|#")])
    assert jobs.select("job_id", "outcome").rows() == [("1", "success")]


def test_invalid_utf8_matters_only_in_columns_that_are_read(tmp_path):
    columns = ["JobName", *COLUMNS]
    rows = [("name", *record(1, "COMPLETED")), ("x", *record(2, "COMPLETED", user="name"))]
    text = format_dump(*rows, ("y", *record(3, "COMPLETED")), columns=columns).encode()
    (tmp_path / "dump.txt").write_bytes(text.replace(b"name", b"nam\xff"))
    account, jobs, _ = derive_tables(tmp_path / "dump.txt", folder=tmp_path / "raw")
    assert account["rows_quarantined"].item() == 1
    assert jobs["job_id"].to_list() == ["1", "3"]


def test_a_column_asked_for_twice_and_no_submissions(derive):
    columns = ["JobIDRaw", "State", "Start", "End", "End"]
    jobs, _ = derive((1, "REQUEUED", 10, 20, 20), (1, "COMPLETED", 50, 80, 80), (2, "FAILED", 5, 6, 6), columns=columns)
    assert jobs.select("job_id", "outcome", "submit_s", "queue_s", "runtime_s", "attempts").rows() == [
        ("1", "success", None, None, 40, 2),
        ("2", "failure", None, None, 1, 1),
    ]

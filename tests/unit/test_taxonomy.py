"""Reasons of failures: a log for each rule, each kind of evidence, the columns of Philly's Table 7."""

import gzip
import json
import time
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacct_story import FIXTURES, derive_tables
from ttf.analyses.causes.classify_failures import ANALYSIS, REASONS
from ttf.analyses.causes.classify_failures.charts import CHARTS
from ttf.analyses.causes.classify_failures.compute import (
    MOST_LINES,
    classify_blocks,
    summarise_taxonomy,
    taxonomy_table,
    unmatched_table,
)
from ttf.analyses.causes.classify_failures.log_tails import informative_line, match_tails, read_tails
from ttf.analyses.causes.classify_failures.page import tables as taxonomy_tables
from ttf.analyses.causes.classify_failures.reason_rules import ATTEMPT_COLUMNS, classify, list_attempts, search
from ttf.display.charts.figure import Study
from ttf.display.report_trace import Trace
from ttf.engine.errors import StudyError
from ttf.engine.storage.tables import write_product
from ttf.records.inputs import Inputs
from ttf.records.runs import add_reasons
from ttf.study.configuration.taxonomy import load_taxonomy

ROOT = Path(__file__).parents[2]
CONTRACTS = {table.name: table for table in ANALYSIS.tables}
TAXONOMY = load_taxonomy(ROOT / "config/taxonomy.yaml")

# Log lines for each reason, written for this test in the form that programs print.
LOGS = {
    "GPU ECC error": [
        "NVRM: Xid (PCI:0000:b7:00): 48, pid=2211, An uncorrectable double bit error (DBE) has been detected",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "NVRM: Xid (PCI:0000:b7:00): 64, Row Remapper: recording failed",
    ],
    "GPU NVLink error": [
        "NVRM: Xid (PCI:0000:07:00): 74, pid=9, NVLink: fatal error detected on link 4",
        "nvidia-nvlink: NVLink lane 2 reports error",
    ],
    "PCIe error": [
        "pcieport 0000:5d:00.0: PCIe Bus Error: severity=Uncorrected (Fatal)",
        "AER: Uncorrected (Non-Fatal) error received: 0000:5e:00.0",
    ],
    "GPU unavailable": [
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=77, GPU has fallen off the bus.",
        "Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error",
        "RuntimeError: No CUDA GPUs are available",
    ],
    "GPU driver error": [
        "NVRM: Xid (PCI:0000:17:00): 119, pid=4, Timeout waiting for RPC from GSP0!",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "Failed to initialize NVML: Driver/library version mismatch",
    ],
    "Invalid mem access": [
        "NVRM: Xid (PCI:0000:17:00): 31, pid=4, MMU Fault",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "train.sh: line 8: 4411 Segmentation fault      (core dumped) ./train",
        "RuntimeError: CUDA error: device-side assert triggered",
    ],
    "GPU error (XID)": ["NVRM: Xid (PCI:0000:17:00): 45, pid=4, Ch 00000010"],
    "InfiniBand link": [
        "mlx5_core 0000:1a:00.0: Port 1: link is down on mlx5_0 port down",
        "worker 3: got completion with error 12, IBV_WC_RETRY_EXC_ERR from peer",
    ],
    "Ethernet link": ["kernel: ens1f0 NIC Link is Down"],
    "Main memory error": ["EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Channel#1_DIMM#0"],
    "GPU out of memory": [
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.2 GiB total capacity)",
        "torch.OutOfMemoryError: tried to allocate more than there is",
        "OOM when allocating tensor with shape[64,1024]",
    ],
    "Data loader killed": ["RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error."],
    "CPU out of memory": [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=11.batch",
        "Out of memory: Killed process 812 (python)",
        "MemoryError",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 512. GiB for an array",
        "Container is running beyond physical memory limits. Killing container.",
    ],
    "Job preempted": ["slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-01-01 DUE TO PREEMPTION ***"],
    "Time limit": ["slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-01-01 DUE TO TIME LIMIT ***"],
    "Model diverged": ["step 1200 loss: nan", "ValueError: model diverged, stopping", "loss is inf at step 3"],
    "CUDA ver. mismatch": [
        "CUDA driver version is insufficient for CUDA runtime version",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    ],
    "CUDA init failed": ["RuntimeError: CUDA initialization error: unknown", "CUBLAS_STATUS_NOT_INITIALIZED"],
    "CUDA failure": ["RuntimeError: CUDA error: unspecified launch failure", "CUDNN_STATUS_EXECUTION_FAILED"],
    "NCCL timeout": [
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE)",
        "NCCL operation ALLGATHER timed out after 1800 s",
    ],
    "NCCL remote error": ["ncclRemoteError: a call failed possibly due to a network error or a remote process exiting"],
    "MPI error": ["MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", "Fatal error in MPI_Init"],
    "MPI runtime failure": ["ORTE has lost communication with a remote daemon."],
    "Filesystem mounts": [
        "ls: cannot access '/data': Transport endpoint is not connected",
        "kernel: nfs: server store3 not responding, still trying",
    ],
    "Node failure": ["slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-01-01 DUE TO NODE FAILURE, SEE LOG ***"],
    "Launch failed": ["srun: error: Task launch for StepId=7.0 failed on node n4: Invalid job credential"],
    "System services": ["dockerd: container start failed: no answer"],
    "Disk quota": ["OSError: [Errno 122] Disk quota exceeded: 'x.pt'"],
    "Disk full": ["OSError: [Errno 28] No space left on device"],
    "Model ckpt error": [
        "Failed to save the checkpoint at step 4000",
        "RuntimeError: [enforce fail at inline_container.cc] . PytorchStreamWriter failed writing file data/7",
    ],
    "Model loading error": ["Error(s) in loading state_dict for Net:", "OSError: Unable to load weights from file"],
    "Dataset loading error": ["Could not load the dataset shard 7"],
    "Storage error": ["botocore.exceptions.ClientError: bucket is gone, error 503", "cp: Input/output error"],
    "Network error": ["socket: Temporary failure in name resolution", "connect: No route to host"],
    "Connection error": ["ConnectionResetError: [Errno 104] Connection reset by peer", "write: Broken pipe"],
    "Cannot load libs": ["./a.out: error while loading shared libraries: libmkl.so.2: no such file"],
    "Import error": ["ModuleNotFoundError: No module named 'apex'", "ImportError: cannot import name 'x' from 'y'"],
    "Permission error": ["bash: ./run.sh: Permission denied", "PermissionError: [Errno 13] x"],
    "Syntax error": ["SyntaxError: invalid syntax", "run.sh: line 3: syntax error near unexpected token `fi'"],
    "Wrong arguments": ["train.py: error: unrecognized arguments: --lr2"],
    "Program not found": ["run.sh: line 2: pyhton: command not found"],
    "Output node error": ["The output node softmax:0 does not exist in the graph"],
    "Incorrect inputs": [
        "FileNotFoundError: [Errno 2] data/train.csv",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1",
        "EOFError: Ran out of input",
    ],
    "Assertion failed": ["AssertionError: batch", "a.out: m.c:7: main: Assertion `n > 0' failed."],
    "Semantic error": [
        "TypeError: unsupported operand type(s) for +",
        "KeyError: 'label'",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x3 and 4x2)",
    ],
    "Called process failed": ["subprocess.CalledProcessError: Command 'make' returned non-zero exit status 2."],
    "OS error": ["OSError: [Errno 24] Too many open files"],
    "Runtime error": [
        "RuntimeError: something else",
        "terminate called after throwing an instance of 'std::logic_error'",
    ],
    "Core dump": ["Aborted (core dumped)", "Illegal instruction"],
    "Traceback from crash": ["Traceback (most recent call last):\n  File 'a.py', line 1\nMyOwn: no"],
    "Killed": ["run.sh: line 9:  4411 Killed                  python train.py", "Terminated"],
}


def trials(**columns) -> pl.DataFrame:
    """Make a failed attempt for each value of the first column; other columns are blank."""
    n = len(next(iter(columns.values())))
    defaults = {"job_id": [str(i) for i in range(n)], "attempt": [0] * n, "is_last": [True] * n, "failed": [True] * n}
    blanks = {name: [None] * n for name in ATTEMPT_COLUMNS}
    return pl.DataFrame(blanks | defaults | columns, schema=ATTEMPT_COLUMNS)


def list_reasons(**columns) -> list:
    return classify(trials(**columns), TAXONOMY)["reason"].to_list()


def search_reasons(*texts) -> list:
    rules = search(pl.Series(texts, dtype=pl.String), TAXONOMY["rules"])
    return [None if rule is None else TAXONOMY["rules"][rule]["reason"] for rule in rules]


# Rules ----------------------------------------------------------------------------------------------------


def test_every_reason_has_a_log():
    assert set(LOGS) == set(TAXONOMY["reasons"])


def test_a_log_line_gives_its_reason():
    expected = {line: reason for reason, lines in LOGS.items() for line in lines}
    logs = [f"epoch 3 of 90\nstep 17 lr 0.1\n{line}\nsrun: exit\n" for line in expected]
    for reasons in (search_reasons(*expected), search_reasons(*logs), list_reasons(failure_reason=[*expected])):
        assert dict(zip(expected, reasons, strict=True)) == expected


HARMLESS = [
    "epoch 3 loss: 0.12 acc 0.9",
    "saved checkpoint to /data/7.pt; loaded 4 shards of the dataset",
    "info: nanometres; information: lossless; loss scale 128",
    "rank 0 NCCL version 2.19",
    "0 errors, 0 warnings; all tests passed",
    "using MPI with 8 ranks and InfiniBand",
]


def test_a_healthy_log_has_no_reason():
    assert search_reasons(*HARMLESS, "", None) == [None] * (len(HARMLESS) + 2)


def test_a_cause_is_named_before_its_consequences():
    assert search_reasons(
        "RuntimeError: CUDA out of memory\nNCCL operation timed out\nTraceback (most recent call last):\nTerminated",
        "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus\nRuntimeError: CUDA error: unknown error",
        "Traceback (most recent call last):\nImportError: libcudart.so: cannot open shared object file",
        "Traceback (most recent call last):\nKeyError: 'x'\nsrun: error: Terminated",
    ) == ["GPU out of memory", "GPU unavailable", "Cannot load libs", "Semantic error"]


# Jeon et al. (ATC'19), Table 7.
PHILLY = [
    *("CPU out of memory", "Incorrect inputs", "Semantic error", "Core dump", "Invalid mem access", "Model ckpt error"),
    *("CUDA failure", "Syntax error", "Traceback from crash", "MPI error", "GPU out of memory", "MPI runtime failure"),
    *("Permission error", "Import error", "Job preempted", "CUDA init failed", "Model diverged", "CUDA ver. mismatch"),
    *("GPU ECC error", "Output node error", "Cannot load libs"),
]
# Some of Hu et al. (NSDI'24), Table 3, in its own words.
ACME = {
    "NVLink error": "GPU NVLink error",
    "S3 storage error": "Storage error",
    "OutOfMemory": "CPU out of memory",
    "ZeroDivisionError": "Semantic error",
    "ArgumentError": "Wrong arguments",
}


def test_the_words_of_published_studies_are_accepted_in_a_reason_column():
    assert list_reasons(failure_reason=PHILLY) == PHILLY
    assert list_reasons(failure_reason=[name.upper().replace(" ", "_") for name in PHILLY]) == PHILLY
    assert list_reasons(failure_reason=list(ACME)) == list(ACME.values())


def test_exit_codes():
    codes = {"137": "Killed", "0:9": "Killed", "139:0": "Invalid mem access", "0:125": "CPU out of memory"}
    codes |= dict.fromkeys(("0:0", "nine", "99999999999999999999"))
    jobs = make_jobs(exit_code=[*codes])
    assert classify(list_attempts(jobs), TAXONOMY)["reason"].to_list() == [*codes.values()]


def test_states():
    states = ["OUT_OF_MEMORY", "node fail", "PREEMPTED by 7", "FAILED"]
    assert list_reasons(state=states) == ["CPU out of memory", "Node failure", "Job preempted", None]


def test_the_first_rule_wins_and_its_evidence_is_named():
    rows = trials(
        state=["TIMEOUT", "FAILED", "FAILED", "FAILED", "NODE_FAIL"],
        exit_code=["0:9", "0:9", "139:0", "127:0", None],
        failure_reason=["TimeLimit", None, "Segmentation fault", "NonZeroExitCode", "RuntimeError"],
    )
    reasons = classify(rows, TAXONOMY)
    # If several agree, the most specific evidence is named.
    assert reasons.select("reason", "evidence").rows() == [
        ("Time limit", "reason"),
        ("Killed", "exit_code"),
        ("Invalid mem access", "reason"),
        ("Program not found", "exit_code"),
        ("Node failure", "state"),
    ]


# Attempts -------------------------------------------------------------------------------------------------


def make_jobs(outcome=None, **columns) -> pl.DataFrame:
    n = len(next(iter(columns.values())))
    blank = {
        "job_id": [f"j{i}" for i in range(n)],
        "task": [None] * n,
        "user": ["ana"] * n,
        "runtime_s": [10] * n,
        "gpu_milli": [1000] * n,
        "size": [1] * n,
        "attempts": [1] * n,
        "status_raw": ["FAILED"] * n,
        "outcome": outcome or ["failure"] * n,
    }
    types = {"task": pl.String, "user": pl.String, "runtime_s": pl.Int64, "gpu_milli": pl.Int64}
    return pl.DataFrame(blank | columns, schema_overrides=types)


def make_attempts(*outcomes, **columns) -> pl.DataFrame:
    """Make attempts of (job id, outcome); the rows of the jobs are in the order of their ids."""
    frame = pl.DataFrame(outcomes, schema=["job_id", "outcome"], orient="row")
    numbers = {"job": pl.col("job_id").rank("dense") - 1, "attempt": pl.int_range(pl.len()).over("job_id")}
    columns = {"gpu_milli": [1000] * frame.height} | columns
    frame = frame.with_columns(**numbers, runtime_s=pl.int_range(5, pl.len() + 5))
    return frame.with_columns(pl.Series(name, values) for name, values in columns.items())


def test_philly_an_attempt_of_unknown_outcome_with_a_successor_failed():
    jobs = make_jobs(job_id=["a", "b"], outcome=["success", "failure"])
    attempts = make_attempts(("a", None), ("a", "success"), ("b", "failure"), gpu_milli=[1000, 1000, 4000])
    listed = list_attempts(jobs, attempts)
    assert listed.filter("failed").select("job_id", "attempt", "gpu_milli").rows() == [("a", 0, 1000), ("b", 0, 4000)]
    # An attempt without outcome and successor may still be running.
    unknown = attempts.with_columns(outcome=pl.lit(None, pl.String))
    assert list_attempts(jobs, unknown)["failed"].to_list() == [True, False, False]


def test_the_reasons_of_a_real_slurm(tmp_path):
    _, jobs, attempts = derive_tables(FIXTURES / "real_readme.txt", folder=tmp_path)
    reasons = classify(list_attempts(jobs, attempts).filter("failed"), TAXONOMY)
    assert reasons.select("job_id", "attempt", "reason", "evidence").rows() == [
        ("2", 0, None, None),  # exit code 3
        ("3", 0, "Time limit", "state"),
        ("7", 0, "Node failure", "state"),
        ("8", 0, "Node failure", "state"),  # the job succeeded in its second run
        ("12", 0, None, None),  # exit code 1
    ]
    lines = unmatched_table(reasons)
    assert lines["line"].to_list() == ["state FAILED, exit code 1:0", "state FAILED, exit code 3:0"]
    assert lines["source"].unique().to_list() == ["record"]


@pytest.mark.parametrize("has_attempts", [True, False])
def test_blocks_of_any_size_give_the_same(tmp_path, has_attempts):
    _, jobs, attempts = derive_tables(FIXTURES / "real_readme.txt", folder=tmp_path)
    expected = classify(list_attempts(jobs, attempts if has_attempts else None).filter("failed"), TAXONOMY)
    assert expected.height
    files = {"jobs": tmp_path / "jobs.parquet"} | ({"attempts": tmp_path / "attempts.parquet"} if has_attempts else {})
    jobs.write_parquet(files["jobs"])
    attempts.write_parquet(tmp_path / "attempts.parquet")
    for size in (1, 5, 1000):
        assert classify_blocks(Inputs(files, {}, {"taxonomy": TAXONOMY}), size).equals(expected)


def test_the_derived_exit_code_fills_in_at_the_last_attempt(tmp_path):
    jobs = make_jobs(job_id=["a", "b"]).with_columns(derived_exit_code=pl.Series(["139:0", "139:0"]))
    attempts = make_attempts(
        *((job, "failure") for job in "aab"), state=["FAILED"] * 3, exit_code=["1:0", "0:0", "1:0"]
    )
    assert list_attempts(jobs, attempts)["exit_code"].to_list() == ["1:0", "139:0", "1:0"]


# Logs -----------------------------------------------------------------------------------------------------


@pytest.fixture
def classify_tails(tmp_path):
    """Classify the attempts of these jobs by lines of log tails, given as bytes, text or objects."""

    def read(*lines, jobs=None, attempts=None, taxonomy=TAXONOMY):
        path = tmp_path / "tails.jsonl"
        raw = [
            line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
            for line in lines
        ]
        path.write_bytes(b"\n".join(raw) + b"\n")
        all_attempts = list_attempts(make_jobs(job_id=["a", "b"]) if jobs is None else jobs, attempts)
        matches, account = match_tails(read_tails(path, 1024 * taxonomy["tail_kib"]), all_attempts, taxonomy)
        return classify(all_attempts.filter("failed"), taxonomy, matches), account, matches

    return read


def test_ids_may_be_numbers_and_tasks_are_distinguished(classify_tails):
    jobs = make_jobs(job_id=["7", "7"], task=["1", "2"])
    reasons, account, _ = classify_tails(
        {"job_id": 7, "task": 2, "text": "Segmentation fault"}, {"job_id": 7, "text": "Killed"}, jobs=jobs
    )
    assert reasons["reason"].to_list() == [None, "Invalid mem access"]
    assert account["code"].to_list() == ["lines", "unknown_job"]


def test_of_several_logs_of_an_attempt_the_first_rule_counts(classify_tails):
    lines = [{"job_id": "a", "text": text} for text in ("Killed", "CUDA out of memory", "hello")]
    reasons, _, matches = classify_tails(*lines)
    assert reasons["reason"][0] == "GPU out of memory"
    assert matches.height == 3
    assert unmatched_table(reasons, matches)["source"].to_list() == ["record"]  # only of b


def test_a_log_without_attempt_number_is_of_the_last_attempt(classify_tails):
    jobs = make_jobs(job_id=["a"])
    attempts = make_attempts(*[("a", "failure")] * 2)
    reasons, _, _ = classify_tails({"job_id": "a", "text": "Killed"}, jobs=jobs, attempts=attempts)
    assert reasons["reason"].to_list() == [None, "Killed"]


def test_bad_lines_are_counted_with_their_numbers(classify_tails):
    jobs = make_jobs(job_id=["a", "b"], outcome=["failure", "success"])
    _, account, _ = classify_tails(
        {"job_id": "a", "text": "Killed"},
        "",
        "not json",
        {"job_id": "a"},
        ["a", "b"],
        {"job_id": "z", "text": "x"},
        {"job_id": "a", "attempt": 3, "text": "x"},
        {"job_id": "b", "text": "x"},
        {"job_id": "a", "attempt": -1, "text": "x"},
        {"job_id": "a", "attempt": "first", "text": "x"},
        b'{"job_id": "a", "text": "\x00"}',
        jobs=jobs,
    )
    assert account.select("code", "severity", "rows", "first_lines").rows() == [
        ("lines", "info", 10, None),
        ("not_json", "error", 4, "3, 4, 5, 11"),
        ("not_an_attempt", "error", 2, "9, 10"),
        ("unknown_job", "error", 1, "6"),
        ("unknown_attempt", "error", 1, "7"),
        ("not_failed", "info", 1, "8"),
    ]


def test_only_the_end_of_a_text_is_searched(classify_tails):
    text = "Segmentation fault" + "x" * 2000
    assert classify_tails({"job_id": "a", "text": text})[0]["reason"][0] == "Invalid mem access"
    assert classify_tails({"job_id": "a", "text": text}, taxonomy=TAXONOMY | {"tail_kib": 1})[0]["reason"][0] is None


def test_tails_may_be_packed(tmp_path):
    path = tmp_path / "tails.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"job_id": "a", "text": "x"}'))
    ((valid, invalid),) = read_tails(path, 10)
    assert valid.rows() == [(1, "a", None, None, "x")]
    assert not invalid.height


@given(
    st.binary(max_size=200)
    | st.lists(st.binary(max_size=30).map(lambda raw: b'{"job_id": "a", "text": "' + raw + b'"}'), max_size=4).map(
        b"\n".join
    )
)
def test_any_bytes_are_counted_or_refused_with_a_message(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.jsonl"
    path.write_bytes(content)
    attempts = list_attempts(make_jobs(job_id=["a"]))
    try:
        matches, account = match_tails(read_tails(path, 100), attempts, TAXONOMY)
    except StudyError as error:
        assert str(error).startswith(str(path))
        return
    counted = dict(account.select("code", "rows").iter_rows())
    assert counted.pop("lines", 0) == sum(counted.values()) + matches.height
    assert classify(attempts, TAXONOMY, matches).height == 1


HOSTILE = ["a" * 60_000 + "!", "NCCL " * 12_000 + "time", "x: " * 20_000, "\x00" * 60_000 + "Killed\x00", "\n" * 60_000]


def test_hostile_texts_take_a_bounded_time(classify_tails):
    rules = [*TAXONOMY["rules"], {**TAXONOMY["rules"][0], "text": ["(a+)+$", "(a|aa)+$", "(.*)*(.*)*x$"]}]
    start = time.perf_counter()
    tails = [{"job_id": "a", "text": text} for text in HOSTILE]
    _, account, matches = classify_tails(*tails, taxonomy=TAXONOMY | {"rules": rules})
    # Measured: 0.4 s; a backtracking search would take days.
    assert time.perf_counter() - start < 20
    assert account["rows"].to_list() == [len(HOSTILE)]
    assert matches["shown"].drop_nulls().str.len_chars().max() <= 200


def test_a_line_of_more_than_16_mib_is_counted(classify_tails):
    line = b'{"job_id": "a", "text": "' + b"x" * (17 << 20) + b'"}'
    reasons, account, _ = classify_tails(line, b'{"job_id": "b", "text": "\xff\xfe Segmentation fault \xc3"}')
    assert account.select("code", "rows", "first_lines").rows() == [("lines", 2, None), ("too_long", 1, "1")]
    assert reasons["reason"].to_list() == [None, "Invalid mem access"], "invalid UTF-8 is read around"


INFORMATIVE_LINES = {
    "epoch 1\nweird error 77 at 0xDEADBEEF\nbye\n": "weird error # at #",
    "first\n\x1b[31mlast   one\t2\x1b[0m\n\n": "last one #",
    "error 1\nerror 2 in 0123456789abcdef\n": "error # in #",
    "x" * 300: "x" * 200,
    " \n\t\n": None,
    None: None,
}


def test_the_most_informative_line():
    lines = informative_line(pl.Series([*INFORMATIVE_LINES], dtype=pl.String))
    assert lines.to_list() == [*INFORMATIVE_LINES.values()]


def test_unmatched_lines_are_counted_commonest_first(classify_tails):
    n = MOST_LINES + 30
    jobs = make_jobs(job_id=[f"{i}" for i in range(n + 5)], user=["ana", "bo"] * (n // 2 + 2) + ["ana"])
    letters = ["".join(chr(97 + (i // 26**k) % 26) for k in range(3)) for i in range(n)]
    lines = [{"job_id": i, "text": f"strange {letters[i]}"} for i in range(n)]
    lines += [{"job_id": n + i, "text": f"strange code {i}"} for i in range(5)]
    reasons, _, matches = classify_tails(*lines, jobs=jobs)
    table = unmatched_table(reasons, matches)
    assert table.height == MOST_LINES
    assert table.row(0) == ("log", "strange code #", 5, 5 / (n + 5), 5, 2)
    assert table["line"].to_list()[1:] == sorted(table["line"].to_list()[1:])


# The table ------------------------------------------------------------------------------------------------


def test_the_columns_of_table_7_by_hand():
    rows = trials(
        job_id=["a", "a", "b", "c", "d", "e"],
        attempt=[0, 1, 0, 0, 0, 0],
        user=["u", "u", "v", None, "v", "w"],
        state=["TIMEOUT", "TIMEOUT", "TIMEOUT", "NODE_FAIL", "FAILED", "OUT_OF_MEMORY"],
        runtime_s=[10, 20, 60, 100, 7, None],
        gpu_milli=[500, 1000, 4000, 8000, 0, None],
    )
    table = taxonomy_table(classify(rows, TAXONOMY))
    row_by_reason = {row["reason"]: row for row in table.filter(by="reason").iter_rows(named=True)}
    assert list(row_by_reason) == ["Time limit", "CPU out of memory", "Node failure", "unmatched"]
    limit = row_by_reason["Time limit"]
    limit |= {"rtf_p90_s": round(limit["rtf_p90_s"], 6), "rtf_p95_s": round(limit["rtf_p95_s"], 6)}
    expected = {"trials": 3, "jobs": 2, "users": 2, "n": 3, "rtf_p50_s": 20, "rtf_p90_s": 52, "rtf_p95_s": 56}
    expected |= {"rtf_total_share": 90 / 197, "gpu_none": 0, "gpu_1": 2, "gpu_2_4": 1, "gpu_gt4": 0}
    assert limit == limit | expected | {"rtf_x_demand_share": 265 / 1065}
    oom = row_by_reason["CPU out of memory"]
    blank = dict.fromkeys(("rtf_p50_s", "rtf_total_share", "rtf_x_demand_share"))
    assert oom == oom | blank | {"n": 0, "gpu_none": 1, "note": "no run time is known"}
    notes = [row_by_reason[reason]["note"] for reason in ("Node failure", "unmatched")]
    assert notes == ["no user is known", "no rule matches"]
    total = table.filter(by="all").row(0, named=True)
    assert total == total | {"trials": 6, "trials_share": 1, "rtf_total_share": 1, "users": 3}


RANDOM_ATTEMPTS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from([None, "u", "v"]),
        st.sampled_from(["FAILED", "TIMEOUT", "NODE_FAIL", "?", "", None]),
        st.sampled_from([None, "0:9", "139:0", "1:0"]),
        st.sampled_from([None, "TimeLimit", "KeyError", "xyz"]),
        st.none() | st.integers(0, 10**9),
        st.none() | st.integers(0, 10**7),
    ),
    max_size=12,
)


@given(RANDOM_ATTEMPTS)
def test_every_failed_attempt_has_one_reason_or_counts_as_unmatched(cases):
    names = ["job_id", "user", "state", "exit_code", "failure_reason", "runtime_s", "gpu_milli"]
    rows = trials(attempt=[*range(len(cases))], **{name: [row[i] for row in cases] for i, name in enumerate(names)})
    reasons = classify(rows, TAXONOMY)
    assert reasons.select(*ATTEMPT_COLUMNS).equals(rows)
    assert reasons.select(list(REASONS.columns)).height == len(cases)
    for name in ("domain", "deterministic", "evidence"):
        assert reasons[name].is_null().equals(reasons["reason"].is_null())
    table = taxonomy_table(reasons)
    for kind in ("reason", "domain", "evidence", "deterministic", "all"):
        part = table.filter(pl.col("by") == kind)
        assert part["trials"].sum() == len(cases)
        for share, column in (("rtf_total_share", 5), ("rtf_x_demand_share", 6)):
            assert part[share].sum() == pytest.approx(1) or not sum((row[5] or 0) * (row[column] or 0) for row in cases)
        split = part.select(pl.sum_horizontal("gpu_none", "gpu_1", "gpu_2_4", "gpu_gt4")).to_series()
        assert split.to_list() == part["trials"].to_list()
    lines = unmatched_table(reasons)
    for name, frame in (("taxonomy", table), ("unmatched", lines), ("reasons", reasons.select(*REASONS.columns))):
        CONTRACTS[name].check(frame)
    assert lines["trials"].sum() == reasons["reason"].null_count()
    drawing = CHARTS["failed_attempts_by_reason"]({"taxonomy": table}, Study())
    assert (drawing.empty is None) == bool(cases)


def test_a_sum_beyond_64_bits_is_exact():
    rows = trials(state=["TIMEOUT"] * 3 + ["FAILED"], runtime_s=[3 * 10**9] * 4, gpu_milli=[2 * 10**9] * 4)
    assert taxonomy_table(classify(rows, TAXONOMY)).row(0, named=True)["rtf_x_demand_share"] == 0.75


# Reasons of lost work -------------------------------------------------------------------------------------


def test_reasons_come_back_to_their_jobs_and_attempts():
    jobs = make_jobs(job_id=["7", "7", "8"], task=["1", "2", None], outcome=["failure", "success", "failure"])
    reasons = classify(list_attempts(jobs.with_columns(status_raw=pl.lit("NODE_FAIL"))).filter("failed"), TAXONOMY)
    jobs_with_reasons = add_reasons(jobs, reasons.select(list(REASONS.columns)))
    assert jobs_with_reasons["deterministic"].to_list() == [False, None, False]
    assert jobs_with_reasons.drop("deterministic", "by_user").equals(jobs)
    attempts = make_attempts(("8", "failure"), ("8", "success"), state=["OUT_OF_MEMORY", "COMPLETED"])
    reasons = classify(list_attempts(jobs.tail(1), attempts).filter("failed"), TAXONOMY)
    attempts_with_reasons = add_reasons(attempts, reasons.select(list(REASONS.columns)))
    assert attempts_with_reasons["deterministic"].to_list() == [True, None]


HOSTILE_LINE = 'odd </script><img src=x onerror="alert(1)"> {{< include x >}} `error` [a](b)'


def test_text_of_a_log_or_a_record_is_escaped(tmp_path, classify_tails):
    jobs = make_jobs(job_id=["a", "b"]).with_columns(reason=pl.Series([HOSTILE_LINE, None]))
    reasons, lines, matches = classify_tails({"job_id": "b", "text": HOSTILE_LINE}, "[]", jobs=jobs)
    (tmp_path / "tables").mkdir()
    tables = {"taxonomy": taxonomy_table(reasons), "unmatched": unmatched_table(reasons, matches), "log_tails": lines}
    for name, table in tables.items():
        write_product(table, CONTRACTS[name], str(tmp_path / f"tables/{name}.csv"))
    page_tables = taxonomy_tables(Trace("mine", {"gives": "jobs"}, tmp_path, CONTRACTS))
    html = {name: table.html(f"t1-{name}") for name, table in page_tables.items()}
    assert list(html) == ["reasons", "demand", "domains", "unmatched", "tails"]
    assert html["unmatched"].count("odd &lt;/script&gt;&lt;img src=x") == 2
    assert "<img" not in "".join(html.values())
    summary = summarise_taxonomy(tables["taxonomy"], lines).row(0, named=True)
    assert (summary["trials"], summary["lines"], summary["wrong_lines"]) == (2, 2, 1)

"""The account of training runs: each microsecond in one class, on made-up logs with a known answer."""

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from format_tables import raw_schemas, scan_tables
from study_runs import ROOT
from ttf.analyses.large_runs.measure_training_runs import TRAINING_SUMMARY
from ttf.analyses.large_runs.measure_training_runs.compute import (
    divide_sums,
    jackknife_ratio,
    list_cycles,
    list_interruptions,
    name_restart,
    summarise_runs,
)
from ttf.analyses.large_runs.plan_ettr.compute import replace_habits
from ttf.formats.protocol import Source
from ttf.formats.training_logs.derive import durations
from ttf.formats.training_logs.read import build_readers
from ttf.raw.ingest import ingest
from ttf.raw.node_logs import line_blocks
from ttf.raw.training_logs.event_reader import read_rows
from ttf.raw.training_logs.profiles import Profiles
from ttf.raw.training_logs.recognised_lines import is_training_log
from ttf.records import training_runs
from ttf.records.training_runs import Attempt, find_logs_of_events, name_runs, select_events, tabulate_lines
from ttf.stats.training_time import CLASSES, account_run, find_levels
from ttf.study.configuration.log_profiles import load_log_profiles
from ttf.study.recognition.recognise import recognise
from ttf.study.study import Study

SHIPPED = load_log_profiles(ROOT / "config" / "training_log_profiles.yaml")
PROFILES = Profiles.from_options(SHIPPED)
START = 1_750_000_000


def stamp(second):
    return datetime.fromtimestamp(START + second, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3].replace(".", ",")


def titan(second, text):
    return f"[titan] {stamp(second)} - root - INFO - {text}"


def step(second, number):
    return titan(second, f"step: {number:2}  loss:  2.5  grad_norm: 1.0  memory: 9GiB  tps: 7,265")


def event(minute, kind, number=None):
    time = datetime.fromtimestamp(START + 60 * minute, UTC).isoformat().replace("+00:00", "")
    return f'{{"event_type": "{kind}", "timestamp": "{time}"' + ("" if number is None else f', "step": {number}') + "}"


@pytest.fixture
def account(tmp_path):
    """Return a function from lines, or bytes, of logs to the account of their runs by name; checks its sums."""

    def read(**logs):
        rows = []
        for name, lines in logs.items():
            path = tmp_path / f"{name}.log"
            path.write_bytes(lines if isinstance(lines, bytes) else "\n".join(lines).encode() + b"\n")
            rows += read_rows(path, PROFILES, "UTC")
        table = pl.concat(rows).lazy()
        runs = {name: account_run(run) for name, run in name_runs(find_logs_of_events(select_events(table))).items()}
        for run in runs.values():
            assert sum(run.time_us.values()) == run.wall_us
            assert min(run.time_us.values()) >= 0
            for time in run.attempts:
                attempt = time.attempt
                assert sum(time.time_us.values()) == attempt.end_us - attempt.start_us + attempt.queued_us
        read.lines = dict(tabulate_lines(table).select("code", "rows").iter_rows())
        return list(runs.values())

    return read


def seconds(run):
    return {name: round(time / 1e6, 3) for name, time in run.time_us.items() if time}


def test_googles_example_of_200_minutes(account):
    """Steps 25 to 75 at 2 min; save at 50, crash at 70, then 3 min a step."""
    lines = [event(0, "job_started"), event(0, "checkpoint_load_started"), event(5, "checkpoint_loaded", 25)]
    lines += [event(5 + 2 * (n - 25), "step_completed", n) for n in range(26, 51)]
    lines += [event(55, "checkpoint_save_started", 50), event(60, "checkpoint_saved", 50)]
    lines += [event(60 + 2 * (n - 50), "step_completed", n) for n in range(51, 71)]
    lines += [event(100, "job_terminated"), event(115, "job_started"), event(115, "checkpoint_load_started")]
    lines += [event(120, "checkpoint_loaded", 50)]
    lines += [event(120 + 3 * (n - 50), "step_completed", n) for n in range(51, 76)]
    lines += [event(195, "checkpoint_save_started", 75), event(200, "checkpoint_saved", 75), event(200, "job_ended")]
    (run,) = account(run=lines)
    minutes = {name: time / 60 for name, time in seconds(run).items()}
    assert minutes == {"productive": 100, "restore": 10, "checkpoint": 10, "lost": 40, "slow": 25, "down": 15}
    assert [time.lost_steps for time in run.attempts] == [20, 0]


def test_a_hang_is_stalled_and_a_lasting_change_is_slow(account):
    times = np.cumsum([1.0] * 60 + [1.06] * 60)
    times[30:] += 300
    lines = [titan(0, "Training starts at step 1"), *(step(10 + t, n) for n, t in enumerate(times, 1))]
    (run,) = account(run=[*lines, titan(10 + times[-1] + 2, "Training completed")])
    assert seconds(run) == {"start_up": 10, "productive": 120, "stalled": 300, "slow": 3.6, "shutdown": 2}
    (change,) = run.attempts[0].changes
    assert change[0] == 61


def test_a_larger_batch_is_not_slower(account):
    """The batch grows twice; within the largest one a step takes longer for good from step 181 on."""
    batches = [16] * 60 + [64] * 60 + [256] * 120
    times = [1.0] * 60 + [2.2] * 60 + [5.0] * 60 + [5.5] * 60
    samples, ends = np.cumsum(batches), 10 + np.cumsum(times)
    lines = [f"[{stamp(0)}] [before the start of training step] datetime: {stamp(0)[:19]}"]
    lines += [
        f"[{stamp(end)}] iteration {n}/ 240 | consumed samples: {used} | elapsed time per iteration (s): {time} |"
        for n, (end, used, time) in enumerate(zip(ends, samples, times, strict=True), 1)
    ]
    (run,) = account(run=lines)
    assert run.attempts[0].changes == [(181, 5e6, 5.5e6)]
    assert seconds(run) == {"start_up": 10, "productive": 60 + 132 + 600, "slow": 30}
    assert run.attempts[0].expected_us == 792_000_000


@pytest.mark.parametrize(
    ("line", "time", "kept_steps"),
    [
        ("[{stamp}] iteration {n}/ 50 | elapsed time per iteration (s): 1.0 |", {"productive": 49}, 50),
        ("{n}%|#| {n}/50 [00:{n:02}<00:09, 1.00it/s]", {"productive": 50}, 50),
        ("iteration {n}/ 50 | elapsed time per iteration (s): 1.0 |", {"productive": 45}, 45),
    ],
    ids=["a clock", "a total", "means alone"],
)
def test_steps_without_a_line_took_their_time_where_it_is_known(account, line, time, kept_steps):
    """A step takes a second; steps 31 to 35 of 50 have no line."""
    (run,) = account(run=[line.format(n=n, stamp=stamp(n)) for n in range(1, 51) if not 30 < n <= 35])
    assert seconds(run) == time
    assert run.attempts[0].kept_steps == kept_steps


def test_blocks_change_nothing(account, monkeypatch):
    lines, _ = launch_megatron(0, 0, 200)
    lines += [*(step(10_000 + n, n) for n in range(1, 101)), titan(10_200, "Training completed")]
    whole = account(run=lines)
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(training_runs, "BLOCK_ROWS", 7)
    in_blocks = account(run=lines)
    assert [seconds(run) for run in in_blocks] == [seconds(run) for run in whole]
    assert [run.attempts[0].attempt.steps for run in in_blocks] == [run.attempts[0].attempt.steps for run in whole]


def test_noise_has_no_levels():
    random = np.random.default_rng(7)
    found = [find_levels(np.exp(random.normal(0, 0.05, 300)) * 1e6).max() for _ in range(100)]
    assert sum(level > 0 for level in found) <= 1


def test_the_next_attempt_tells_what_was_lost(account):
    """Resumed from step 20 of 37: the time of steps 21 to 37 is lost, that after it detection."""
    lines = [titan(0, "Starting job: x"), *(step(5 + n, n) for n in range(1, 38))]
    lines += [
        "[rank0]: Traceback (most recent call last):",
        titan(50, "NCCL: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1) ran for 6000 milliseconds"),
        titan(80, "Starting job: x"),
        titan(90, "Loading the checkpoint at step 20"),
        titan(92, "Finished loading the checkpoint in 2.00 seconds."),
        *(step(95 + n, n) for n in range(21, 61)),
    ]
    (run,) = account(run=lines)
    assert seconds(run)["lost"] == 17
    assert seconds(run)["detection"] == 50 - 42
    assert seconds(run)["down"] == 30
    assert seconds(run)["restore"] == 2
    assert run.attempts[0].attempt.error[1:] == ("Watchdog caught collective operation timeout", 6_000_000)
    assert run.attempts[0].lost_steps == 17
    run.attempts[0].attempt.gpus = 720
    assert list_interruptions("run", run)[0]["lost_gpu_hours"] == pytest.approx(3.4)


def launch_megatron(second, first, last):
    """Return the lines of a launch whose steps have no clock, and when it dies."""
    lines = ["[default0]:using world size: 384, data-parallel-size: 8", "time to initialize megatron (seconds): 60.5"]
    lines += [f"[after megatron is initialized] datetime: {stamp(second + 60)[:19]}"]
    if first:
        lines += [
            f" successfully loaded checkpoint from /x at iteration {first}",
            "time (ms) | load-checkpoint: 30000.0",
        ]
        second += 30
    lines += [f"[before the start of training step] datetime: {stamp(second + 60)[:19]}"]
    for number in range(first + 1, last + 1):
        lines += [
            f"[default7]: iteration {number:5}/  1000 | consumed samples: 1 | elapsed time per iteration (s): 10.00 |"
        ]
        if number % 20 == 0:
            lines += [
                f"[default0]: successfully saved checkpoint at iteration {number} to /x",
                "save-checkpoint: 40000.00",
            ]
    lines += ["[default3]:terminate called after throwing an instance of 'c10::CUDAError'"]
    return lines, second + 60 + 10 * (last - first) + 40 * (last // 20 - first // 20)


def test_megatron_with_a_clock_at_its_start_only(account):
    first, end = launch_megatron(0, 0, 55)
    second, _ = launch_megatron(end + 500, 40, 80)
    (run,) = account(run=[*first, *second])
    expected = {"down": 499.5, "start_up": 121, "restore": 30, "productive": 800, "checkpoint": 160, "lost": 150}
    assert seconds(run) == expected
    assert {time.attempt.error[1] for time in run.attempts} == {"CUDAError"}


def test_a_run_after_a_normal_end_is_a_new_one(account):
    lines = [
        *(step(n, n) for n in range(1, 31)),
        titan(31, "Training completed"),
        titan(40, "Training starts at step 1"),
    ]
    runs = account(run=[*lines, *(step(45 + n, n) for n in range(1, 31))])
    assert len(runs) == 2
    assert not any(time.lost_steps for run in runs for time in run.attempts)


def test_copies_of_ranks_and_interleaved_lines(account):
    lines = [titan(0, "Training starts at step 1")] * 8
    lines += [line for n in range(1, 31) for line in [step(n, n), step(n + 0.2, n)]]
    lines[30:34] = [lines[32], lines[33], lines[30], lines[31]]
    (run,) = account(run=lines)
    assert len(run.attempts) == 1
    assert len(run.attempts[0].attempt.steps) >= 29


def test_mlperf_in_a_log_with_a_clock_of_another_zone(account):
    def line(second, key, **metadata):
        values = "".join(f', "{name}": {value}' for name, value in metadata.items())
        return f':::MLLOG {{"time_ms": {1000 * (START + second)}, "key": "{key}", "metadata": {{"lineno": 1{values}}}}}'

    lines = [line(0, "init_start"), line(10, "run_start"), f"{stamp(8 * 3600)} train INFO: began"]
    lines += [line(10 + 5 * n, "train_loss", step_num=10 * n) for n in range(1, 31)]
    (run,) = account(run=[*lines, line(160, "eval_start"), line(165, "eval_stop"), f"{stamp(8 * 3600)} train INFO: x"])
    assert seconds(run) == {"start_up": 10, "productive": 150, "evaluation": 5}


def test_saves_in_the_background_do_not_block(account):
    lines = [step(n, n) for n in range(1, 11)] + [titan(10.5, "Saving the checkpoint.")]
    lines += [step(n, n) for n in range(11, 31)] + [titan(31, "Finished saving the checkpoint in 20.5 seconds.")]
    (run,) = account(run=[*lines, *(step(n, n) for n in range(32, 41))])
    assert "checkpoint" not in seconds(run)


def test_clocks_that_go_back(account):
    back = [step(n if n < 20 else n - 3600, n) for n in range(1, 41)]
    (run,) = account(run=back)
    assert any("goes back" in reason for reason in run.reasons)
    assert run.wall_us == 38 * 10**6


def test_logs_of_one_run_and_of_several_ranks(account):
    first = [titan(0, "Starting job: x"), *(step(n, n) for n in range(1, 31))]
    second = [titan(60, "Starting job: x"), *(step(60 + n, 20 + n) for n in range(1, 31))]
    (run,) = account(train_101=first, train_102=second)
    assert [time.lost_steps for time in run.attempts] == [10, 0]
    assert len(account(rank_0=first, rank_1=[*first, step(31, 31)])) == 1


def test_a_job_submitted_during_the_one_before_is_queued_from_its_end():
    first = Attempt(0, end_us=30, record={"state": "FAILED", "end": 30})
    (run,) = name_runs({"train_1": [first], "train_2": [Attempt(40, end_us=70, queued_us=40)]}).values()
    assert account_run(run).time_us == dict.fromkeys(CLASSES, 0) | {"queued": 10, "start_up": 60}


def test_a_table_of_steps(account):
    rows = ["_step,_timestamp,loss", *(f"{n},{START + 2 * n}.5,2.1" for n in range(1, 31)), "x,y,z"]
    assert is_training_log("\n".join(rows).encode())
    (run,) = account(run=rows)
    assert seconds(run) == {"productive": 58}
    assert account.lines["not_read"] == 1
    # A quoted cell may hold commas and quotes.
    rows = ["note,_step,_timestamp", *(f'"a ""b"", {n - 1}",{n},{START + 2 * n}.5' for n in range(1, 31))]
    (run,) = account(run=rows)
    assert seconds(run) == {"productive": 58} and run.attempts[0].attempt.steps[-1] == 30


def test_any_bytes_are_accounted_for(account):
    text = "\n".join([*(step(n, n) for n in range(1, 31)), "loss \u6f22\u5b57", "step: 31  lo"]).encode()
    data = text.replace(b"grad_norm", b"\x00\x00grad_norm", 1) + b"\xff\xfe\r\n"
    (run,) = account(run=data)
    assert account.lines | {"lines": 32, "nul": 1, "undecodable": 1, "step": 30} == account.lines
    assert len(run.attempts[0].attempt.steps) == 30


def test_random_logs_add_up(account):
    """Any order of events gives classes that are not negative and add up; the fixture checks it."""
    random = np.random.default_rng(11)
    texts = ["Starting job: x", "Training starts at step {}", "Saving the checkpoint.", "Training completed"]
    texts += ["Finished saving the checkpoint in {} seconds.", "Loading the checkpoint at step {}"]
    texts += ["Finished loading the checkpoint in {} seconds.", "validate step: {} loss: 2"]
    for number in range(40):
        lines, second, current = [], 0.0, 0
        for _ in range(60):
            second += float(random.exponential(20)) * (random.random() < 0.9)
            if random.random() < 0.6:
                current = max(0, current + int(random.integers(-2, 6)))
                lines.append(step(second, current))
            elif random.random() < 0.2:
                lines.append("Traceback (most recent call last):")
            else:
                lines.append(titan(second, str(random.choice(texts)).format(int(random.integers(1, 40)))))
        account(**{f"run{number}": lines})


def test_an_own_profile_is_tried_first(tmp_path):
    own = tmp_path / "mine.yaml"
    own.write_text("profiles:\n  mine:\n    step: ['did (?P<step>[0-9]+) in (?P<one_s>[0-9.]+)']\n")
    profiles = load_log_profiles(ROOT / "config" / "training_log_profiles.yaml", str(own))
    assert next(iter(profiles["profiles"])) == "mine"
    log = tmp_path / "x.log"
    log.write_text("".join(f"did {n} in 2.5\n" for n in range(1, 31)))
    rows = pl.concat(read_rows(log, Profiles.from_options(profiles), "UTC")).lazy()
    (run,) = name_runs(find_logs_of_events(select_events(rows))).values()
    assert account_run(run).time_us == dict.fromkeys(CLASSES, 0) | {"productive": 75_000_000}


def test_plans_take_what_logs_measure():
    settings = {"checkpoint_intervals_s": [3600, 600], "checkpoint_write_s": 300, "restart_s": 300, "productive_s": 9}
    row = {"runs": 3, "checkpoint_interval_s": 1800.4, "checkpoint_write_s": 45.0}
    changed, measured = replace_habits(settings, {"training_summary": TRAINING_SUMMARY.frame([row])})
    assert changed == settings | {"checkpoint_intervals_s": [1800, 3600, 600], "checkpoint_write_s": 45}
    assert measured == {"checkpoint interval": 3, "checkpoint write": 3}
    assert replace_habits(settings, {}) == (settings, {})


def test_shipped_patterns_compile_and_name_known_groups():
    for profile in PROFILES:
        for pattern in profile.patterns:
            assert not pl.Series([""]).str.contains(pattern.regex).item()


def test_the_jackknife_is_that_of_a_mean_for_equal_wholes():
    parts = np.array([1.0, 2.0, 3.0, 5.0])
    low, high = jackknife_ratio(parts, np.full(4, 10.0))
    margin = 3.182446 * parts.std(ddof=1) / 2 / 10
    assert (low, high) == pytest.approx((0.275 - margin, 0.275 + margin), abs=1e-6)
    assert jackknife_ratio(np.array([*parts, 0.0]), np.array([10.0] * 4 + [0])) == pytest.approx((low, high))
    assert jackknife_ratio(10 * parts, np.full(4, 10.0))[1] == pytest.approx(10 * high)
    assert jackknife_ratio(parts[:3], np.full(3, 10.0)) is None


def write_launches(launches):
    """Return the lines of launches of 20 steps, with a save of `save` s and a start of `start` s each; all fail."""
    lines, second = [], 0
    for number, (start, save) in enumerate(launches):
        lines.append(titan(second, "Starting job: x"))
        second += start
        for _ in range(20) if start else ():
            second += 1
            lines.append(step(second, len(lines) + 20 * number))
        lines.append(titan(second, "Saving the checkpoint."))
        second += save
        lines.append(titan(second, f"Finished saving the checkpoint in {save:.2f} seconds."))
        lines.append("CUDA error: x")
        second += 60
    return lines


def summarise(runs):
    return summarise_runs({f"run{number}": run for number, run in enumerate(runs)})


def test_intervals_by_run_and_by_cycle(account):
    runs = account(
        **{f"run-{name}": write_launches([(30, save)] * 2) for name, save in zip("abcd", (4, 5, 6, 9), strict=True)}
    )
    row = summarise(runs)
    assert (row["clusters"], row["cluster_by"]) == (4, "run")
    assert row["checkpoint_write_s"] == pytest.approx(6)
    margin = 3.182446 * np.std([4, 5, 6, 9], ddof=1) / 2
    assert row["checkpoint_write_s_ci_low_clustered"] == pytest.approx(6 - margin, abs=1e-6)
    assert row["checkpoint_write_s_ci_high_clustered"] == pytest.approx(6 + margin, abs=1e-6)
    # Twelve launches of one run; the third one does no step, so it belongs to the cycle of the second.
    launches = [(30, 4), (30, 5)] * 6
    launches[2] = (0, 4)
    row = summarise(account(run=write_launches(launches)))
    assert (row["clusters"], row["cluster_by"]) == (11, "cycle")
    assert row["checkpoint_write_s_ci_low_clustered"] < 4.5 < row["checkpoint_write_s_ci_high_clustered"]
    row = summarise(account(run=write_launches(launches[:5])))
    assert "checkpoint_write_s_ci_low_clustered" not in row
    assert "no interval" in row["reason"]


def test_without_time_at_work_no_interval_is_best():
    """By the clock of its job, which failed within a second, the whole log lies before the start."""
    record = {"state": "FAILED", "start": 10, "end": 10, "cause": None}
    run = account_run([Attempt(10, end_us=10, marks=[(0, 4, "checkpoint")], record=record)])
    row = divide_sums(pl.DataFrame(list_cycles("run", run)))
    assert row["checkpoint_write_s"] > 0 and "optimal_interval_s" not in row


def test_kinds_of_restarts():
    def attempt(job=None, *nodes):
        record = {"job_id": job, "nodes": list(nodes), "state": "FAILED", "end": 1, "cause": None} if job else {}
        return Attempt(0, record=record)

    first = attempt("1", "n1", "n2")
    laters = [attempt("1", "n2", "n1"), attempt("1", "n1", "n3"), attempt("2", "n4"), attempt("2"), attempt()]
    names = [name_restart(first, later) for later in laters]
    assert names[:3] == ["requeue, same nodes", "requeue, other nodes", "resubmission, other nodes"]
    assert names[3:] == ["resubmission", "within the job"]
    assert name_restart(attempt(), first) is None


def test_a_node_names_the_cause():
    """The code of a node's log or event counts before the state, and this before the words of the log."""
    ended = {"end": 1, "cause": "XID 79", "state": "FAILED"}
    attempt = Attempt(0, error=(0, "Traceback", 0), record=ended)
    assert attempt.cause == "XID 79"
    attempt.record = ended | {"cause": None}
    assert attempt.cause == "Traceback"
    attempt.record = ended | {"cause": "NODE_FAIL", "state": "NODE_FAIL"}
    assert attempt.cause == "NODE_FAIL"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "trace"
    path.mkdir()
    (path / "train.log").write_text("".join(step(n, n) + "\n" for n in range(1, 31)))
    return path


def test_a_log_alone_and_a_folder_of_logs_are_a_trace(folder):
    assert recognise(folder / "train.log").entry["training_logs"] == [f"{folder}/train.log"]
    match = recognise(folder)
    assert match.entry == {"format": "training_logs", "folder": str(folder)}
    assert "logs of training runs: train.log" in match.explanation
    study = Study([("my.yaml", {"study": ["t"], "registry": {"t": match.entry}})])
    trace = study.traces["t"]
    assert {"training_events", "durations"} <= trace.products
    assert trace.find_rule_inputs("derive_training_events") == {"raw": "results/t/raw"}
    assert study.has_analysis("t", "measure_training_runs")


def test_logs_beside_dumps_belong_to_them(folder):
    (folder / "jobs.txt").write_text("JobIDRaw|State|Start|End\n1|FAILED|1740816000|1740816100\n")
    match = recognise(folder)
    assert match.format == "sacct"
    assert match.entry["training_logs"] == [f"{folder}/train.log"]
    assert "Logs of training runs: train.log." in match.explanation


def test_each_attempt_is_a_duration(folder, tmp_path):
    lines = [*(step(n, n) for n in range(1, 31)), "Traceback (most recent call last):", titan(50, "Starting job: x")]
    (folder / "train.log").write_text("\n".join([*lines, *(step(60 + n, n) for n in range(21, 41))]) + "\n")
    (tmp_path / "raw").mkdir()
    readers = build_readers({"training_logs": {"profiles": SHIPPED, "zone": "UTC"}})
    files = {"logs": [folder / "train.log"]}
    account, _ = ingest(files, raw_schemas("training_logs"), tmp_path / "raw", 0.01, readers)
    assert account.row(0)[1:] == (52, 52, 0)
    periods = durations(Source(scan_tables(tmp_path / "raw", "logs")))
    assert periods.select("event", "duration_s", "framework").rows() == [
        ("failure", 29, "torchtitan"),
        (None, 50, "torchtitan"),
    ]


def test_what_is_no_training_log():
    assert not is_training_log(b"JobIDRaw|State|Start|End\n1|FAILED|1740816000|1740816100\n")
    assert not is_training_log(b"2025-03-01T08:00:00+0000 n1 kernel: NVRM: Xid (PCI:0000:05:00): 79, GPU\n" * 3)
    assert not is_training_log(b"job,start,end,state\n1,2,3,ok\n")

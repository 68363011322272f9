"""Ctrl-C, SIGTERM, SIGHUP and Ctrl-Z: one sentence, the exit status of a stop, no remaining process."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from faults.stopping import heard
from study_runs import ROOT, environment, ttf_command
from ttf.engine.process.stopping import WORDS

START = "import os, signal, subprocess, sys, time; from ttf.engine.process.stopping import *; run_in_child()\n"
# The process prints three numbers: the watcher, the watched process, and its child.
CHILD = (
    "child = subprocess.Popen([sys.executable, '-c', {!r}]); print(os.getppid(), os.getpid(), child.pid, flush=True)\n"
)
SLEEP = "time.sleep(60)"
DEAF = "import signal, time; signal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN); time.sleep(60)"
RUN = f"{START}{CHILD.format('import time; time.sleep(60)')}{SLEEP}"


def start_process(code, *command, **options):
    """Start this code or command; return the process and the process numbers that it prints."""
    arguments = command if code is None else (*command, sys.executable, "-c", code)
    env = environment() | {"PYTHONPATH": str(ROOT / "scripts")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(arguments, env=env, start_new_session=True, preexec_fn=heard, **pipes, **options)
    return process, [int(number) for number in process.stdout.readline().split()]


def wait_for_end(processes, timeout_s=10):
    """Return the processes that have not ended after `timeout_s`; zombies have ended."""
    deadline = time.monotonic() + timeout_s
    while (
        running := [process for process in processes if process_state(process) != psutil.STATUS_ZOMBIE]
    ) and time.monotonic() < deadline:
        time.sleep(0.01)
    return running


def process_state(process):
    try:
        return psutil.Process(process).status()
    except psutil.NoSuchProcess:
        return psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["alone", "group"])
@pytest.mark.parametrize(("request_", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 143)])
def test_a_stop_is_one_sentence_and_leaves_no_process(request_, status, send):
    process, processes = start_process(RUN)
    send(process.pid, getattr(signal, request_))
    assert process.communicate(timeout=10)[1] == f"{WORDS}\n"
    assert process.returncode == status
    assert not wait_for_end(processes, 1)


def test_ctrl_c_twice_ends_a_deaf_job_at_once():
    process, processes = start_process(f"{START}{CHILD.format(DEAF)}{SLEEP}")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.7)
    assert process.poll() is None, "the job is given some seconds"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[1] == f"{WORDS}\n"
    assert time.monotonic() - start < 1
    assert process.returncode == 130
    assert not wait_for_end(processes, 1)


def test_a_signal_that_nohup_ignores_stays_ignored():
    process, processes = start_process(RUN, "nohup")
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None and wait_for_end(processes, 0) == processes
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == 143


@pytest.mark.parametrize(("end", "status"), [("", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137)])
def test_the_end_of_the_child_is_passed_on_and_nothing_outlives_it(end, status):
    process, processes = start_process(f"{START}{CHILD.format(DEAF)}{end}")
    process.communicate(timeout=10)
    assert process.returncode == status
    assert not wait_for_end(processes, 1)


# Snakemake ends its jobs after an error, and ignores the SIGTERM that follows a tenth of a second later.
ERROR = "signal.signal(15, signal.SIG_IGN); raise_on_interrupt()\n"
ERROR += f"try:\n print(os.getpid(), flush=True)\n {SLEEP}\nexcept KeyboardInterrupt: print(1)"


@pytest.mark.parametrize(
    ("code", "end"),
    [("ignore_requests(); print(os.getpid(), flush=True); time.sleep(0.5)", ("", "", 0)), (ERROR, ("1\n", "", 0))],
    ids=["nothing, once all is done", "an error, once the program says so"],
)
def test_the_program_chooses_the_effect_of_ctrl_c(code, end):
    process, _ = start_process(START + code)
    process.send_signal(signal.SIGINT)
    assert (*process.communicate(timeout=10), process.returncode) == end


def test_a_program_ends_with_the_process_that_watches_it():
    process, processes = start_process(f"{START}print(os.getppid(), os.getpid(), flush=True); {SLEEP}")
    process.kill()
    process.communicate(timeout=10)
    assert not wait_for_end(processes)


def test_ctrl_z_pauses_all_processes_until_sigcont():
    process, processes = start_process(RUN)

    def list_paused():
        return [process_state(number) == psutil.STATUS_STOPPED for number in processes]

    for request, expected in ((signal.SIGTSTP, [True] * 3), (signal.SIGCONT, [False] * 3)):
        process.send_signal(request)
        deadline = time.monotonic() + 5
        while list_paused() != expected and time.monotonic() < deadline:
            time.sleep(0.01)
        assert list_paused() == expected
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert not wait_for_end(processes)


@pytest.mark.parametrize(("request_", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_job_removes_its_temporary_files(tmp_path, request_, status):
    code = "import os, tempfile, time; from ttf.engine.process.stopping import *; end_job_on_request()\n"
    code += f"folder = tempfile.TemporaryDirectory(dir={str(tmp_path)!r}); print(os.getpid(), flush=True); {SLEEP}"
    job, _ = start_process(code)
    assert list(tmp_path.iterdir())
    job.send_signal(request_)
    assert job.communicate(timeout=10) == ("", "")
    assert job.returncode == status
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("request_", ["SIGTERM", "SIGKILL"])
def test_a_signal_to_make_alone_stops_its_child(tmp_path, request_):
    (tmp_path / "run.py").write_text(RUN)
    (tmp_path / "Makefile").write_text(f"run:\n\t@exec {sys.executable} run.py\n")
    make, processes = start_process(None, "make", cwd=tmp_path)
    make.send_signal(getattr(signal, request_))
    assert make.communicate(timeout=10)[1].count(WORDS) == 1
    assert not wait_for_end(processes)


@pytest.mark.parametrize("delay_s", [0.1, 1])
def test_a_start_stopped_while_python_imports_shows_no_traceback(tmp_path, delay_s):
    command = ttf_command(ROOT, "report", "--trace=sample", "--cores=1")
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    # The watcher works once a child exists, which is before imports that take a second.
    while not psutil.Process(process.pid).children():
        time.sleep(0.01)
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=10)[1].splitlines()[-1:] == [WORDS]
    assert process.returncode == 130

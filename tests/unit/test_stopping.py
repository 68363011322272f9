"""What Ctrl-C, SIGTERM, SIGHUP and Ctrl-Z do: one sentence, the exit status of a stop, no process left."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from faults.stopping import heard
from study_runs import ROOT, environment
from ttf.engine.process.stopping import WORDS

START = "import os, signal, subprocess, sys, time; from ttf.engine.process.stopping import *; run_apart()\n"
# Each process is named on a line of its own: the one that watches, the one that it watches, and what that has started.
CHILD = (
    "child = subprocess.Popen([sys.executable, '-c', {!r}]); print(os.getppid(), os.getpid(), child.pid, flush=True)\n"
)
WAITS = "time.sleep(60)"
DEAF = "import signal, time; signal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN); time.sleep(60)"
RUN = f"{START}{CHILD.format('import time; time.sleep(60)')}{WAITS}"


def started(code, *command, **more):
    """A process of this code, or of the command, and the processes that it has printed the numbers of."""
    words = command if code is None else (*command, sys.executable, "-c", code)
    own = environment() | {"PYTHONPATH": str(ROOT / "scripts")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(words, env=own, start_new_session=True, preexec_fn=heard, **pipes, **more)
    return process, [int(number) for number in process.stdout.readline().split()]


def left(processes, within_s=10):
    """Those that have not ended by then; one that has may wait for someone to ask how."""
    until = time.monotonic() + within_s
    while (
        still := [each for each in processes if process_state(each) != psutil.STATUS_ZOMBIE]
    ) and time.monotonic() < until:
        time.sleep(0.01)
    return still


def process_state(process):
    try:
        return psutil.Process(process).status()
    except psutil.NoSuchProcess:
        return psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["alone", "group"])
@pytest.mark.parametrize(("request_", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 143)])
def test_a_stop_is_one_sentence_and_leaves_no_process(request_, status, send):
    process, processes = started(RUN)
    send(process.pid, getattr(signal, request_))
    assert process.communicate(timeout=10)[1] == f"{WORDS}\n"
    assert process.returncode == status
    assert not left(processes, 1)


def test_ctrl_c_twice_ends_a_job_that_does_not_listen_at_once():
    process, processes = started(f"{START}{CHILD.format(DEAF)}{WAITS}")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.7)
    assert process.poll() is None, "the job is given some seconds"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[1] == f"{WORDS}\n"
    assert time.monotonic() - start < 1
    assert process.returncode == 130
    assert not left(processes, 1)


def test_what_nohup_ignores_stays_ignored():
    process, processes = started(RUN, "nohup")
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert process.poll() is None and left(processes, 0) == processes
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == 143


@pytest.mark.parametrize(("end", "status"), [("", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137)])
def test_the_end_of_the_child_is_passed_on_and_nothing_outlives_it(end, status):
    process, processes = started(f"{START}{CHILD.format(DEAF)}{end}")
    process.communicate(timeout=10)
    assert process.returncode == status
    assert not left(processes, 1)


# Of an error Snakemake ends its jobs.
ERROR = f"interrupts_are_errors(); print(os.getpid(), flush=True)\ntry: {WAITS}\nexcept KeyboardInterrupt: print(1)"


@pytest.mark.parametrize(
    ("code", "end"),
    [("ignore_requests(); print(os.getpid(), flush=True); time.sleep(0.5)", ("", "", 0)), (ERROR, ("1\n", "", 0))],
    ids=["nothing, once all is done", "an error, once the program says so"],
)
def test_what_ctrl_c_is(code, end):
    process, _ = started(START + code)
    process.send_signal(signal.SIGINT)
    assert (*process.communicate(timeout=10), process.returncode) == end


def test_a_program_ends_with_the_process_that_watches_it():
    process, processes = started(f"{START}print(os.getppid(), os.getpid(), flush=True); {WAITS}")
    process.kill()
    process.communicate(timeout=10)
    assert not left(processes)


def test_ctrl_z_pauses_all_until_they_are_let_go_on():
    process, processes = started(RUN)

    def paused():
        return [process_state(other) == psutil.STATUS_STOPPED for other in processes]

    for request, expected in ((signal.SIGTSTP, [True] * 3), (signal.SIGCONT, [False] * 3)):
        process.send_signal(request)
        deadline = time.monotonic() + 5
        while paused() != expected and time.monotonic() < deadline:
            time.sleep(0.01)
        assert paused() == expected
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert not left(processes)


@pytest.mark.parametrize(("request_", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_job_removes_its_temporary_files(tmp_path, request_, status):
    code = "import os, tempfile, time; from ttf.engine.process.stopping import *; end_job_on_request()\n"
    code += f"folder = tempfile.TemporaryDirectory(dir={str(tmp_path)!r}); print(os.getpid(), flush=True); {WAITS}"
    job, _ = started(code)
    assert list(tmp_path.iterdir())
    job.send_signal(request_)
    assert job.communicate(timeout=10) == ("", "")
    assert job.returncode == status
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("request_", ["SIGTERM", "SIGKILL"])
def test_make_asked_alone_stops_what_it_runs(tmp_path, request_):
    (tmp_path / "run.py").write_text(RUN)
    (tmp_path / "Makefile").write_text(f"run:\n\t@exec {sys.executable} run.py\n")
    make, processes = started(None, "make", cwd=tmp_path)
    make.send_signal(getattr(signal, request_))
    assert make.communicate(timeout=10)[1].count(WORDS) == 1
    assert not left(processes)


@pytest.mark.parametrize("after_s", [0.1, 1])
def test_a_start_stopped_while_python_imports_shows_no_traceback(tmp_path, after_s):
    command = [sys.executable, ROOT / "scripts/run_study.py", "--trace=sample", "-s", ROOT / "Snakefile", "--cores=1"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    # It watches as soon as there is another process, which is before the imports that take a second.
    while not psutil.Process(process.pid).children():
        time.sleep(0.01)
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=10)[1].splitlines()[-1:] == [WORDS]
    assert process.returncode == 130

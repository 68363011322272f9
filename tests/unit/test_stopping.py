"""What Ctrl-C, SIGTERM and SIGHUP do: one sentence, the exit status of a stop, no process left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from faults.stopping import heard
from study_runs import ROOT, environment
from ttf import stopping
from ttf.stopping import RUN, WORDS

START = "import os, signal, subprocess, sys, time; from ttf.stopping import *; stop_on_request()\n"
CHILD = "child = subprocess.Popen([sys.executable, '-c', {!r}]); print(child.pid, flush=True); {}"
WAITS = "import time; time.sleep(60)"
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"


def started(code, **more):
    """A process of this code, once it has printed a line; (process, line)."""
    kept = {name: value for name, value in os.environ.items() if name != RUN}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=kept | {"PYTHONPATH": str(ROOT / "scripts")} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heard,
    )
    return process, process.stdout.readline().strip()


def is_left(pid):
    number = int(pid)
    try:
        return psutil.Process(number).status() != "zombie"
    except (psutil.Error, ValueError):  # it ends while it is looked at
        return False


@pytest.mark.parametrize(("request_", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 143)])
def test_a_stop_is_one_sentence_and_leaves_no_process(request_, status):
    process, child = started(START + CHILD.format(WAITS, "time.sleep(60)"))
    process.send_signal(getattr(signal, request_))
    assert process.communicate(timeout=10)[1] == f"{WORDS}\n"
    assert process.returncode == status
    assert not is_left(child)


def test_ctrl_c_twice_ends_a_job_that_does_not_listen_at_once():
    process, child = started(START + CHILD.format(DEAF, "time.sleep(60)"))
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.7)
    assert process.poll() is None, "the job is given some seconds"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[1] == f"{WORDS}\n"
    assert time.monotonic() - start < 1
    assert process.returncode == 130
    assert not is_left(child)


def test_what_nohup_shuts_off_stays_off():
    code = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{START}print(1, flush=True); time.sleep(60)"
    process, _ = started(code)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.1)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == 143


def test_a_request_after_the_end_changes_nothing():
    process, _ = started(f"{START}no_more(); print(1, flush=True); time.sleep(0.3)")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[1] == ""
    assert process.returncode == 0


def test_a_job_removes_its_temporary_files_and_ends_with_the_run(tmp_path):
    run = subprocess.Popen(["sleep", "60"])
    code = "import tempfile, time; from ttf.stopping import *; end_with_the_run()\n"
    code += f"folder = tempfile.TemporaryDirectory(dir={str(tmp_path)!r}); print(1, flush=True); time.sleep(60)"
    job, _ = started(code, **{RUN: str(run.pid)})
    assert list(tmp_path.iterdir())
    run.kill()
    run.wait()
    assert job.communicate(timeout=10) == ("", "")
    assert job.returncode == 143
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells of make by /proc")
@pytest.mark.parametrize("request_", ["SIGINT", "SIGKILL"])
def test_make_asked_alone_stops_what_it_runs(tmp_path, request_):
    script = tmp_path / "run.py"
    script.write_text(f"{START}print(os.getpid(), flush=True); time.sleep(60)")
    line = f"trap '' INT HUP TERM; TTF_MAKE=$$PPID exec {sys.executable} {script}"
    (tmp_path / "Makefile").write_text(f"run:\n\t@{line}\n")
    own = environment() | {"PYTHONPATH": str(ROOT / "scripts")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    make = subprocess.Popen(["make"], cwd=tmp_path, env=own, text=True, start_new_session=True, **pipes)
    pid = make.stdout.readline()
    make.send_signal(getattr(signal, request_))
    assert make.communicate(timeout=10)[1].count(WORDS) == 1
    assert not is_left(pid)


def test_make_killed_before_python_has_started_stops_what_it_runs():
    make = subprocess.Popen(["true"])
    make.wait()
    process, _ = started(f"{START}print(1, flush=True); time.sleep(60)", TTF_MAKE=str(make.pid))
    assert process.communicate(timeout=10)[1] == f"{WORDS}\n"
    assert process.returncode == 143


def test_make_hears_of_the_request_before_the_end_of_what_it_runs(monkeypatch):
    """Else it waits for a process that is gone already, and tells of that as an error, with exit 2."""
    heard = iter([[], [], [signal.SIGINT]])
    monkeypatch.setattr(stopping, "_make", os.getppid())
    monkeypatch.setattr(stopping, "_heard_by_make", lambda: next(heard))
    stopping._let_make_hear(within_s=60)
    assert not list(heard)


def test_a_start_stopped_while_python_imports_shows_no_traceback(tmp_path):
    command = [
        sys.executable,
        ROOT / "scripts/run_study.py",
        "--trace=sample",
        "-s",
        ROOT / "Snakefile",
        "--cores",
        "1",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    # As soon as it listens, which is before the imports that take a second.
    while not stopping._mask(process.pid, "SigCgt") & stopping._bit(signal.SIGTERM):
        time.sleep(0.01)
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=10)[1] == f"{WORDS}\n"
    assert process.returncode == 130

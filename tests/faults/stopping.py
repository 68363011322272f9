"""Kill or stop runs at seeded moments, then run the same command again.

`cases(seed, count)` gives reproducible chains: a study in an empty folder, interrupted INTERRUPTIONS times and then
completed. `judge` checks that every stop is reported once, with the right exit status and without remaining processes,
and that the products have the bytes of an undisturbed study.
"""

import functools
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import yaml
from faults.verdict import Verdict
from study_runs import CHECKOUT, ROOT, Checkout, environment, pods, ttf_command, write_pods
from ttf.engine.process.stopping import REQUESTS, WORDS

INTERRUPTIONS = 10
# Seconds from the start of a command; planning takes the first ones.
LATEST_S = 12.0
# A stop takes at most about 7 s on an idle machine.
PATIENCE_S = 40.0
_WAYS = [
    "SIGINT group",
    "SIGINT alone",
    "SIGTERM group",
    "SIGTERM alone",
    "SIGHUP group",
    "SIGKILL group",
    "SIGKILL alone",
    "SIGKILL all",
]
# A terminal sends this signal to the group; make does not forward it.
_NOT_TO_MAKE = "SIGINT alone"
_STATUS = {"SIGINT": {130, -2}, "SIGTERM": {143, -15}, "SIGHUP": {143, -1}}


def cases(seed: int, count: int) -> Iterator[tuple]:
    for number in range(count):
        yield "stop", seed, number


def judge(case: tuple) -> Verdict:
    _, seed, number = case
    folder = Path(tempfile.mkdtemp(prefix="ttf-stop-"))
    try:
        fault = _chain(folder, random.Random(f"stop {seed} {number}"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    answer = "fault" if fault else "accepted"
    return Verdict("stop", f"stopping.judge({case!r})", answer, fault, tried=INTERRUPTIONS)


def _chain(folder: Path, chance: random.Random) -> str:
    """Return the shortcoming of a study that is interrupted and then completed, or ""."""
    command = prepared(folder, by_make=chance.random() < 0.5)
    ways = [way for way in _WAYS if command[0] != "make" or way != _NOT_TO_MAKE]
    for _ in range(INTERRUPTIONS):
        # Half of the stops hit imports and planning, which are a small part of a large study.
        after_s = chance.uniform(0, 3.5 if chance.random() < 0.5 else LATEST_S)
        if fault := interrupted(command, folder, *chance.choice(ways).split(), after_s):
            return fault
    process = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    if process.returncode:
        return f"rerun: exit {process.returncode}: {process.stderr[-1500:]}"
    differ = {file for file, _ in set(undisturbed().items()) ^ set(Checkout(folder).hashes().items())}
    return f"bytes: {', '.join(sorted(differ)[:10])} differ from an undisturbed run" if differ else ""


def interrupted(command: list[str], folder: Path, request: str, whom: str, after_s: float) -> str:
    """Send the request to `alone`, `group` or `all` after the delay; return the shortcoming of the run."""
    description = f"{request} to {'' if whom == 'alone' else f'{whom} of '}{command[0]} after {after_s:.2f} s"
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=heard,
        )
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            if whom == "all":
                _end(process.pid)
            else:
                (os.killpg if whom == "group" else os.kill)(process.pid, getattr(signal, request))
        try:
            status = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            remaining = _wait_for_processes(process.pid, 0)
            _end(process.pid)
            return f"hang: {description}: still there after {PATIENCE_S:.0f} s: {remaining[:5]}"
        remaining = _wait_for_processes(process.pid)
        output.seek(0)
        text = output.read()
    if remaining:
        _end(process.pid)
        return f"processes: {description}: left {remaining[:3]}"
    # Until Python has started, which takes longer on a busy machine, no process can report the stop.
    is_early = after_s <= 0.5 * max(os.getloadavg()[0], 1)
    if ("Traceback" in text and not (is_early and "KeyboardInterrupt" in text)) or "\nerror" in text:
        return f"traceback: {description}: {text[-1500:]}"
    over = status == 0 or "\nThe report: " in text or "Nothing to do" in text
    if request == "SIGKILL" or over:
        return ""
    if status not in _STATUS[request]:
        return f"status: {description}: exit {status}: {text[-500:]}"
    if text.count(WORDS) != 1 and not is_early:
        return f"words: {description}: said {text.count(WORDS)} times: {text[-500:]}"
    return ""


def heard() -> None:
    """Restore the signals in the child, since `nohup` or `&` may ignore them for the tests."""
    for request in REQUESTS:
        signal.signal(request, signal.SIG_DFL)


@functools.cache
def undisturbed() -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="ttf-stop-") as name:
        folder = Path(name)
        subprocess.run(prepared(folder, by_make=False), cwd=folder, env=environment(), capture_output=True, check=True)
        return Checkout(folder).hashes()


def prepared(folder: Path, by_make: bool) -> list[str]:
    """Link the checkout into the folder and return the command that makes the study there."""
    for name in (*CHECKOUT, "Makefile", "tools", "locks", ".venv"):
        (folder / name).symlink_to(ROOT / name)
    config = write_pods(Checkout(folder), pods())
    (folder / "my.yaml").write_text(yaml.safe_dump(config))
    if by_make:
        return ["make", "-o", ".venv/study.lock", "report", "CONFIG=my.yaml"]
    return ttf_command(folder, "report", "--config=my.yaml", "--cores=1")


def _wait_for_processes(session: int, timeout_s: float = 20.0) -> list[str]:
    deadline = time.monotonic() + timeout_s
    while (remaining := [_named(process) for process in _session_processes(session)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return remaining


def _session_processes(session: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != "zombie":
                yield process
        except (psutil.Error, ProcessLookupError):
            continue


def _named(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200]
    except psutil.Error:
        return str(process.pid)


def _end(session: int) -> None:
    for process in _session_processes(session):
        process.kill()

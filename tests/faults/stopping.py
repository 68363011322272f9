"""Runs that are killed or asked to stop at seeded moments, and what the same command makes of them afterwards.

`cases(seed, count)` gives chains, the same for the same seed: a study in an empty folder, interrupted INTERRUPTIONS
times and then left alone. `judge` says whether every stop was told once, with the right exit status and no process
left, and whether the products have the bytes of a study that nobody disturbed.
"""

import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import yaml
from faults.verdict import Verdict
from study_runs import CHECKOUT, ROOT, Checkout, environment, pods, write_pods
from ttf.engine.process.stopping import REQUESTS, WORDS

INTERRUPTIONS = 10
# From the start of a command; planning takes the first seconds.
LATEST_S = 12.0
# A stop takes some 7 s at most; on a machine that is busy with other things longer.
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
# Which a terminal sends to the group, and make does not pass on.
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
    """What fell short of a study that is interrupted and then left alone; "" if nothing did."""
    command = prepared(folder, by_make=chance.random() < 0.5)
    ways = [way for way in _WAYS if command[0] != "make" or way != _NOT_TO_MAKE]
    for _ in range(INTERRUPTIONS):
        # Half of them while Python imports and Snakemake plans, which is a small part of a large study.
        after_s = chance.uniform(0, 3.5 if chance.random() < 0.5 else LATEST_S)
        if fault := interrupted(command, folder, *chance.choice(ways).split(), after_s):
            return fault
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        return f"rerun: exit {done.returncode}: {done.stderr[-1500:]}"
    differ = {file for file, _ in set(undisturbed().items()) ^ set(Checkout(folder).hashes().items())}
    return f"bytes: {', '.join(sorted(differ)[:10])} differ from an undisturbed run" if differ else ""


def interrupted(command: list[str], folder: Path, request: str, whom: str, after_s: float) -> str:
    """What fell short of a run that was sent the request so long after its start: `alone`, its `group` or `all`."""
    which = f"{request} to {'' if whom == 'alone' else f'{whom} of '}{command[0]} after {after_s:.2f} s"
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdout=said,
            stderr=said,
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
            there = _left(process.pid, 0)
            _end(process.pid)
            return f"hang: {which}: still there after {PATIENCE_S:.0f} s: {there[:5]}"
        left = _left(process.pid)
        said.seek(0)
        text = said.read()
    if left:
        _end(process.pid)
        return f"processes: {which}: left {left[:3]}"
    # Before Python starts, which takes the longer the more others are at work, there is nobody to say it.
    early = after_s <= 0.5 * max(os.getloadavg()[0], 1)
    if ("Traceback" in text and not (early and "KeyboardInterrupt" in text)) or "\nerror" in text:
        return f"traceback: {which}: {text[-1500:]}"
    over = status == 0 or "\nThe report: " in text or "Nothing to do" in text
    if request == "SIGKILL" or over:
        return ""
    if status not in _STATUS[request]:
        return f"status: {which}: exit {status}: {text[-500:]}"
    if text.count(WORDS) != 1 and not early:
        return f"words: {which}: said {text.count(WORDS)} times: {text[-500:]}"
    return ""


def heard() -> None:
    """Of a process that is started: what `nohup` or `&` shuts off for the tests is not shut off for it."""
    for request in REQUESTS:
        signal.signal(request, signal.SIG_DFL)


@functools.cache
def undisturbed() -> dict[str, str]:
    """File under results/ -> SHA-256, of the study that nobody disturbs."""
    with tempfile.TemporaryDirectory(prefix="ttf-stop-") as name:
        folder = Path(name)
        subprocess.run(prepared(folder, by_make=False), cwd=folder, env=environment(), capture_output=True, check=True)
        return Checkout(folder).hashes()


def prepared(folder: Path, by_make: bool) -> list[str]:
    """The command that makes the study in the folder, all else of which is links to the checkout."""
    for name in (*CHECKOUT, "Makefile", "setup", ".venv", *(lock.name for lock in ROOT.glob("requirements*.lock"))):
        (folder / name).symlink_to(ROOT / name)
    config = write_pods(Checkout(folder), pods())
    (folder / "my.yaml").write_text(yaml.safe_dump(config))
    if by_make:
        return ["make", "-o", ".venv/requirements.lock", "report", "CONFIG=my.yaml", "CORES=1"]
    return [sys.executable, "scripts/run_study.py", "--config=my.yaml", "--cores", "1"]


def _left(session: int, within_s: float = 20.0) -> list[str]:
    """The processes of the session that have not ended by then."""
    until = time.monotonic() + within_s
    while (left := [_named(process) for process in _of(session)]) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def _of(session: int) -> Iterator[psutil.Process]:
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
    for process in _of(session):
        process.kill()

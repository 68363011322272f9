"""Disks that fill at seeded sizes or are read-only, then the same command with enough space.

`cases(seed, count)` gives chains: a study on a disk that is too small, then on larger ones, then with enough space.
`judge` checks that each failure is one message and that the products have the bytes of an undisturbed study. Mounting
small disks requires root.
"""

import random
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from faults.stopping import prepared, undisturbed
from faults.verdict import Verdict, fault_of_message
from study_runs import Checkout, environment
from ttf.study.running.disk import OVERRIDE_VARIABLE

SIZES = 4  # disks per chain
# Signs of a second message, or of a message that is not the study's.
_WRONG = ("write permissions", "Logging error", "WorkflowError", "It ended without a message")


def cases(seed: int, count: int) -> Iterator[tuple]:
    for number in range(count):
        yield "disk", seed, number


def judge(case: tuple) -> Verdict:
    _, seed, number = case
    chance = random.Random(f"disk {seed} {number}")
    with tempfile.TemporaryDirectory(prefix="ttf-disk-") as name:
        folder = Path(name)
        if not _mounted(folder, "size=64k"):
            return Verdict("disk", f"disk.judge({case!r})", "refused", "not tried: to mount a disk takes root")
        try:
            fault = _chain(folder, chance)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
    return Verdict("disk", f"disk.judge({case!r})", "fault" if fault else "accepted", fault, tried=SIZES)


def _chain(folder: Path, chance: random.Random) -> str:
    """Return the shortcoming of a study on disks of growing size, or ""."""
    command = prepared(folder, by_make=False)
    # A small study takes about 12 MB; its first jobs take most of the time but little space.
    for kilobytes in sorted(round(64 * 200 ** chance.random()) for _ in range(SIZES)):
        _mounted(folder, f"remount,size={kilobytes + _used(folder)}k" if chance.random() < 0.9 else "remount,ro")
        code, text = _run(command, folder, {OVERRIDE_VARIABLE: "any"})
        _mounted(folder, "remount,rw,size=500m")
        description = f"{kilobytes} kB free"
        if code and (fault := fault_of_message(text)):
            return f"{fault} ({description})"
        if phrases := [phrase for phrase in _WRONG if phrase in text]:
            return f"words: {description}: {phrases}: {text[-1500:]}"
        message_count = text.count("the disk is full") + text.count("the disk is read-only")
        if code and message_count != 1:
            return f"words: {description}: told {message_count} times: {text[-1500:]}"
    code, text = _run(command, folder, {})
    if code:
        return f"rerun: exit {code}: {text[-1500:]}"
    differ = {file for file, _ in set(undisturbed().items()) ^ set(Checkout(folder).hashes().items())}
    return f"bytes: {', '.join(sorted(differ)[:10])} differ from an undisturbed run" if differ else ""


def _run(command: list[str], folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    process = subprocess.run(
        command,
        cwd=folder,
        env=environment() | variables,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return process.returncode, process.stdout + process.stderr


def _mounted(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _used(folder: Path) -> int:
    output = subprocess.run(["df", "-k", "--output=used", folder], capture_output=True, text=True, check=True).stdout
    return int(output.split()[-1])

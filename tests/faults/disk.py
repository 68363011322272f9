"""Disks that are full at seeded sizes, or is read-only, and what the same command makes of it with room.

`cases(seed, count)` gives chains: a study on a disk that is too small, then on somewhat larger ones, then with room.
`judge` says whether each was told in one message, and whether the products have the bytes of an undisturbed study. To
mount small disks takes root.
"""

import random
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from faults.stopping import prepared, undisturbed
from faults.verdict import Verdict, fault_of_message
from study.disk import OVERRIDE_VARIABLE
from study_runs import Checkout, environment

SIZES = 4  # of a chain
# Of a message that follows another, or is nobody's.
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
    """What fell short of a study on disks of growing size; "" if nothing did."""
    command = prepared(folder, by_make=False)
    # A small study takes some 12 MB; the first jobs take most of the time, and little of the disk.
    for kilobytes in sorted(round(64 * 200 ** chance.random()) for _ in range(SIZES)):
        _mounted(folder, f"remount,size={kilobytes + _used(folder)}k" if chance.random() < 0.9 else "remount,ro")
        code, text = _run(command, folder, {OVERRIDE_VARIABLE: "any"})
        _mounted(folder, "remount,rw,size=500m")
        which = f"{kilobytes} kB free"
        if code and (fault := fault_of_message(text)):
            return f"{fault} ({which})"
        if wrong := [words for words in _WRONG if words in text]:
            return f"words: {which}: {wrong}: {text[-1500:]}"
        told = text.count("the disk is full") + text.count("the disk is read-only")
        if code and told != 1:
            return f"words: {which}: told {told} times: {text[-1500:]}"
    code, text = _run(command, folder, {})
    if code:
        return f"rerun: exit {code}: {text[-1500:]}"
    differ = {file for file, _ in set(undisturbed().items()) ^ set(Checkout(folder).hashes().items())}
    return f"bytes: {', '.join(sorted(differ)[:10])} differ from an undisturbed run" if differ else ""


def _run(command: list[str], folder: Path, more: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        command, cwd=folder, env=environment() | more, capture_output=True, text=True, errors="replace", check=False
    )
    return done.returncode, done.stdout + done.stderr


def _mounted(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _used(folder: Path) -> int:
    """In kB."""
    said = subprocess.run(["df", "-k", "--output=used", folder], capture_output=True, text=True, check=True).stdout
    return int(said.split()[-1])

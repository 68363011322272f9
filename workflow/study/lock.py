"""One run at a time in a folder, without a lock that outlives a killed run."""

import fcntl
import os
import sys
from pathlib import Path

_held: dict[Path, int] = {}


def hold(folder: Path) -> None:
    """Take the folder for this process until it ends, however it ends; wait while another process has it.

    Snakemake's own lock is a file that stays behind when a run is killed, and then has to be removed by hand; the
    kernel lets go of this one. The profile turns the other off.
    """
    folder = folder.resolve()
    if folder in _held:
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder / "study.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another run is at work in this folder; waiting until it has ended.", file=sys.stderr, flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)
    _held[folder] = file

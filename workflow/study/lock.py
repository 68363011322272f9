"""One study at a time in a folder, without a lock that outlives a killed run."""

import fcntl
import os
from pathlib import Path

_held = []


def hold(folder: Path) -> bool:
    """Take the folder for this process until it ends, however it ends; False where another process has it.

    Snakemake's own lock is a file that stays behind when a run is killed, and then has to be removed by hand; the
    kernel lets go of this one. The profile turns the other off.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder / "study.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    _held.append(file)
    return True

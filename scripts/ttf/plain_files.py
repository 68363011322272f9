"""Files opened for what they are: never through a link, and no pipe, device or folder in the place of a file."""

import os
import stat
from pathlib import Path


class NotPlain(OSError):
    """At the path lies something else than a file; `strerror` says what."""


def opened(path: Path, flags: int = os.O_RDONLY) -> int:
    """The descriptor of the file at `path`, new with mode 644 where `flags` make it.

    Raises NotPlain, without waiting for the other end of a pipe; other errors of the system as they are.
    """
    if kind := what_lies_at(path):
        raise NotPlain(0, kind)
    found = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    # Another time: it may have been put there since.
    if kind := _kind(os.fstat(found)):
        os.close(found)
        raise NotPlain(0, kind)
    return found


def what_lies_at(path: Path) -> str:
    """What lies there in the place of a file: "a link"; nothing where it is a file or there is nothing."""
    try:
        return _kind(path.lstat())
    except FileNotFoundError:
        return ""


def _kind(status: os.stat_result) -> str:
    if stat.S_ISREG(status.st_mode):
        return ""
    if stat.S_ISLNK(status.st_mode):
        return "a link"
    if stat.S_ISDIR(status.st_mode):
        return "a folder"
    return "a pipe" if stat.S_ISFIFO(status.st_mode) else "a device or socket"

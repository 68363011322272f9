"""Files opened for what they are: never through a link, and no pipe, device or folder in the place of a file."""

import os
import stat
from pathlib import Path

_KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


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
    if kind := kind_of(os.fstat(found).st_mode):
        os.close(found)
        raise NotPlain(0, kind)
    return found


def what_lies_at(path: Path) -> str:
    """What lies there in the place of a file: "a link"; nothing where it is a file or there is nothing."""
    try:
        return kind_of(path.lstat().st_mode)
    except FileNotFoundError:
        return ""


def kind_of(mode: int) -> str:
    """What has this mode, in words: "a pipe"; nothing of a file."""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "a device")


def is_ignored(name: str) -> bool:
    """Whether a file is no part of the data in any folder: hidden, or a README."""
    return name.startswith(".") or name.lower().partition(".")[0] == "readme"

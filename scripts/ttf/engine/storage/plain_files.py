"""Open regular files only, never through a link and no pipe, device or folder; replace files as a whole."""

import os
import stat
from pathlib import Path

_KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


class NotPlainFileError(OSError):
    """The path is not a regular file; `strerror` says what it is."""


def open_file(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open the file at `path` and return its descriptor; a file that `flags` create has mode 644.

    Raises NotPlainFileError, without waiting for the other end of a pipe, and any OSError of the system.
    """
    if kind := describe_non_file(Path(path)):
        raise NotPlainFileError(0, kind)
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    # Check again: it may have been replaced since.
    if kind := file_kind(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotPlainFileError(0, kind)
    return descriptor


def describe_non_file(path: Path) -> str:
    """Describe what is at the path if it is not a file ("a link"); an empty text if it is a file or missing."""
    try:
        return file_kind(path.lstat().st_mode)
    except FileNotFoundError:
        return ""


def file_kind(mode: int) -> str:
    """Describe a mode in words ("a pipe"); an empty text for a regular file."""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "a device")


def make_relative(path: str | Path, folder: Path | None = None) -> str:
    """Return a path relative to a folder, by default the working folder, if it lies below it; else unchanged."""
    folder = folder or Path.cwd()
    return str(Path(path).relative_to(folder) if Path(path).is_relative_to(folder) else path)


def is_ignored(name: str) -> bool:
    """Return whether a file never belongs to the data: a hidden file or a README."""
    return name.startswith(".") or name.lower().partition(".")[0] == "readme"


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file, as UTF-8, that gets its name when it is complete, so that no reader sees half of it."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)

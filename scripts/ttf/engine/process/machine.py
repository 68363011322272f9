"""What the machine refuses (a full disk, no right to write, no memory), in words for who can put it right."""

import errno
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_ROOM = "Make room, or move the folder to a larger disk"
# Error number -> what is wrong, what to do.
_WORDS = {
    errno.ENOSPC: ("the disk is full", _ROOM),
    errno.EDQUOT: ("your share of the disk (quota) is used up", _ROOM),
    errno.EROFS: ("the disk can be read only", "Run the study in a folder that can be written to"),
    errno.EACCES: ("you may not write or read there", "Change the rights of the file or folder, or run elsewhere"),
    errno.EPERM: ("you may not write or read there", "Change the rights of the file or folder, or run elsewhere"),
    errno.EIO: ("the disk or the network that it hangs on fails", "Check the disk, and run on another"),
    errno.ENAMETOOLONG: ("the path is too long for this disk", "Run in a folder with a shorter path, or shorten names"),
    errno.EMFILE: (
        "too many files are open at once",
        "Allow more: ulimit -n 4096",
    ),
    errno.ENFILE: ("the machine has too many files open", "End other programs"),
    errno.EFBIG: ("a file would be larger than is allowed", "Allow larger files (ulimit -f unlimited)"),
    errno.ENOMEM: (
        "there is not enough memory",
        "Run fewer jobs at a time: make report CORES=1. Or allow more: ulimit -v unlimited",
    ),
}
# The first line of the log of a job that has not ended yet: what follows its libraries wrote, in C or Rust.
OF_LIBRARIES = "Written by libraries:"
_OF_ROOM = (errno.ENOSPC, errno.EDQUOT)
# As Python writes it, and Rust, in which Polars is written.
_NUMBER = re.compile(r"\[Errno (\d+)\]|\(os error (\d+)\)")
_NO_MEMORY = re.compile(
    r"memory allocation of \d+ bytes failed|std::bad_alloc|[Cc]annot allocate memory|can't start new thread"
)
_FILE = re.compile(r"'(/?[^'\n]*/[^'\n]*)'|(?:os error \d+\): )(/?[^\n]+)$")


def refused(error: BaseException, files: Iterable[str | Path] = ()) -> str | None:
    """What to say of an error that is the machine's, in one line or two; None of any other.

    files: what was to be written, of which the one with the least room is named where the error names none.
    """
    for each in _chain(error):
        number = errno.ENOMEM if isinstance(each, MemoryError) else getattr(each, "errno", None)
        # Of a copy, the copy.
        file = getattr(each, "filename2", None) or getattr(each, "filename", None)
        if number in _WORDS:
            return _said(number, file, files)
        if words := refused_in(str(each), files):
            return words
    return None


def refused_in(text: str, files: Iterable[str | Path] = ()) -> str | None:
    """The same of an error that is a text."""
    numbers = [int(one or other) for one, other in _NUMBER.findall(text)]
    number = next((number for number in numbers if number in _WORDS), None)
    if number is None and _NO_MEMORY.search(text):
        number = errno.ENOMEM
    if number is None and "No space left on device" in text:
        number = errno.ENOSPC
    if number is None:
        return None
    named = _FILE.search(text)
    return _said(number, named and (named[1] or named[2]), files)


def free_bytes(path: str | Path) -> int:
    """What is free on the disk of a file or folder, that need not be there yet."""
    path = Path(path).absolute()
    return shutil.disk_usage(next(folder for folder in (path, *path.parents) if folder.is_dir())).free


def full(folders: Iterable[str | Path]) -> str | None:
    """What to say where one of these is on a disk without room; None where there is some."""
    short = [folder for folder in folders if free_bytes(folder) < 1 << 16]
    return _said(errno.ENOSPC, short[0], ()) if short else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _said(number: int, file: str | Path | None, files: Iterable[str | Path]) -> str:
    if number == errno.ENOMEM:
        file = None
    elif file is None or isinstance(file, int):
        candidates = [*map(str, files), tempfile.gettempdir()]
        file = min(candidates, key=free_bytes) if number in _OF_ROOM else candidates[0]
    what, advice = _WORDS[number]
    left = f" ({free_bytes(file) / 1e6:,.1f} MB are free)" if file and number in _OF_ROOM else ""
    return f"{f'{file}: ' if file else ''}{what}{left}. {advice}."

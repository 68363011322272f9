"""Errors of the machine (full disk, missing permission, no memory), explained with a remedy."""

import errno
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_MAKE_ROOM = "Make room, or move the folder to a larger disk"
# Error number -> problem, remedy.
_EXPLANATIONS = {
    errno.ENOSPC: ("the disk is full", _MAKE_ROOM),
    errno.EDQUOT: ("your share of the disk (quota) is used up", _MAKE_ROOM),
    errno.EROFS: ("the disk is read-only", "Run the study in a writable folder"),
    errno.EACCES: ("permission denied", "Change the permissions of the file or folder, or run elsewhere"),
    errno.EPERM: ("permission denied", "Change the permissions of the file or folder, or run elsewhere"),
    errno.EIO: ("the disk or its network fails", "Check the disk, or run on another"),
    errno.ENAMETOOLONG: ("the path is too long for this disk", "Run in a folder with a shorter path, or shorten names"),
    errno.EMFILE: ("too many files are open at once", "Allow more: ulimit -n 4096"),
    errno.ENFILE: ("the machine has too many files open", "End other programs"),
    errno.EFBIG: ("a file would exceed the allowed size", "Allow larger files (ulimit -f unlimited)"),
    errno.ENOMEM: (
        "there is not enough memory",
        "Run fewer jobs at a time: ttf report --cores 1. Or allow more: ulimit -v unlimited",
    ),
}
# First line of the log of a running job; libraries in C or Rust write the lines below it.
OF_LIBRARIES = "Written by libraries:"
_SPACE_ERRORS = (errno.ENOSPC, errno.EDQUOT)
# The error formats of Python and Rust (Polars).
_NUMBER = re.compile(r"\[Errno (\d+)\]|\(os error (\d+)\)")
_NO_MEMORY = re.compile(
    r"memory allocation of \d+ bytes failed|std::bad_alloc|[Cc]annot allocate memory|can't start new thread"
)
_FILE = re.compile(r"'(/?[^'\n]*/[^'\n]*)'|(?:os error \d+\): )(/?[^\n]+)$")


def explain_error(error: BaseException, files: Iterable[str | Path] = ()) -> str | None:
    """Explain an error of the machine in one or two lines; return None for other errors.

    files: the files to be written; if the error names none, the one with the least free space is named.
    """
    for cause in _cause_chain(error):
        number = errno.ENOMEM if isinstance(cause, MemoryError) else getattr(cause, "errno", None)
        # filename2 is the target of a copy.
        file = getattr(cause, "filename2", None) or getattr(cause, "filename", None)
        if number in _EXPLANATIONS:
            return _explain_number(number, file, files)
        if message := explain_error_text(str(cause), files):
            return message
    return None


def explain_error_text(text: str, files: Iterable[str | Path] = ()) -> str | None:
    """Explain the error of the machine that a message names, like `explain_error`; None for other messages."""
    numbers = [int(python_number or rust_number) for python_number, rust_number in _NUMBER.findall(text)]
    number = next((number for number in numbers if number in _EXPLANATIONS), None)
    if number is None and _NO_MEMORY.search(text):
        number = errno.ENOMEM
    if number is None and "No space left on device" in text:
        number = errno.ENOSPC
    if number is None:
        return None
    path_match = _FILE.search(text)
    return _explain_number(number, path_match and (path_match[1] or path_match[2]), files)


def free_bytes(path: str | Path) -> int:
    """Return the free bytes on the disk of a file or folder, which need not exist yet."""
    path = Path(path).absolute()
    return shutil.disk_usage(next(folder for folder in (path, *path.parents) if folder.is_dir())).free


def explain_full_disk(folders: Iterable[str | Path]) -> str | None:
    """Explain that a folder lies on a full disk; return None if all have space."""
    full_folders = [folder for folder in folders if free_bytes(folder) < 1 << 16]
    return _explain_number(errno.ENOSPC, full_folders[0], ()) if full_folders else None


def _cause_chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _explain_number(number: int, file: str | Path | None, files: Iterable[str | Path]) -> str:
    """Explain an error number; file: what the error names, otherwise one of `files` or the temporary folder."""
    if number == errno.ENOMEM:
        file = None
    elif file is None or isinstance(file, int):
        candidates = [*map(str, files), tempfile.gettempdir()]
        file = min(candidates, key=free_bytes) if number in _SPACE_ERRORS else candidates[0]
    problem, advice = _EXPLANATIONS[number]
    free_text = f" ({free_bytes(file) / 1e6:,.1f} MB are free)" if file and number in _SPACE_ERRORS else ""
    return f"{f'{file}: ' if file else ''}{problem}{free_text}. {advice}."

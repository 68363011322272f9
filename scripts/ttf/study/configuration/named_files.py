"""Files and folders that the user names, inspected before they are opened.

A pipe would block the run, a device has no end, and the wrong file may be larger than the memory.
"""

import os
import stat
from pathlib import Path

from ttf.engine.storage.plain_files import file_kind
from ttf.study.configuration.messages import ConfigError

CWD_HINT = "(relative to the current folder)."
# Limits in MB: of a configuration, which Snakemake also reads, slowly; of other documents; of tables.
CONFIGURATION_MB, DOCUMENT_MB, TABLE_MB = 0.25, 4, 4000


def read_contents(path: str | Path, label: str, max_mb: float = DOCUMENT_MB) -> bytes:
    """Return the bytes of a file of at most `max_mb` MB. Raises ConfigError, starting with `label`, for any other."""
    if problem := file_problem(path, max_mb):
        raise ConfigError(f"{label}: {problem}")
    try:
        with Path(path).open("rb") as file:
            content = file.read(int(max_mb * 1e6) + 1)  # files in /proc have no size
    except OSError as error:
        raise ConfigError(f"{label}: the file cannot be read ({error.strerror}).") from None
    if len(content) > max_mb * 1e6:
        raise ConfigError(f"{label}: {_describe_excess_size(len(content), max_mb)}")
    return content


def require_file(path: str, label: str, max_mb: float = TABLE_MB) -> str:
    """Return the path, as typed, of a file that the configuration names under `label`.

    Raises ConfigError if there is no readable file of at most `max_mb` MB.
    """
    if problem := file_problem(path, max_mb):
        raise ConfigError(f"{label}: {path}: {problem}")
    return path


def file_problem(path: str | Path, max_mb: float = DOCUMENT_MB) -> str:
    """Return why a path is no readable file of at most `max_mb` MB; empty if it is."""
    status = _inspect_path(path)
    if not isinstance(status, os.stat_result):
        return status or f"there is no such file{_format_cwd_hint(path)}"
    if kind := file_kind(status.st_mode):
        return f"it is {kind}; expected a plain file."
    if not os.access(path, os.R_OK):
        return "the file cannot be read (Permission denied)."
    return _describe_excess_size(status.st_size, max_mb) if status.st_size > max_mb * 1e6 else ""


def folder_problem(path: str | Path) -> str:
    """Return why a path is no readable folder; empty if it is."""
    status = _inspect_path(path)
    if not isinstance(status, os.stat_result):
        return status or f"there is no such folder{_format_cwd_hint(path)}"
    if not stat.S_ISDIR(status.st_mode):
        return f"it is not a folder{_format_cwd_hint(path)}"
    return "" if os.access(path, os.R_OK | os.X_OK) else "the folder cannot be read (Permission denied)."


def _format_cwd_hint(path: str | Path) -> str:
    return "." if Path(path).is_absolute() else f" {CWD_HINT}"


def _inspect_path(path: str | Path) -> os.stat_result | str:
    """Return the status of a path after links; a message if it is inaccessible, empty if it does not exist."""
    try:
        return Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except ValueError:  # a zero byte
        return "this cannot be the name of a file."
    except OSError as error:
        return f"it cannot be accessed ({error.strerror})."


def _describe_excess_size(size: int, max_mb: float) -> str:
    return f"the file has {size / 1e6:,.2f} MB; at most {max_mb:,g} MB are read. Is it the right file?"

"""Files and folders that a person names. Each is looked at before it is opened: a pipe would hold up the run, a device
has no end, and the wrong file may be larger than the memory."""

import os
import stat
from pathlib import Path

from ttf.engine.storage.plain_files import kind_of

from study.messages import ConfigError

SEEN = "(seen from where the command is typed)."
# Millions of bytes: of a configuration, which Snakemake reads too, and slowly; of other documents; of tables.
CONFIGURATION_MB, DOCUMENT_MB, TABLE_MB = 0.25, 4, 4000


def contents(path: str | Path, label: str, most_mb: float = DOCUMENT_MB) -> bytes:
    """The bytes of a file of at most so many MB, after links. Raises ConfigError, `label` first, where it is no such
    file."""
    if problem := file_problem(path, most_mb):
        raise ConfigError(f"{label}: {problem}")
    try:
        with Path(path).open("rb") as file:
            content = file.read(int(most_mb * 1e6) + 1)  # what lies in /proc has no size
    except OSError as error:
        raise ConfigError(f"{label}: the file cannot be read ({error.strerror}).") from None
    if len(content) > most_mb * 1e6:
        raise ConfigError(f"{label}: {_too_large(len(content), most_mb)}")
    return content


def given_file(path: str, where: str, most_mb: float = TABLE_MB) -> str:
    """The path, as typed, of a file that the configuration names under `where`.

    Raises ConfigError where there is none, or none that can be read, of so many MB.
    """
    if problem := file_problem(path, most_mb):
        raise ConfigError(f"{where}: {path}: {problem}")
    return path


def file_problem(path: str | Path, most_mb: float = DOCUMENT_MB) -> str:
    """Why a path is no file of at most so many MB that can be read, in words; nothing of one that is."""
    about = _look(path)
    if not isinstance(about, os.stat_result):
        return about or f"there is no such file{_seen(path)}"
    if kind := kind_of(about.st_mode):
        return f"it is {kind}; expected a plain file."
    if not os.access(path, os.R_OK):
        return "the file cannot be read (Permission denied)."
    return _too_large(about.st_size, most_mb) if about.st_size > most_mb * 1e6 else ""


def folder_problem(path: str | Path) -> str:
    """Why a path is no folder that can be read, in words; nothing of one that is."""
    about = _look(path)
    if not isinstance(about, os.stat_result):
        return about or f"there is no such folder{_seen(path)}"
    if not stat.S_ISDIR(about.st_mode):
        return f"it is no folder{_seen(path)}"
    return "" if os.access(path, os.R_OK | os.X_OK) else "the folder cannot be read (Permission denied)."


def _seen(path: str | Path) -> str:
    return "." if Path(path).is_absolute() else f" {SEEN}"


def _look(path: str | Path) -> os.stat_result | str:
    """What a path is, after links; in words why nobody can tell, and nothing where it is not there."""
    try:
        return Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except ValueError:  # a zero byte
        return "this cannot be the name of a file."
    except OSError as error:
        return f"it cannot be looked at ({error.strerror})."


def _too_large(size: int, most_mb: float) -> str:
    return f"the file has {size / 1e6:,.2f} MB; at most {most_mb:,g} MB are read. Is it the right file?"

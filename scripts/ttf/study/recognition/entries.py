"""The entries of a trace's folder: each is read, left unread for a stated reason, or stops the run."""

import errno
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ttf.engine.storage.plain_files import file_kind, is_ignored
from ttf.raw.raw_files import ARCHIVES, PACKED
from ttf.study.configuration.messages import show

# Packings and file formats that are not supported: a file with such a name is a table, but cannot be read.
UNREADABLE_PACKINGS = (
    ".7z",
    ".br",
    ".bz2",
    ".lz4",
    ".rar",
    ".tar",
    ".tar.bz2",
    ".tbz2",
    ".txz",
    ".tar.xz",
    ".tar.zst",
    ".z",
)
_PACKED_PARQUET = tuple(f".parquet{packing}" for packing in PACKED)
UNREADABLE_ENDINGS = (*UNREADABLE_PACKINGS, *_PACKED_PARQUET, ".json", ".parquet", ".tsv", ".txt", ".xlsx")
MOST_NAMES = 12

_LINK_ERRORS: dict[int | None, str] = {errno.ENOENT: "a link to nothing", errno.ELOOP: "a link in a circle"}


class Entry(NamedTuple):
    """An entry of a folder. problem: why it is not a readable file. file: device and inode of a plain file."""

    name: str
    problem: str = ""
    file: tuple[int, int] | None = None


# Cached listings, so that planning sees one state of each folder, even if files arrive meanwhile.
_LISTINGS: dict[str, list[Entry]] | None = None


@contextmanager
def cache_listings() -> Iterator[None]:
    """List each folder only once inside this context."""
    global _LISTINGS  # noqa: PLW0603 (one cache of a process)
    _LISTINGS = {}
    try:
        yield
    finally:
        _LISTINGS = None


def list_entries(folder: str) -> list[Entry]:
    """Return the entries of a folder by name without opening them. Raises OSError."""
    if _LISTINGS is not None and folder in _LISTINGS:
        return _LISTINGS[folder]
    entries = [_inspect_entry(path) for path in sorted(Path(folder).iterdir())]
    if _LISTINGS is not None:
        _LISTINGS[folder] = entries
    return entries


def _inspect_entry(path: Path) -> Entry:
    try:
        status = path.stat()
    except OSError as error:
        return Entry(path.name, _LINK_ERRORS.get(error.errno) or f"not to be looked at ({error.strerror})")
    if kind := file_kind(status.st_mode):
        return Entry(path.name, kind)
    problem = "" if os.access(path, os.R_OK) else "a file that may not be read"
    return Entry(path.name, problem, (status.st_dev, status.st_ino))


# Matching entries to tables ---------------------------------------------------------------------------------


def describe_expected_file(spec: Mapping) -> str:
    """Return the name that a table's file must have."""
    if "beside" in spec:
        return "logs of nodes" if spec["required"] else f"files under the key {spec['beside']}"
    if "every" in spec:
        return " or ".join(f"*{ending}" for ending in spec["every"])
    return spec["file"] if "json" in spec else f"{spec['file']}.csv"


def describe_packings(spec: Mapping) -> str:
    return f"(also packed: {', '.join((*PACKED, *ARCHIVES))}{', each with one table' if 'every' in spec else ''})"


def select_table_files(spec: Mapping, names: Sequence[str]) -> list[str]:
    return [name for name in names if is_table_name(name, spec)]


def is_table_name(name: str, spec: Mapping) -> bool:
    if is_ignored(name):
        return False
    lower = name.lower()
    if "every" in spec:
        return lower.endswith((*_list_endings(spec), *ARCHIVES))
    stem = spec["file"].lower()
    endings = {ending + packing for ending in (".csv", "") for packing in ("", *PACKED, *ARCHIVES)}
    return lower.startswith(stem) and lower.removeprefix(stem) in endings


def _list_endings(spec: Mapping) -> tuple[str, ...]:
    return tuple(end + packing for end in spec["every"] for packing in (("", *PACKED) if end != ".parquet" else ("",)))


def _is_unreadable_table(name: str, spec: Mapping) -> bool:
    lower = name.lower()
    if "every" in spec:
        return lower.endswith((*UNREADABLE_PACKINGS, *(_PACKED_PARQUET if ".parquet" in spec["every"] else ())))
    stem = spec["file"].lower()
    return lower.startswith(stem) and lower.removeprefix(stem).removeprefix(".csv") in UNREADABLE_ENDINGS


# Problems ---------------------------------------------------------------------------------------------------


def find_problems(entries: Sequence[Entry], tables: Mapping[str, Mapping], files: Mapping[str, str]) -> list[str]:
    """Return the problems that stop the run: tables that cannot be read, and duplicate files.

    tables: the tables in the folder. files: table -> file that the registry names (`files`).
    """
    messages = []
    specs = {table: spec for table, spec in tables.items() if table not in files}
    for entry in entries if any(entry.problem for entry in entries) else ():
        matches = [table for table, file in files.items() if file == entry.name]
        matches += [table for table, spec in specs.items() if is_table_name(entry.name, spec)]
        if entry.problem and matches:
            messages.append(f"{escape_name(entry.name)} is {entry.problem}; expected a file of the table {matches[0]}.")
    names = [entry.name for entry in entries if entry.name not in files.values()]
    for table, spec in specs.items():
        readable = set(select_table_files(spec, names))
        for name in names:
            if (not readable or "every" in spec) and name not in readable and _is_unreadable_table(name, spec):
                expected = f"Expected {describe_expected_file(spec)} {describe_packings(spec)}."
                messages.append(f"{escape_name(name)} has the name of the table {table}, but is unreadable. {expected}")
        if "every" in spec:
            messages += [
                f"{escape_name(name)} and {escape_name(duplicate)} are {reason}. Keep one of them."
                for name, duplicate, reason in _find_duplicates([e for e in entries if e.name in readable], spec)
            ]
    return messages


def _find_duplicates(entries: Sequence[Entry], spec: Mapping) -> Iterator[tuple[str, str, str]]:
    """Yield (name, other name, why) for entries of a multi-file table that are one file, or one in two packings."""
    name_by_file, name_by_unpacked = dict[tuple[int, int], str](), dict[str, str]()
    for entry in entries:
        if entry.file and (earlier_name := name_by_file.setdefault(entry.file, entry.name)) != entry.name:
            yield earlier_name, entry.name, "two names of one file"
            continue
        for name in _guess_unpacked_names(entry.name, spec):
            if (earlier_name := name_by_unpacked.setdefault(name, entry.name)) != entry.name:
                yield earlier_name, entry.name, "the same table in two packings"
                break


def _guess_unpacked_names(name: str, spec: Mapping) -> list[str]:
    for packing in ARCHIVES:
        if name.lower().endswith(packing):
            stem = name[: -len(packing)]
            return [stem, *(stem + ending for ending in spec["every"])]
    packing = next((ending for ending in PACKED if name.lower().endswith(ending)), "")
    return [name[: len(name) - len(packing)]]


def explain_unread_entries(entries: Sequence[Entry], tables: Mapping, read_names: Collection[str]) -> dict[str, str]:
    """Map each entry from which nothing is read to the reason."""
    reasons = {}
    for entry in entries:
        if entry.name not in read_names:
            matches = [table for table, spec in tables.items() if is_table_name(entry.name, spec)]
            reason = f"the table {matches[0]} is read from another file" if matches else "not a table of this format"
            reasons[entry.name] = entry.problem or reason
    return reasons


# Words ------------------------------------------------------------------------------------------------------


def format_listing(names: Sequence[str], count: int = MOST_NAMES) -> str:
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if len(names) > count else "") or "nothing"


def format_unread_entries(reasons: Mapping[str, str]) -> str:
    return format_listing([f"{escape_name(name)} ({reason})" for name, reason in reasons.items()])


def escape_name(name: str) -> str:
    """Return a file name as it is if a terminal can print it, else escaped."""
    return name if name.isprintable() else show(name)

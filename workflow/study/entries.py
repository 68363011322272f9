"""What lies in the folder of a trace: every entry is read, or left out for a reason that is told, or stops the run."""

import errno
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ttf.engine.storage.plain_files import is_ignored, kind_of
from ttf.raw.raw_files import ARCHIVES, PACKED

from study.messages import show

# Packings of others, and how else a table may be written: what is called so is a table, but none that can be read.
UNREAD_PACKINGS = (
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
UNREAD = (*UNREAD_PACKINGS, ".json", ".parquet", ".tsv", ".txt", ".xlsx", *(f".parquet{end}" for end in PACKED))
MOST_NAMES = 12

_NO_LOOK = {errno.ENOENT: "a link to nothing", errno.ELOOP: "a link in a circle"}


class Entry(NamedTuple):
    """An entry of a folder. odd: what it is, if it is no file to read. file: device and number, of one that is."""

    name: str
    odd: str = ""
    file: tuple[int, int] | None = None


# The folders that were looked into while a study is planned: all of it goes by one look, whatever comes meanwhile.
_SEEN: dict[str, list[Entry]] | None = None


@contextmanager
def one_look() -> Iterator[None]:
    """Within, a folder is listed once."""
    global _SEEN
    _SEEN = {}
    try:
        yield
    finally:
        _SEEN = None


def entries_of(folder: str) -> list[Entry]:
    """The entries of a folder by name; none is opened. Raises OSError."""
    if _SEEN is not None and folder in _SEEN:
        return _SEEN[folder]
    found = [_entry(path) for path in sorted(Path(folder).iterdir())]
    if _SEEN is not None:
        _SEEN[folder] = found
    return found


def _entry(path: Path) -> Entry:
    try:
        about = path.stat()
    except OSError as error:
        return Entry(path.name, _NO_LOOK.get(error.errno) or f"not to be looked at ({error.strerror})")
    if kind := kind_of(about.st_mode):
        return Entry(path.name, kind)
    odd = "" if os.access(path, os.R_OK) else "a file that may not be read"
    return Entry(path.name, odd, (about.st_dev, about.st_ino))


# Which entry is which table ---------------------------------------------------------------------------------


def expected_file(spec: Mapping) -> str:
    """What a table's file is called."""
    if "beside" in spec:
        return f"files under the key {spec['beside']}"
    if "every" in spec:
        return " or ".join(f"*{ending}" for ending in spec["every"])
    return spec["file"] if "json" in spec else f"{spec['file']}.csv"


def also_packed(spec: Mapping) -> str:
    return f"(also packed: {', '.join((*PACKED, *ARCHIVES))}{', each with one table' if 'every' in spec else ''})"


def files_of(spec: Mapping, names: Sequence[str]) -> list[str]:
    """Those of the names that a file of this table may have, plain or packed, in capitals or not."""
    return [name for name in names if is_called(name, spec)]


def is_called(name: str, spec: Mapping) -> bool:
    if is_ignored(name):
        return False
    lower = name.lower()
    if "every" in spec:
        return lower.endswith((*_endings(spec), *ARCHIVES))
    stem = spec["file"].lower()
    endings = {ending + packing for ending in (".csv", "") for packing in ("", *PACKED, *ARCHIVES)}
    return lower.startswith(stem) and lower.removeprefix(stem) in endings


def _endings(spec: Mapping) -> tuple[str, ...]:
    """The endings of files of a table that takes every file; Parquet is packed already."""
    return tuple(end + packing for end in spec["every"] for packing in (("", *PACKED) if end != ".parquet" else ("",)))


def _is_unread(name: str, spec: Mapping) -> bool:
    """Whether a name is that of the table, written or packed in a way that is not read."""
    lower = name.lower()
    if "every" in spec:
        packed = tuple(f".parquet{packing}" for packing in PACKED) if ".parquet" in spec["every"] else ()
        return lower.endswith((*UNREAD_PACKINGS, *packed))
    stem = spec["file"].lower()
    return lower.startswith(stem) and lower.removeprefix(stem).removeprefix(".csv") in UNREAD


# Verdicts ---------------------------------------------------------------------------------------------------


def problems(entries: Sequence[Entry], tables: Mapping[str, Mapping], named: Mapping[str, str]) -> list[str]:
    """What stops the run: what is called as a table and cannot be read as one, and a table that is there twice.

    tables: those that lie in the folder. named: the file of a table that the registry names (`files`).
    """
    found = []
    open_ = {table: spec for table, spec in tables.items() if table not in named}
    for entry in entries if any(entry.odd for entry in entries) else ():
        called = [table for table, file in named.items() if file == entry.name]
        called += [table for table, spec in open_.items() if is_called(entry.name, spec)]
        if entry.odd and called:
            found.append(f"{said(entry.name)} is {entry.odd}; expected a file of the table {called[0]}.")
    names = [entry.name for entry in entries if entry.name not in named.values()]
    for table, spec in open_.items():
        there = set(files_of(spec, names))
        for name in names:
            if (not there or "every" in spec) and name not in there and _is_unread(name, spec):
                how = f"Expected {expected_file(spec)} {also_packed(spec)}."
                found.append(f"{said(name)} is called as the table {table}, but cannot be read as one. {how}")
        if "every" in spec:
            found += [
                f"{said(one)} and {said(other)} are {why}. Keep one of them."
                for one, other, why in _twice([entry for entry in entries if entry.name in there], spec)
            ]
    return found


def _twice(entries: Sequence[Entry], spec: Mapping) -> Iterator[tuple[str, str, str]]:
    """Pairs of files of a table that takes every file, that are the same one or the same packed in two ways."""
    of_file, of_name = {}, {}
    for entry in entries:
        if entry.file and (other := of_file.setdefault(entry.file, entry.name)) != entry.name:
            yield other, entry.name, "one file by two names"
            continue
        for name in _unpacked(entry.name, spec):
            if (other := of_name.setdefault(name, entry.name)) != entry.name:
                yield other, entry.name, "the same table in two packings"
                break


def _unpacked(name: str, spec: Mapping) -> list[str]:
    """What a file may be called once it is unpacked; one in an archive has any of the table's endings."""
    for packing in ARCHIVES:
        if name.lower().endswith(packing):
            stem = name[: -len(packing)]
            return [stem, *(stem + ending for ending in spec["every"])]
    packing = next((end for end in PACKED if name.lower().endswith(end)), "")
    return [name[: len(name) - len(packing)]]


def left_out(entries: Sequence[Entry], tables: Mapping[str, Mapping], read: Collection[str]) -> dict[str, str]:
    """Entry -> why it is left out, of those of which nothing is read."""
    reasons = {}
    for entry in entries:
        if entry.name not in read:
            called = [table for table, spec in tables.items() if is_called(entry.name, spec)]
            other = f"the table {called[0]} is read from another file" if called else "no table is called so"
            reasons[entry.name] = entry.odd or other
    return reasons


# Words ------------------------------------------------------------------------------------------------------


def listing(names: Sequence[str], most: int = MOST_NAMES) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "") or "nothing"


def left_out_words(reasons: Mapping[str, str]) -> str:
    """Entries with why they are left out, a dozen of them."""
    return listing([f"{said(name)} ({reason})" for name, reason in reasons.items()])


def said(name: str) -> str:
    """A name as it may be shown."""
    return name if name.isprintable() else show(name)

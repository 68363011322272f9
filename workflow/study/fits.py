"""How well a folder fits each way of reading raw tables that the study has: by names of files, and by headers.

Not more than the start of a file is read, each once, and nothing but plain files is opened.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ttf.raw.headers import found_and_missing

from study.entries import files_of, listing
from study.first_lines import Layout, first_bytes, header_problem, is_right, layouts_of, names_at_start, names_in, said
from study.format_declarations import OF_READING
from study.messages import ConfigError
from study.trace_files import BESIDE

# Of a folder with more files, these are looked into: all of them are when the study is loaded.
MOST_FILES = 1_000
# So many of them are compared with tables that are missing.
MOST_COMPARED = 50


class Shape(NamedTuple):
    """A way to read a folder: a declared format; of the format table with what a trace of the registry says of it.

    layouts: table -> what its first line must be. like: that trace. about: what the registry says of it.
    """

    format: str
    declared: dict
    layouts: dict[str, Layout]
    like: str = ""
    about: Mapping = {}

    @property
    def core(self) -> list[str]:
        """The tables by which a folder is known: the required ones, or all of a format that requires none."""
        tables = self.declared["tables"]
        return [name for name, spec in tables.items() if spec["required"]] or list(tables)

    @property
    def needs_all(self) -> bool:
        """Whether all core tables must be there; else one of them."""
        return any(spec["required"] for spec in self.declared["tables"].values())

    @property
    def label(self) -> str:
        return f"{self.format}, mapped as {self.like} of the registry" if self.like else self.format


class Fit(NamedTuple):
    """How a folder fits a shape.

    files: table -> those that are it. missing: tables that must be there and are not. lacks: what else keeps the folder
    from being read so.
    """

    shape: Shape
    files: dict[str, list[str]]
    missing: list[str]
    lacks: list[str]

    @property
    def is_right(self) -> bool:
        return not self.missing and not self.lacks


@dataclass(frozen=True)
class Folder:
    """The plain files of a folder by name, sorted. only: the one that was named: it must be a table."""

    path: Path
    files: list[str]
    only: str | None = None
    _heads: dict[str, bytes | None] = field(default_factory=dict, repr=False)

    @property
    def looked_at(self) -> list[str]:
        return [self.only] if self.only else self.files[:MOST_FILES]

    def names(self, file: str, layout: Layout) -> list[str] | None:
        """The names at the start of a file, as names_in."""
        if layout.parquet and file.lower().endswith(".parquet"):
            return names_in(f"{self.path}/{file}", layout)
        if file not in self._heads:
            self._heads[file] = first_bytes(f"{self.path}/{file}")
        return None if (head := self._heads[file]) is None else names_at_start(head, layout)

    def known(self, file: str, layout: Layout) -> int:
        """How many of its names are the table's, of a file that can be the table; 0 of any other."""
        names = self.names(file, layout) if is_usable(file) else None
        if not names or not layout.header:
            return len(names or ()) if len(names or ()) == len(layout.columns) else 0
        return len(found_and_missing(names, layout.columns)[0]) if is_right(names, layout) else 0

    def problem(self, file: str, layout: Layout) -> str:
        """Why a file cannot be the table, in words."""
        names = self.names(file, layout)
        if not is_usable(file):
            return f"{said(file)}: its name has a character that cannot be used; rename it."
        if names is None:
            return f"{said(file)}: cannot be read as {'an array of objects in JSON' if layout.json else 'a table'}."
        if not layout.header:
            return f"{said(file)}: has {len(names)} columns in its first line; expected {len(layout.columns)}."
        return f"{said(file)}: {header_problem(names, layout)}"

    def share(self, file: str, layout: Layout) -> float:
        """How much of a table's columns a file has; capitals or the delimiter are a small slip."""
        names = self.names(file, layout) if layout.header else None
        wanted = [column for column in layout.columns if not column.optional]
        names = re.split(r"[,;|\s]+", names[0]) if names and len(names) == 1 else names
        folded = {name.casefold() for name in names or ()}
        close = sum(any(word.casefold() in folded for word in (column.name, *column.also)) for column in wanted)
        exact = len(wanted) - len(found_and_missing(names or (), wanted)[1])
        return (exact + close) / max(1, 2 * len(wanted))

    def nearest(self, layout: Layout) -> tuple[float, str]:
        """(share, file) of the file that has most of a table's columns."""
        shares = ((self.share(file, layout), file) for file in self.looked_at[:MOST_COMPARED])
        return max(shares, key=lambda pair: pair[0], default=(0.0, ""))


def is_usable(text: str) -> bool:
    """Whether a name can be in a configuration, and a path of the workflow."""
    return text.isprintable() and not set(text) & set("{}\\")


def folder_of(data: Path) -> Folder:
    """The plain files of a folder, or of the one that a file lies in. Raises ConfigError where there are none."""
    where = f"DATA={said(str(data))}"
    if not str(data).isprintable():
        raise ConfigError(f"{where}: the path has a character that the study cannot use; rename the folder.")
    try:
        is_file = data.is_file()
        if not is_file and not data.is_dir():
            what = "it is neither a folder nor a plain file" if data.exists() else "there is no such folder or file"
            raise ConfigError(f"{where}: {what} (seen from where the command is typed).")
        there = {path.name: path.is_file() for path in (data.parent if is_file else data).iterdir()}
    except (OSError, ValueError) as error:  # a name that is too long, a folder that may not be read
        raise ConfigError(f"{where}: cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    files = sorted(name for name, is_plain in there.items() if is_plain)
    if not files:
        inside = f" itself, but: {listing([said(name) for name in sorted(there)])}" if there else ""
        raise ConfigError(f"{where}: the folder holds no file{inside}. Name the folder in which the raw tables lie.")
    return Folder(data.parent, files, data.name) if is_file else Folder(data, files)


def shapes_of(formats: dict, registry: dict) -> Iterator[Shape]:
    """Every way to read a folder that the declarations of the formats and the registry's own mappings make."""
    for name, declared in formats.items():
        if "schema" in declared:
            yield Shape(name, declared, layouts_of({}, declared))
    for trace, entry in registry.items():
        if "mapping" in entry:
            declared = formats[entry["format"]]
            about = {key: entry[key] for key in (*OF_READING, "infra_failures") if key in entry}
            yield Shape(entry["format"], declared, layouts_of(entry, declared), trace, about)


def files_beside(shape: Shape, files: Sequence[str]) -> dict[str, str]:
    """Key of the registry -> the file in the folder that it is for, called as in the format's sample."""
    named = shape.declared["sample"]["files"] if "sample" in shape.declared else {}
    return {key: name for key, name in named.items() if key in BESIDE and name in files}


def tables_beside(folder: Folder, shape: Shape) -> dict[str, list[str]]:
    """Table -> the files in the folder that are it by their header, of the tables that the registry has a key for."""
    return {
        table: files
        for table, spec in shape.declared["tables"].items()
        if "beside" in spec
        and (files := [file for file in folder.files[:MOST_FILES] if folder.known(file, shape.layouts[table])])
    }


def fit_of(folder: Folder, shape: Shape) -> Fit:
    """How the folder fits the shape."""
    beside = tables_beside(folder, shape)
    files, missing, lacks = {}, [], []
    for table, spec in shape.declared["tables"].items():
        if "beside" in spec:
            continue
        found, problems = _every(folder, shape, table) if "every" in spec else _one(folder, shape, table)
        files |= {table: found} if found else {}
        lacks += problems
        if spec["required"] and not found and not problems:
            missing.append(table)
    if not missing and not lacks and not files.keys() & set(shape.core):
        missing = shape.core
    if shape.declared.get("one_table") and len(files) > 1:
        names = " and ".join(said(file) for found in files.values() for file in found)
        lacks.append(f"{names} are traces of their own; put each into its own folder.")
    if folder.only and not missing and not lacks and not any(folder.only in found for found in files.values()):
        lacks.append(f"{said(folder.only)} is none of its tables.")
    return Fit(shape, files | beside, missing, lacks)


def share_of(folder: Folder, fit: Fit) -> float:
    """How much of the core tables' columns there is, from 0 to 1: in the mean, or of the one that must be there."""
    shape = fit.shape
    shares = [1.0 if table in fit.files else folder.nearest(shape.layouts[table])[0] for table in shape.core]
    return sum(shares) / len(shares) if shape.needs_all else max(shares)


def _one(folder: Folder, shape: Shape, table: str) -> tuple[list[str], list[str]]:
    """(the file that is a table of one file, if any; what is wrong with those that should be)."""
    layout = shape.layouts[table]
    named = files_of(shape.declared["tables"][table], folder.files)
    if folder.only in named:
        named = [folder.only]
    if folder.only not in named and (renamed := _renamed(folder, shape, table, [folder.only] if folder.only else [])):
        return renamed, []
    if len(named) > 1:
        return [], [f"the table {table} is there more than once: {listing(named)}; keep one of them."]
    if named:
        return (named, []) if folder.known(named[0], layout) else ([], [folder.problem(named[0], layout)])
    others = _renamed(folder, shape, table, folder.looked_at)
    if len(others) > 1:
        each = listing([said(file) for file in others])
        return [], [f"each of {each} could be the table {table}; name one of them, as in DATA=folder/file."]
    return others, []


def _renamed(folder: Folder, shape: Shape, table: str, files: Sequence[str]) -> list[str]:
    """Those of the files that are a core table by their header, not by their name, and no other table sooner."""
    layout = shape.layouts[table]
    if table not in shape.core or not layout.header:
        return []
    tables = shape.declared["tables"]
    others = [other for other in tables if other != table]
    taken = {file for other in others if "file" in tables[other] for file in files_of(tables[other], files)}
    rivals = [shape.layouts[other] for other in others if other in shape.core and shape.layouts[other].header]
    return [
        file
        for file in files
        if file not in taken
        and (known := folder.known(file, layout))
        and not any(folder.known(file, rival) > known for rival in rivals)
    ]


def _every(folder: Folder, shape: Shape, table: str) -> tuple[list[str], list[str]]:
    """(the files of a table that takes every file of an ending; what is wrong with those that would be taken)."""
    layout = shape.layouts[table]
    beside = set(files_beside(shape, folder.files).values())
    beside |= {file for files in tables_beside(folder, shape).values() for file in files}
    taken = [file for file in files_of(shape.declared["tables"][table], folder.files) if file not in beside]
    looked_at = [folder.only] if folder.only else taken[:MOST_FILES]
    fits = {file: bool(folder.known(file, layout)) for file in looked_at}
    right, strays = ([file for file in looked_at if fits[file] is on] for on in (True, False))
    if len(right) > 1 and strays:
        which = listing([said(file) for file in strays], 6)
        return [], [
            f"other files would be read as its table {table} too: {which}. Move them elsewhere, or name the one file "
            "you mean, as in DATA=folder/file."
        ]
    if right:
        return (right if strays or folder.only else taken), []
    others = _renamed(folder, shape, table, folder.looked_at)
    return (others, []) if len(others) == 1 else ([], [])

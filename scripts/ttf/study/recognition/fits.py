"""How well a folder fits each known format, by names of files and by headers.

Only the start of a plain file is read, once.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from ttf.engine.storage.plain_files import is_ignored
from ttf.raw.headers import RequestedColumn
from ttf.raw.node_logs.layouts import Layout as LogLayout
from ttf.raw.node_logs.layouts import describe_unread_form, detect_layout
from ttf.raw.training_logs.recognised_lines import is_training_log
from ttf.study.configuration.mapping import OUTAGE_KEYS
from ttf.study.configuration.messages import ConfigError
from ttf.study.recognition.entries import format_listing, select_table_files
from ttf.study.recognition.first_lines import (
    MOST_BYTES,
    Layout,
    build_layouts,
    parse_names,
    read_first_bytes,
    read_names,
    show_name,
)
from ttf.study.recognition.format_declarations import READING_KEYS, load_recipes
from ttf.study.trace_files import FILE_KEYS, LOG_KEYS, find_log_key, get_tables, is_log_format

# In a larger folder, only this many files are inspected here; loading the study checks all of them.
MOST_FILES = 1_000
# A table of outages whose columns have the names of the mapping's keys needs no mapping; only these are required.
OUTAGE_COLUMNS = ("unit", "start", "end")
# A missing table is compared with this many files.
MOST_COMPARED = 50
# A subfolder of which the first files are logs of one kind is a folder of logs.
MOST_LOGS = 5
# A file with this share of a table's columns is meant as that table, with a fault.
NEAR_SHARE = 0.8
MOST_SETTINGS_BYTES = 1 << 22


class Shape(NamedTuple):
    """A way to read a folder: a format, or the format table with the mapping of a trace in the registry.

    layouts: table -> expected first line. source: what else has the mapping. entry_options: the keys of its entry.
    """

    format: str
    declaration: dict
    layouts: dict[str, Layout]
    source: str = ""
    entry_options: Mapping = {}

    @property
    def core_tables(self) -> list[str]:
        """Return the required tables; all tables if none is required."""
        tables = self.declaration["tables"]
        return [name for name, spec in tables.items() if spec["required"]] or list(tables)

    @property
    def has_required_tables(self) -> bool:
        return any(spec["required"] for spec in self.declaration["tables"].values())

    @property
    def label(self) -> str:
        return f"{self.format}, {self.source}" if self.source else self.format


class Fit(NamedTuple):
    """The result of fitting a shape to a folder.

    files: table -> matching files. missing_tables: required, but absent. problems: what else prevents reading.
    """

    shape: Shape
    files: dict[str, list[str]]
    missing_tables: list[str]
    problems: list[str]

    @property
    def is_match(self) -> bool:
        return not self.missing_tables and not self.problems


@dataclass(frozen=True, eq=False)
class Folder:
    """The plain files of a folder, sorted by name. named_file: the file that the user named, which must be a table.

    subfolders: the names of its folders.
    """

    path: Path
    files: list[str]
    named_file: str | None = None
    subfolders: Sequence[str] = ()

    @property
    def inspected_files(self) -> list[str]:
        return [self.named_file] if self.named_file else self.files[:MOST_FILES]

    def read_names(self, file: str, layout: Layout) -> list[str] | None:
        """Return the names at the start of a file, as read_names."""
        if layout.parquet and file.lower().endswith(".parquet"):
            return read_names(f"{self.path}/{file}", layout)
        return None if (head := self._read_head(file)) is None else parse_names(head, layout)

    @cache  # noqa: B019 one folder a process
    def _read_head(self, file: str) -> bytes | None:
        return read_first_bytes(f"{self.path}/{file}")

    def find_log_key(self, file: str, is_alone: bool = True) -> str | None:
        """Return the key of LOG_KEYS under which the file can be read; None if it is no log.

        is_alone: also if it is a log of a node whose times count from an unknown start.
        """
        if self._is_training_log(file):
            return "training_logs"
        layout = self._detect_layout(file)
        return None if layout is None or (layout.needs_boot and not is_alone) else "node_logs"

    @cache  # noqa: B019 one folder a process
    def _detect_layout(self, file: str) -> LogLayout | None:
        return detect_layout(self._read_head(file) or b"") if is_usable_name(file) else None

    @cache  # noqa: B019 one folder a process
    def _is_training_log(self, file: str) -> bool:
        head = (self._read_head(file) or b"") if is_usable_name(file) else b""
        is_training = is_training_log(head)
        if file == self.named_file and len(head) == MOST_BYTES and not is_training:
            # A log may print its settings first.
            return is_training_log(read_first_bytes(f"{self.path}/{file}", MOST_SETTINGS_BYTES) or b"")
        return is_training

    def describe_unread_forms(self) -> Iterator[str]:
        """Yield what files are that no format reads, and how to print them again."""
        for file in self.inspected_files[:MOST_COMPARED]:
            if self.find_log_key(file) is None and (words := describe_unread_form(self._read_head(file) or b"")):
                yield f"{show_name(file)}: {words}."

    @cached_property
    def log_folders(self) -> dict[str, list[str]]:
        """Map each key of LOG_KEYS to the subfolders of which the first files are such logs."""
        key_by_folder = {name: self._find_folder_key(name) for name in self.subfolders[:MOST_COMPARED]}
        return {key: [name for name in key_by_folder if key_by_folder[name] == key] for key in LOG_KEYS}

    def _find_folder_key(self, name: str) -> str | None:
        try:
            files = sorted(item.name for item in (self.path / name).iterdir() if item.is_file())
        except OSError:
            return None
        files = [file for file in files if not is_ignored(file)][:MOST_LOGS]
        keys = {self.find_log_key(f"{name}/{file}") for file in files} if is_usable_name(name) else set()
        return keys.pop() if len(keys) == 1 else None

    def count_columns(self, file: str, layout: Layout) -> int:
        """Return the number of the table's columns in this file's header; 0 if the file cannot be this table."""
        if layout.first:
            head = (self._read_head(file) or b"").decode(errors="replace") if is_usable_name(file) else ""
            return int(all(re.search(pattern, head) for pattern in layout.first))
        names = self.read_names(file, layout) if is_usable_name(file) else None
        if not names or not layout.header:
            return len(names or ()) if len(names or ()) == len(layout.columns) else 0
        fit = layout.fit(names)
        return len(fit.column_by_name) if fit.is_valid else 0

    def describe_problem(self, file: str, layout: Layout) -> str:
        """Return why a file cannot be the table."""
        names = self.read_names(file, layout)
        if not is_usable_name(file):
            return f"{show_name(file)}: its name has a character that is not supported; rename it."
        if names is None:
            return f"{show_name(file)}: cannot be read as {'a JSON array of objects' if layout.json else 'a table'}."
        if not layout.header:
            return f"{show_name(file)}: has {len(names)} columns in its first line; expected {len(layout.columns)}."
        return f"{show_name(file)}: {layout.describe_problem(names)}"

    def measure_shares(self, file: str, layout: Layout) -> tuple[float, float]:
        """Return the share of a table's columns that a file has: as written, and in another case; at any delimiter."""
        names = self.read_names(file, layout) or []
        names = re.split(r"[,;|\s]+", names[0]) if len(names) == 1 else names
        wanted = [column for column in layout.columns if not column.optional]
        folded = {name.casefold() for name in names}
        close = sum(any(word.casefold() in folded for word in (column.name, *column.also)) for column in wanted)
        number = max(1, len(wanted))
        return (len(wanted) - len(layout.fit(names).missing)) / number, close / number

    def is_nearly(self, file: str, shape: "Shape") -> bool:
        """Return whether a file has the name of a table of this shape, or most of the columns of a core table."""
        tables = shape.declaration["tables"]
        if any("file" in spec and select_table_files(spec, [file]) for spec in tables.values()):
            return True
        layouts = [shape.layouts[table] for table in shape.core_tables]
        layouts = [layout for layout in layouts if layout.header and not layout.json]
        return any(self.measure_shares(file, layout)[0] >= NEAR_SHARE for layout in layouts)

    def find_nearest_file(self, layout: Layout) -> tuple[float, str]:
        """Return (share, file) of the file that has most of a table's columns; a wrong case counts half."""
        files = self.inspected_files[:MOST_COMPARED] if layout.header else []
        shares = ((sum(self.measure_shares(file, layout)) / 2, file) for file in files)
        return max(shares, key=lambda pair: pair[0], default=(0.0, ""))


def is_usable_name(text: str) -> bool:
    return text.isprintable() and not set(text) & set("{}\\")


def list_folder(data: Path) -> Folder:
    """Return the plain files of a folder, or of a file's folder. Raises ConfigError if there are none."""
    label = show_name(str(data))
    if not str(data).isprintable():
        raise ConfigError(f"{label}: the path has a character that the study cannot use; rename the folder.")
    try:
        is_file = data.is_file()
        if not is_file and not data.is_dir():
            reason = "it is neither a folder nor a plain file" if data.exists() else "there is no such folder or file"
            raise ConfigError(f"{label}: {reason} (relative to the current folder).")
        entries = {path.name: path.is_file() for path in (data.parent if is_file else data).iterdir()}
    except (OSError, ValueError) as error:  # a name that is too long, a folder that may not be read
        raise ConfigError(f"{label}: cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    files = sorted(name for name, is_plain in entries.items() if is_plain)
    if not files:
        content = f", only: {format_listing([show_name(name) for name in sorted(entries)])}" if entries else ""
        raise ConfigError(f"{label}: the folder contains no file{content}. Name the folder with the raw tables.")
    subfolders = sorted(name for name, is_plain in entries.items() if not is_plain and not is_ignored(name))
    return Folder(data.parent, files, data.name, subfolders) if is_file else Folder(data, files, None, subfolders)


def build_shapes(formats: dict, registry: dict) -> Iterator[Shape]:
    """Yield the shapes of formats with a schema or outages, then those of the registry's traces with a mapping."""
    for name, declaration in formats.items():
        if "schema" in declaration:
            yield Shape(name, declaration, build_layouts({}, declaration))
        elif name == "outages":
            keys = [*OUTAGE_COLUMNS, *(key for key in OUTAGE_KEYS if key not in ("unit", "duration"))]
            mapping = {key: key for key in keys}
            layouts = build_layouts({"mapping": mapping}, declaration)
            columns = tuple(RequestedColumn(key, optional=key not in OUTAGE_COLUMNS) for key in keys)
            layouts["rows"] = layouts["rows"]._replace(columns=columns)
            yield Shape(name, declaration, layouts, entry_options={"mapping": mapping})
    for registry_trace, entry in registry.items():
        if "mapping" in entry:
            yield _build_mapped_shape(formats, entry, f"mapped as {registry_trace} of the registry")


def build_recipe_shapes(formats: dict) -> Iterator[Shape]:
    """Yield the shapes of the recipes in config/mappings for files of records."""
    for label, entry in load_recipes():
        if "records" in entry:
            yield _build_mapped_shape(formats, entry, f"by the recipe {label}")


def _build_mapped_shape(formats: dict, entry: dict, source: str) -> Shape:
    declaration = formats[entry["format"]] | {"tables": get_tables(entry, formats)}
    entry_options = {key: entry[key] for key in (*READING_KEYS, "infra_failures") if key in entry}
    return Shape(entry["format"], declaration, build_layouts(entry, declaration), source, entry_options)


def find_extra_files(shape: Shape, files: Sequence[str]) -> dict[str, str]:
    """Map keys of the registry to files in the folder with the name in the format's sample."""
    names_by_key = shape.declaration["sample"]["files"] if "sample" in shape.declaration else {}
    return {key: name for key, name in names_by_key.items() if key in FILE_KEYS and name in files}


def find_extra_tables(folder: Folder, shape: Shape) -> dict[str, list[str]]:
    """Map each table with its own registry key to the files in the folder that have its header."""
    return {
        table: files
        for table, spec in shape.declaration["tables"].items()
        if "beside" in spec
        and (files := [file for file in folder.files[:MOST_FILES] if folder.count_columns(file, shape.layouts[table])])
    }


LOG_WORDS = {"node_logs": "logs of nodes", "training_logs": "logs of training runs"}


def match_logs(folder: Folder, key: str) -> tuple[list[str], list[str]]:
    """Return (the logs in a folder that has nothing else, problems of its other files). key: of LOG_KEYS."""
    names = [folder.named_file] if folder.named_file else [name for name in folder.files if not is_ignored(name)]
    logs = [name for name in names[:MOST_FILES] if folder.find_log_key(name) == key]
    is_empty = {name: not (folder.path / name).stat().st_size for name in names[:MOST_FILES] if name not in logs}
    strays = [show_name(name) for name in is_empty if not is_empty[name]]
    if logs and strays:
        listing = format_listing(strays, 6)
        return [], [f"no {LOG_WORDS[key]} are {listing}; move them elsewhere, or name the one log you mean."]
    return (names if logs else []) + ([] if folder.named_file or strays else folder.log_folders[key]), []


def find_logs(folder: Folder, shape: Shape) -> dict[str, list[str]]:
    """Map each key of LOG_KEYS to the files and folders beside the tables of jobs that are such logs."""
    if shape.declaration["gives"] != "jobs" or shape.entry_options.get("times", {}).get("format") == "seconds":
        return {key: [] for key in LOG_KEYS}
    extra_names = set(find_extra_files(shape, folder.files).values())
    layouts = [shape.layouts[table] for table in shape.declaration["tables"]]
    files = [
        file
        for file in folder.files[:MOST_FILES]
        if file not in extra_names
        and file != folder.named_file
        and not is_ignored(file)
        and folder.find_log_key(file, is_alone=False) is not None
        and not any(layout.header and folder.count_columns(file, layout) for layout in layouts)
    ]
    return {
        key: [file for file in files if folder.find_log_key(file) == key] + folder.log_folders[key] for key in LOG_KEYS
    }


def fit_shape(folder: Folder, shape: Shape) -> Fit:
    extra_tables = {} if is_log_format(shape.declaration) else find_extra_tables(folder, shape)
    files: dict[str, list[str]] = {}
    missing_tables, problems = [], []
    for table, spec in shape.declaration["tables"].items():
        if key := find_log_key(shape.declaration):
            table_files, table_problems = match_logs(folder, key)
        elif "beside" in spec:
            continue
        else:
            match = _match_all_files if "every" in spec else _match_single_file
            table_files, table_problems = match(folder, shape, table)
        files |= {table: table_files} if table_files else {}
        problems += table_problems
        if spec["required"] and not table_files and not table_problems:
            missing_tables.append(table)
    if not missing_tables and not problems and not files.keys() & set(shape.core_tables):
        missing_tables = shape.core_tables
    if shape.declaration.get("one_table") and len(files) > 1:
        names = " and ".join(show_name(file) for table_files in files.values() for file in table_files)
        problems.append(f"{names} are separate traces; put each into its own folder.")
    name = folder.named_file
    if name and not missing_tables and not problems and not any(name in names for names in files.values()):
        problems.append(f"{show_name(name)} is not one of its tables.")
    return Fit(shape, files | extra_tables, missing_tables, problems)


def measure_column_share(folder: Folder, fit: Fit) -> float:
    """Return the share of the core tables' columns that exist: the mean, or the maximum if one table suffices."""
    shape = fit.shape
    shares = [
        1.0 if table in fit.files else folder.find_nearest_file(shape.layouts[table])[0] for table in shape.core_tables
    ]
    return sum(shares) / len(shares) if shape.has_required_tables else max(shares)


def _match_single_file(folder: Folder, shape: Shape, table: str) -> tuple[list[str], list[str]]:
    """Return (the file of a single-file table if there is one, problems of its candidates)."""
    layout = shape.layouts[table]
    names = select_table_files(shape.declaration["tables"][table], folder.files)
    requested = [folder.named_file] if folder.named_file else []
    if folder.named_file in names:
        names = requested
    elif renamed := _match_by_header(folder, shape, table, requested):
        return renamed, []
    if len(names) > 1:
        return [], [f"the table {table} has several files: {format_listing(names)}; keep one of them."]
    if names:
        is_match = folder.count_columns(names[0], layout)
        return (names, []) if is_match else ([], [folder.describe_problem(names[0], layout)])
    candidates = _match_by_header(folder, shape, table, folder.inspected_files)
    if len(candidates) > 1:
        listing = format_listing([show_name(file) for file in candidates])
        return [], [f"each of {listing} could be the table {table}; name one of them, as in ttf report folder/file."]
    return candidates, []


def _match_by_header(folder: Folder, shape: Shape, table: str, files: Sequence[str]) -> list[str]:
    """Return the files that are a core table by their header, not by their name, and fit no other table better."""
    layout = shape.layouts[table]
    if table not in shape.core_tables or not layout.header:
        return []
    tables = shape.declaration["tables"]
    specs = [spec for name, spec in tables.items() if name != table and "file" in spec]
    taken_names = {file for spec in specs for file in select_table_files(spec, files)}
    rivals = [shape.layouts[name] for name in shape.core_tables if name != table and shape.layouts[name].header]
    return [
        file
        for file in files
        if file not in taken_names
        and (count := folder.count_columns(file, layout))
        and not any(folder.count_columns(file, rival) > count for rival in rivals)
    ]


def _match_all_files(folder: Folder, shape: Shape, table: str) -> tuple[list[str], list[str]]:
    """Return (the files of a multi-file table, problems of files that it would include)."""
    layout = shape.layouts[table]
    extra_names = set(find_extra_files(shape, folder.files).values())
    extra_names |= {file for files in find_extra_tables(folder, shape).values() for file in files}
    extra_names |= {*itertools.chain(*find_logs(folder, shape).values())}
    candidates = select_table_files(shape.declaration["tables"][table], folder.files)
    candidates = [file for file in candidates if file not in extra_names]
    inspected = [folder.named_file] if folder.named_file else candidates[:MOST_FILES]
    matches = [file for file in inspected if folder.count_columns(file, layout)]
    strays = [file for file in inspected if file not in matches]
    if len(matches) > 1 and strays:
        names = format_listing([show_name(file) for file in strays], 6)
        return [], [
            f"the table {table} would include other files: {names}. Move them elsewhere, or name the one file "
            "you mean, as in ttf report folder/file."
        ]
    if matches:
        return (matches if strays or folder.named_file else candidates), []
    renamed_files = _match_by_header(folder, shape, table, folder.inspected_files)
    return (renamed_files, []) if len(renamed_files) == 1 else ([], [])

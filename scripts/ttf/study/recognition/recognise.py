"""Recognition of the format of a folder of raw tables, so that a study runs without a configuration.

Headers and names of files decide, by the declarations of the formats. A table of any other layout (the format table)
is recognised by the mappings of traces in the registry; for an unknown one a mapping is drafted.
"""

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from ttf.engine.checkout import CHECKOUT
from ttf.engine.storage.plain_files import is_ignored
from ttf.study.configuration.config import SCHEMA, TRACES_FILE
from ttf.study.configuration.documents import get_child_schema, to_inline_yaml
from ttf.study.configuration.mapping import list_mapped_columns
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.recognition.entries import describe_expected_file, format_listing, select_table_files
from ttf.study.recognition.first_lines import build_layouts, show_name
from ttf.study.recognition.fits import (
    LOG_WORDS,
    MOST_COMPARED,
    Fit,
    Folder,
    Shape,
    build_recipe_shapes,
    build_shapes,
    find_extra_files,
    find_extra_tables,
    find_logs,
    fit_shape,
    list_folder,
    measure_column_share,
)
from ttf.study.recognition.format_declarations import READING_KEYS, load_formats
from ttf.study.trace_files import (
    FILE_KEYS,
    find_log_key,
    find_raw_tables,
    get_tables,
    is_log_format,
    list_paths,
    map_archives,
)

TRACES = CHECKOUT / TRACES_FILE
MOST_NEAREST = 3
# A format with a lower share of its columns is no candidate.
LEAST_SHARE = 0.5
LONGEST_TRACE_NAME = 60
# Lines of the message about a draft to complete, and the width of those that say what was found.
MOST_LINES, MOST_KEYS, WIDTH = 10, 5, 160
# A draft is tried for this many files of a folder.
MOST_DRAFTS = 5


@dataclass(frozen=True)
class RecognisedTrace:
    """A trace in a recognised format: its name, its entry in the registry, and why the format fits.

    missing: keys of a drafted entry that the user must complete -> how.
    """

    format: str
    name: str
    entry: dict
    explanation: str
    missing: Mapping[str, str] = field(default_factory=dict)


def recognise(data: Path) -> RecognisedTrace:
    """Return the format of the raw tables in a folder; for a file, of the file and its tables in the same folder.

    Only the first lines of plain files are read. The entry names files whose names do not say which table they are, and
    extra files (health events, losses). If no format fits, even nearly, it is drafted for a table of jobs. Raises
    ConfigError for a missing or empty folder, and if no format or several formats fit; the message lists the closest
    formats and what they lack, or how to choose.
    """
    folder, formats, registry = list_folder(Path(data)), load_formats(), _load_registry()
    fits = [fit_shape(folder, shape) for shape in build_shapes(formats, registry)]
    matching_fits = [fit for fit in fits if fit.is_match]
    # Node events next to jobs are part of that trace, not a trace of their own.
    matching_fits = [
        fit
        for fit in matching_fits
        if not any(_list_matched_files(fit) < _list_matched_files(other_fit) for other_fit in matching_fits)
    ]
    # A table that is also a log, as of events with a node and a time, is read as the table.
    matching_fits = [fit for fit in matching_fits if not is_log_format(fit.shape.declaration)] or matching_fits
    # Files of records, of which the first recipe counts.
    recipe_fits = (fit_shape(folder, shape) for shape in build_recipe_shapes(formats))
    matching_fits = matching_fits or [fit for fit in recipe_fits if fit.is_match][:1]
    if not matching_fits:
        archives = [*_suggest_unpacking(folder, registry)]
        if not archives and (drafted := _draft_trace(folder, fits, formats, registry)):
            return drafted
        unread_forms = [*folder.describe_unread_forms()]
        if unread_forms and len(unread_forms) == len(folder.inspected_files) and not any(fit.files for fit in fits):
            raise ConfigError("\n".join(unread_forms))
        raise ConfigError("\n".join([*_explain_no_match(folder, fits), *unread_forms, *archives]))
    if len(matching_fits) > 1:
        raise ConfigError(_explain_ambiguity(folder, matching_fits))
    entry = _build_entry(folder, matching_fits[0])
    is_record_file = folder.named_file and "records" in entry
    data_name = str(folder.named_file).partition(".")[0] if is_record_file else folder.path.resolve().name
    name = _choose_trace_name(data_name, entry, registry, formats)
    lines = [*_explain_fit(matching_fits[0]), *_explain_unread(folder, matching_fits[0], entry)]
    for key, logs in find_logs(folder, matching_fits[0].shape).items():
        listing = format_listing([show_name(name) for name in logs])
        lines += [f"{LOG_WORDS[key].capitalize()}: {listing}."] if logs else []
    return RecognisedTrace(entry["format"], name, entry, "\n".join(lines))


@cache
def _load_registry() -> dict:
    return load_yaml(TRACES, TRACES_FILE)


def _draft_trace(folder: Folder, fits: list[Fit], formats: dict, registry: dict) -> RecognisedTrace | None:
    """Return a draft for an unknown table of jobs; None if a file is nearly one of a format, or there is no table.

    Raises ConfigError for a table that no draft can describe, and for files that cannot be read.
    """
    if any(folder.is_nearly(file, fit.shape) for fit in fits for file in folder.inspected_files[:MOST_COMPARED]):
        return None
    from ttf.study.recognition.unknown_file import draft_file  # takes 0.1 s, and only such tables need it

    declaration, named_file = formats["table"], folder.named_file
    others = [file for file in folder.files if not is_ignored(file)]
    files = [named_file] if named_file else select_table_files(declaration["tables"]["rows"], folder.files)
    files = files or (others if len(others) == 1 else [])
    drafts, refusals = {}, []
    for file in files[:MOST_DRAFTS]:
        try:
            drafts[file] = draft_file(folder.path / file)
        except ConfigError as refusal:
            refusals.append(str(refusal))
    if not drafts and refusals and not any(fit.files for fit in fits):
        which = f"{show_name(str(folder.path))}: no file is a table of jobs. The first is:\n"
        raise ConfigError(which * (len(refusals) > 1) + refusals[0])
    if not drafts:
        return None
    file = min(drafts, key=lambda file: len(drafts[file][1].missing))
    heading, draft = drafts[file]
    layouts = build_layouts(draft.entry | {"mapping": {name: name for name in draft.columns}}, declaration)
    declaration = declaration | {"tables": get_tables(draft.entry | {"format": "table"}, formats)}
    fit = fit_shape(folder, Shape("table", declaration, layouts, "", draft.entry))
    if not fit.is_match:
        problems = fit.problems or [folder.describe_problem(file, layouts["rows"])]
        raise ConfigError(f"{show_name(str(folder.path))}: {' '.join(problems)}")
    entry = _build_entry(folder, fit)
    data_name = named_file.partition(".")[0] if named_file else folder.path.resolve().name
    name = _choose_trace_name(data_name, entry, registry, formats)
    lines = [f"{show_name(file)}: {heading}", *draft.explanation, *_explain_unread(folder, fit, entry)]
    return RecognisedTrace("table", name, entry, "\n".join(lines), draft.missing)


def _explain_unread(folder: Folder, fit: Fit, entry: Mapping) -> list[str]:
    """Return which files of a folder are not read, if only one of them has the columns of a table of many files."""
    tables = fit.shape.declaration["tables"]
    if folder.named_file or not any("every" in tables[table] for table in entry.get("files", {})):
        return []
    used = {*_list_matched_files(fit), *find_extra_files(fit.shape, folder.files).values()}
    used |= {*itertools.chain(*find_logs(folder, fit.shape).values())}
    names = [show_name(file) for file in folder.files if file not in used and not is_ignored(file)]
    return [f"Not read: {format_listing(names)}. Their columns are not those of {format_listing(sorted(used), 3)}."]


def _choose_trace_name(data_name: str, entry: dict, registry: dict, formats: dict) -> str:
    names = _suggest_trace_names(data_name, registry)
    return next(name for name in names if _is_free(name, entry, registry, formats))


def _list_matched_files(fit: Fit) -> set[str]:
    return {file for files in fit.files.values() for file in files}


def format_configuration(recognised: RecognisedTrace) -> str:
    """Return the YAML of a study of the recognised trace, with comments, for the user to edit."""
    comments = recognised.explanation.splitlines()
    if "mapping" in recognised.entry:
        comments.append("Check the mapping, units, time zone and outcomes: names and first rows are all that was read.")
    comments += [f"To complete: {key}: {text}" for key, text in recognised.missing.items()]
    comments.append("config/README.md explains these and other keys, such as title, source, note and windows.")
    document = {"study": [recognised.name], "registry": {recognised.name: recognised.entry}}
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    return "".join(f"# {line}\n" for line in comments) + text


def format_missing_keys(recognised: RecognisedTrace, file: Path, data: Path) -> str:
    """Return what a draft found and lacks, in at most MOST_LINES lines; the command is the last."""
    lines = [
        line if len(line) <= WIDTH else f"{line[:WIDTH].rpartition(' ')[0]} ..."
        for line in recognised.explanation.splitlines()
    ]
    keys = [f"  {key}: {text}" for key, text in recognised.missing.items()]
    more = [f"  and {len(keys) - MOST_KEYS} more, which are null"] if len(keys) > MOST_KEYS else []
    heading = f"Complete under registry.{recognised.name} in {file}:"
    last = [heading, *keys[:MOST_KEYS], *more, "Then type:", f"  ttf report {shlex.quote(str(data))}"]
    return "\n".join([*lines[: MOST_LINES - len(last)], *last])


def find_new_files(recognised: RecognisedTrace, document: Mapping) -> list[str]:
    """Return the lines for an edited configuration that name the files beside the tables which it does not name."""
    registry = document.get("registry")
    entry = registry.get(recognised.name, {}) if isinstance(registry, dict) else {}
    lines = []
    for key in FILE_KEYS if isinstance(entry, dict) else ():
        named, recognised_paths = list_paths(entry, key), list_paths(recognised.entry, key)
        if new_paths := [path for path in recognised_paths if path not in named]:
            paths = named + new_paths if isinstance(recognised.entry[key], list) else recognised.entry[key]
            lines.append(f"To use {format_listing(new_paths)} too, write under registry.{recognised.name}:")
            lines.append(f"  {key}: {to_inline_yaml(paths)}")
    return lines


# The entry ----------------------------------------------------------------------------------------------


def _build_entry(folder: Folder, fit: Fit) -> dict:
    """Return the entry in the registry by which the folder is read."""
    shape, path = fit.shape, str(folder.path)
    path_by_key = find_extra_files(shape, folder.files)
    tables = shape.declaration["tables"]
    keyed_files = {} if is_log_format(shape.declaration) else _map_keys(shape, fit.files)
    logs = find_logs(folder, shape)
    other_files = {*itertools.chain(*logs.values()), *path_by_key.values(), *itertools.chain(*keyed_files.values())}
    table_candidates = [file for file in folder.files if file not in other_files]
    files_by_table = {table: files for table, files in fit.files.items() if "beside" not in tables[table]}
    file_by_table = {
        table: names[0]
        for table, names in files_by_table.items()
        if select_table_files(tables[table], table_candidates) != names
    }
    return (
        {"format": shape.format, "folder": path}
        | ({"files": file_by_table} if file_by_table else {})
        | {key: f"{path}/{file}" for key, file in path_by_key.items()}
        | {key: [f"{path}/{file}" for file in files] for key, files in keyed_files.items()}
        | _name_logs(folder, shape)
        | {key: [f"{path}/{name}" for name in names] for key, names in logs.items() if names}
        | _select_options(folder, fit)
    )


def _name_logs(folder: Folder, shape: Shape) -> dict[str, list[str]]:
    """Return the key of the logs that are the trace's only table, unless they are all files of the folder."""
    key = find_log_key(shape.declaration)
    if key is None:
        return {}
    names = [folder.named_file] if folder.named_file else ["", *folder.log_folders[key]]
    return {key: [f"{folder.path}/{name}".rstrip("/") for name in names]} if names != [""] else {}


def _map_keys(shape: Shape, files_by_table: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Map the registry keys of tables that have one to the files of the table."""
    tables = shape.declaration["tables"]
    return {tables[table]["beside"]: files for table, files in files_by_table.items() if "beside" in tables[table]}


def _select_options(folder: Folder, fit: Fit) -> dict:
    """Return the options of the shape's entry; a mapping of outages has only columns that all files have."""
    options, layouts = dict(fit.shape.entry_options), fit.shape.layouts
    if "records" in options:
        options["records"] = {key: part for key, part in options["records"].items() if key != "first"}
    if fit.shape.format == "outages":
        headers = [folder.read_names(file, layouts["rows"]) or () for file in fit.files["rows"]]
        pairs = zip(options["mapping"].items(), list_mapped_columns(options["mapping"]), strict=True)
        options["mapping"] = {key: part for (key, part), name in pairs if all(name in names for names in headers)}
    return options


def find_keyed_files(data: Path, entry: Mapping) -> dict[str, list[str]]:
    """Map registry keys that the entry lacks to the files of a folder, or beside a file, with the table's header.

    entry: not checked yet. A file with all columns of its mapping is a table of outages, whatever else it holds.
    """
    declaration = load_formats().get(str(entry.get("format")), {"tables": {}})
    if not any("beside" in spec for spec in declaration["tables"].values()):
        return {}
    if log_key := find_log_key(declaration):
        return {} if log_key in entry or data.is_dir() else {log_key: [str(data)]}
    layouts = build_layouts({} if "schema" in declaration else {"mapping": {}}, declaration)
    folder, shape = list_folder(data), Shape(entry["format"], declaration, layouts)
    mapping = entry["mapping"] if isinstance(entry.get("mapping"), dict) else {}
    mapped = {str(part.get("column") if isinstance(part, dict) else part) for part in mapping.values()}
    files_by_table = {
        table: [file for file in files if not mapped or mapped - {*(folder.read_names(file, layouts[table]) or ())}]
        for table, files in find_extra_tables(folder, shape).items()
    }
    return {
        key: [f"{folder.path}/{file}" for file in files]
        for key, files in _map_keys(shape, files_by_table).items()
        if files and key not in entry
    }


def _suggest_trace_names(data_name: str, registry: dict) -> Iterator[str]:
    """Yield valid trace names, the best first: one of the registry (`a-b` matches `a_b`), else new ones."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", data_name)[:LONGEST_TRACE_NAME].strip("_-") or "data"
    equal_names = [registered for registered in registry if registered.replace("-", "_") == name.replace("-", "_")]
    yield from (
        candidate
        for candidate in (*equal_names, name)
        if get_child_schema(SCHEMA["properties"]["registry"], candidate) is not None
    )
    yield f"my_{name}"
    yield from (f"my_{name}_{number}" for number in itertools.count(2))


def _is_free(name: str, entry: dict, registry: dict, formats: dict) -> bool:
    """Return whether the registry has no trace of this name, or describes the same trace."""
    shipped = registry.get(name)
    if not shipped:
        return True
    if "embedded" in shipped or shipped["format"] != entry["format"]:
        return False
    try:
        is_same = find_raw_tables(name, shipped | entry, formats) == find_raw_tables(name, entry, formats)
    except ConfigError:
        return False
    return is_same and all(shipped.get(key) == entry.get(key) for key in READING_KEYS)


# Words --------------------------------------------------------------------------------------------------


def _explain_fit(fit: Fit) -> list[str]:
    """Return why the format fits, and which of its other tables exist."""
    shape = fit.shape
    if is_log_format(shape.declaration):
        words = LOG_WORDS[find_log_key(shape.declaration) or ""]
        return [f"{shape.label}: {words}: {format_listing([show_name(name) for name in fit.files['logs']])}."]
    table = next(table for table in shape.core_tables if table in fit.files)
    layout, file = shape.layouts[table], fit.files[table][0]
    if layout.first:
        return [f"{shape.label}: {show_name(file)} begins like such a file."]
    names = [column.name for column in layout.columns if not column.optional]
    column_list = f"{', '.join(names[:3])}, ..." if len(names) > 3 else ", ".join(names)
    if layout.header:
        evidence = f"has the {'fields' if layout.json else 'columns'} {column_list} of the table {table}"
    else:
        evidence = f"has the name and the {len(layout.columns)} columns of the table {table}"
    files = len(fit.files[table])
    lines = [f"{shape.label}: {show_name(file)}{f', as all {files} files,' if files > 1 else ''} {evidence}."]
    if len(shape.layouts) > 1:
        tables = f"Tables: {', '.join(name for name in shape.layouts if name in fit.files)}"
        missing_tables = ", ".join(name for name in shape.layouts if name not in fit.files)
        lines.append(f"{tables}; optional and missing: {missing_tables}." if missing_tables else f"{tables}.")
    return lines


def _explain_no_match(folder: Folder, fits: list[Fit]) -> list[str]:
    """Return the closest formats and what is missing for each."""
    label = f"{show_name(str(folder.path / (folder.named_file or '')))}"
    data_label = (
        show_name(folder.named_file)
        if folder.named_file
        else f"the folder ({format_listing([show_name(file) for file in folder.files])})"
    )
    shares = [(measure_column_share(folder, fit), fit) for fit in fits]
    near_fits = [(share, fit) for share, fit in shares if share >= LEAST_SHARE or fit.files or fit.problems]
    candidates = [fit for _, fit in sorted(near_fits, key=lambda pair: -pair[0])[:MOST_NEAREST]]
    if candidates:
        lines = [f"{label}: {data_label} matches no format. The closest formats, and what each lacks:"]
        lines += [f"  {fit.shape.label}: {' '.join(_describe_missing(folder, fit))}" for fit in candidates]
    else:
        formats = ", ".join(sorted({fit.shape.format for fit in fits}))
        lines = [f"{label}: {data_label} matches no format, not even approximately.", f"The formats are {formats}."]
        lines.append("What each needs: docs/your-data.md. Name one file to read it as a table: ttf report folder/file")
    return lines


def _suggest_unpacking(folder: Folder, registry: dict) -> Iterator[str]:
    for trace, entry in registry.items():
        for file in sorted({*map_archives(entry).values()} & {*folder.inspected_files}):
            yield (
                f"{show_name(file)} is the archive of the trace {trace}: unpack it, or run ttf report --config my.yaml "
                f"with study: [{trace}] and registry: {{{trace}: {{folder: {show_name(str(folder.path))}}}}}."
            )


def _describe_missing(folder: Folder, fit: Fit) -> Iterator[str]:
    """Yield what a fit lacks; for a missing table also the most similar file."""
    for table in fit.missing_tables:
        spec, layout = fit.shape.declaration["tables"][table], fit.shape.layouts[table]
        share, file = folder.find_nearest_file(layout)
        is_close = share >= LEAST_SHARE and not folder.count_columns(file, layout)
        hint = f"; most similar is {folder.describe_problem(file, layout)}" if is_close else "."
        yield f"the table {table} is missing, expected {describe_expected_file(spec)}{hint}"
    yield from fit.problems


def _explain_ambiguity(folder: Folder, fits: list[Fit]) -> str:
    """Return the formats that fit, and how to choose one."""
    lines = [f"{show_name(str(folder.path))}: more than one format fits:"]
    lines += [f"  {_explain_fit(fit)[0]}" for fit in fits]
    lines.append(
        "Name a file of the right one, as in ttf report folder/file, move the others elsewhere, or choose in a "
        f"configuration: ttf report --config my.yaml with registry: {{mine: {{format: {fits[0].shape.format}, "
        f"folder: {show_name(str(folder.path))}}}}}."
    )
    return "\n".join(lines)

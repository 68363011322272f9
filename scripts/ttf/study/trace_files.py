"""The raw files of a trace, found when the DAG is built from the registry and the entries of its folder."""

import itertools
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from ttf.engine.storage.plain_files import is_ignored
from ttf.raw.raw_files import ARCHIVES, split_archive_path
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.named_files import require_file
from ttf.study.recognition.entries import (
    Entry,
    describe_expected_file,
    describe_packings,
    escape_name,
    explain_unread_entries,
    find_problems,
    format_listing,
    list_entries,
    select_table_files,
)

# Logs are read in blocks, so only a wrong file is larger.
NODE_LOG_MB = 1_000_000
# Keys of an entry for files besides the tables; these files may lie in the trace's folder, with any ending.
FILE_KEYS = ("health_events", "loss_log", "log_tails", "node_events", "node_logs", "training_logs", "units")
# Keys of an entry for logs, which are files or folders. Each is also a format: logs without another table.
LOG_KEYS = ("node_logs", "training_logs")


def get_tables(entry: dict, formats: dict) -> dict[str, dict]:
    """Return the tables of the entry's format; files of records have any name."""
    tables = formats[entry["format"]]["tables"]
    any_name = {"every": [""]} if "records" in entry else {}
    return {table: spec | (any_name if "every" in spec else {}) for table, spec in tables.items()}


def find_raw_tables(trace: str, entry: dict, formats: dict) -> dict[str, list[str]]:
    """Map each table that the trace has to its files, in the format's order.

    Paths start with the folder as typed. Files of an embedded sample, and tables that rule fetch downloads, may not
    exist yet. Raises ConfigError for a missing folder, a missing required table, several files for a table of one file,
    and an impossible download.
    """
    tables = get_tables(entry, formats)
    if entry.get("embedded"):
        generated = list_sample_files(trace, entry, formats)
        folder_tables = {
            table: generated[table] for table, spec in tables.items() if table in generated and "beside" not in spec
        }
        return folder_tables | find_keyed_tables(trace, entry, tables, [*itertools.chain(*generated.values())])
    if isinstance(entry["folder"], list):
        parts = find_parts(trace, entry, formats).values()
        files_by_table = {table: [files[table] for files in parts if table in files] for table in tables}
        return {table: files for table, files in files_by_table.items() if files}
    folder = Path(entry["folder"])
    label = f"registry.{trace}.folder: {entry['folder']}"
    downloads = _plan_downloads(trace, entry)
    if not folder.is_dir() and (folder.exists() or not downloads):
        needed = ", ".join(describe_expected_file(spec) for spec in tables.values() if spec["required"])
        raise ConfigError(
            f"{label}: there is no such folder (relative to the current folder). Name the folder that holds "
            f"{needed}{_describe_download(trace, entry)}." + _describe_manual_download(trace, entry)
        )
    entries = _list_entries(trace, entry) if folder.is_dir() else []
    in_folder = {table: spec for table, spec in tables.items() if "beside" not in spec}
    archives = set(map_archives(entry).values())
    messages = find_problems([item for item in entries if item.name not in archives], in_folder, entry.get("files", {}))
    if messages:
        raise ConfigError("\n".join(f"{label}: {problem}" for problem in messages))
    names_present = [item.name for item in entries if not item.problem]
    tables_present = [name for name in names_present if name not in archives]
    files_by_table = {}
    for table, spec in in_folder.items():
        named = entry.get("files", {}).get(table)
        names = [name for name in names_present if name == named] if named else select_table_files(spec, tables_present)
        if len(names) > 1 and "every" not in spec:
            raise ConfigError(
                f"{label}: the table {table} has several files: {', '.join(map(escape_name, names))}. "
                f"Keep one, or name it: registry.{trace}.files.{table}"
            )
        if names:
            # Snakemake warns of ./name.
            files_by_table[table] = [f"{entry['folder'].rstrip('/')}/{name}".removeprefix("./") for name in names]
        elif not named and (archive := map_archives(entry).get(table)) in names_present:
            files_by_table[table] = [f"{entry['folder'].rstrip('/')}/{archive}/{entry['download'][table]['member']}"]
        elif table in downloads and not named:
            files_by_table[table] = [downloads[table]]
        elif spec["required"] or named:
            present = [escape_name(name) for name in names_present]
            raise ConfigError(
                f"{label}: the table {table} is missing: expected {named or describe_expected_file(spec)}"
                + ("" if named else f" {describe_packings(spec)}")
                + f"{_describe_download(trace, entry, table)}. The folder holds: {format_listing(present)}."
                + _describe_manual_download(trace, entry)
            )
    return files_by_table | find_keyed_tables(trace, entry, tables)


def _list_entries(trace: str, entry: dict) -> list[Entry]:
    """Return the entries of the folder without hidden files, README and files that the entry names by other keys."""
    table_files, keyed_files = entry.get("files", {}).values(), _list_keyed_files(entry)
    try:
        entries = list_entries(entry["folder"])
    except OSError as error:
        raise ConfigError(f"registry.{trace}.folder: {entry['folder']}: cannot be read ({error.strerror}).") from None
    # Files of records have any name, but no folder is one.
    entries = [item for item in entries if item.problem != "a folder" or "records" not in entry]
    entries = [item for item in entries if item.name not in keyed_files]
    return [item for item in entries if item.name in table_files or not is_ignored(item.name)]


def find_unread_entries(trace: str, entry: dict, formats: dict) -> dict[str, str]:
    """Map each entry in the trace's folders from which nothing is read to the reason.

    With several folders, the entry starts with the folder's name. Raises ConfigError as find_raw_tables.
    """
    if isinstance(entry.get("folder"), list):
        parts = ((path, find_unread_entries(trace, entry | {"folder": path}, formats)) for path in entry["folder"])
        return {f"{get_part_name(path)}/{name}": reason for path, reasons in parts for name, reason in reasons.items()}
    if entry.get("embedded") or not Path(entry["folder"]).is_dir():
        return {}
    files_by_table, format = find_raw_tables(trace, entry, formats), formats[entry["format"]]
    tables = {table: spec for table, spec in get_tables(entry, formats).items() if "beside" not in spec}
    in_folder = files_by_table if is_log_format(format) else tables
    read = {Path(get_disk_path(file)).name for table in in_folder for file in files_by_table.get(table, ())}
    return explain_unread_entries(_list_entries(trace, entry), tables, read)


def get_part_name(folder: str) -> str:
    return Path(folder).resolve().name if Path(folder).name in ("", "..") else Path(folder).name


def is_log_format(format: dict) -> bool:
    """Return whether the table of the format are logs."""
    return find_log_key(format) is not None


def find_log_key(format: dict) -> str | None:
    """Return the key of the registry for the logs that are the table of the format; None for any other format."""
    keys = (spec.get("beside") for spec in format["tables"].values() if spec["required"])
    return next((key for key in keys if key in LOG_KEYS), None)


def find_log_files(trace: str, key: str, paths: Sequence[str], generated: Collection[str] = ()) -> list[str]:
    """Return the files of logs, those in named folders too.

    key: of LOG_KEYS. generated: files that a rule writes, which may not exist yet. Raises ConfigError for other missing
    files, and for a folder without a file.
    """
    label, files = f"registry.{trace}.{key}", list[str]()
    for path in paths:
        if Path(path).is_dir():
            entries = [item for item in list_entries(path) if not is_ignored(item.name) and item.problem != "a folder"]
            if problem := next((item for item in entries if item.problem), None):
                raise ConfigError(f"{label}: {path}/{escape_name(problem.name)} is {problem.problem}; expected a log.")
            names = [item.name for item in entries]
            if not names:
                raise ConfigError(f"{label}: {path}: the folder contains no file. Name the folder with the logs.")
            files += [f"{path.rstrip('/')}/{name}".removeprefix("./") for name in names]
        else:
            files.append(path if path in generated else require_file(path, label, NODE_LOG_MB))
    return files


def find_keyed_tables(trace: str, entry: dict, tables: dict, generated: Collection[str] = ()) -> dict[str, list[str]]:
    """Map each table that the entry names by its own key to its files.

    generated: files that a rule writes, which may not exist yet. Raises ConfigError for other missing files, and if
    `files` names such a table.
    """
    if key := find_log_key({"tables": tables}):
        paths = list_paths(entry, key) or [entry["folder"]]
        return dict.fromkeys(tables, find_log_files(trace, key, paths, generated))
    files_by_table = {table: list_paths(entry, spec["beside"]) for table, spec in tables.items() if "beside" in spec}
    for table, files in files_by_table.items():
        key = tables[table]["beside"]
        if table in entry.get("files", {}):
            raise ConfigError(f"registry.{trace}.files.{table}: its files have their own key, {key}; name them there.")
        for file in files:
            if file not in generated:
                require_file(get_disk_path(file), f"registry.{trace}.{key}")
    return {table: files for table, files in files_by_table.items() if files}


def list_paths(entry: dict, key: str) -> list[str]:
    paths = entry.get(key, [])
    return [paths] if isinstance(paths, str) else list(paths)


def list_sample_files(trace: str, entry: dict, formats: dict) -> dict[str, list[str]]:
    """Map each name to the files that rule unpack_sample writes: tables and other files of the sample."""
    return {
        name: [f"data/{trace}/{file}" for file in ([files] if isinstance(files, str) else files)]
        for name, files in formats[entry["format"]]["sample"]["files"].items()
    }


def find_parts(trace: str, entry: dict, formats: dict) -> dict[str, dict[str, str]]:
    """Map each part of a trace to table -> file; empty for a trace without parts.

    Parts are the folders that `folder` lists, in that order; or the files of a multi-file table in the order of their
    names. Raises ConfigError as `find_raw_tables`, and for parts with the same name.
    """
    label = f"registry.{trace}.folder"
    tables = get_tables(entry, formats)
    multi_file_tables = [table for table, spec in tables.items() if "every" in spec]
    parts: dict[str, dict[str, str]] = {}
    if isinstance(entry.get("folder"), list):
        if multi_file_tables:
            raise ConfigError(f"{label}: in the format {entry['format']} each file is a part; put all into one folder.")
        if key := find_log_key(formats[entry["format"]]):
            raise ConfigError(f"{label}: name one folder, and all folders under registry.{trace}.{key}.")
        for folder in entry["folder"]:
            name = get_part_name(folder)
            if name in parts:
                raise ConfigError(f"{label}: two parts are called {name}; give their folders different names.")
            files_by_table = find_raw_tables(trace, entry | {"folder": folder}, formats)
            parts[name] = {table: file for table, (file,) in files_by_table.items()}
    else:
        files_by_table = find_raw_tables(trace, entry, formats)
        tables_in_parts = [table for table in multi_file_tables if table not in entry.get("files", {})]
        parts = {Path(file).name: {table: file} for table in tables_in_parts for file in files_by_table[table]}
        # Keyed tables come last, because jobs refer to their part by number.
        keyed_tables = [table for table, spec in tables.items() if "beside" in spec and parts]
        for table in keyed_tables:
            for file in files_by_table.get(table, []):
                if Path(file).name in parts:
                    label = f"registry.{trace}.{tables[table]['beside']}"
                    raise ConfigError(f"{label}: two files are called {Path(file).name}; give each a name of its own.")
                parts[Path(file).name] = {table: file}
    # Products of a part lie in a folder of its name: Snakemake and Polars have to take it.
    if odd := [name for name in parts if re.search("[{}<>\r\n\ud800-\udfff]", name)]:
        fault = "a brace, < or >, a line break, or bytes that are no UTF-8"
        raise ConfigError(f"{label}: {odd[0]!r} has {fault} in its name; rename it.")
    return parts


def find_downloads(trace: str, entry: dict, files: dict[str, list[str]]) -> dict[str, dict]:
    """Map each missing raw file to its `download`; an existing one is no rule's product and is never fetched."""
    downloads = _plan_downloads(trace, entry)
    return {
        Path(get_disk_path(path)).name: _drop_archive_keys(entry["download"][table])
        for table, path in downloads.items()
        if path in files.get(table, []) and not Path(get_disk_path(path)).exists()
    }


def get_disk_path(path: str) -> str:
    """Return the file on disk: for a path into an archive, the archive (see ttf.raw.raw_files)."""
    if not any(f"{ending}/" in path.lower() for ending in ARCHIVES):
        return path
    _, member = split_archive_path(Path(path))
    return path if member is None else path[: -len(str(member)) - 1]


def get_member(path: str) -> str:
    """Return the name inside an archive of a path into it; empty for any other path."""
    return path[len(get_disk_path(path)) + 1 :]


def _plan_downloads(trace: str, entry: dict) -> dict[str, str]:
    """Map each table to the path of its download; empty if the folder is not the workflow's own."""
    if not _is_own_folder(trace, entry):
        return {}
    path_by_table: dict[str, str] = {}
    download_by_path: dict[str, dict] = {}
    for table, download in entry.get("download", {}).items():
        label = f"registry.{trace}.download.{table}"
        if "member" in download and "content_sha256" in download:
            raise ConfigError(f"{label}: content_sha256 works with an archive of one table; remove it or member.")
        if not download["urls"]:
            continue
        if any(url.endswith("*") for url in download.get("parts", [])) and "bytes" not in download:
            raise ConfigError(f"{label}.parts: * needs the number of bytes to know the number of parts; add bytes.")
        path = f"data/{trace}/{get_archive_name(download)}"
        if download_by_path.setdefault(path, _drop_archive_keys(download)) != _drop_archive_keys(download):
            raise ConfigError(f"{label}: another table has the same path {path}, but another source.")
        path_by_table[table] = f"{path}/{download['member']}" if "member" in download else path
    return path_by_table


def _drop_archive_keys(download: dict) -> dict:
    return {key: value for key, value in download.items() if key not in ("archive", "member")}


def get_archive_name(download: dict) -> str:
    """Return the name of the downloaded file, or of the file that the user puts into the folder."""
    return download.get("archive") or download["urls"][0].rpartition("/")[2]


def map_archives(entry: dict) -> dict[str, str]:
    """Map each table to the archive that holds it, as the registry says."""
    return {
        table: get_archive_name(download)
        for table, download in entry.get("download", {}).items()
        if "member" in download and (download["urls"] or "archive" in download)
    }


def _is_own_folder(trace: str, entry: dict) -> bool:
    folder = entry.get("folder")
    return isinstance(folder, str) and Path(folder) == Path("data", trace)


def _describe_manual_download(trace: str, entry: dict) -> str:
    """Say where to get the files and where to put them."""
    if not entry.get("source"):
        return ""
    archives = {
        get_archive_name(item) for item in entry.get("download", {}).values() if item["urls"] or "archive" in item
    }
    archive_note = f" ({', '.join(sorted(archives))} as it is, or unpacked)" if archives else ""
    folder_note = f" Put them{archive_note} into {entry['folder']}." if _is_own_folder(trace, entry) else ""
    return f" Source of the files: {entry['source']}.{folder_note}"


def _describe_download(trace: str, entry: dict, table: str | None = None) -> str:
    downloads = entry.get("download", {})
    if _is_own_folder(trace, entry) or not (downloads.get(table, {}).get("urls") if table else downloads):
        return ""
    return f"; with folder: data/{trace} what is missing is downloaded"


def _list_keyed_files(entry: dict) -> set[str]:
    """Return the names of the files in the trace's folder that the entry names under FILE_KEYS."""
    paths = [Path(path) for key in FILE_KEYS for path in list_paths(entry, key)]
    return {path.name for path in paths if path.parent.resolve() == Path(entry["folder"]).resolve()}

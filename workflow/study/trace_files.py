"""Which raw files a trace has: known when the DAG is built, from the registry and a look into the folder."""

import re
from collections.abc import Collection
from pathlib import Path

from ttf.engine.storage.plain_files import is_ignored
from ttf.raw.raw_files import ARCHIVES, archive_and_member

from study.entries import (
    Entry,
    also_packed,
    entries_of,
    expected_file,
    files_of,
    left_out,
    listing,
    problems,
    said,
)
from study.messages import ConfigError
from study.named_files import given_file

# Files that an entry may name by a key of their own and that may lie in the trace's folder, whatever their endings.
BESIDE = ("health_events", "loss_log", "log_tails", "node_events")


def raw_tables(trace: str, entry: dict, formats: dict) -> dict[str, list[str]]:
    """Table -> its files, as the user typed their folder, in the format's order; only the tables that are there.

    The files of an embedded sample are the ones that rule unpack_sample writes, there or not yet; a table that is
    missing and can be downloaded is the file that rule fetch writes (see to_fetch).
    Raises ConfigError for a folder that is not there, a required table that is not in it, two files for a table of one
    file, and a download that cannot be what was meant.
    """
    tables = formats[entry["format"]]["tables"]
    if entry.get("embedded"):
        made = sample_files(trace, entry, formats)
        own = {table: made[table] for table, spec in tables.items() if table in made and "beside" not in spec}
        return own | tables_beside(trace, entry, tables, [file for files in made.values() for file in files])
    if isinstance(entry["folder"], list):
        parts = parts_of(trace, entry, formats).values()
        found = {table: [files[table] for files in parts if table in files] for table in tables}
        return {table: files for table, files in found.items() if files}
    folder = Path(entry["folder"])
    where = f"registry.{trace}.folder: {entry['folder']}"
    downloads = _downloads(trace, entry)
    if not folder.is_dir() and (folder.exists() or not downloads):
        needed = ", ".join(expected_file(spec) for spec in tables.values() if spec["required"])
        raise ConfigError(
            f"{where}: there is no such folder (seen from where the command is typed). Name the folder that holds "
            f"{needed}{_or_download(trace, entry)}." + _by_hand(trace, entry)
        )
    there = _entries(trace, entry) if folder.is_dir() else []
    in_folder = {table: spec for table, spec in tables.items() if "beside" not in spec}
    archives = set(archives_of(entry).values())
    wrong = problems([one for one in there if one.name not in archives], in_folder, entry.get("files", {}))
    if wrong:
        raise ConfigError("\n".join(f"{where}: {problem}" for problem in wrong))
    present = [one.name for one in there if not one.odd]
    tables_present = [name for name in present if name not in archives]
    found = {}
    for table, spec in in_folder.items():
        named = entry.get("files", {}).get(table)
        names = [name for name in present if name == named] if named else files_of(spec, tables_present)
        if len(names) > 1 and "every" not in spec:
            raise ConfigError(
                f"{where}: the table {table} is there more than once: {', '.join(map(said, names))}. "
                f"Keep one, or name it: registry.{trace}.files.{table}"
            )
        if names:
            found[table] = [f"{entry['folder'].rstrip('/')}/{name}" for name in names]
        elif not named and (archive := archives_of(entry).get(table)) in present:
            found[table] = [f"{entry['folder'].rstrip('/')}/{archive}/{entry['download'][table]['member']}"]
        elif table in downloads and not named:
            found[table] = [downloads[table]]
        elif spec["required"] or named:
            raise ConfigError(
                f"{where}: the table {table} is missing: expected {named or expected_file(spec)}"
                + ("" if named else f" {also_packed(spec)}")
                + f"{_or_download(trace, entry, table)}. The folder holds: {listing([said(name) for name in present])}."
                + _by_hand(trace, entry)
            )
    return found | tables_beside(trace, entry, tables)


def _entries(trace: str, entry: dict) -> list[Entry]:
    """The entries of the trace's folder, but for hidden files, README and what its entry has keys of their own for."""
    named, others = entry.get("files", {}).values(), _files_beside(entry)
    try:
        there = entries_of(entry["folder"])
    except OSError as error:
        raise ConfigError(f"registry.{trace}.folder: {entry['folder']}: cannot be read ({error.strerror}).") from None
    return [one for one in there if one.name not in others and (one.name in named or not is_ignored(one.name))]


def entries_left_out(trace: str, entry: dict, formats: dict) -> dict[str, str]:
    """Entry -> why nothing of it is read, of all in the folder of a trace; of several, with the folder's name.

    Raises ConfigError as raw_tables.
    """
    if isinstance(entry.get("folder"), list):
        parts = ((folder, entries_left_out(trace, entry | {"folder": folder}, formats)) for folder in entry["folder"])
        return {f"{part_of(folder)}/{name}": reason for folder, found in parts for name, reason in found.items()}
    if entry.get("embedded") or not Path(entry["folder"]).is_dir():
        return {}
    found = raw_tables(trace, entry, formats)
    tables = {table: spec for table, spec in formats[entry["format"]]["tables"].items() if "beside" not in spec}
    read = {Path(on_disk(file)).name for table in tables for file in found.get(table, ())}
    return left_out(_entries(trace, entry), tables, read)


def part_of(folder: str) -> str:
    """What the part in a folder is called."""
    return Path(folder).resolve().name if Path(folder).name in ("", "..") else Path(folder).name


def tables_beside(trace: str, entry: dict, tables: dict, made: Collection[str] = ()) -> dict[str, list[str]]:
    """Table -> its files, of the tables that the entry names by a key of their own.

    made: those that a rule writes, there or not yet.
    Raises ConfigError for another that is not there, and where `files` names such a table.
    """
    found = {table: paths_of(entry, spec["beside"]) for table, spec in tables.items() if "beside" in spec}
    for table, files in found.items():
        key = tables[table]["beside"]
        if table in entry.get("files", {}):
            raise ConfigError(
                f"registry.{trace}.files.{table}: its files have a key of their own, {key}; name them there."
            )
        for file in files:
            if file not in made:
                given_file(on_disk(file), f"registry.{trace}.{key}")
    return {table: files for table, files in found.items() if files}


def paths_of(entry: dict, key: str) -> list[str]:
    """The paths that an entry has under a key that takes one or several."""
    paths = entry.get(key, [])
    return [paths] if isinstance(paths, str) else list(paths)


def sample_files(trace: str, entry: dict, formats: dict) -> dict[str, list[str]]:
    """Name -> the files that rule unpack_sample writes for an embedded sample: its tables, and what is beside them."""
    names = formats[entry["format"]]["sample"]["files"].items()
    return {
        name: [f"data/{trace}/{file}" for file in ([files] if isinstance(files, str) else files)]
        for name, files in names
    }


def parts_of(trace: str, entry: dict, formats: dict) -> dict[str, dict[str, str]]:
    """Part -> table -> its file, of a trace that is given in parts; of another nothing.

    Parts are the folders of `folder`, where it lists several, in that order; or the files of a table that takes every
    file in its folder, in the order of their names. A table in `files` is that one file.
    Raises ConfigError as `raw_tables` does, and for parts whose names are the same.
    """
    where = f"registry.{trace}.folder"
    tables = formats[entry["format"]]["tables"]
    takes_every = [table for table, spec in tables.items() if "every" in spec]
    parts: dict[str, dict[str, str]] = {}
    if isinstance(entry.get("folder"), list):
        if takes_every:
            raise ConfigError(
                f"{where}: each file of the format {entry['format']} is a part by itself; put them all into one folder."
            )
        for folder in entry["folder"]:
            name = part_of(folder)
            if name in parts:
                raise ConfigError(f"{where}: two parts are called {name}; give their folders names of their own.")
            found = raw_tables(trace, entry | {"folder": folder}, formats)
            parts[name] = {table: file for table, (file,) in found.items()}
    else:
        found = raw_tables(trace, entry, formats)
        taken = [table for table in takes_every if table not in entry.get("files", {})]
        parts = {Path(file).name: {table: file} for table in taken for file in found[table]}
        # After the others: jobs say by number which part they are of.
        beside = [table for table, spec in tables.items() if "beside" in spec and table in found and parts]
        for table in beside:
            for file in found[table]:
                if Path(file).name in parts:
                    where = f"registry.{trace}.{tables[table]['beside']}"
                    raise ConfigError(f"{where}: two files are called {Path(file).name}; give each a name of its own.")
                parts[Path(file).name] = {table: file}
    # Products of a part lie in a folder of its name: Snakemake and Polars have to take it.
    if odd := [name for name in parts if re.search("[{}<>\r\n\ud800-\udfff]", name)]:
        what = "a brace, < or >, a line break, or bytes that are no UTF-8"
        raise ConfigError(f"{where}: {odd[0]!r} has {what} in its name; rename it.")
    return parts


def to_fetch(trace: str, entry: dict, files: dict[str, list[str]]) -> dict[str, dict]:
    """File name -> its `download` in the registry, for those of the trace's raw files that are not there yet.

    A file that is there is nobody's product, so that no rerun can remove it or fetch it again.
    """
    downloads = _downloads(trace, entry)
    return {
        Path(on_disk(path)).name: _file_of(entry["download"][table])
        for table, path in downloads.items()
        if path in files.get(table, []) and not Path(on_disk(path)).exists()
    }


def on_disk(path: str) -> str:
    """The file to look for: a path that goes on behind an archive names a file in it (see ttf.raw.raw_files)."""
    if not any(f"{ending}/" in path.lower() for ending in ARCHIVES):
        return path
    _, member = archive_and_member(Path(path))
    return path if member is None else path[: -len(str(member)) - 1]


def member_of(path: str) -> str:
    """What a path that goes on behind an archive names in it; nothing of another path."""
    return path[len(on_disk(path)) + 1 :]


def _downloads(trace: str, entry: dict) -> dict[str, str]:
    """Table -> the path it is downloaded to; none where the folder is not the workflow's own to write to."""
    if not _is_own_folder(trace, entry):
        return {}
    found: dict[str, str] = {}
    wanted: dict[str, dict] = {}
    for table, download in entry.get("download", {}).items():
        where = f"registry.{trace}.download.{table}"
        if "member" in download and "content_sha256" in download:
            raise ConfigError(f"{where}: content_sha256 is of the one table in an archive; with member, leave it out.")
        if not download["urls"]:
            continue
        if any(url.endswith("*") for url in download.get("parts", [])) and "bytes" not in download:
            raise ConfigError(f"{where}.parts: * stands for as many parts as bytes asks for; say how many bytes.")
        path = f"data/{trace}/{archive_of(download)}"
        if wanted.setdefault(path, _file_of(download)) != _file_of(download):
            raise ConfigError(f"{where}: another table is downloaded to {path} too, but from elsewhere.")
        found[table] = f"{path}/{download['member']}" if "member" in download else path
    return found


def _file_of(download: dict) -> dict:
    """What is to be downloaded, whatever is then read of it."""
    return {key: value for key, value in download.items() if key not in ("archive", "member")}


def archive_of(download: dict) -> str:
    """The name of the file that is downloaded, or that a person puts into the folder."""
    return download.get("archive") or download["urls"][0].rpartition("/")[2]


def archives_of(entry: dict) -> dict[str, str]:
    """Table -> the archive that the registry knows to hold it."""
    return {
        table: archive_of(download)
        for table, download in entry.get("download", {}).items()
        if "member" in download and (download["urls"] or "archive" in download)
    }


def _is_own_folder(trace: str, entry: dict) -> bool:
    folder = entry.get("folder")
    return isinstance(folder, str) and Path(folder) == Path("data", trace)


def _by_hand(trace: str, entry: dict) -> str:
    """Where the files can be had, and where to put them."""
    if not entry.get("source"):
        return ""
    archives = {archive_of(part) for part in entry.get("download", {}).values() if part["urls"] or "archive" in part}
    packed = f" ({', '.join(sorted(archives))} as it is, or unpacked)" if archives else ""
    where = f" Put them{packed} into {entry['folder']}." if _is_own_folder(trace, entry) else ""
    return f" Source of the files: {entry['source']}.{where}"


def _or_download(trace: str, entry: dict, table: str | None = None) -> str:
    """A word on downloads, where they are known and the folder keeps them from being made."""
    known = entry.get("download", {})
    if _is_own_folder(trace, entry) or not (known.get(table, {}).get("urls") if table else known):
        return ""
    return f"; with folder: data/{trace} what is missing is downloaded"


def _files_beside(entry: dict) -> set[str]:
    """The files in the trace's folder that its entry names as something else than a raw table."""
    paths = [Path(path) for key in BESIDE for path in paths_of(entry, key)]
    return {path.name for path in paths if path.parent.resolve() == Path(entry["folder"]).resolve()}

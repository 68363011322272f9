"""Which raw files a trace has: known when the DAG is built, from the registry and a look into the folder."""

from collections.abc import Collection
from pathlib import Path

from study.config import ConfigError
from study.documents import given_file

PACKINGS = ("", ".gz", ".zst", ".xz")
ARCHIVES = (".tar.gz", ".tgz", ".zip")
# Files that an entry may name by a key of their own and that may lie in the trace's folder, whatever their endings.
BESIDE = ("health_events", "loss_log", "log_tails", "node_events")


def raw_tables(trace: str, entry: dict, formats: dict) -> dict[str, list[str]]:
    """Table -> its files, as the user typed their folder, in the format's order; only the tables that are there.

    The files of a generated trace are the ones that rule make_sample writes, there or not yet; a table that is missing
    and can be downloaded is the file that rule fetch writes (see to_fetch).
    Raises ConfigError for a folder that is not there, a required table that is not in it, two files for a table of one
    file, and a download that cannot be what was meant.
    """
    tables = formats[entry["format"]]["tables"]
    if "generate" in entry:
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
    present = sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    others = _files_beside(entry)
    present = [name for name in present if name not in others]
    found = {}
    for table, spec in tables.items():
        if "beside" in spec:
            continue
        named = entry.get("files", {}).get(table)
        names = [name for name in present if name == named] if named else files_of(spec, present)
        if len(names) > 1 and "every" not in spec:
            raise ConfigError(
                f"{where}: the table {table} is there more than once: {', '.join(names)}. "
                f"Keep one, or name it: registry.{trace}.files.{table}"
            )
        if names:
            found[table] = [f"{entry['folder'].rstrip('/')}/{name}" for name in names]
        elif not named and (inside := _in_archive(entry, table, present)):
            found[table] = [inside]
        elif table in downloads and not named:
            found[table] = [downloads[table]]
        elif spec["required"] or named:
            raise ConfigError(
                f"{where}: the table {table} is missing: expected {named or expected_file(spec)}"
                + ("" if named else f" (also packed: {', '.join((*PACKINGS[1:], *ARCHIVES))})")
                + f"{_or_download(trace, entry, table)}. The folder holds: {listing(present)}.{_by_hand(trace, entry)}"
            )
    return found | tables_beside(trace, entry, tables)


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
    """Name -> the files that the rule make_sample writes for a generated trace: its tables, and what is beside them."""
    names = formats[entry["format"]]["sample"].items()
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
            name = Path(folder).resolve().name if Path(folder).name in ("", "..") else Path(folder).name
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
    if odd := [name for name in parts if not set(name).isdisjoint("{}\r\n")]:
        raise ConfigError(f"{where}: {odd[0]!r} has a curly brace or a line break in its name; rename it.")
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
    """The file to look for: a path that goes on behind an archive names a file in it (see ttf.raw_files)."""
    if not any(f"{ending}/" in path.lower() for ending in ARCHIVES):
        return path
    for above in Path(path).parents:
        if above.name.lower().endswith(ARCHIVES) and not above.is_dir():
            return path[: -len(str(Path(path).relative_to(above))) - 1]
    return path


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


def _in_archive(entry: dict, table: str, present: list[str]) -> str | None:
    """The path of a table in an archive that is in the folder; None where the registry knows of none."""
    download = entry.get("download", {}).get(table, {})
    if "member" not in download or not (download["urls"] or "archive" in download):
        return None
    archive = archive_of(download)
    return f"{entry['folder'].rstrip('/')}/{archive}/{download['member']}" if archive in present else None


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


def expected_file(spec: dict) -> str:
    """What a table's file is called."""
    if "beside" in spec:
        return f"files under the key {spec['beside']}"
    if "every" in spec:
        return " or ".join(f"*{ending}" for ending in spec["every"])
    return spec["file"] if "json" in spec else f"{spec['file']}.csv"


def files_of(spec: dict, present: list[str]) -> list[str]:
    """The files in the folder that are this table: named so, or of such an ending, plain or packed."""
    if "every" in spec:
        endings = tuple(ending + packing for ending in spec["every"] for packing in PACKINGS)
        return [name for name in present if name.endswith(endings)]
    stem = spec["file"]
    names = {stem + ending + packing for ending in (".csv", "") for packing in PACKINGS}
    names |= {stem + ending for ending in ARCHIVES}
    return [name for name in present if name in names]


def listing(names: list[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "") or "nothing"

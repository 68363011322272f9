"""What a registry entry says beside its raw tables: other files, what ends a run by infrastructure, windows."""

from collections.abc import Collection, Sequence
from pathlib import Path

from ttf.raw.extra_tables import TABLES

from study.messages import ConfigError
from study.named_files import given_file

# Key of an entry that names a file -> what its format must have, and what to say of another format.
FILES = {
    "health_events": ("attempts", "the format {} does not tell on which nodes an attempt ran."),
    "loss_log": ("jobs", "losses are those of jobs, and the format {} has none."),
    "log_tails": ("jobs", "logs are those of jobs, and the format {} has none."),
}


def infra_failures_of(entry: dict, of_study: dict, of_format: dict) -> dict:
    """The trace's `infra_failures`: of its registry entry, else of the study, else of its format, key by key."""
    return of_format.get("infra_failures", {}) | of_study | entry.get("infra_failures", {})


def file_beside(key: str, trace: str, entry: dict, format: dict, made: Collection[str] = ()) -> str | None:
    """The file that an entry names under a key of FILES, as typed; None where it names none.

    made: files that a rule writes, there or not yet. Raises ConfigError where the format has no use for it, or there is
    no such file.
    """
    if key not in entry:
        return None
    (needed, text), where = FILES[key], f"registry.{trace}.{key}"
    if not (format["gives"] == "jobs" if needed == "jobs" else format.get(needed)):
        raise ConfigError(f"{where}: {text.format(entry['format'])}")
    return entry[key] if entry[key] in made else given_file(entry[key], where)


def given_tables(trace: str, entry: dict, format: dict, made: Collection[str] = ()) -> dict[str, list[str]]:
    """Table of ttf.raw.extra_tables -> its file, as typed, of those that the entry names. Raises ConfigError as
    file_beside."""
    files = {table: file_beside(key, trace, entry, format, made) for key, (table, _) in TABLES.items()}
    return {table: [file] for table, file in files.items() if file}


def with_given_parts(trace: str, parts: dict[str, dict[str, str]], given: dict[str, list[str]]) -> dict:
    """The parts of a trace, each of these tables a part of its own after the others; none where the trace has none.

    Raises ConfigError for a table whose file has the name of another part.
    """
    of_given = {}
    for table, (file,) in given.items() if parts else ():
        if (name := Path(file).name) in parts or name in of_given:
            key = next(key for key, (its, _) in TABLES.items() if its == table)
            raise ConfigError(f"registry.{trace}.{key}: two files are called {name}; give each a name of its own.")
        of_given[name] = {table: file}
    return parts | of_given


def windows_of(trace: str, entry: dict, job_traces: Sequence[str], in_parts: Collection[str] = ()) -> dict:
    """The entry's `windows`; nothing where it asks for none. job_traces, in_parts: the traces with jobs, with parts.

    Raises ConfigError where the trace has no jobs, is measured by parts that it does not have, against itself, or
    against a trace that is not in the study or has no jobs.
    """
    windows = entry.get("windows", {})
    if not windows:
        return {}
    where = f"registry.{trace}.windows"
    if trace not in job_traces:
        raise ConfigError(f"{where}: drift is measured between jobs, and the format {entry['format']} has none.")
    if windows.get("by") == "part" and trace not in in_parts:
        raise ConfigError(
            f"{where}.by: this trace is not given in parts. Parts are the files in the folder of a format that reads "
            "every file there, or the folders where `folder` lists several."
        )
    against = windows.get("against")
    if against is not None and (against == trace or against not in job_traces):
        others = ", ".join(name for name in job_traces if name != trace)
        raise ConfigError(
            f"{where}.against: {against!r} is not another trace with jobs in this study; "
            + (f"the others are {others}." if others else "there is no other. Name two traces in study.")
        )
    return windows

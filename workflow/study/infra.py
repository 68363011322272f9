"""What a registry entry names beside the raw tables: what ends a run by infrastructure, health events, losses."""

from collections.abc import Collection
from pathlib import Path

from ttf.given import TABLES

from study.given import given_file
from study.messages import ConfigError


def infra_failures_of(entry: dict, of_study: dict, of_format: dict) -> dict:
    """The trace's `infra_failures`: of its registry entry, else of the study, else of its format, key by key."""
    return of_format.get("infra_failures", {}) | of_study | entry.get("infra_failures", {})


def given_tables(trace: str, entry: dict, format: dict, made: Collection[str] = ()) -> dict[str, list[str]]:
    """Table of ttf.given -> its file, as typed, of those that the entry names.

    made: files that a rule writes, there or not yet. Raises ConfigError as health_events_of and loss_log_of.
    """
    events, losses = health_events_of(trace, entry, format, made), loss_log_of(trace, entry, format)
    files = {"health_events": events, "loss_log": losses}
    return {TABLES[key][0]: [file] for key, file in files.items() if file}


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


def health_events_of(trace: str, entry: dict, of_format: dict, made: Collection[str] = ()) -> str | None:
    """The file of the trace's health events, as typed; None where it has none.

    made: files that a rule writes, there or not yet.
    Raises ConfigError where the format does not say on which nodes an attempt ran, or there is no such file.
    """
    file, where = entry.get("health_events"), f"registry.{trace}.health_events"
    if file and not of_format.get("attempts"):
        raise ConfigError(f"{where}: the format {entry['format']} does not tell on which nodes an attempt ran.")
    return given_file(file, where) if file and file not in made else file


def loss_log_of(trace: str, entry: dict, of_format: dict) -> str | None:
    """The file of the losses of the trace's jobs, as typed; None where it has none.

    Raises ConfigError where the format has no jobs, or there is no such file; that of a sample is made first.
    """
    file, where = entry.get("loss_log"), f"registry.{trace}.loss_log"
    if file and of_format["gives"] != "jobs":
        raise ConfigError(f"{where}: losses are those of jobs, and the format {entry['format']} has none.")
    return given_file(file, where) if file and "generate" not in entry else file

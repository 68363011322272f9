"""What a registry entry names beside the raw tables: what ends a run by infrastructure, health events, losses."""

from collections.abc import Collection
from pathlib import Path

from study.config import ConfigError


def infra_failures_of(entry: dict, of_study: dict, of_format: dict) -> dict:
    """The trace's `infra_failures`: of its registry entry, else of the study, else of its format, key by key."""
    return of_format.get("infra_failures", {}) | of_study | entry.get("infra_failures", {})


def health_events_of(trace: str, entry: dict, of_format: dict, made: Collection[str] = ()) -> str | None:
    """The file of the trace's health events, as typed; None where it has none.

    made: files that a rule writes, there or not yet.
    Raises ConfigError where the format tells no nodes of an attempt, or there is no such file.
    """
    file = entry.get("health_events")
    if file is None:
        return None
    where = f"registry.{trace}.health_events"
    if not of_format.get("attempts"):
        raise ConfigError(f"{where}: the format {entry['format']} does not tell on which nodes an attempt ran.")
    if file not in made and not Path(file).is_file():
        raise ConfigError(f"{where}: {file}: there is no such file (seen from where the command is typed).")
    return file


def loss_log_of(trace: str, entry: dict, of_format: dict) -> str | None:
    """The file of the losses of the trace's jobs, as typed; None where it has none.

    Raises ConfigError where the format has no jobs, or there is no such file; that of a sample is made first.
    """
    file = entry.get("loss_log")
    if file is None:
        return None
    where = f"registry.{trace}.loss_log"
    if of_format["gives"] != "jobs":
        raise ConfigError(f"{where}: losses are those of jobs, and the format {entry['format']} has none.")
    if "generate" not in entry and not Path(file).is_file():
        raise ConfigError(f"{where}: {file}: there is no such file (seen from where the command is typed).")
    return file

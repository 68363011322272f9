"""What a registry entry names beside the raw tables: what ends a run by infrastructure, health events, losses."""

from collections.abc import Collection

from study.documents import ConfigError, given_file


def infra_failures_of(entry: dict, of_study: dict, of_format: dict) -> dict:
    """The trace's `infra_failures`: of its registry entry, else of the study, else of its format, key by key."""
    return of_format.get("infra_failures", {}) | of_study | entry.get("infra_failures", {})


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

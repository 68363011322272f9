"""What a trace's drift is measured between, as its registry entry asks."""

from collections.abc import Sequence

from study.config import ConfigError


def windows_of(trace: str, entry: dict, job_traces: Sequence[str]) -> dict:
    """The entry's `windows`; nothing where it asks for none.

    Raises ConfigError where the trace has no jobs, is measured against itself, or against a trace that is not in the
    study or has no jobs.
    """
    windows = entry.get("windows", {})
    if not windows:
        return {}
    where = f"registry.{trace}.windows"
    if trace not in job_traces:
        raise ConfigError(f"{where}: drift is measured between jobs, and the format {entry['format']} has none.")
    against = windows.get("against")
    if against is not None and (against == trace or against not in job_traces):
        others = ", ".join(name for name in job_traces if name != trace)
        raise ConfigError(
            f"{where}.against: {against!r} is not another trace with jobs in this study; "
            + (f"the others are {others}." if others else "there is no other. Name two traces in study.")
        )
    return windows

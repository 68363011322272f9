"""What a trace's drift is measured between, as its registry entry asks."""

from collections.abc import Collection, Sequence

from study.messages import ConfigError


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

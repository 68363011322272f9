"""Options of a registry entry besides its raw tables: extra files, infrastructure failures, windows."""

from collections.abc import Collection, Sequence
from pathlib import Path

from ttf.raw.extra_tables import TABLES
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.named_files import require_file
from ttf.study.trace_files import find_log_files, is_log_format, list_paths

# Key of an entry that names a file -> what its format must have, and the message for other formats.
OPTION_FILES = {
    "health_events": ("attempts", "the format {} does not record the nodes of an attempt."),
    "loss_log": ("jobs", "losses belong to jobs, and the format {} has no jobs."),
    "log_tails": ("jobs", "logs belong to jobs, and the format {} has no jobs."),
}


def merge_infra_failures(entry: dict, study_options: dict, format_options: dict) -> dict:
    """Return the trace's `infra_failures`, key by key: of its entry, else of the study, else of its format."""
    return format_options.get("infra_failures", {}) | study_options | entry.get("infra_failures", {})


def find_option_file(key: str, trace: str, entry: dict, format: dict, generated: Collection[str] = ()) -> str | None:
    """Return the file that an entry names under a key of OPTION_FILES, as typed; None without that key.

    generated: files that a rule writes, which may not exist yet. Raises ConfigError if the format cannot use the file,
    or if it is missing.
    """
    if key not in entry:
        return None
    (requirement, text), label = OPTION_FILES[key], f"registry.{trace}.{key}"
    if not (format["gives"] == "jobs" if requirement == "jobs" else format.get(requirement)):
        raise ConfigError(f"{label}: {text.format(entry['format'])}")
    return entry[key] if entry[key] in generated else require_file(entry[key], label)


# Key of an entry for logs -> what they are compared with.
LOG_PURPOSES = {"node_logs": "errors are compared", "training_logs": "training runs are joined"}


def find_logs(
    key: str, trace: str, entry: dict, format: dict, clock: str | None, generated: Collection[str] = ()
) -> list[str]:
    """Return the files of logs that an entry names beside its tables; empty without the key.

    key: of LOG_PURPOSES. clock: time zone of the trace, None if its times count from an unknown origin. Raises
    ConfigError as find_option_file and find_log_files.
    """
    label = f"registry.{trace}.{key}"
    paths = [] if is_log_format(format) else list_paths(entry, key)
    if paths and format["gives"] != "jobs":
        raise ConfigError(f"{label}: {LOG_PURPOSES[key]} with jobs, and the format {entry['format']} has no jobs.")
    if paths and clock is None:
        raise ConfigError(
            f"{label}: times of the trace count from an unknown origin, so no log can be compared with it."
        )
    return find_log_files(trace, key, paths, generated)


def find_option_tables(trace: str, entry: dict, format: dict, generated: Collection[str] = ()) -> dict[str, list[str]]:
    """Map tables of ttf.raw.extra_tables to [file as the entry names it]; raise ConfigError as find_option_file."""
    files = {table: find_option_file(key, trace, entry, format, generated) for key, (table, _) in TABLES.items()}
    return {table: [file] for table, file in files.items() if file}


def add_option_parts(trace: str, parts: dict[str, dict[str, str]], option_tables: dict[str, list[str]]) -> dict:
    """Return the parts of a trace, with each of these tables as a part at the end; empty without parts.

    Raises ConfigError for a file with the name of another part.
    """
    new_parts = {}
    for table, (file,) in option_tables.items() if parts else ():
        if (name := Path(file).name) in parts or name in new_parts:
            key = next(key for key, (option_table, _) in TABLES.items() if option_table == table)
            raise ConfigError(f"registry.{trace}.{key}: two files are called {name}; give them different names.")
        new_parts[name] = {table: file}
    return parts | new_parts


def check_windows(trace: str, entry: dict, job_traces: Sequence[str], traces_with_parts: Collection[str] = ()) -> dict:
    """Check the drift windows of a trace in its registry entry; return them, or {} if there are none.

    job_traces: traces of the study with jobs. traces_with_parts: traces whose records come in parts. Raises ConfigError
    if the trace has no jobs, if it has no parts to use as windows, or if `against` is not another trace with jobs.
    """
    windows = entry.get("windows", {})
    if not windows:
        return {}
    label = f"registry.{trace}.windows"
    if trace not in job_traces:
        raise ConfigError(f"{label}: drift needs jobs, and the format {entry['format']} has none.")
    if windows.get("by") == "part" and trace not in traces_with_parts:
        raise ConfigError(
            f"{label}.by: this trace has no parts. Parts are the files of a format that reads every file of the "
            "folder, or the folders, if `folder` lists several."
        )
    against = windows.get("against")
    if against is not None and (against == trace or against not in job_traces):
        other_traces = ", ".join(name for name in job_traces if name != trace)
        raise ConfigError(
            f"{label}.against: {against!r} is not another trace with jobs in this study; "
            + (f"the others are {other_traces}." if other_traces else "there is no other. Name two traces in study.")
        )
    return windows

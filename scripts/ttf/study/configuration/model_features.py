"""The features of a trace's failure-risk model, from its format and from the configuration.

The model scores a job at submission. Each format's declaration lists the columns of jobs.parquet known at that time; a
feature from any other column is refused before the first job.
"""

import itertools
from collections.abc import Iterator, Mapping

from ttf.study.configuration.documents import Problem, suggest_match

# Columns of every format that no feature may use: values written after submission ...
COLUMNS_AFTER_SUBMISSION = (
    *("start_s", "end_s", "queue_s", "runtime_s", "runtime_max_s"),
    *("outcome", "status_raw", "attempts", "trace_end_s", "block"),
)
# ... and names and numbers that identify a job but do not describe it. The time of submission is known; it enters as
# history and clock.
IDENTIFIER_COLUMNS = ("trace", "part", "job_id", "submit_s", "cluster_by", "cluster", "group_by", "group", "block_by")
# Kind of a feature -> default options.
DEFAULTS = {"category": {"vocabulary": 12}, "hashed": {"buckets": 16}}
# Key of a mapping -> column of jobs, where the names differ.
COLUMN_BY_KEY = {"gpus": "gpu_milli", "cpus": "cpu_milli", "memory": "mem_mib"}


def build_risk_options(
    name: str, entry: Mapping, format: Mapping, configured: Mapping, clock: str | None
) -> dict | None:
    """Return what the analyses need to score the jobs of a trace; None without jobs, submissions or features.

    entry: of the registry; format: its declaration; configured: `risk.features` of the configuration, without
    `find_risk_problems`; clock: the time zone, None if unknown. The result's `features` maps each name to kind, column
    or keys, vocabulary or buckets, and warm, the format's features first. A column may still be missing in the jobs if
    an optional raw table is missing.
    """
    is_submitted = entry["format"] != "table" or "submit" in entry["mapping"]
    if format["gives"] != "jobs" or not is_submitted:
        return None
    features: dict[str, dict | None] = dict(_select_format_features(entry, format, clock))
    features |= _select_configured_features(name, entry, configured)
    features = {key: _complete_feature(feature) for key, feature in features.items() if feature is not None}
    return {"features": features, "clock": clock, "unit": format["unit"]} if features else None


def explain_missing_risk(name: str, entry: Mapping, format: Mapping) -> str:
    """Say why `build_risk_options` returns None, with the key of the mapping that is missing."""
    if format["gives"] != "jobs":
        return f"{name} has no jobs (format {entry['format']}), so no model."
    if entry["format"] == "table" and "submit" not in entry["mapping"]:
        text = f"{name} has no model, because its mapping does not name the time of submission. Set registry.{name}"
        return f"{text}.mapping.submit to a column of its table, and run `ttf report`."
    return f"{name} has no model: no column is known at submission.{list_unmapped_keys(name, entry, format)}"


def list_unmapped_keys(name: str, entry: Mapping, format: Mapping) -> str:
    """Return a sentence that lists keys of the mapping that would give the model a feature; "" without any."""
    key_by_column = {column: key for key, column in COLUMN_BY_KEY.items()}
    keys = [key_by_column.get(column, column) for column in format.get("at_submission", ()) if column != "task"]
    keys = [key for key in keys if key not in entry.get("mapping", keys)]
    hint = f"Keys of registry.{name}.mapping that are not set and could predict failures: {', '.join(keys)}."
    return f" {hint}" if keys else ""


def find_risk_problems(
    name: str, entry: Mapping, format: Mapping, configured: Mapping, clock: str | None
) -> Iterator[Problem]:
    """Yield problems of the configured features; parameters as in `build_risk_options`."""
    for key, feature in _select_configured_features(name, entry, configured).items():
        if feature is None:
            continue
        # The trace's own features take precedence over those of its format.
        owner = name if key in (configured.get(name) or {}) else entry["format"]
        path = ("risk", "features", owner, key)
        if format["gives"] != "jobs":
            yield Problem(path, f"risk needs jobs, and the format {entry['format']} has none.")
        elif feature["kind"] == "clock" and clock is None:
            yield Problem(path, f"the times of {name} count from an unknown origin, so the hour of day is unknown.")
        else:
            keys = itertools.chain([feature["column"]] if "column" in feature else [], *feature.get("keys", []))
            for column in dict.fromkeys(keys):
                if text := describe_column_problem(column, name, entry, format):
                    yield Problem(path, text)


def describe_column_problem(column: str, name: str, entry: Mapping, format: Mapping) -> str | None:
    """Return why a column of jobs cannot be a feature, and which can; None if it can."""
    usable_columns = list_usable_columns(entry, format)
    if column in usable_columns:
        return None
    hint = f"Usable columns: {', '.join(usable_columns)}." if usable_columns else "No column is known at submission."
    if column in IDENTIFIER_COLUMNS:
        return f"the column {column} identifies a job but does not describe it. {hint}"
    if column in (*COLUMNS_AFTER_SUBMISSION, *format.get("written_later", ())):
        return f"the column {column} is written after submission. {hint}"
    if column == "task" and column in entry.get("mapping", {}):
        return f"the column {column} numbers the rows of an id, which are unknown at submission. {hint}"
    if column in format.get("at_submission", ()):
        return f"the column {column} is not in the mapping of {name}. {hint}"
    match = suggest_match(column, usable_columns)
    return f"{column} is not a column of jobs in the format {entry['format']}{match} {hint}"


def list_usable_columns(entry: Mapping, format: Mapping) -> list[str]:
    """Return the columns of jobs that a feature may use: mapped, and known at submission."""
    if entry["format"] != "table":
        return list(format.get("at_submission", ()))
    mapped_columns = {COLUMN_BY_KEY.get(key, key) for key in entry["mapping"]}
    # Rows of one id are numbered later, so a number reveals that another row follows.
    numbered_columns = {"task"} if not entry.get("unique_ids", "job_id" in entry["mapping"]) else set()
    return [column for column in format["at_submission"] if column in mapped_columns - numbered_columns]


def _select_configured_features(name: str, entry: Mapping, configured_features: Mapping) -> dict[str, dict | None]:
    return {**(configured_features.get(entry["format"]) or {}), **(configured_features.get(name) or {})}


def _select_format_features(entry: Mapping, format: Mapping, clock: str | None) -> Iterator[tuple[str, dict]]:
    """Yield the format's features, without unmapped columns and without an unknown clock."""
    usable_columns = list_usable_columns(entry, format)
    for name, feature in format.get("risk", {"features": {}})["features"].items():
        if feature["kind"] == "history":
            keys = [level for level in feature["keys"] if set(level) <= set(usable_columns)]
            if keys:
                yield name, {**feature, "keys": keys}
        elif clock is not None if feature["kind"] == "clock" else feature["column"] in usable_columns:
            yield name, feature


def _complete_feature(feature: Mapping) -> dict:
    full = {**DEFAULTS.get(feature["kind"], {}), "warm": True, **feature}
    return {key: full[key] for key in ("kind", "column", "keys", "vocabulary", "buckets", "warm") if key in full}

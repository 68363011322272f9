"""What the failure-risk model of a trace goes by: the features of its format and of the configuration.

A job's risk is told when it is submitted. Each format's declaration says which columns of jobs.parquet are known then;
a feature of any other is refused before the first job.
"""

import itertools
from collections.abc import Iterator, Mapping

from study.documents import Problem, mean

# What jobs of every format have, and no feature may be: all that is written after the submission ...
LATER = (
    *("start_s", "end_s", "queue_s", "runtime_s", "runtime_max_s"),
    *("outcome", "status_raw", "attempts", "trace_end_s", "block"),
)
# ... and what tells a job from others, not what it is like: names, and numbers by an order of the whole trace. The
# moment of the submission is known, and enters as history and clock.
NAMES = ("trace", "part", "job_id", "submit_s", "cluster_by", "cluster", "group_by", "group", "block_by")
COMMON = (*NAMES, *LATER)
# Kind of a feature -> what it takes if nothing is said.
DEFAULTS = {"category": {"vocabulary": 12}, "hashed": {"buckets": 16}}
# Key of the mapping of a table -> our column, where the two differ.
MAPPED = {"gpus": "gpu_milli", "cpus": "cpu_milli", "memory": "mem_mib"}


def risk_of(name: str, entry: Mapping, format: Mapping, asked: Mapping, clock: str | None) -> dict | None:
    """What the rooms need to score the jobs of a trace; None where it has no jobs, no submissions or no features.

    entry: of the registry; format: its declaration; asked: `risk.features` of the configuration, without
    `risk_problems`; clock: the zone by which hours are known, if they are.

    features: name -> kind, column or keys, vocabulary or buckets, and warm, all said, the format's first and in its
    order. A column may still be missing in the jobs, where an optional raw table is not there.
    """
    is_submitted = entry["format"] != "table" or "submit" in entry["mapping"]
    if format["gives"] != "jobs" or not is_submitted:
        return None
    features = {**dict(_own(entry, format, clock)), **_asked(name, entry, asked)}
    features = {key: _complete(feature) for key, feature in features.items() if feature is not None}
    return {"features": features, "clock": clock, "unit": format["unit"]} if features else None


def risk_problems(name: str, entry: Mapping, format: Mapping, asked: Mapping, clock: str | None) -> Iterator[Problem]:
    """What is wrong with the features that the configuration asks for; arguments as of `risk_of`."""
    for key, feature in _asked(name, entry, asked).items():
        if feature is None:
            continue
        # The name under which the feature stands: the trace's wins.
        of = name if key in (asked.get(name) or {}) else entry["format"]
        path = ("risk", "features", of, key)
        if format["gives"] != "jobs":
            yield Problem(path, f"the risk is that of jobs, and the format {entry['format']} has none.")
        elif feature["kind"] == "clock" and clock is None:
            yield Problem(path, f"the times of {name} count from an unknown origin, so that no hour of a day is known.")
        else:
            keys = itertools.chain([feature["column"]] if "column" in feature else [], *feature.get("keys", []))
            for column in dict.fromkeys(keys):
                if text := column_problem(column, name, entry, format):
                    yield Problem(path, text)


def column_problem(column: str, name: str, entry: Mapping, format: Mapping) -> str | None:
    """Why a column of jobs cannot be a feature, with what can be; None where it can."""
    usable = usable_columns(entry, format)
    if column in usable:
        return None
    may = f"What may be used: {', '.join(usable)}." if usable else "Nothing else is known at the submission either."
    if column in NAMES:
        return f"the column {column} names or numbers a job, and says nothing of what it is like. {may}"
    if column in (*LATER, *format.get("written_later", ())):
        return f"the column {column} is written after submission. {may}"
    if column == "task" and column in entry.get("mapping", {}):
        return f"the column {column} numbers the rows of an id, which are known after submission. {may}"
    if column in format.get("at_submission", ()):
        return f"the column {column} is not in the mapping of {name}. {may}"
    return f"{column} is no column of jobs of the format {entry['format']}{mean(column, usable)} {may}"


def usable_columns(entry: Mapping, format: Mapping) -> list[str]:
    """The columns of the trace's jobs that a feature may come from."""
    if entry["format"] != "table":
        return list(format.get("at_submission", ()))
    mapped = {MAPPED.get(key, key) for key in entry["mapping"]}
    # Rows of one id are numbered when all are there: a number tells that another row follows.
    numbered = {"task"} if not entry.get("unique_ids", True) else set()
    return [column for column in format["at_submission"] if column in mapped - numbered]


def _asked(name: str, entry: Mapping, asked: Mapping) -> dict[str, dict | None]:
    """The configuration's features of the trace's format, and over them its own; None drops one."""
    return {**(asked.get(entry["format"]) or {}), **(asked.get(name) or {})}


def _own(entry: Mapping, format: Mapping, clock: str | None) -> Iterator[tuple[str, dict]]:
    """The features of the format, without those of columns that a table does not map, or of an unknown clock."""
    usable = usable_columns(entry, format)
    for name, feature in format.get("risk", {"features": {}})["features"].items():
        if feature["kind"] == "history":
            keys = [level for level in feature["keys"] if set(level) <= set(usable)]
            if keys:
                yield name, {**feature, "keys": keys}
        elif clock is not None if feature["kind"] == "clock" else feature["column"] in usable:
            yield name, feature


def _complete(feature: Mapping) -> dict:
    """The feature with all that it takes, in one sequence of keys."""
    whole = {**DEFAULTS.get(feature["kind"], {}), "warm": True, **feature}
    return {key: whole[key] for key in ("kind", "column", "keys", "vocabulary", "buckets", "warm") if key in whole}

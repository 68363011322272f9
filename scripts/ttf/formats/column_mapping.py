"""Derive the jobs of a format without code: a row of a raw table is a job, and the declaration maps its columns.

`mapping` has our name -> the column of the typed raw table, or {column: ..., unit: ...} if the column has another unit
than our small unit (UNITS); `table` names the raw table. Further keys:

- nodes, attempts: a column or a number, for jobs that started. nodes_asked: a column, for all jobs.
- gpus may have share: the column with the share of the GPU that a job of one GPU requests.
- status may have first_word: only the first word of the column is compared with `outcomes`.
- extras: further columns to copy. flags: name -> {column: word}, true if the column has that word.
- stated_runtime: the run time in the file, stored as duration_s; duration_differs is true if it is not end - start.
- on_day_of_start: a raw table with a row per day, its column with the first second of the day, and name -> column to
  copy for the day on which a job started.
"""

from collections.abc import Mapping

import polars as pl

from ttf.formats.format_declaration import BYTES_PER_MIB, UNITS, UNITS_IN_BYTES, outcome_by_word
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import JOB_COLUMNS, conform, map_outcome, mark_unrecorded_ends, status_word

DAY_S = 86_400
_TEXT_KEYS = ("job_id", "task", "user", "account", "status", "gpu_type")
_KEYS = (*_TEXT_KEYS, "submit", "start", "end", *UNITS, "size", "nodes", "nodes_asked", "attempts")


def jobs(source: Source) -> pl.DataFrame:
    """Return one job per row of the table, in file order, with the columns of the common job record.

    Run time is end - start. If `runtime` is mapped, it is that column, and end is start + run time. A job without a
    start, or a waiting job, has not started, whatever other times it has. If no start is mapped, run times are unknown,
    and every job may have an end. A running job with an end before the trace's
    end has ended with an unknown outcome, except if the end follows from a run time, which is the time observed so far.
    A word in no list of outcomes is `unknown`. Requests are per instance; a job without a mapped size is one instance.
    If ids are not unique, `task` distinguishes the rows of an id: their number in file order, after the mapped task if
    there is one. In snapshots, the last row of an id counts. trace_end_s is the last moment in any row.
    """
    mapping, outcomes = source.meaning["mapping"], outcome_by_word(source.meaning["outcomes"])
    has_runtime, status = "runtime" in mapping, mapping["status"]
    first_word = status_word("status", isinstance(status, Mapping) and status.get("first_word", False))
    # A row without an id is a job, known by its line.
    values = {"job_id": pl.col("line").cast(pl.String)} if "job_id" not in mapping else {}
    rows = (
        source.raw[mapping["table"]]
        .select(**({key: _mapped_value(mapping, key) for key in _KEYS} | values), **_extras(mapping), file="file")
        .with_columns(word=first_word, end=pl.col("start") + pl.col("runtime") if has_runtime else "end")
        .with_columns(
            outcome=map_outcome("word", outcomes), trace_end_s=pl.max_horizontal("submit", "start", "end").max()
        )
        .with_columns(start=pl.when(pl.col("outcome") != "waiting").then("start"))
    )
    if source.meaning.get("snapshots", False):
        rows = rows.unique(["job_id", "task"], keep="last", maintain_order=True)
    day_columns, rows = _add_day_columns(rows, source)
    # A job cancelled in the queue may have an end, or a run time of 0.
    started = pl.col("start").is_not_null()
    end_s = pl.when(started).then("end") if "start" in mapping else pl.col("end")
    runtime_s = pl.col("end") - pl.col("start")
    outcome = pl.col("outcome")
    stated_columns = {"duration_s": pl.col("extra stated"), "duration_differs": runtime_s != pl.col("extra stated")}
    return conform(
        rows.collect().select(
            *("job_id", "user", "account", "gpu_type", "trace_end_s", "file"),
            task="task" if source.meaning.get("unique_ids", "job_id" in mapping) else _number_repeated_tasks(),
            submit_s="submit",
            start_s="start",
            end_s=end_s,
            queue_s=pl.col("start") - pl.col("submit"),
            runtime_s=runtime_s,
            outcome=outcome if has_runtime else mark_unrecorded_ends(outcome, end_s, pl.col("trace_end_s")),
            status_raw="status",
            gpu_milli="gpus",
            cpu_milli="cpus",
            mem_mib="memory",
            size="size" if "size" in mapping else pl.lit(1),
            nodes="nodes_asked" if "nodes_asked" in mapping else pl.when(started).then("nodes"),
            attempts=pl.when(started).then("attempts"),
            **{name: f"extra {name}" for name in mapping.get("extras", [])},
            **(stated_columns if "stated_runtime" in mapping else {}),
            **{name: f"extra {name}" for name in [*mapping.get("flags", []), *day_columns]},
        ),
        JOB_COLUMNS,
    )


FORMAT = Format(jobs=jobs)


def _mapped_value(mapping: Mapping, key: str) -> pl.Expr:
    """Return the value mapped under a key, in our small unit; blank if it is not mapped."""
    part = mapping.get(key)
    if part is None or isinstance(part, int):
        return pl.lit(part, pl.String if key in _TEXT_KEYS else pl.Int64)
    if isinstance(part, str) or "unit" not in part:
        return _mapped_column(part)
    value = _mapped_column(part) * UNITS[key][part["unit"]]
    if key == "memory" and part["unit"] in UNITS_IN_BYTES:
        return round_to_mib(value)
    return pl.when(_mapped_column(part) == 1).then(part["share"]).otherwise(value) if "share" in part else value


def round_to_mib(value: pl.Expr) -> pl.Expr:
    """Convert bytes to MiB in integer arithmetic; round half a MiB up."""
    return (value + BYTES_PER_MIB // 2) // BYTES_PER_MIB


def _mapped_column(part: str | Mapping) -> pl.Expr:
    return pl.col(part if isinstance(part, str) else part["column"])


def _extras(mapping: Mapping) -> dict[str, pl.Expr]:
    """Return the further columns to copy, under names that no common column has."""
    flags = {name: pl.col(*flag).eq(*flag.values()).fill_null(False) for name, flag in mapping.get("flags", {}).items()}
    stated = {"stated": pl.col(mapping["stated_runtime"])} if "stated_runtime" in mapping else {}
    extras = {name: pl.col(name) for name in mapping.get("extras", [])} | stated | flags
    return {f"extra {name}": value for name, value in extras.items()}


def _add_day_columns(rows: pl.LazyFrame, source: Source) -> tuple[list[str], pl.LazyFrame]:
    """Add the columns of `on_day_of_start`, blank for a day without a row; return their names and the rows.

    A day has 24 hours from its first second on, so the zone must have no daylight saving time.
    """
    day_table = source.meaning["mapping"].get("on_day_of_start", {})
    if day_table.get("table") not in source.raw:
        return [], rows
    columns = {f"extra {name}": column for name, column in day_table["columns"].items()}
    days = source.raw[day_table["table"]].select(day=day_table["day"], **columns)
    first_day_s = days.select(pl.col("day").min()).collect().item()
    day = pl.col("start") - (pl.col("start") - first_day_s) % DAY_S
    rows = rows.with_columns(day=day).join(days, on="day", how="left", maintain_order="left")
    return list(day_table["columns"]), rows


def _number_repeated_tasks() -> pl.Expr:
    """Return the task, with its number in file order if several rows have its id and task."""
    task_key = ("job_id", "task")
    number = pl.int_range(1, pl.len() + 1).over(task_key).cast(pl.String)
    task_and_number = pl.concat_str("task", number, separator="/", ignore_nulls=True)
    return pl.when(pl.len().over(task_key) > 1).then(task_and_number).otherwise("task")

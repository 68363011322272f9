"""Jobs of a format without code: one row of a raw table is a job, and its declaration says which column is what.

`mapping` has our name -> the column as the raw table stores it, or {column: ..., unit: ...} where that does not count
our small unit (UNITS); `table` names the raw table. Further keys:

- nodes, attempts: a column or a number, of a job that started; nodes_asked: a column, also of one that never did.
- gpus may have share: the column with the part of the GPU that a job of one GPU asks for.
- status may have first_word: only the first word of the column is compared with `outcomes`.
- extras: columns that stay beside the common ones. flags: name -> {column: word}, whether the column is that word.
- stated_runtime: the run time as the file gives it, kept as duration_s; duration_differs says whether it is not ours.
- on_day_of_start: a raw table with a row per day, its column with the day's first second, and name -> column of what is
  taken over for the day a job started on.
"""

from collections.abc import Mapping

import polars as pl

from ttf.formats.format_declaration import BYTES_OF_A_MIB, UNITS, UNITS_IN_BYTES, outcome_by_word
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import JOB_COLUMNS, conform, ended_unrecorded, outcome_of, status_word

DAY_S = 86_400
_TEXTS = ("job_id", "task", "user", "account", "status", "gpu_type")
_KEYS = (*_TEXTS, "submit", "start", "end", *UNITS, "size", "nodes", "nodes_asked", "attempts")


def jobs(source: Source) -> pl.DataFrame:
    """One row per row of the table, in file order, with the columns of the common job record.

    Run time is end - start, or what the mapped `runtime` says; the end is then start + run time. A job without a start
    has not started, and a waiting one neither, whatever other times they carry. A running job that has an end before
    the trace's end has ended, with an unknown result; but not by a run time, which is what has been seen of it so far.
    A word that is in no list of outcomes is `unknown`. Requests are per instance, and a job whose size is not mapped is
    one instance. Where ids are not unique, rows that share one are distinguished by `task`: their number in file order,
    after the mapped task if there is one. trace_end_s is the last moment any row names.
    """
    mapping, outcomes = source.meaning["mapping"], outcome_by_word(source.meaning["outcomes"])
    has_runtime, status = "runtime" in mapping, mapping["status"]
    word = status_word("status", isinstance(status, Mapping) and status.get("first_word", False))
    rows = (
        source.raw[mapping["table"]]
        .select(**{key: _value(mapping, key) for key in _KEYS}, **_extras(mapping), file="file")
        .with_columns(word=word, end=pl.col("start") + pl.col("runtime") if has_runtime else "end")
        .with_columns(
            outcome=outcome_of("word", outcomes), trace_end_s=pl.max_horizontal("submit", "start", "end").max()
        )
        .with_columns(start=pl.when(pl.col("outcome") != "waiting").then("start"))
    )
    of_day, rows = _of_day_of_start(rows, source)
    rows = rows.collect()
    # A job cancelled in the queue may carry an end, or a run time of 0.
    started = pl.col("start").is_not_null()
    end_s = pl.when(started).then("end")
    runtime_s = pl.col("end") - pl.col("start")
    outcome = pl.col("outcome")
    stated = {"duration_s": pl.col("extra stated"), "duration_differs": runtime_s != pl.col("extra stated")}
    return conform(
        rows.select(
            *("job_id", "user", "account", "gpu_type", "trace_end_s", "file"),
            task="task" if source.meaning.get("unique_ids", True) else _numbered_task(),
            submit_s="submit",
            start_s="start",
            end_s=end_s,
            queue_s=pl.col("start") - pl.col("submit"),
            runtime_s=runtime_s,
            outcome=outcome if has_runtime else ended_unrecorded(outcome, end_s, pl.col("trace_end_s")),
            status_raw="status",
            gpu_milli="gpus",
            cpu_milli="cpus",
            mem_mib="memory",
            size="size" if "size" in mapping else pl.lit(1),
            nodes="nodes_asked" if "nodes_asked" in mapping else pl.when(started).then("nodes"),
            attempts=pl.when(started).then("attempts"),
            **{name: f"extra {name}" for name in mapping.get("extras", [])},
            **(stated if "stated_runtime" in mapping else {}),
            **{name: f"extra {name}" for name in [*mapping.get("flags", []), *of_day]},
        ),
        JOB_COLUMNS,
    )


FORMAT = Format(jobs=jobs)


def _value(mapping: Mapping, key: str) -> pl.Expr:
    """What stands under a key, in our small unit; blank where it is not mapped."""
    part = mapping.get(key)
    if part is None or isinstance(part, int):
        return pl.lit(part, pl.String if key in _TEXTS else pl.Int64)
    if isinstance(part, str) or "unit" not in part:
        return _column(part)
    value = _column(part) * UNITS[key][part["unit"]]
    if key == "memory" and part["unit"] in UNITS_IN_BYTES:
        # Half a MiB is rounded up, in whole numbers.
        return (value + BYTES_OF_A_MIB // 2) // BYTES_OF_A_MIB
    return pl.when(_column(part) == 1).then(part["share"]).otherwise(value) if "share" in part else value


def _column(part: str | Mapping) -> pl.Expr:
    return pl.col(part if isinstance(part, str) else part["column"])


def _extras(mapping: Mapping) -> dict[str, pl.Expr]:
    """The columns that stay beside the common ones, named so that none of these is meant."""
    flags = {name: pl.col(*of).eq(*of.values()).fill_null(False) for name, of in mapping.get("flags", {}).items()}
    stated = {"stated": pl.col(mapping["stated_runtime"])} if "stated_runtime" in mapping else {}
    extras = {name: pl.col(name) for name in mapping.get("extras", [])} | stated | flags
    return {f"extra {name}": value for name, value in extras.items()}


def _of_day_of_start(rows: pl.LazyFrame, source: Source) -> tuple[list[str], pl.LazyFrame]:
    """What `on_day_of_start` takes over, and the rows with it; blank for a day that its table does not have.

    A day is the 24 hours from its first second on: of a zone whose clocks are never set.
    """
    about = source.meaning["mapping"].get("on_day_of_start", {})
    if about.get("table") not in source.raw:
        return [], rows
    columns = {f"extra {name}": column for name, column in about["columns"].items()}
    days = source.raw[about["table"]].select(day=about["day"], **columns)
    any_midnight = days.select(pl.col("day").min()).collect().item()
    day = pl.col("start") - (pl.col("start") - any_midnight) % DAY_S
    return list(about["columns"]), rows.with_columns(day=day).join(days, on="day", how="left", maintain_order="left")


def _numbered_task() -> pl.Expr:
    """The task, with the row's number among those of the same id (and task) where there are several."""
    same = ("job_id", "task")
    number = pl.int_range(1, pl.len() + 1).over(same).cast(pl.String)
    numbered = pl.concat_str("task", number, separator="/", ignore_nulls=True)
    return pl.when(pl.len().over(same) > 1).then(numbered).otherwise("task")

"""Errors of nodes from their logs: told apart from those at a start, with the spans in which each node was watched.

Repeats of one code on one GPU of one node within `merge_s` of each other are one error.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.raw.node_logs.merging import merge_close, number_close_rows
from ttf.raw.node_logs.reader import KINDS, REMARKS, Account, NodeLogs
from ttf.records.record_contracts import NODE_ERRORS, NODE_LOG_LINES, NODE_LOG_WATCH

# Clocks that differ by more than this are noticed.
MOST_OFFSET_S = 60
# A job start in the log farther from that of the trace is of another job with the same id.
_MOST_APART_S = 86_400
_LEAST_STARTS = 3
_CLOCKS = {
    "clock_off": (
        "warning",
        f"lines of errors of nodes whose clock differs from the jobs' by more than {MOST_OFFSET_S} s",
    ),
    "clock_unknown": (
        "info",
        "lines of errors of nodes whose clock cannot be compared: no line tells the start of a job",
    ),
}


def find_window(jobs: pl.LazyFrame) -> tuple[int, int] | None:
    """Return the first and the last moment of the jobs; None if none has a time."""
    names = jobs.collect_schema().names()
    starts = [pl.col(name).min() for name in ("submit_s", "start_s") if name in names]
    ends = [pl.col(name).max() for name in ("start_s", "end_s", "trace_end_s") if name in names]
    bounds = (
        jobs.select(start=pl.min_horizontal(starts), end=pl.max_horizontal(ends)).collect(engine="streaming").row(0)
    )
    return None if None in bounds else bounds


def list_trace_nodes(frames: Mapping[str, pl.LazyFrame]) -> list[str]:
    """Return the names of the nodes in nodes, placements and exposure, as far as there are such records."""
    names = [
        frame.select(pl.col("node").drop_nulls().unique()).collect(engine="streaming")["node"]
        for name, frame in frames.items()
        if name != "jobs" and "node" in frame.collect_schema().names()
    ]
    return pl.concat([pl.Series("node", [], pl.String), *names]).unique().sort().to_list()


def mark_boot_errors(logs: NodeLogs, boot_s: int) -> pl.DataFrame:
    """Return NODE_ERRORS: the errors with at_boot, whether they are within boot_s after a start of their node."""
    boots = logs.boots.rename({"time_s": "boot"}).sort("boot")
    errors = logs.errors.sort("time_s").join_asof(
        boots, left_on="time_s", right_on="boot", by="node", strategy="backward", check_sortedness=False
    )
    since_boot = pl.col("time_s") - pl.col("boot")
    errors = errors.with_columns(
        gpu=pl.when(pl.col("gpu") != "").then("gpu"), at_boot=(since_boot <= boot_s).fill_null(False)
    )
    return errors.select(*NODE_ERRORS.schema).sort("time_s", "node", "code", "gpu")


def find_watch(logs: NodeLogs, nodes: list[str], gap_s: int, offsets: pl.DataFrame) -> pl.DataFrame:
    """Return NODE_LOG_WATCH: the spans in which each node's log was written.

    A file with events only says nothing by its silence: it watches all nodes of the trace from its first to its last
    event. nodes: of the trace; without any, the nodes that such a file names.
    """
    spans = [logs.spans]
    if logs.event_spans.height:
        named = nodes or sorted({*logs.errors["node"], *logs.quiet_nodes})
        names = pl.Series("node", named, dtype=pl.String)
        spans.append(names.to_frame().join(logs.event_spans.drop("node"), how="cross"))
    watch = merge_close(pl.concat(spans), gap_s)
    watch = watch.join(offsets, on="node", how="left", maintain_order="left")
    return watch.sort("node", "start_s").select(*NODE_LOG_WATCH.schema)


def find_error_durations(
    errors: pl.DataFrame, watch: pl.DataFrame, merge_s: int, causes: Sequence[str]
) -> pl.DataFrame:
    """Return the periods in which each node was watched and had no error in service, by node and time.

    errors: NODE_ERRORS. watch: NODE_LOG_WATCH. Errors of a node within merge_s of each other are one. Warnings, codes
    that an application can cause and errors at a start end no period. Columns: node, start_s, duration_s, event
    (failure, or blank at the end of a watched span), and a Boolean for each of `causes`, components in small letters.
    """
    component = pl.col("component").str.to_lowercase().str.replace_all(" ", "_", literal=True)
    is_hardware = (pl.col("severity") == "error") & ~pl.col("application") & (component != "application")
    in_service = errors.filter(is_hardware & ~pl.col("at_boot")).sort("node", "time_s", "last_s")
    incidents = (
        in_service.with_columns(incident=number_close_rows(["node"], "time_s", "last_s", merge_s))
        .group_by("incident", "node", maintain_order=True)
        .agg(
            pl.col("time_s").min(),
            pl.col("last_s").max(),
            *((component == cause).any().alias(cause) for cause in causes),
        )
    )
    spans = watch.select("node", "start_s", "end_s").sort("node", "start_s").with_row_index("span")
    incidents = incidents.sort("time_s").join_asof(
        spans.sort("start_s"), left_on="time_s", right_on="start_s", by="node", check_sortedness=False
    )
    incidents = incidents.filter(pl.col("time_s") <= pl.col("end_s")).sort("span", "time_s")
    earlier_last_s = pl.col("last_s").shift(1).over("span")
    failed = incidents.with_columns(
        start_s=pl.coalesce(earlier_last_s, "start_s"), end_s="time_s", event=pl.lit("failure")
    )
    censored = spans.join(incidents.group_by("span").agg(pl.col("last_s").max()), on="span", how="left")
    censored = censored.with_columns(start_s=pl.coalesce("last_s", "start_s"))
    periods = pl.concat([failed, censored], how="diagonal").with_columns(duration_s=pl.col("end_s") - pl.col("start_s"))
    return (
        periods.filter(pl.col("duration_s") > 0)
        .sort("node", "start_s")
        .select("node", "start_s", "duration_s", "event", *(pl.col(cause).fill_null(False) for cause in causes))
    )


def measure_clock_offsets(job_starts: pl.DataFrame, placements: pl.LazyFrame | None) -> pl.DataFrame:
    """Return node and clock_offset_s: median of the log's time minus the trace's over at least three starts of jobs."""
    empty = pl.DataFrame(schema={"node": pl.String, "clock_offset_s": pl.Int64})
    if placements is None or not job_starts.height:
        return empty
    jobs = job_starts["job"].unique().to_list()
    starts = placements.filter(pl.col("job_id").is_in(jobs)).select("node", "start_s", job="job_id").drop_nulls()
    pairs = job_starts.join(starts.unique().collect(), on=["node", "job"]).with_columns(
        apart=pl.col("time_s") - pl.col("start_s")
    )
    # A job that was requeued has several starts: the nearest is meant.
    pairs = pairs.filter(pl.col("apart").abs() <= _MOST_APART_S)
    nearest = pairs.sort("node", "job", "time_s", pl.col("apart").abs(), "apart").unique(
        ["node", "job", "time_s"], keep="first", maintain_order=True
    )
    offsets = nearest.group_by("node").agg(n=pl.len(), clock_offset_s=pl.col("apart").median().round().cast(pl.Int64))
    return offsets.filter(pl.col("n") >= _LEAST_STARTS).drop("n").sort("node")


def tabulate_lines(account: Account, errors: pl.DataFrame, watch: pl.DataFrame) -> pl.DataFrame:
    """Return NODE_LOG_LINES: all lines, those of each kind, and what is said of lines besides."""
    total = sum(account.rows.get(kind, 0) for kind in KINDS)
    offsets = watch.select("node", "clock_offset_s").unique()
    clocks = errors.join(offsets, on="node", how="left")
    is_off = pl.col("clock_offset_s").abs() > MOST_OFFSET_S
    counts: Mapping[str, int] = account.rows | {
        "clock_off": int(clocks.filter(is_off)["lines"].sum()),
        "clock_unknown": int(clocks.filter(pl.col("clock_offset_s").is_null())["lines"].sum()),
    }
    rows: list[tuple] = [("lines", "info", total, None, None, "lines that are not blank")]
    for code, (severity, sentence) in (KINDS | REMARKS | _CLOCKS).items():
        if count := counts.get(code):
            first = _format_lines(account.first_lines.get(code, []))
            rows.append((code, severity, count, count / total if total else None, first, sentence))
    return pl.DataFrame(rows, schema=NODE_LOG_LINES.schema, orient="row")


def _format_lines(lines: list[tuple[str, int]]) -> str | None:
    numbers_by_file: dict[str, list[str]] = {}
    for file, line in sorted(lines):
        numbers_by_file.setdefault(file, []).append(str(line))
    return "; ".join(f"{file}: {', '.join(numbers)}" for file, numbers in numbers_by_file.items()) or None

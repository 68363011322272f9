"""Derive durations from logs of nodes: the periods between errors in service.

A node is at risk while its log was written. An error of hardware or of system software ends a period; the next begins
after the error's last line. A gap in the log, and its end, censor. A node whose log has no line is not in the trace,
unless `nodes` counts it. A node of which only errors are known has no known duration: others like it were watched too.
"""

import polars as pl
from ttf.formats.format_declaration import load_declaration
from ttf.formats.protocol import Format, Source
from ttf.raw.node_logs.merging import merge_close
from ttf.raw.node_logs.reader import EVENT_COLUMNS, Account, NodeLogs
from ttf.records.clusters import add_levels
from ttf.records.durations import DURATION_COLUMNS
from ttf.records.jobs import conform
from ttf.records.node_errors import find_error_durations, find_watch, mark_boot_errors, measure_clock_offsets
from ttf.records.outages.exposure import find_watched_units

CAUSES, CLUSTERS = (load_declaration("node_logs")[key] for key in ("causes", "clusters"))
# Names with more prefixes than this do not tell kinds of nodes.
MOST_PREFIXES = 20


def durations(source: Source) -> pl.DataFrame:
    """Return one row per period, with DURATION_COLUMNS (trace blank), the causes, start_s and name_prefix.

    name_prefix: the name of the node up to its first digit; blank if there are more than MOST_PREFIXES.
    """
    options, n_nodes = source.meaning["node_logs"], source.meaning.get("nodes")
    rows = source.raw["logs"].collect()
    logs = collect_logs(rows, options["merge_s"])
    errors = mark_boot_errors(logs, options["boot_s"])
    watch = find_watch(logs, [], options["gap_s"], measure_clock_offsets(logs.job_starts, None))
    watched = find_watched_nodes(logs, int(rows.filter(kind="lines")["lines"].sum()))
    is_known = pl.lit(n_nodes is not None or watched is None) | pl.col("node").is_in(watched or [])
    if n_nodes is not None and watch.height:
        watch = add_unseen_nodes(watch, n_nodes)
    periods = find_error_durations(errors, watch, options["merge_s"], CAUSES)
    prefix = pl.col("node").str.extract("^([^0-9]+)").str.strip_chars_end("-_.")
    periods = periods.select(
        unit_id="node",
        duration_id=pl.int_range(pl.len()).over("node"),
        entry_s=pl.lit(0),
        duration_s=pl.when(is_known).then("duration_s"),
        event="event",
        nodes=pl.lit(1),
        name_prefix=pl.when(prefix.n_unique() <= MOST_PREFIXES).then(prefix),
        start_s=pl.when(is_known).then("start_s"),
        **{cause: pl.col(cause) for cause in CAUSES},
    )
    return conform(add_levels(periods, CLUSTERS), DURATION_COLUMNS)


def find_watched_nodes(logs: NodeLogs, n_other_lines: int) -> list[str] | None:
    """Return the nodes that have a log of their own, or None if the files name nodes that may have no error.

    n_other_lines: lines that tell no error. Logs with fewer of them than errors were filtered, as by grep.
    """
    failed, watched = {*logs.errors["node"]}, {*logs.spans["node"]}
    is_filtered = logs.errors.height > n_other_lines and watched <= failed
    watched = set() if is_filtered else watched
    return None if logs.quiet_nodes or failed <= watched else sorted(watched)


def add_unseen_nodes(watch: pl.DataFrame, n_nodes: int) -> pl.DataFrame:
    """Add nodes that no line names, watched from the first moment to the last, so that n_nodes are watched."""
    bounds = {"start_s": pl.col("start_s").min(), "end_s": pl.col("end_s").max()}
    nodes = watch.select(unit_id="node")
    units = find_watched_units(nodes, {"nodes": n_nodes}, *watch.select(**bounds).row(0))
    unseen = units.join(nodes, on="unit_id", how="anti").select(node="unit_id", start_s="from_s", end_s="until_s")
    return pl.concat([watch, unseen], how="diagonal_relaxed")


def collect_logs(rows: pl.DataFrame, merge_s: int) -> NodeLogs:
    """Return what all files together tell, from the raw table `logs`; the files of a node may share lines."""
    parts = {kind: rows.filter(pl.col("kind") == kind) for kind in ("error", "boot", "span", "events", "node")}
    errors = parts["error"].with_columns(
        gpu=pl.col("gpu").fill_null(""), time_s="from_s", last_s="until_s", application=pl.col("application") == 1
    )
    events = parts["events"].select(node=pl.lit(""), start_s=pl.col("from_s").min(), end_s=pl.col("until_s").max())
    return NodeLogs(
        Account(),
        merge_close(errors.select(*EVENT_COLUMNS), merge_s),
        parts["span"].select("node", start_s="from_s", end_s="until_s"),
        parts["boot"].select("node", time_s="from_s").unique(),
        pl.DataFrame(schema=["node", "time_s", "job"]),
        events.drop_nulls(),
        parts["node"]["node"].unique().sort().to_list(),
    )


FORMAT = Format(durations=durations)

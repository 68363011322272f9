"""Read a log of nodes as a raw table: a row for each error, start and span, and one for all other lines."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import polars as pl
from ttf.formats.protocol import Reading
from ttf.raw.node_logs.line_blocks import read_blocks
from ttf.raw.node_logs.node_names import NodeNames
from ttf.raw.node_logs.reader import KINDS, REJECTED, LogOptions, read_node_log
from ttf.raw.node_logs.rules import Rules
from ttf.raw.raw_tables import MAX_TEXT_SHOWN, QUARANTINED_SCHEMA, Reader, RowPair, TableSchema, raw_lines


def read_rows(path: Path, schema: TableSchema, options: LogOptions) -> Iterator[RowPair]:
    """Yield (what a log tells, its lines that cannot be read). Each other line that is not blank is in `lines` once."""
    logs = read_node_log(path, options)
    n_accepted = sum(logs.account.rows.get(kind, 0) for kind in KINDS if kind not in REJECTED)
    spans = {"from_s": pl.col("start_s"), "until_s": pl.col("end_s")}
    rows = {
        "error": logs.errors.rename({"time_s": "from_s", "last_s": "until_s"}).cast({"application": pl.Int64}),
        "boot": logs.boots.rename({"time_s": "from_s"}),
        "span": logs.spans.select("node", **spans),
        "events": logs.event_spans.select(**spans),
        "node": pl.DataFrame({"node": logs.quiet_nodes}, schema={"node": pl.String}),
        "lines": pl.DataFrame({"lines": [n_accepted - int(logs.errors["lines"].sum())]}),
    }
    frames = [frame.with_columns(kind=pl.lit(kind)) for kind, frame in rows.items()]
    accepted = pl.concat([pl.DataFrame(schema=schema.dtypes), *frames], how="diagonal")
    accepted = accepted.with_columns(pl.col("lines").fill_null(0), line=pl.int_range(1, pl.len() + 1))
    yield accepted, pl.DataFrame(schema=QUARANTINED_SCHEMA)
    # Their texts come from a second pass, block by block, so that a file of other things does not fill the memory.
    is_no_node = pl.col("kind") == "no_node"
    rejected = logs.rejected.with_columns(
        table=pl.lit(schema.name),
        reason=pl.when(is_no_node).then(pl.lit("missing_value")).otherwise(pl.lit("not_a_time")),
        column=pl.when(is_no_node).then(pl.lit("node")).otherwise(pl.lit("time")),
    )
    for block in read_blocks(path) if rejected.height else ():
        texts = pl.DataFrame({"line": pl.int_range(len(block.lines), eager=True) + block.first, "text": block.lines})
        texts = texts.with_columns(pl.col("text").str.head(MAX_TEXT_SHOWN))
        quarantined = texts.join(rejected, on="line", maintain_order="left")
        yield accepted.clear(), quarantined.select(*QUARANTINED_SCHEMA)


def build_readers(entry: Mapping) -> dict[str, Reader]:
    """Return the reader for the rules, the zone and the limits of a trace."""
    logs = entry["node_logs"]
    limits = {key: logs[key] for key in ("merge_s", "gap_s")} | logs["times"]
    options = LogOptions(
        Rules.from_options(logs["rules"]), window=None, nodes=NodeNames([]), **limits, has_rejected=True
    )
    return {"logs": Reader(partial(read_rows, options=options), raw_lines)}


READING = Reading({}, build_readers=build_readers)

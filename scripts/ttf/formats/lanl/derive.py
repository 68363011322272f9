"""Derive durations and outages of the LANL nodes, 1995-2005: one duration per at-risk period between two outages.

Raw table `outages` (LA-UR-05-7318). All its 23,739 rows are accepted. Rules and findings:

- A node is `system/nodenumz`. 126 rows, all those of system 17, have no node, node count or months of service. Their
  exposure is unknown, so they have no duration. (The published description also counts 22 systems; it has 4,750 nodes,
  but the column `nodes` adds up to 5,006.)
- In service: from the start of the month `node prod` to the end of the month `node decom`. Only the months are known,
  so this is up to a month too long at either end. `current`, and any later month, ends at the latest time stamp of the
  data. No outage of the file lies outside these months. If prod is `before tracking` or blank (systems 7, 22, 24, of
  one node each), observation starts at the system's first outage, which therefore ends no duration.
- A spreadsheet changed the months: `Apr-97` is April 1997, `5-Apr` is April 2005. A row with other text is quarantined.
- Outages of a node that overlap or touch are merged: 159 rows start within an earlier outage (31 of them repeat its
  node and start, 25 as a whole), 127 at its very end. The cause is that of the rows with the earliest start; if they
  differ, each counts. Rows without a cause (453) are outages of unknown cause.
- repair_s is last fixed - first started by the time stamps, so that exposure and repair add up to the time in service.
  `Down Time` disagrees with the written stamps in 423 rows, but with their moments in Denver in only 401 (22 span
  a change of clocks): by one minute in 399, and by an hour in two whose stamp lies in the repeated hour.
- Nodes without an outage are not in the file. Each node that a system's `nodes` has beyond those seen gets one censored
  duration (`system/unseen-1` ...), over the months of the seen node with the nearest number (the lower of two). Systems
  were extended in blocks: nodes from 256 on of system 12 served four months of 2005 only, nodes from 80 on of system 8
  started in December 2002. The earliest and latest months of system 12 would give 1.64 times the exposure. Missing
  numbers start from 0. System 14 numbers its 128 nodes from 128, and system 11 has a stray number (578): in these two
  all nodes served the same months.
- Planned work is an outage here, as LANL recorded it: 734 rows of hardware `Maintenance`, 1,313 of software `DST...`
  (dedicated system time).
"""

from bisect import bisect_left

import polars as pl
from ttf.formats.format_declaration import load_declaration
from ttf.formats.protocol import Format, Source
from ttf.records.clusters import add_levels
from ttf.records.durations import DURATION_COLUMNS
from ttf.records.jobs import conform

ZONE, CAUSES, STRATA, CLUSTERS = (load_declaration("lanl")[key] for key in ("zone", "causes", "strata", "clusters"))
NODE = ["system", "node"]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SERVICE_SCHEMA = {"index": pl.Int64, "unit_id": pl.String, "system": pl.String, "node": pl.Int64}
SERVICE_SCHEMA |= {"machine_type": pl.String, "cpu_type": pl.String, "from_s": pl.Int64, "until_s": pl.Int64}


def durations(source: Source) -> pl.DataFrame:
    """Return one row per at-risk period, with DURATION_COLUMNS (trace blank) and some extras.

    system, machine_type, cpu_type; a Boolean per cause (CAUSES): it began the outage that ended the period; start_s:
    the start of the period (s since 1970); repair_s: duration of that outage in seconds, blank if censored. Rows are
    sorted by system in file order, then by node (unseen nodes last), then by time; duration_id counts the periods of a
    node from 0. nodes is 1, GPU request 0. A period of 0 s is omitted.
    """
    rows = source.raw["outages"].collect()
    service = service_periods(rows)
    merged = merge_outages(rows).join(service, on=NODE).filter(pl.col("start_s") <= pl.col("until_s"))
    previous_end_s = pl.col("end_s").shift().over(NODE, order_by="start_s")
    begin_s, repair_s = pl.max_horizontal("from_s", previous_end_s), pl.col("end_s") - pl.col("start_s")
    failed_periods = merged.with_columns(begin_s=begin_s, until_s="start_s", repair_s=repair_s, event=pl.lit("failure"))
    last_end = merged.group_by(NODE).agg(pl.col("end_s").max())
    censored_periods = service.join(last_end, on=NODE, how="left")
    censored_periods = censored_periods.with_columns(begin_s=pl.max_horizontal("from_s", "end_s"))
    frame = (
        pl.concat([failed_periods, censored_periods], how="diagonal")
        .filter(pl.col("until_s") > pl.col("begin_s"))
        .sort("index", "begin_s")
        .select(
            unit_id="unit_id",
            duration_id=pl.int_range(pl.len()).over("index"),
            entry_s=pl.lit(0),
            duration_s=pl.col("until_s") - pl.col("begin_s"),
            event="event",
            nodes=pl.lit(1),
            **{name: pl.col(name) for name in STRATA},
            **{cause: pl.col(cause).fill_null(False) for cause in CAUSES},
            start_s="begin_s",
            repair_s="repair_s",
        )
    )
    return conform(add_levels(frame, CLUSTERS), DURATION_COLUMNS)


def outage_records(source: Source) -> pl.DataFrame:
    """Return one record per row with a node: the level is the name of the column with a cause, the cause its text."""
    rows = source.raw["outages"].collect().drop_nulls("node")
    level = pl.coalesce(
        pl.when(pl.col(cause).is_not_null()).then(pl.lit(cause.replace("_", " ").title())) for cause in CAUSES
    )
    unit = pl.concat_str("system", "node", separator="/")
    return rows.select(
        "start_s", "end_s", unit_id=unit, node=unit, group="system", level=level, cause=pl.coalesce(CAUSES)
    )


def exposure(source: Source) -> pl.DataFrame:
    """Return the months of service of each node, seen or not."""
    service = service_periods(source.raw["outages"].collect()).filter(pl.col("from_s") < pl.col("until_s"))
    return service.select("unit_id", "from_s", "until_s", node="unit_id", group="system")


FORMAT = Format(durations=durations, outage_records=outage_records, exposure=exposure)


def merge_outages(rows: pl.DataFrame) -> pl.DataFrame:
    """Merge outages of a node that overlap or touch: system, node, start_s, end_s (s since 1970), causes.

    rows: the table `outages`; rows without a node are omitted. A cause is true if a row with the first start of the
    outage names it.
    """
    outages = rows.drop_nulls("node").sort(*NODE, "start_s", "end_s")
    latest_end_s = pl.col("end_s").cum_max().shift().over(NODE)
    is_first = (pl.col("start_s") > latest_end_s).fill_null(True)
    is_first_row = pl.col("start_s") == pl.col("start_s").min()
    return (
        outages.with_columns(outage=is_first.cum_sum())
        .group_by("outage", *NODE, maintain_order=True)
        .agg(
            *((pl.col(cause).is_not_null() & is_first_row).any() for cause in CAUSES),
            start_s=pl.col("start_s").min(),
            end_s=pl.col("end_s").max(),
        )
        .drop("outage")
    )


def service_periods(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per node, seen or not: SERVICE_SCHEMA, from_s and until_s in seconds since 1970, the row's index.

    rows: the table `outages`. A node with several months has the earliest prod and the latest decom. node is blank for
    unseen nodes; the module's docstring says how many there are and when they served.
    """
    data_end = rows.select(pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())).item()
    starts = _month_starts(rows["prod"], "before tracking", months_later=0)
    ends = _month_starts(rows["decom"], "current", months_later=1)
    seen_nodes = (
        rows.with_row_index("index")
        .with_columns(
            pl.col("index").min().over("system"),
            from_s=pl.col("prod").replace_strict(starts, return_dtype=pl.Int64),
            until_s=pl.min_horizontal(
                pl.col("decom").replace_strict(ends, return_dtype=pl.Int64).fill_null(data_end), pl.lit(data_end)
            ),
            first_outage_s=pl.col("start_s").min().over("system"),
        )
        .drop_nulls("node")
        .with_columns(pl.coalesce("from_s", "first_outage_s"))
        .group_by(NODE)
        .agg(
            pl.col("index").first(),
            pl.col("machine_type", "cpu_type").drop_nulls().first(),
            pl.col("from_s").min(),
            pl.col("until_s").max(),
            pl.col("nodes").max(),
        )
        .sort("index", "node")
        .with_columns(unit_id=pl.concat_str("system", "node", separator="/"))
    )
    node_rows: list[dict] = []
    for system in seen_nodes.partition_by("system", maintain_order=True):
        seen_rows = system.to_dicts()
        node_rows += seen_rows + _unseen_nodes(seen_rows, max(row["nodes"] or 0 for row in seen_rows))
    return pl.DataFrame(node_rows, schema=SERVICE_SCHEMA).with_columns(index=pl.int_range(pl.len()))


def _unseen_nodes(seen_rows: list[dict], nodes: int) -> list[dict]:
    """Return rows of the system's nodes that have no outage, each with the months of the nearest seen node."""
    numbers = [row["node"] for row in seen_rows]
    missing = sorted(set(range(nodes)) - set(numbers))[: max(nodes - len(seen_rows), 0)]
    unseen_rows = []
    for rank, node in enumerate(missing, start=1):
        index = bisect_left(numbers, node)
        nearest = min(seen_rows[max(index - 1, 0) : index + 1], key=lambda row: abs(row["node"] - node))
        unseen_rows.append(nearest | {"node": None, "unit_id": f"{nearest['system']}/unseen-{rank}"})
    return unseen_rows


def _month_starts(texts: pl.Series, no_month: str, months_later: int) -> dict[str | None, int | None]:
    """Map each text to the first second of its month, or of the month `months_later`; None for the text `no_month`."""
    second_by_text: dict[str | None, int | None] = {None: None, no_month: None}
    for text in texts.unique():
        if text not in second_by_text:
            year, month = parse_month(text)
            year, index = divmod(year * 12 + month - 1 + months_later, 12)
            second_by_text[text] = pl.select(pl.datetime(year, index + 1, 1, time_zone=ZONE).dt.epoch("s")).item()
    return second_by_text


def parse_month(text: str) -> tuple[int, int]:
    """Parse a spreadsheet's month as (year, month): `Apr-97` and `97-Apr` are April 1997, `5-Apr` is April 2005.

    Two digits from 70 on are a year of the 1900s.
    """
    name, _, digits = text.partition("-")
    if name.isdigit():
        name, digits = digits, name
    year = int(digits)
    return (1900 if year >= 70 else 2000) + year, MONTHS.index(name) + 1

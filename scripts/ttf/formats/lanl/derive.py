"""Node outages of the LANL systems, 1995-2005: a node has one life per at-risk period, from repair to next outage.

Raw table `outages` (LA-UR-05-7318). All its 23,739 rows are kept; what is made of them, and what was found in the file:

- A node is `system/nodenumz`. 126 rows, all those of system 17, name neither node nor node count nor months of service:
  no exposure can be given for them, so they are in no life. (The published description, too, counts 22 systems; it has
  4,750 nodes where the column `nodes` adds up to 5,006.)
- In service: from the first moment of the month `node prod` to the last of the month `node decom`, as only the months
  are known: up to a month too long at either end. `current`, and any month after it, ends with the data, at the latest
  time stamp. No outage of the file lies outside these months. Where prod is `before tracking` or blank (systems
  7, 22, 24, of one node each) a node is watched from its system's first outage, which therefore ends no life.
- The months are mangled by a spreadsheet: `Apr-97` is April 1997, `5-Apr` is April 2005. A row with other text is put
  aside.
- Outages of a node that overlap or touch are one: 159 rows start within an earlier outage (31 of them repeat its node
  and start, 25 as a whole), 127 at its very end. What began it counts as its cause: that of the rows with the earliest
  start, each of them if they differ. Rows without a cause (453) are outages of unknown cause.
- repair_s is last fixed - first started by the time stamps, so that exposure and repair add up to the time in
  service. `Down Time` disagrees with the stamps as they stand in 423 rows, but in only 401 as moments of Denver's time
  (22 span a change of clocks): by one minute in 399, and by an hour in two whose stamp lies in the repeated hour.
- Nodes without an outage are not in the file. Each system's `nodes` minus those seen gives one censored life each
  (`system/unseen-1` ...), over the months of the seen node with the nearest number (the lower of two). Systems were
  extended in blocks: node 256 and up of system 12 served four months of 2005 only, node 80 and up of system 8 came in
  December 2002. With the system's earliest and latest months the exposure of system 12 would come out 1.64 times as
  long. Missing numbers are taken from 0 up; system 14 counts its 128 nodes from 128, and system 11 has a stray number
  (578): in these two all nodes served the same months.
- Planned work is an outage here, as LANL recorded it: 734 rows of hardware `Maintenance`, 1,313 of software `DST...`
  (dedicated system time).
"""

from bisect import bisect_left

import polars as pl
from ttf.formats.format_declaration import declared
from ttf.formats.protocol import Format, Source
from ttf.records.clusters import with_levels
from ttf.records.jobs import conform
from ttf.records.lives import LIFE_COLUMNS

ZONE, CAUSES, STRATA, CLUSTERS = (declared("lanl")[key] for key in ("zone", "causes", "strata", "clusters"))
NODE = ["system", "node"]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SERVICE_SCHEMA = {"place": pl.Int64, "unit_id": pl.String, "system": pl.String, "node": pl.Int64}
SERVICE_SCHEMA |= {"machine_type": pl.String, "cpu_type": pl.String, "from_s": pl.Int64, "until_s": pl.Int64}


def lives(source: Source) -> pl.DataFrame:
    """One row per at-risk period, with LIFE_COLUMNS (trace blank) and these columns:

    system, machine_type, cpu_type; a Boolean per cause (CAUSES): it began the outage that ended the life; start_s:
    when the life began (s since 1970); repair_s: seconds that outage lasted, blank if none did. Rows stand by
    system in file order, then by node (those never seen last), then by time; life_id counts a node's lives from 0.
    nodes is 1, GPU request 0. A period of 0 s is no life.
    """
    rows = source.raw["outages"].collect()
    service = in_service(rows)
    merged = merged_outages(rows).join(service, on=NODE).filter(pl.col("start_s") <= pl.col("until_s"))
    before = pl.col("end_s").shift().over(NODE, order_by="start_s")
    ended = merged.with_columns(
        at_s=pl.max_horizontal("from_s", before), until_s="start_s", repair_s=pl.col("end_s") - pl.col("start_s")
    ).with_columns(event=pl.lit("failure"))
    last = merged.group_by(NODE).agg(pl.col("end_s").max())
    still = service.join(last, on=NODE, how="left").with_columns(at_s=pl.max_horizontal("from_s", "end_s"))
    frame = (
        pl.concat([ended, still], how="diagonal")
        .filter(pl.col("until_s") > pl.col("at_s"))
        .sort("place", "at_s")
        .select(
            unit_id="unit_id",
            life_id=pl.int_range(pl.len()).over("place"),
            entry_s=pl.lit(0),
            duration_s=pl.col("until_s") - pl.col("at_s"),
            event="event",
            nodes=pl.lit(1),
            **{name: pl.col(name) for name in STRATA},
            **{cause: pl.col(cause).fill_null(False) for cause in CAUSES},
            start_s="at_s",
            repair_s="repair_s",
        )
    )
    return conform(with_levels(frame, CLUSTERS), LIFE_COLUMNS)


def outage_records(source: Source) -> pl.DataFrame:
    """A row per row of the table that names a node: the column that has the cause is its level, the text its cause."""
    rows = source.raw["outages"].collect().drop_nulls("node")
    level = pl.coalesce(
        pl.when(pl.col(cause).is_not_null()).then(pl.lit(cause.replace("_", " ").title())) for cause in CAUSES
    )
    unit = pl.concat_str("system", "node", separator="/")
    return rows.select(
        "start_s", "end_s", unit_id=unit, node=unit, group="system", level=level, cause=pl.coalesce(CAUSES)
    )


def exposure(source: Source) -> pl.DataFrame:
    """The months of service of each node, seen or not."""
    service = in_service(source.raw["outages"].collect())
    return service.filter(pl.col("from_s") < pl.col("until_s")).select(
        "unit_id", "from_s", "until_s", node="unit_id", group="system"
    )


FORMAT = Format(lives=lives, outage_records=outage_records, exposure=exposure)


def merged_outages(rows: pl.DataFrame) -> pl.DataFrame:
    """The outages of every node that do not touch each other: system, node, start_s, end_s (s since 1970), causes.

    rows: the table `outages`; those without a node are left out. A cause is true if a row with the outage's first
    start names it.
    """
    outages = rows.drop_nulls("node").sort(*NODE, "start_s", "end_s")
    so_far = pl.col("end_s").cum_max().shift().over(NODE)
    is_first = (pl.col("start_s") > so_far).fill_null(True)
    begins = pl.col("start_s") == pl.col("start_s").min()
    return (
        outages.with_columns(outage=is_first.cum_sum())
        .group_by("outage", *NODE, maintain_order=True)
        .agg(
            *((pl.col(cause).is_not_null() & begins).any() for cause in CAUSES),
            start_s=pl.col("start_s").min(),
            end_s=pl.col("end_s").max(),
        )
        .drop("outage")
    )


def in_service(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per node, seen or not: SERVICE_SCHEMA, from_s and until_s in seconds since 1970, place the row's number.

    rows: the table `outages`. A node of several months has the earliest prod and the latest decom. node is blank for
    nodes never seen; see the module for how many there are and when they served.
    """
    data_end = rows.select(pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())).item()
    starts = _months(rows["prod"], {"before tracking": None}, following=0)
    ends = _months(rows["decom"], {"current": None}, following=1)
    seen = (
        rows.with_row_index("place")
        .with_columns(
            pl.col("place").min().over("system"),
            from_s=pl.col("prod").replace_strict(starts, return_dtype=pl.Int64),
            until_s=pl.min_horizontal(
                pl.col("decom").replace_strict(ends, return_dtype=pl.Int64).fill_null(data_end), pl.lit(data_end)
            ),
            tracked_s=pl.col("start_s").min().over("system"),
        )
        .drop_nulls("node")
        .with_columns(pl.coalesce("from_s", "tracked_s"))
        .group_by(NODE)
        .agg(
            pl.col("place").first(),
            pl.col("machine_type", "cpu_type").drop_nulls().first(),
            pl.col("from_s").min(),
            pl.col("until_s").max(),
            pl.col("nodes").max(),
        )
        .sort("place", "node")
        .with_columns(unit_id=pl.concat_str("system", "node", separator="/"))
    )
    found: list[dict] = []
    for system in seen.partition_by("system", maintain_order=True):
        known = system.to_dicts()
        found += known + _unseen(known, max(row["nodes"] or 0 for row in known))
    return pl.DataFrame(
        [{name: row[name] for name in SERVICE_SCHEMA} | {"place": place} for place, row in enumerate(found)],
        schema=SERVICE_SCHEMA,
    )


def _unseen(known: list[dict], nodes: int) -> list[dict]:
    """The nodes of a system of which no outage is written, each like the known one with the nearest number."""
    numbers = [row["node"] for row in known]
    missing = sorted(set(range(nodes)) - set(numbers))[: max(nodes - len(known), 0)]
    unseen = []
    for count, number in enumerate(missing, start=1):
        right = bisect_left(numbers, number)
        nearest = min(known[max(right - 1, 0) : right + 1], key=lambda row: abs(row["node"] - number))
        unseen.append(nearest | {"node": None, "unit_id": f"{nearest['system']}/unseen-{count}"})
    return unseen


def _months(texts: pl.Series, words: dict[str, None], following: int) -> dict[str | None, int | None]:
    """Text of a column -> the first second of its month, or of the `following`-th month after it; words as given."""
    moments: dict[str | None, int | None] = {None: None} | words
    for text in texts.unique():
        if text not in moments:
            year, month = month_of(text)
            year, index = divmod(year * 12 + month - 1 + following, 12)
            moments[text] = pl.select(pl.datetime(year, index + 1, 1, time_zone=ZONE).dt.epoch("s")).item()
    return moments


def month_of(text: str) -> tuple[int, int]:
    """(year, month) of a spreadsheet's month: `Apr-97` and `97-Apr` are April 1997, `5-Apr` is April 2005.

    Two digits from 70 on are a year of the 1900s.
    """
    name, _, digits = text.partition("-")
    if name.isdigit():
        name, digits = digits, name
    year = int(digits)
    return (1900 if year >= 70 else 2000) + year, MONTHS.index(name) + 1

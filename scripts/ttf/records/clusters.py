"""What repeats in a trace: jobs of one user fail alike, nodes of one system too, and intervals must know of it.

A cluster is the coarsest unit that a trace gives whose members are alike, a group the finest one within it. A block is
a week (`inference.block_days`): weeks differ whoever submits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ttf.records.jobs import Frame

# What a job asks for, where the trace gives it; jobs of one profile are mostly one job sent again.
REQUEST = ("gpu_milli", "size", "num_gpu", "cpu_milli", "mem_mib", "qos", "partition", "timelimit_s")
SOURCES = ("user", "recurrence_group", "account", *REQUEST)
CLUSTER_COLUMNS = {"cluster_by": pl.String, "cluster": pl.UInt32, "group_by": pl.String, "group": pl.UInt32}
# What happens in one block of time, a week by default, is alike too.
CLUSTER_COLUMNS |= {"block_by": pl.String, "block": pl.Int64}
# As jobs.parquet has them.
READ_OF_JOBS = tuple(CLUSTER_COLUMNS)
PROFILE = "request profile"
DAY_S = 86_400


def with_clusters(jobs: Frame) -> Frame:
    """The jobs in their order, with CLUSTER_COLUMNS; as they are where they have them, as those of jobs.parquet.

    cluster: number of the job's user; of a trace without users that of its recurrence group, else of its request
    profile (the columns of REQUEST that it gives), else of its account; cluster_by names which. group: number of the
    recurrence group, else of the request profile within the cluster. Where all jobs are of one cluster, the groups are
    the clusters. Numbers follow the order in which what they stand for appears: that of a job stays as it is when later
    jobs come.
    Jobs of which it is blank are one cluster: nobody knows that they differ. All blank where the trace gives none.
    """
    there = jobs.collect_schema()
    if "cluster_by" in there:
        return jobs
    given = [name for name in SOURCES if name in there]
    counted = jobs.lazy().select(pl.col(given).count()).collect(engine="streaming")
    known = [name for name in given if counted[name].item()]
    request = [name for name in REQUEST if name in known]
    # How many parts a job has is by itself no request that tells jobs apart.
    request = [] if request == ["size"] else request
    ways = {"user": ["user"], "recurrence group": ["recurrence_group"], PROFILE: request, "account": ["account"]}
    ways = {way: columns for way, columns in ways.items() if columns and columns[0] in known}
    if not ways:
        return with_levels(jobs, {})
    by = next(iter(ways))
    if "recurrence group" in ways:
        groups = {"recurrence group": ways["recurrence group"]}
    elif by == PROFILE or not request:
        groups = {by: ways[by]}
    else:
        groups = {f"{PROFILE} of one {by}": [*ways[by], *request]}
    return with_levels(jobs, {by: ways[by]} | groups)


def block_name(block_days: int) -> str:
    """What a block of so many days is called."""
    return {1: "day", 7: "week"}.get(block_days, f"{block_days} days")


def block_columns(block_days: int) -> dict[str, pl.Expr]:
    """block_by and block of jobs or attempts: the length of a block, and the number of that in which each ended.

    On the clock of the trace; of what did not end, or nobody knows when, the block in which it was last seen. A failure
    belongs to the week in which it happens, whenever it was submitted.
    """
    still = pl.when(pl.col("outcome") == "running").then("trace_end_s")
    last_seen_s = pl.coalesce("end_s", still, "start_s", "submit_s")
    return {"block_by": pl.lit(block_name(block_days)), "block": last_seen_s // (block_days * DAY_S)}


def split_by_block(rows: Frame, start_s: pl.Expr, end_s: pl.Expr, block_days: int) -> Frame:
    """A row for each block of time that a row touches between two moments (end_s not before start_s), in their order.

    With block_by and block, block_s, the seconds in that block, and is_first and is_last: whether it is that of the
    start, and that of the end. What ends as a block begins ends in the one before.
    """
    length = block_days * DAY_S
    rows = rows.with_columns(_from_s=start_s, _until_s=end_s)
    first, last = pl.col("_from_s") // length, pl.max_horizontal("_from_s", pl.col("_until_s") - 1) // length
    parts = rows.with_columns(_first=first, _last=last, block=pl.int_ranges(first, last + 1)).explode("block")
    from_s = pl.max_horizontal("_from_s", pl.col("block") * length)
    return parts.with_columns(
        block_by=pl.lit(block_name(block_days)),
        block_s=pl.min_horizontal("_until_s", (pl.col("block") + 1) * length) - from_s,
        is_first=pl.col("block") == pl.col("_first"),
        is_last=pl.col("block") == pl.col("_last"),
    ).drop("_from_s", "_until_s", "_first", "_last")


def steps_by_block(
    rows: pl.DataFrame,
    keys: Sequence[str],
    start_s: pl.Expr,
    end_s: pl.Expr,
    block_days: int,
    seconds: str | None = None,
    throughout: Sequence[str] = (),
    at_start: Sequence[str] = (),
    at_end: Sequence[str] = (),
) -> pl.DataFrame:
    """What the parts of `split_by_block` would add up to, as its change from each block to the next: four rows each.

    *keys, block, and Int64 columns: `seconds`, those in a block; and what counts in each block, the first, or the last.
    Steps add up over rows, and their running sum by block is the sum of the parts: see `runs_of_steps`.
    """
    length = block_days * DAY_S
    first, last = start_s // length, pl.max_horizontal(start_s, end_s - 1) // length
    head, tail = (first + 1) * length - start_s, end_s - last * length
    columns = {seconds: (head, length - head, tail - length, -tail)} if seconds else {}
    signs = dict.fromkeys(throughout, (1, 0, 0, -1)) | dict.fromkeys(at_start, (1, -1, 0, 0))
    signs |= dict.fromkeys(at_end, (0, 0, 1, -1))
    columns |= {name: [pl.col(name).cast(pl.Int32) * sign for sign in of] for name, of in signs.items()}
    steps = (
        rows.lazy().select(*keys, block=block, **{name: of[n] for name, of in columns.items()})
        for n, block in enumerate((first, first + 1, last, last + 1))
    )
    return pl.concat(steps).group_by(*keys, "block").agg(pl.col(list(columns)).sum()).collect(engine="streaming")


def runs_of_steps(steps: pl.LazyFrame) -> pl.DataFrame:
    """Sums by key and block, a row for each run of blocks that are alike: key, block (the first), blocks, the sums.

    steps: key (whole numbers from 0 on), block and values of `steps_by_block`, any number of rows for a key and block.
    In order of key and block; blocks without anything are in no row.
    """
    values, block = pl.exclude("code"), pl.col("block")
    first, last = (
        steps.select(block.min().fill_null(0), last=block.max().fill_null(0)).collect(engine="streaming").row(0)
    )
    width = last - first + 1
    # Sorted by one number, in a quarter of the time that two take.
    code = pl.col("key").cast(pl.Int64) * width + (block - first)
    sums = steps.select(pl.exclude("key", "block"), code=code).group_by("code").agg(values.sum()).sort("code")
    # The steps of a key add up to nothing, so that each begins at 0, and its last row is one of nothing.
    runs = sums.with_columns(values.cum_sum(), blocks=pl.col("code").shift(-1, fill_value=0) - pl.col("code"))
    runs = runs.filter(pl.any_horizontal(pl.exclude("code", "blocks") != 0))
    place = {"key": pl.col("code") // width, "block": pl.col("code") % width + first}
    return runs.select(pl.exclude("code"), **place).collect(engine="streaming")


def lives_by_block(lives: Frame, block_days: int | None) -> Frame:
    """Lives of units that have start_s as parts, one for each block of time: the last has the event, and is_last.

    Units are at risk for longer than a block, so that neither their time nor what the blocks share is that of one.
    Without block_days, the lives.
    """
    if block_days is None or "start_s" not in lives.collect_schema():
        return lives
    parts = split_by_block(lives, pl.col("start_s"), pl.col("start_s") + pl.col("duration_s"), block_days)
    is_last = pl.col("is_last").fill_null(True)
    duration_s = pl.coalesce("block_s", "duration_s")
    return parts.with_columns(duration_s=duration_s, event=pl.when(is_last).then("event"), is_last=is_last)


# The columns that say what clusters and groups are, and how long the blocks.
LEVEL_NAMES = ("cluster_by", "group_by", "block_by")


def level_names(rows: Frame) -> tuple[str | None, ...]:
    """LEVEL_NAMES of the rows of one trace; None where it names nothing, or has no rows."""
    there = [name for name in LEVEL_NAMES if name in rows.collect_schema()]
    first = rows.lazy().select(there).head(1).collect(engine="streaming").to_dicts()
    return tuple((first or [{}])[0].get(name) for name in LEVEL_NAMES)


def with_level_names(rows: Frame, levels: Sequence[str | None]) -> Frame:
    """The rows with `level_names` of their trace in LEVEL_NAMES."""
    return rows.with_columns(pl.lit(name, pl.String).alias(by) for by, name in zip(LEVEL_NAMES, levels, strict=True))


@dataclass(frozen=True)
class Level:
    """What jobs are alike by, and its number as a column of theirs; by: None where the trace names nothing."""

    by: str | None
    number: pl.Expr

    @classmethod
    def of(cls, jobs: Frame) -> "Level":
        """Of jobs `with_clusters`."""
        by, *_ = level_names(jobs)
        return cls(by, pl.lit(0) if by is None else pl.col("cluster"))


def with_levels(rows: Frame, levels: Mapping[str, Sequence[str]]) -> Frame:
    """The rows with CLUSTER_COLUMNS by the first (clusters) and the last (groups) of some levels: name -> columns.

    Of one cluster alone (a trace of one system) the groups are the clusters: nothing else tells how rows differ. The
    blocks are blank, unless the rows have them: see `block_columns`.
    """
    there = rows.collect_schema()
    columns = {name: pl.lit(None, kind) for name, kind in CLUSTER_COLUMNS.items() if name not in there}
    if not levels:
        return rows.with_columns(**columns)
    cluster_by, group_by = next(iter(levels)), next(reversed(levels))
    cluster, group = (numbers_of(rows.lazy(), list(levels[name])) for name in (cluster_by, group_by))
    if not cluster.max() and group.max():
        cluster_by, cluster = group_by, group.alias("cluster")
    columns |= {"cluster_by": pl.lit(cluster_by), "group_by": pl.lit(group_by)}
    if isinstance(rows, pl.DataFrame):
        return rows.with_columns(**columns | {"cluster": cluster, "group": group})
    # Beside rows yet to be read stand the numbers alone: carried through a join, the rows would be held.
    numbers = pl.LazyFrame({"cluster": cluster, "group": group})
    columns |= {"cluster": pl.col("cluster"), "group": pl.col("group")}
    return pl.concat([rows, numbers], how="horizontal").select(pl.exclude(columns), **columns)


def numbers_of(rows: pl.LazyFrame, keys: list[str]) -> pl.Series:
    """The place of each row's keys among all that differ, in the order of their first rows; blank is a key too."""
    first = rows.select(keys).with_row_index("first").group_by(keys).agg(pl.col("first").min())
    known = first.collect(engine="streaming").sort("first").drop("first").with_row_index("number")
    numbered = rows.select(keys).join(known.lazy(), on=keys, how="left", nulls_equal=True, maintain_order="left")
    return numbered.select("number").collect(engine="streaming")["number"]

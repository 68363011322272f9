"""Clusters of a trace: jobs of one user, or nodes of one system, fail together, and intervals must allow for it.

A cluster is the coarsest unit in the trace whose members are similar, a group the finest one within it. A block is a
week (`inference.block_days`): weeks differ for all users.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ttf.engine.columns import FEWEST_BLOCKS
from ttf.engine.storage.partitions import hash_columns
from ttf.records.jobs import Frame

# Columns of a job's request; jobs with one profile are mostly one job submitted again.
REQUEST = ("gpu_milli", "size", "num_gpu", "cpu_milli", "mem_mib", "qos", "partition", "timelimit_s")
SOURCES = ("user", "recurrence_group", "account", *REQUEST)
CLUSTER_COLUMNS = {"cluster_by": pl.String, "cluster": pl.UInt32, "group_by": pl.String, "group": pl.UInt32}
# Events in one block of time, by default a week, are also similar.
CLUSTER_COLUMNS |= {"block_by": pl.String, "block": pl.Int64}
# As in jobs.parquet.
JOB_CLUSTER_COLUMNS = tuple(CLUSTER_COLUMNS)
PROFILE = "request profile"
DAY_S = 86_400


def add_clusters(jobs: Frame) -> Frame:
    """Add CLUSTER_COLUMNS to the jobs, in their order; jobs that have them, as in jobs.parquet, stay as they are.

    cluster: number of the job's user; in a trace without users that of its recurrence group, else of its request
    profile (its columns of REQUEST), else of its account; cluster_by is its kind. group: number of the recurrence
    group, else of the request profile within the cluster. If all jobs form one cluster, the groups are the clusters.
    Numbers follow the order of first appearance, so a job's number does not change when later jobs arrive. Jobs with a
    blank key form one cluster, because they cannot be distinguished. All are blank if the trace has none of the keys.
    """
    schema = jobs.collect_schema()
    if "cluster_by" in schema:
        return jobs
    sources = [name for name in SOURCES if name in schema]
    value_counts = jobs.lazy().select(pl.col(sources).count()).collect(engine="streaming")
    filled = [name for name in sources if value_counts[name].item()]
    request = [name for name in REQUEST if name in filled]
    # The number of parts alone does not distinguish requests.
    request = [] if request == ["size"] else request
    candidates = {"user": ["user"], "recurrence group": ["recurrence_group"], PROFILE: request, "account": ["account"]}
    keys = {kind: columns for kind, columns in candidates.items() if columns and columns[0] in filled}
    if not keys:
        return add_levels(jobs, {})
    cluster_by = next(iter(keys))
    levels = {cluster_by: keys[cluster_by]}
    if "recurrence group" in keys:
        levels["recurrence group"] = keys["recurrence group"]
    elif cluster_by != PROFILE and request:
        levels[f"{PROFILE} of one {cluster_by}"] = keys[cluster_by] + request
    return add_levels(jobs, levels)


def block_name(block_days: int) -> str:
    """Return the name of a block of this length."""
    return {1: "day", 7: "week"}.get(block_days, f"{block_days} days")


# Number of the first block of durations of unknown time; no neighbour of the others.
UNKNOWN_BLOCK = -9


def first_block(block_by: str | None) -> pl.Expr:
    """Return the block of time in which a duration began, to within one; 0 without blocks.

    Durations that began together are at risk together. By their last block, units still running would be one block.
    """
    if block_by is None:
        return pl.lit(0)
    days = {"day": 1, "week": 7}.get(block_by) or int(block_by.split()[0])
    return (pl.col("block") - pl.col("duration_s") // (days * DAY_S)).fill_null(UNKNOWN_BLOCK)


def block_columns(block_days: int) -> dict[str, pl.Expr]:
    """Return block_by and block of jobs or attempts: the length of a block, and the number of each one's last block.

    The last block is that of the end, on the clock of the trace; without a known end, that in which the job was last
    seen. A failure belongs to the week in which it happens, regardless of its submission.
    """
    running_end_s = pl.when(pl.col("outcome") == "running").then("trace_end_s")
    last_seen_s = pl.coalesce("end_s", running_end_s, "start_s", "submit_s")
    return {"block_by": pl.lit(block_name(block_days)), "block": last_seen_s // (block_days * DAY_S)}


def add_block_columns(jobs: pl.LazyFrame, block_days: int) -> pl.LazyFrame:
    """Add `block_columns` to the jobs; block_by is blank in a trace with too few blocks for its intervals.

    The blocks of jobs that ended after a known run time are counted: these jobs are in ratios of ended jobs and in mean
    times to failure, so both of them count blocks, or neither.
    """
    columns = block_columns(block_days)
    has_result = pl.col("outcome").is_in(["success", "failure"]) & pl.col("runtime_s").is_not_null()
    counts = jobs.filter(has_result).select(columns["block"].alias("block").n_unique())
    if counts.collect(engine="streaming").item() < FEWEST_BLOCKS:
        columns["block_by"] = pl.lit(None, pl.String)
    return jobs.with_columns(**columns)


def split_into_blocks(rows: Frame, start_s: pl.Expr, end_s: pl.Expr, block_days: int) -> Frame:
    """Split each row into one row per block of time that it touches, in order.

    The row lasts from start_s to end_s, which is not before start_s. Adds block_by, block, block_s (seconds in that
    block), and is_first and is_last: whether the block has the start and the end. An end exactly at the begin of a
    block belongs to the one before.
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
    """Return sums of the parts of `split_into_blocks` by keys, as changes at each block from the block before.

    Columns: *keys, block, and Int64 columns: `seconds`, those in a block, and columns that count in each block
    (`throughout`), in the first (`at_start`) or the last (`at_end`). Steps add up over rows. Their running sum by block
    is the sum of the parts: see `sum_step_runs`.
    """
    length = block_days * DAY_S
    first, last = start_s // length, pl.max_horizontal(start_s, end_s - 1) // length
    head, tail = (first + 1) * length - start_s, end_s - last * length
    columns: dict[str, Sequence[pl.Expr]] = {}
    if seconds:
        columns[seconds] = (head, length - head, tail - length, -tail)
    signs = dict.fromkeys(throughout, (1, 0, 0, -1)) | dict.fromkeys(at_start, (1, -1, 0, 0))
    signs |= dict.fromkeys(at_end, (0, 0, 1, -1))
    columns |= {name: [pl.col(name).cast(pl.Int32) * sign for sign in weights] for name, weights in signs.items()}
    steps = (
        rows.lazy().select(*keys, block=block, **{name: weights[position] for name, weights in columns.items()})
        for position, block in enumerate((first, first + 1, last, last + 1))
    )
    return pl.concat(steps).group_by(*keys, "block").agg(pl.col(list(columns)).sum()).collect(engine="streaming")


def sum_step_runs(steps: pl.LazyFrame) -> pl.DataFrame:
    """Return sums by key and block, a row for each run of equal blocks: key, block (the first), blocks, the sums.

    steps: key (whole numbers from 0 on), block and values of `steps_by_block`, any number of rows for a key and block.
    Rows are sorted by key and block; empty blocks have no row.
    """
    values, block = pl.exclude("code"), pl.col("block")
    bounds = steps.select(block.min().fill_null(0), last=block.max().fill_null(0))
    first, last = bounds.collect(engine="streaming").row(0)
    width = last - first + 1
    # Sorting one number takes a quarter of the time of sorting two.
    code = pl.col("key").cast(pl.Int64) * width + (block - first)
    sums = steps.select(pl.exclude("key", "block"), code=code).group_by("code").agg(values.sum()).sort("code")
    # The steps of a key sum to zero, so each key begins at 0, and its last row is empty.
    runs = sums.with_columns(values.cum_sum(), blocks=pl.col("code").shift(-1, fill_value=0) - pl.col("code"))
    runs = runs.filter(pl.any_horizontal(pl.exclude("code", "blocks") != 0))
    keys = {"key": pl.col("code") // width, "block": pl.col("code") % width + first}
    return runs.select(pl.exclude("code"), **keys).collect(engine="streaming")


def durations_by_block(durations: Frame, block_days: int | None) -> Frame:
    """Split durations of units with start_s into one part per block of time: the last has the event, and is_last.

    Units are at risk for longer than a block, so their time and the variance between blocks belong to several blocks.
    Without block_days the durations are returned unchanged.
    """
    if block_days is None or "start_s" not in durations.collect_schema():
        return durations
    parts = split_into_blocks(durations, pl.col("start_s"), pl.col("start_s") + pl.col("duration_s"), block_days)
    is_last = pl.col("is_last").fill_null(True)
    duration_s = pl.coalesce("block_s", "duration_s")
    return parts.with_columns(duration_s=duration_s, event=pl.when(is_last).then("event"), is_last=is_last)


# Columns with the kinds of clusters and groups, and the length of blocks.
LEVEL_NAMES = ("cluster_by", "group_by", "block_by")


def level_names(rows: pl.DataFrame | pl.LazyFrame) -> tuple[str | None, ...]:
    """Return the values of the columns LEVEL_NAMES in one trace's rows; None for a missing column or without rows."""
    present = [name for name in LEVEL_NAMES if name in rows.collect_schema()]
    first_rows = rows.lazy().select(present).head(1).collect(engine="streaming").to_dicts()
    return tuple((first_rows or [{}])[0].get(name) for name in LEVEL_NAMES)


def add_level_names(rows: Frame, levels: Sequence[str | None]) -> Frame:
    """Add the columns LEVEL_NAMES with these values to the rows."""
    return rows.with_columns(pl.lit(name, pl.String).alias(key) for key, name in zip(LEVEL_NAMES, levels, strict=True))


@dataclass(frozen=True)
class Level:
    """Kind of the clusters of jobs, and the column with their number; by: None if the trace has no clusters.

    cell: the number times `width`, plus the index of the block: small numbers, which pack into few bits. The index of
    an unknown block is width - 1; it is no neighbour of the others. block_by: kind of blocks, None without.
    """

    by: str | None
    number: pl.Expr
    block_by: str | None
    cell: pl.Expr
    width: int

    @classmethod
    def from_jobs(cls, jobs: pl.DataFrame | pl.LazyFrame) -> "Level":
        """Return the kind and the number of the clusters of jobs that have CLUSTER_COLUMNS."""
        by, _, block_by = level_names(jobs)
        number = pl.lit(0) if by is None else pl.col("cluster")
        index, width = pl.lit(0), 1
        if block_by is not None:
            bounds = jobs.lazy().select(pl.col("block").min(), last=pl.col("block").max()).fill_null(0)
            first, last = bounds.collect(engine="streaming").row(0)
            width = last - first + 3
            index = (pl.col("block") - first).fill_null(width - 1)
        return cls(by, number, block_by, number.cast(pl.Int64) * width + index, width)


def add_levels(rows: Frame, levels: Mapping[str, Sequence[str]]) -> Frame:
    """Add CLUSTER_COLUMNS to the rows. levels: kind of cluster -> columns that identify one, coarsest kind first.

    The first kind makes the clusters, the last the groups. If there is only one cluster, the groups become the
    clusters. Blocks are blank unless the rows have them: see `block_columns`.
    """
    schema = rows.collect_schema()
    columns = {name: pl.lit(None, kind) for name, kind in CLUSTER_COLUMNS.items() if name not in schema}
    if not levels:
        return rows.with_columns(**columns)
    cluster_by, group_by = next(iter(levels)), list(levels)[-1]
    cluster, group = (number_keys(rows.lazy(), list(levels[name])) for name in (cluster_by, group_by))
    if not cluster.max() and group.max():
        cluster_by, cluster = group_by, group.alias("cluster")
    columns |= {"cluster_by": pl.lit(cluster_by), "group_by": pl.lit(group_by)}
    if isinstance(rows, pl.DataFrame):
        return rows.with_columns(**columns | {"cluster": cluster, "group": group})
    # Lazy rows are joined with the numbers only: carried through a join, the rows would be held in memory.
    numbers = pl.LazyFrame({"cluster": cluster, "group": group})
    columns |= {"cluster": pl.col("cluster"), "group": pl.col("group")}
    return pl.concat([rows, numbers], how="horizontal").select(pl.exclude(columns), **columns)


def number_keys(rows: pl.LazyFrame, keys: list[str]) -> pl.Series:
    """Give each row a number by its keys, in the order of their first rows; blank is a key too."""
    hashes = rows.select(hash=hash_columns(keys)).collect(engine="streaming")
    numbers = hashes.unique(maintain_order=True).with_row_index("number")
    return hashes.join(numbers, on="hash", how="left", maintain_order="left")["number"]

"""What repeats in a trace: jobs of one user fail alike, nodes of one system too, and intervals must know of it.

A cluster is the coarsest unit that a trace gives whose members are alike, a group the finest one within it.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.jobs import Frame

# What a job asks for, where the trace gives it; jobs of one profile are mostly one job sent again.
REQUEST = ("gpu_milli", "size", "num_gpu", "cpu_milli", "mem_mib", "qos", "partition", "timelimit_s")
# What `with_clusters` reads of jobs.
READ_OF_JOBS = ("user", "recurrence_group", "account", *REQUEST)
CLUSTER_COLUMNS = {"cluster_by": pl.String, "cluster": pl.UInt32, "group_by": pl.String, "group": pl.UInt32}
PROFILE = "request profile"


def with_clusters(jobs: Frame) -> Frame:
    """The jobs in their order, with CLUSTER_COLUMNS in place of any they had.

    cluster: number of the job's user; of a trace without users that of its recurrence group, else of its request
    profile (the columns of REQUEST that it gives), else of its account; cluster_by names which. group: number of the
    recurrence group, else of the request profile within the cluster. Numbers follow the order of what they stand for.
    Jobs of which it is blank are one cluster: nobody knows that they differ. All blank where the trace gives none.
    """
    given = [name for name in READ_OF_JOBS if name in jobs.collect_schema()]
    counted = jobs.lazy().select(pl.col(given).count()).collect(engine="streaming")
    known = [name for name in given if counted[name].item()]
    request = [name for name in REQUEST if name in known]
    ways: dict[str, list[str]] = {
        "user": [name for name in ("user",) if name in known],
        "recurrence group": [name for name in ("recurrence_group",) if name in known],
        PROFILE: request,
        "account": [name for name in ("account",) if name in known],
    }
    by = next((way for way in ways if ways[way]), None)
    if by is None:
        return with_levels(jobs, {})
    if ways["recurrence group"]:
        groups = {"recurrence group": ways["recurrence group"]}
    elif by == PROFILE or not request:
        groups = {by: ways[by]}
    else:
        groups = {f"{PROFILE} of one {by}": [*ways[by], *request]}
    return with_levels(jobs, {by: ways[by]} | groups)


def with_levels(rows: Frame, levels: Mapping[str, Sequence[str]]) -> Frame:
    """The rows with CLUSTER_COLUMNS by the first (clusters) and the last (groups) of some levels: name -> columns."""
    eager = isinstance(rows, pl.DataFrame)
    lazy = rows.lazy().drop(CLUSTER_COLUMNS, strict=False)
    for column, level in zip(("cluster", "group"), (list(levels)[:1], list(levels)[-1:]), strict=True):
        name = pl.lit(level[0] if level else None, dtype=pl.String).alias(f"{column}_by")
        if not level:
            lazy = lazy.with_columns(name, pl.lit(None, dtype=pl.UInt32).alias(column))
            continue
        keys = list(levels[level[0]])
        known = lazy.select(keys).unique().collect(engine="streaming").sort(keys).with_row_index(column)
        # A join streams, and keeps the order of the rows.
        lazy = lazy.join(known.lazy(), on=keys, how="left", nulls_equal=True, maintain_order="left").with_columns(name)
    return lazy.collect(engine="streaming") if eager else lazy

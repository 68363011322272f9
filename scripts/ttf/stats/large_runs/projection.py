"""Projection limit of a node's failure rate: the largest runs it can predict, and why no larger."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

# Sizes with fewer failures are not measured: the 90% interval of their mean time to failure spans more than a factor of
# 3.
FEWEST_MEASURED = 10
# Largest projected run, as a multiple of the largest run of the trace.
FURTHEST = 4


@dataclass(frozen=True)
class ProjectionLimit:
    """Projection limit of a node's failure rate.

    largest_run: nodes of the largest run. nodes: nodes of the largest projection, 0 for none. reason: why no larger
    run. needed: data that a larger projection would need.
    """

    largest_run: int
    nodes: int
    reason: str
    needed: str


def projection_limit(sums: pl.DataFrame, law: pl.DataFrame) -> ProjectionLimit:
    """Return the sizes for which 1 / (nodes x r_f) is defensible, from sums by `nodes` and their `size_law`.

    No size if failures of any kind replace infrastructure failures, or if the 1/N law is rejected. If the law could not
    be tested, up to the largest bucket with FEWEST_MEASURED failures. Otherwise up to FURTHEST times the largest run.
    """
    test = law.row(-1, named=True)
    largest = sums.select(pl.col("nodes").max()).item() or 0
    if test["basis"] == "proxy":
        nodes, reason = 0, "infrastructure failures are not distinguished from others"
        needed = "states, reasons or health checks that name infrastructure failures"
    elif test["verdict"] == "rejected":
        nodes, reason = 0, "pooled over all jobs, MTTF does not fall as 1/N (within users it may)"
        needed = f"runs of that size with {FEWEST_MEASURED} failures or more"
    elif test["verdict"] == "agrees":
        nodes, needed = FURTHEST * largest, "longer records of larger runs"
        reason = f"a projection goes no further than {FURTHEST} times the largest run of the trace"
    else:
        rows_by_size = {high: sums.filter(pl.col("nodes").is_between(low, high)) for low, high in buckets(largest)}
        measured_sizes = [high for high, rows in rows_by_size.items() if rows["failures"].sum() >= FEWEST_MEASURED]
        nodes = max(measured_sizes, default=0)
        needed = f"runs of several sizes with {FEWEST_MEASURED} failures or more each"
        reason = f"whether MTTF falls as 1/N could not be tested ({test['reason'] or test['verdict']})"
    return ProjectionLimit(largest, nodes, reason, needed)


def buckets(largest: int) -> Iterator[tuple[int, int]]:
    """Yield the fewest and the most nodes of each bucket, each twice as wide as the last: 1, 2, 3 to 4, 5 to 8 ..."""
    low = 1
    while low <= largest:
        high = min(2 * (low - 1) or 1, largest)
        yield low, high
        low = high + 1

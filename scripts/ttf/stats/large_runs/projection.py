"""How far the failure rate of a node says what larger runs can expect, and why no further."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

# With fewer a size is not measured: the 90% interval of its mean time to failure spans more than a factor of 3.
FEWEST_MEASURED = 10
# How many times as large as the largest run a projected one may be.
FURTHEST = 4


@dataclass(frozen=True)
class Reach:
    """How far the failure rate of a node may be projected to runs of many nodes.

    largest_run: the most nodes of a run; nodes: the most that are projected to, 0 for none; reason: why no larger run;
    needed: what data larger ones would take.
    """

    largest_run: int
    nodes: int
    reason: str
    needed: str


def reach_of(sums: pl.DataFrame, law: pl.DataFrame) -> Reach:
    """The sizes for which 1 / (nodes x r_f) can be defended, from the infra lives' sums and their `size_law`.

    None where failures of any kind stand for those of infrastructure, or where the 1/N law is rejected; where it could
    not be tested, or too few failed to test it, up to the largest bucket with FEWEST_MEASURED failures; else up to
    FURTHEST times the largest run.
    """
    test = law.row(-1, named=True)
    largest = sums["nodes"].max() or 0
    if test["basis"] == "proxy":
        why = "infrastructure failures are not distinguished from others"
        return Reach(largest, 0, why, "states, reasons or health checks that name infrastructure failures")
    if test["verdict"] == "rejected":
        why = "the mean time to failure does not fall as 1/N in this trace"
        return Reach(largest, 0, why, f"runs of that size with {FEWEST_MEASURED} failures or more")
    if test["verdict"] != "agrees":
        measured = [high for low, high in buckets(largest) if _failures(sums, low, high) >= FEWEST_MEASURED]
        why = f"whether MTTF falls as 1/N could not be tested ({test['reason'] or test['verdict']})"
        needed = f"runs of several sizes with {FEWEST_MEASURED} failures or more each"
        return Reach(largest, max(measured, default=0), why, needed)
    why = f"a projection goes no further than {FURTHEST} times the largest run of the trace"
    return Reach(largest, FURTHEST * largest, why, "longer records of larger runs")


def buckets(largest: int) -> Iterator[tuple[int, int]]:
    """The fewest and the most nodes of each bucket, each twice as wide as the one before: 1, 2, 3 to 4, 5 to 8 ..."""
    low = 1
    while low <= largest:
        high = min(2 * (low - 1) or 1, largest)
        yield low, high
        low = high + 1


def _failures(sums: pl.DataFrame, low: int, high: int) -> int:
    return sums.filter(pl.col("nodes").is_between(low, high))["failures"].sum()

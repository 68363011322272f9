"""Outages -> the share of units that go so long without one from a random moment."""

import numpy as np
import polars as pl

from ttf.analyses.outages.measure_availability import OUTAGE_FREE, SPANS
from ttf.records.clusters import DAY_S, block_name, split_by_block
from ttf.records.outages.outage_lives import lives_of_outages
from ttf.stats.clustered import Clusters, with_limits
from ttf.stats.durations.renewal import NOT_WATCHED

# Units times blocks of time that are held; of more, blocks are longer.
MOST_UNIT_BLOCKS = 1_000_000


def outage_free(
    outages: pl.DataFrame, exposure: pl.DataFrame | None, block_days: int, cluster_by: str | None = None
) -> pl.DataFrame:
    """OUTAGE_FREE. Moments are those at which a unit was up, and from which it was watched for the span.

    An outage takes those since the repair before it that lie no more than the span before it. Both count in the blocks
    of time in which outages take moments, as what takes those of other units may begin then too. cluster_by: see
    `availability`.
    """
    spans = [span_s for span_s, _ in SPANS.values()]
    if exposure is None:
        return OUTAGE_FREE.frame({"span_s": span, "n": 0, "moments_s": 0, "reason": NOT_WATCHED} for span in spans)
    watches = exposure.select("unit_id", "group", "from_s", "until_s").sort("unit_id", "from_s").with_row_index("watch")
    watches = watches.with_columns(unit=pl.col("unit_id").rle_id().cast(pl.Int64))
    cluster = pl.col("group").rank("dense").fill_null(0).cast(pl.Int64) if cluster_by else pl.col("unit")
    watches = watches.with_columns(cluster=cluster).sort("from_s", "watch")
    ups = (
        lives_of_outages(outages, exposure, [], {})
        .select("unit_id", "start_s", "duration_s")
        .sort("start_s", "unit_id")
    )
    ups = ups.join_asof(watches, left_on="start_s", right_on="from_s", by="unit_id", check_sortedness=False)
    cells, is_node = _Cells(watches, block_days), outages["unit_id"].equals(outages["node"])
    by = cluster_by or ("node" if is_node else "unit")
    names = ("unit", "cluster", "watch", "start_s", "duration_s", "until_s")
    unit, cluster, watch, start, lasts, until = (ups[name].to_numpy() for name in names)
    end, rows = start + lasts, []
    for span in spans:
        to = np.minimum(end, until - span)
        moments = np.maximum(to - start, 0)
        taken = np.where((end < until) & (moments > 0), to - np.maximum(start, end - span), 0).clip(0)
        row = {"span_s": span, "n": np.unique(unit[moments > 0]).size, "moments_s": int(moments.sum())}
        if row["n"]:
            whole = cells.spread(np.bincount(watch, weights=moments, minlength=watches.height), span)
            row |= {"share": 1 - int(taken.sum()) / row["moments_s"]} | cells.limits(
                cells.at(cluster, end, taken), whole, by
            )
        else:
            row["reason"] = "no unit was up and watched for so long"
        rows.append(row)
    return OUTAGE_FREE.frame(rows)


class _Cells:
    """Clusters of units watched, by block of time: intervals of shares that allow for both to differ.

    watches: cluster and watch (their numbers), from_s, until_s.
    """

    def __init__(self, watches: pl.DataFrame, block_days: int) -> None:
        while (watches["until_s"] - watches["from_s"]).sum() > MOST_UNIT_BLOCKS * block_days * DAY_S:
            block_days *= 2
        parts = split_by_block(watches, pl.col("from_s"), pl.col("until_s"), block_days)
        names = ("cluster", "block", "watch", "block_s", "from_s", "until_s")
        cluster, block, self._watch, seconds, self._from, self._until = (parts[name].to_numpy() for name in names)
        self._name, self._length, self._width = block_name(block_days), block_days * DAY_S, int(block.max()) + 1
        self._codes, first, self._cell = np.unique(self._code(cluster, block), return_index=True, return_inverse=True)
        self._begin = np.maximum(self._from, block * self._length)
        self._end = self._begin + seconds
        members = np.bincount(self._cell, weights=seconds)
        self._clusters = Clusters(np.zeros(members.size, np.int64), members, 1, cluster[first], block[first])

    def _code(self, cluster: np.ndarray, block: np.ndarray) -> np.ndarray:
        return cluster * self._width + block

    def at(self, cluster: np.ndarray, time: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sums of values by cluster and block; those at a time out of all watches are 0."""
        cell = np.searchsorted(self._codes, self._code(cluster, time // self._length)).clip(0, self._codes.size - 1)
        return np.bincount(cell, weights=values, minlength=self._codes.size)

    def spread(self, moments: np.ndarray, span: int) -> np.ndarray:
        """The moments of watches by cluster, and by the block in which what follows within the span comes, evenly."""
        part = np.where(
            self._until - self._from > span, self._passed(self._end, span) - self._passed(self._begin, span), 0
        )
        return np.bincount(self._cell, weights=moments[self._watch] * part)

    def _passed(self, time: np.ndarray, span: int) -> np.ndarray:
        """The share of what follows the moments of a watch that has passed by a time: the integral of a trapezoid."""
        edges = ((1, self._from), (-1, self._from + span), (-1, self._until - span), (1, self._until))
        squares = sum(sign * np.maximum(time - edge, 0).astype(float) ** 2 for sign, edge in edges)
        return squares / (2 * span * np.maximum(self._until - self._from - span, 1))

    def limits(self, taken: np.ndarray, whole: np.ndarray, by: str) -> dict:
        """The columns of the interval of 1 - taken / whole, or why it lacks; by: what a cluster is called."""
        by = f"{by} and {self._name}" if self._clusters.counts_blocks[0] else by
        limits = self._clusters.proportion(whole - taken, whole, 0.95)
        row = with_limits(pl.DataFrame({"cluster_by": [by]}), *limits)
        return row.rename({"why_not": "reason"}).row(0, named=True)

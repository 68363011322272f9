"""The share of units that have no outage for a given span, from a random moment at which they are up."""

import numpy as np
import polars as pl

from ttf.analyses.outages.measure_availability import OUTAGE_FREE, SPANS
from ttf.records.clusters import DAY_S, block_name, split_into_blocks
from ttf.records.outages.outage_durations import durations_of_outages
from ttf.stats.clustered import Clusters, add_limits
from ttf.stats.durations.renewal import NOT_WATCHED

# Most units times blocks of time in memory; beyond it, blocks are longer.
MOST_UNIT_BLOCKS = 1_000_000


def outage_free(
    outages: pl.DataFrame, exposure: pl.DataFrame | None, block_days: int, cluster_by: str | None = None
) -> pl.DataFrame:
    """Return OUTAGE_FREE: for each span, the share of moments that no outage follows within the span.

    Moments are those at which a unit was up and was then watched for the whole span. An outage takes away the moments
    since the last repair that precede it by at most the span. Both moments and losses count in the block of time of the
    outage, because outages of other units may begin then too. cluster_by: see `availability`.
    """
    spans = [span_s for span_s, _ in SPANS.values()]
    if exposure is None:
        return OUTAGE_FREE.frame({"span_s": span_s, "n": 0, "moments_s": 0, "reason": NOT_WATCHED} for span_s in spans)
    watches = exposure.select("unit_id", "group", "from_s", "until_s").sort("unit_id", "from_s").with_row_index("watch")
    watches = watches.with_columns(unit=pl.col("unit_id").rle_id().cast(pl.Int64))
    number = pl.col("group").rank("dense").fill_null(0).cast(pl.Int64) if cluster_by else pl.col("unit")
    watches = watches.with_columns(cluster=number).sort("from_s", "watch")
    up_spells = (
        durations_of_outages(outages, exposure, [], {})
        .select("unit_id", "start_s", "duration_s")
        .sort("start_s", "unit_id")
    )
    up_spells = up_spells.join_asof(watches, left_on="start_s", right_on="from_s", by="unit_id", check_sortedness=False)
    cells, are_nodes = _ClusterBlocks(watches, block_days), outages["unit_id"].equals(outages["node"])
    cluster_label = cluster_by or ("node" if are_nodes else "unit")
    names = ("unit", "cluster", "watch", "start_s", "duration_s", "until_s")
    unit, cluster, watch, start, duration, until = (up_spells[name].to_numpy() for name in names)
    end, rows = start + duration, []
    for span_s in spans:
        last = np.minimum(end, until - span_s)
        moments = np.maximum(last - start, 0)
        lost = np.where((end < until) & (moments > 0), last - np.maximum(start, end - span_s), 0).clip(0)
        row: dict = {"span_s": span_s, "n": np.unique(unit[moments > 0]).size, "moments_s": int(moments.sum())}
        if row["n"]:
            totals = cells.spread_moments(np.bincount(watch, weights=moments, minlength=watches.height), span_s)
            row |= {"share": 1 - int(lost.sum()) / row["moments_s"]} | cells.interval(
                cells.sum_by_block(cluster, end, lost), totals, cluster_label
            )
        else:
            row["reason"] = "no unit was up and watched for so long"
        rows.append(row)
    return OUTAGE_FREE.frame(rows)


class _ClusterBlocks:
    """Clusters of watched units by block of time. Intervals of shares allow for differences between both.

    watches: cluster and watch (their numbers), from_s, until_s.
    """

    def __init__(self, watches: pl.DataFrame, block_days: int) -> None:
        while (watches["until_s"] - watches["from_s"]).sum() > MOST_UNIT_BLOCKS * block_days * DAY_S:
            block_days *= 2
        parts = split_into_blocks(watches, pl.col("from_s"), pl.col("until_s"), block_days)
        names = ("cluster", "block", "watch", "block_s", "from_s", "until_s")
        cluster, block, self._watch, seconds, self._from, self._until = (parts[name].to_numpy() for name in names)
        self._name, self._length, self._width = block_name(block_days), block_days * DAY_S, int(block.max()) + 1
        self._codes, first, self._rows = np.unique(self._encode(cluster, block), return_index=True, return_inverse=True)
        self._begin = np.maximum(self._from, block * self._length)
        self._end = self._begin + seconds
        members = np.bincount(self._rows, weights=seconds)
        self._clusters = Clusters.in_one_stratum(members, cluster[first], block[first])

    def _encode(self, cluster: np.ndarray, block: np.ndarray) -> np.ndarray:
        return cluster * self._width + block

    def sum_by_block(self, cluster: np.ndarray, time: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return sums of values by cluster and block. They must be 0 at times outside all watches."""
        index = np.searchsorted(self._codes, self._encode(cluster, time // self._length)).clip(0, self._codes.size - 1)
        return np.bincount(index, weights=values, minlength=self._codes.size)

    def spread_moments(self, moments: np.ndarray, span: int) -> np.ndarray:
        """Return moments by cluster and block, each spread evenly over the span that follows it."""
        share = np.where(
            self._until - self._from > span, self._elapsed(self._end, span) - self._elapsed(self._begin, span), 0
        )
        return np.bincount(self._rows, weights=moments[self._watch] * share)

    def _elapsed(self, time: np.ndarray, span: int) -> np.ndarray:
        """Return the share of a watch's spans that lies before a time: the integral of a trapezoid."""
        edges = ((1, self._from), (-1, self._from + span), (-1, self._until - span), (1, self._until))
        squares = sum(sign * np.maximum(time - edge, 0).astype(float) ** 2 for sign, edge in edges)
        return squares / (2 * span * np.maximum(self._until - self._from - span, 1))

    def interval(self, lost: np.ndarray, totals: np.ndarray, cluster_label: str) -> dict:
        """Return the columns of the interval of 1 - lost / totals, or the reason that there is none."""
        cluster_label = f"{cluster_label} and {self._name}" if self._clusters.counts_blocks[0] else cluster_label
        limits = self._clusters.proportion(totals - lost, totals, 0.95)
        row = add_limits(pl.DataFrame({"cluster_by": [cluster_label]}), *limits)
        return row.rename({"why_not": "reason"}).row(0, named=True)

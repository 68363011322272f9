"""Outages of nodes up to any time, and which nodes have significantly more than their fleet by then."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.engine.exact_sums import group_sums
from ttf.records.outages.outage_records import select_nodes
from ttf.stats.nodes.excess_failures import OrdinaryRates, compare_by_exposure, with_verdict

# An outage that begins this soon after the node's repair counts as a repeat of the one before.
REPEAT_S = 86_400
ALL_NODES = "all"


@dataclass(frozen=True)
class History:
    """names, fleets: of each node. The tuples hold arrays, the first of node indices.

    watch: node, from_s, until_s; down: node, start, end within a watch, including planned outages; starts: node,
    start_s, is_repeat, of unplanned outages that began within a watch.
    """

    names: list[str]
    fleets: list[str]
    watch: tuple[np.ndarray, ...]
    down: tuple[np.ndarray, ...]
    starts: tuple[np.ndarray, ...]

    @classmethod
    def build(cls, outages: pl.DataFrame, exposure: pl.DataFrame) -> "History":
        watch = select_nodes(exposure).sort("node", "from_s")
        fleet = pl.col("group").drop_nulls().first().fill_null(ALL_NODES)
        nodes = watch.group_by("node").agg(fleet=fleet).sort("node").with_row_index("number")
        numbers = nodes.select("node", pl.col("number").cast(pl.Int64))
        watch = watch.join(numbers, on="node", maintain_order="left")
        node_outages = select_nodes(outages).join(numbers, on="node", maintain_order="left").sort("node", "start_s")
        spans = node_outages.join(watch.select("node", "from_s", "until_s"), on="node")
        spans = spans.select(
            "number", start=pl.max_horizontal("start_s", "from_s"), end=pl.min_horizontal("seen_until_s", "until_s")
        )
        spans = spans.filter(pl.col("start") < pl.col("end")).sort("number", "start")
        unplanned = node_outages.filter(~pl.col("planned"))
        since_repair_s = pl.col("start_s") - pl.col("seen_until_s").shift().over("number")
        starts = unplanned.with_columns(is_repeat=(since_repair_s <= REPEAT_S).fill_null(False)).filter("counted")
        return cls(
            nodes["node"].to_list(),
            nodes["fleet"].to_list(),
            _columns_as_arrays(watch, "number", "from_s", "until_s"),
            _columns_as_arrays(spans, "number", "start", "end"),
            _columns_as_arrays(starts, "number", "start_s", "is_repeat"),
        )

    @property
    def begin_s(self) -> int:
        return int(self.watch[1].min(initial=self.end_s))

    @property
    def end_s(self) -> int:
        return int(self.watch[2].max(initial=0))

    @property
    def is_in_service(self) -> np.ndarray:
        """Return a mask of the nodes watched until the end, or nearly so."""
        node, _, until = self.watch
        is_in_service = np.zeros(len(self.names), bool)
        is_in_service[node[until >= self.end_s - REPEAT_S]] = True
        return is_in_service

    def up_s(self, until_s: int) -> np.ndarray:
        """Return for each node the seconds watched and not down before `until_s`."""
        watched, down = (
            group_sums(node, (np.minimum(end, until_s) - start).clip(0), len(self.names))
            for node, start, end in (self.watch, self.down)
        )
        return watched - down

    def count_outages(self, from_s: int, until_s: int) -> np.ndarray:
        """Count for each node the unplanned outages that begin from `from_s` to before `until_s`."""
        return self._count_starts((self.starts[1] >= from_s) & (self.starts[1] < until_s))

    def count_separate(self, until_s: int) -> np.ndarray:
        """Count for each node the unplanned outages before `until_s` that are no repeats."""
        return self._count_starts((self.starts[1] < until_s) & ~self.starts[2])

    def _count_starts(self, selection: np.ndarray) -> np.ndarray:
        return np.bincount(self.starts[0][selection], minlength=len(self.names))

    def is_up(self, from_s: int, until_s: int) -> np.ndarray:
        """Return a mask of nodes watched from `from_s` to `until_s` and not down at `from_s`."""
        is_up = np.zeros(len(self.names), bool)
        node, begin, end = self.watch
        is_up[node[(begin <= from_s) & (end >= until_s)]] = True
        node, begin, end = self.down
        is_up[node[(begin <= from_s) & (end > from_s)]] = False
        return is_up

    def compare_nodes(self, until_s: int, false_discovery: float) -> tuple[pl.DataFrame, OrdinaryRates | None]:
        """Return `with_verdict` of data before `until_s`: a row per node, with listed; and the ordinary rates."""
        columns = {"fleet": self.fleets, "counted": self.count_separate(until_s), "exposure_s": self.up_s(until_s)}
        nodes, ordinary = with_verdict(compare_by_exposure(pl.DataFrame(columns)), false_discovery)
        nodes = nodes.with_columns(p_value="p_spread", q_value="q_spread", listed=pl.col("lemon").fill_null(False))
        return nodes.drop("lemon"), ordinary


def _columns_as_arrays(frame: pl.DataFrame, *columns: str) -> tuple[np.ndarray, ...]:
    return tuple(column.to_numpy() for column in frame.select(columns))

"""The outages of nodes up to any moment, and which nodes have significantly more than their fleet by then."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.nodes.find_lemon_nodes.excess import benjamini_hochberg, compared_by_exposure
from ttf.engine.exact_sums import group_sums
from ttf.records.outages.outage_records import of_nodes

# An outage that begins within so long of the node's repair is the same trouble once more.
AGAIN_S = 86_400
NO_GROUP = "all"


@dataclass(frozen=True)
class History:
    """Nodes by name, and arrays of their number: fleets: name of each. watch: node, from_s, until_s. down: node, start,

    end within a watch, planned ones too. starts: node, second, whether again, of unplanned outages begun under watch.
    """

    names: list[str]
    fleets: list[str]
    watch: tuple[np.ndarray, np.ndarray, np.ndarray]
    down: tuple[np.ndarray, np.ndarray, np.ndarray]
    starts: tuple[np.ndarray, np.ndarray, np.ndarray]

    @classmethod
    def of(cls, outages: pl.DataFrame, exposure: pl.DataFrame) -> "History":
        """outages, exposure: of OUTAGES and EXPOSURE."""
        watch = of_nodes(exposure).sort("node", "from_s")
        fleet = pl.col("group").drop_nulls().first().fill_null(NO_GROUP)
        nodes = watch.group_by("node").agg(fleet=fleet).sort("node").with_row_index("number")
        numbered = nodes.select("node", pl.col("number").cast(pl.Int64))
        watch = watch.join(numbered, on="node", maintain_order="left")
        mine = of_nodes(outages).join(numbered, on="node", maintain_order="left").sort("node", "start_s")
        spans = mine.join(watch.select("node", "from_s", "until_s"), on="node")
        spans = spans.select(
            "number", start=pl.max_horizontal("start_s", "from_s"), end=pl.min_horizontal("seen_until_s", "until_s")
        )
        spans = spans.filter(pl.col("start") < pl.col("end")).sort("number", "start")
        unplanned = mine.filter(~pl.col("planned"))
        since = pl.col("start_s") - pl.col("seen_until_s").shift().over("number")
        starts = unplanned.with_columns(again=(since <= AGAIN_S).fill_null(False)).filter("counted")
        return cls(
            nodes["node"].to_list(),
            nodes["fleet"].to_list(),
            _arrays(watch, "number", "from_s", "until_s"),
            _arrays(spans, "number", "start", "end"),
            _arrays(starts, "number", "start_s", "again"),
        )

    @property
    def begin_s(self) -> int:
        return int(self.watch[1].min(initial=self.end_s))

    @property
    def end_s(self) -> int:
        return int(self.watch[2].max(initial=0))

    @property
    def in_service(self) -> np.ndarray:
        """Which nodes are watched to the end, or near it."""
        number, _, until = self.watch
        found = np.zeros(len(self.names), bool)
        found[number[until >= self.end_s - AGAIN_S]] = True
        return found

    def up_s(self, at_s: int) -> np.ndarray:
        """For how long each node was watched and not down, up to a moment."""
        watched, down = (
            group_sums(number, (np.minimum(end, at_s) - start).clip(0), len(self.names))
            for number, start, end in (self.watch, self.down)
        )
        return watched - down

    def outages(self, from_s: int, until_s: int) -> np.ndarray:
        """How many unplanned outages of each node begin from one moment to below another."""
        return self._count((self.starts[1] >= from_s) & (self.starts[1] < until_s))

    def counted(self, at_s: int) -> np.ndarray:
        """How many before a moment, without those that are the same trouble once more."""
        return self._count((self.starts[1] < at_s) & ~self.starts[2])

    def _count(self, those: np.ndarray) -> np.ndarray:
        return np.bincount(self.starts[0][those], minlength=len(self.names))

    def is_up(self, from_s: int, until_s: int) -> np.ndarray:
        """Which nodes are watched from one moment to another, and are not down at the first."""
        found = np.zeros(len(self.names), bool)
        number, begin, end = self.watch
        found[number[(begin <= from_s) & (end >= until_s)]] = True
        number, begin, end = self.down
        found[number[(begin <= from_s) & (end > from_s)]] = False
        return found

    def judged(self, at_s: int, false_discovery: float) -> pl.DataFrame:
        """A row of each node, of `compared_by_exposure`, with q_value and listed: by what is known up to a moment."""
        known = {"fleet": self.fleets, "counted": self.counted(at_s), "exposure_s": self.up_s(at_s)}
        nodes = compared_by_exposure(pl.DataFrame(known))
        q_values = benjamini_hochberg(nodes["p_value"].to_numpy())
        nodes = nodes.with_columns(q_value=pl.Series(q_values).fill_nan(None))
        return nodes.with_columns(listed=(pl.col("q_value") <= false_discovery).fill_null(False))


def _arrays(frame: pl.DataFrame, *names: str) -> tuple[np.ndarray, ...]:
    return tuple(frame[name].to_numpy() for name in names)

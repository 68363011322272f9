"""How busy the machines are: means and percentiles of what was measured of them, by GPU type."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_workload import MACHINE_LOAD
from ttf.analyses.queue.describe_workload.population import weighted_percentiles
from ttf.engine.counts import code, labels
from ttf.engine.exact_sums import INT64_LIMIT, dot, total
from ttf.engine.storage.tables import blocks

PERCENTS = (25, 50, 75, 90, 95)
# Column of the raw table (whole numbers of thousandths) -> the quantity and its unit, as the trace has it: whether the
# use of the GPUs is of one of them or of all together its publisher does not say.
QUANTITIES = {
    "cpu_milli": ("cpu", "%"),
    "cpu_usr_milli": ("cpu_usr", "%"),
    "cpu_kernel_milli": ("cpu_kernel", "%"),
    "iowait_milli": ("iowait", "%"),
    "gpu_milli": ("gpu", "%"),
    "load_1_milli": ("load_1", "processes"),
    "net_receive_milli": ("net_receive", "bytes/s"),
    "workers_milli": ("workers", "workers"),
}
MILLI = 1000
# Values that lie further apart than so many are first divided into bins.
MOST_BINS = 1 << 17
_LIVED = pl.col("life_s") > 0


def machine_load(raw: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Mean and percentiles of each of QUANTITIES, over all machines and by GPU type (MACHINE_LOAD).

    raw: machine_metric (a row per instance: machine, start_s, end_s, and what the machine did in the mean between them)
    and machine_spec (node, gpu_type); no rows where the first is not there. A row weighs as much as its instance's life
    is long: the mean is that over the seconds measured, a percentile the smallest value that so many per cent of them
    do not exceed. Machines with several instances at a time are measured several times over.
    """
    if "machine_metric" not in raw:
        return MACHINE_LOAD.frame([])
    metric = raw["machine_metric"].select("machine", *QUANTITIES, life_s=pl.col("end_s") - pl.col("start_s"))
    machines = pl.DataFrame({"node": labels(metric, "machine")}, schema={"node": pl.String})
    types, type_of = _types(machines, raw.get("machine_spec"))
    metric = metric.select(*QUANTITIES, "life_s", node=code("machine", machines["node"].to_list()))
    measured = _nothing_measured(metric.filter(_LIVED), type_of)
    for block in blocks(metric):
        block = block.filter(_LIVED)
        block = block[np.argsort(type_of[block["node"].to_numpy()], kind="stable")]
        for column, found in measured.items():
            known = block.select(column, "life_s", "node").drop_nulls()
            found.add(*(known[name].to_numpy() for name in known.columns))
    groups = {("all", "all"): slice(None)}
    groups |= {("gpu_type", name): slice(place, place + 1) for place, name in enumerate(types)}
    rows = []
    for column, (quantity, unit) in QUANTITIES.items():
        found = measured[column]
        bins = found.bins_of_percentiles(groups.values())
        exact = found.within(bins, metric.filter(_LIVED).rename({column: "value"}))
        for (group_by, group), of_types in groups.items():
            about = {"quantity": quantity, "unit": unit, "group_by": group_by, "group": group}
            rows.append(about | found.row(of_types, bins, exact))
    return MACHINE_LOAD.frame(rows)


def _types(machines: pl.DataFrame, spec: pl.LazyFrame | None) -> tuple[list[str], np.ndarray]:
    """(GPU types by name, the place of each machine's among them); the place after theirs: of no known type.

    The last of the places is that of no machine.
    """
    if spec is None:
        return [], np.zeros(machines.height + 1, dtype=np.int16)
    of_nodes = spec.select("node", "gpu_type").unique("node", keep="first", maintain_order=True).collect()
    types = machines.join(of_nodes, on="node", how="left", maintain_order="left")["gpu_type"]
    names = types.drop_nulls().unique().sort().to_list()
    places = types.replace_strict(names, range(len(names)), default=len(names), return_dtype=pl.Int16)
    return names, np.append(places.fill_null(len(names)).to_numpy(), np.int16(len(names)))


def _nothing_measured(metric: pl.LazyFrame, type_of: np.ndarray) -> "dict[str, _Measured]":
    """What the rows are added to, by quantity. Raises OverflowError where the lives are too long to be added up."""
    ends = metric.select(
        pl.col("life_s").cast(pl.Float64).sum(),
        pl.col(*QUANTITIES).min().fill_null(0).name.prefix("low_"),
        pl.col(*QUANTITIES).max().fill_null(0).name.prefix("high_"),
    )
    found = ends.collect(engine="streaming").row(0, named=True)
    # Percentiles take a hundred times as much; a rounded sum is far less than a thousandth off.
    if found["life_s"] * 100.1 >= INT64_LIMIT:
        raise OverflowError("times too long for an exact sum")
    return {name: _Measured(found[f"low_{name}"], found[f"high_{name}"], type_of) for name in QUANTITIES}


class _Measured:
    """The rows of one quantity, by GPU type: how many, which machines they are of, and seconds of life by value.

    Where the values lie far apart, the seconds are those of bins of `width` values from `low` on.
    """

    def __init__(self, low: int, high: int, type_of: np.ndarray) -> None:
        """low, high: the least and the greatest value; type_of: the type of each machine, last that of no machine."""
        self.type_of = type_of
        self.low = low
        self.width = -(-(high - low + 1) // MOST_BINS)
        # The last type is that of machines without one.
        types = int(type_of[-1]) + 1
        self.rows = [0] * types
        self.seconds = np.zeros((types, (high - low) // self.width + 1), np.int64)
        # Values from `low` on times seconds of life.
        self.moments = [0] * types
        self.is_there = np.zeros(type_of.size, bool)

    def add(self, values: np.ndarray, lives: np.ndarray, nodes: np.ndarray) -> None:
        """nodes: the place of each row's machine, -1 for none; the rows are in the order of the machines' types."""
        types, above = self.type_of[nodes].astype(np.int64), values - self.low
        np.add.at(self.seconds.reshape(-1), types * self.seconds.shape[1] + above // self.width, lives)
        self.is_there[nodes] = True
        for type_, (begin, end) in enumerate(pairwise(np.searchsorted(types, range(len(self.rows) + 1)).tolist())):
            self.rows[type_] += end - begin
            self.moments[type_] += dot(above[begin:end], lives[begin:end])

    def bins_of_percentiles(self, groups: Iterable[slice]) -> np.ndarray:
        """The bins that a percentile of one of these groups of types lies in; none where a bin is one value."""
        found = [np.zeros(0, np.int64)]
        for seconds in (self.seconds[types].sum(axis=0) for types in groups):
            if self.width > 1 and seconds.any():
                found.append(weighted_percentiles(np.arange(seconds.size), seconds, PERCENTS))
        return np.unique(np.concatenate(found))

    def within(self, bins: np.ndarray, metric: pl.LazyFrame) -> pl.DataFrame:
        """type, value and life_s, one row for each machine and value, of the rows whose value lies in these bins."""
        inside = ((pl.col("value") - self.low) // self.width).is_in(bins.tolist())
        # No bins, no row: none is read.
        rows = metric.filter(inside) if bins.size else metric.head(0)
        found = rows.group_by("node", "value").agg(pl.col("life_s").sum()).collect(engine="streaming")
        return found.select("value", "life_s", type=pl.Series(self.type_of[found["node"].to_numpy()]))

    def row(self, types: slice, bins: np.ndarray, exact: pl.DataFrame) -> dict:
        """The row of a group of types; exact: what is `within` these bins, which stands in their place."""
        if not any(self.rows[types]):
            return {"n": 0, "nodes": 0, "measured_s": 0, "reason": "no row has a value and a life above 0 s"}
        mine = range(len(self.rows))[types]
        by_bin = self.seconds[types].sum(axis=0)
        seconds = total(by_bin)
        exact = exact.filter(pl.col("type").is_in(mine))
        kept = np.delete(np.arange(by_bin.size), bins)
        values = np.append(self.low + self.width * kept, exact["value"])
        order = np.argsort(values, kind="stable")
        percents = weighted_percentiles(values[order], np.append(by_bin[kept], exact["life_s"])[order], PERCENTS)
        return {
            "n": sum(self.rows[types]),
            "nodes": int(np.count_nonzero(self.is_there[:-1] & np.isin(self.type_of[:-1], mine))),
            "measured_s": seconds,
            "mean": (sum(self.moments[types]) + self.low * seconds) / (seconds * MILLI),
            **{f"p{percent}": value / MILLI for percent, value in zip(PERCENTS, percents, strict=True)},
        }

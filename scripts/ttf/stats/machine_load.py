"""How busy the machines are: means and percentiles of what was measured of them, by GPU type."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import polars as pl

from ttf.stats.exact import dot, group_sums, total
from ttf.stats.order import first_of_each, order_by
from ttf.stats.population import weighted_percentiles

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

LOAD_SCHEMA = {
    "quantity": pl.String,
    "unit": pl.String,
    "group_by": pl.String,
    "group": pl.String,
    "n": pl.Int64,
    "nodes": pl.Int64,
    "measured_s": pl.Int64,
    "mean": pl.Float64,
    **{f"p{percent}": pl.Float64 for percent in PERCENTS},
    "reason": pl.String,
}


def machine_load(raw: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Mean and percentiles of each of QUANTITIES, over all machines and by GPU type, with LOAD_SCHEMA.

    raw: machine_metric (a row per instance: machine, start_s, end_s, and what the machine did in the mean between them)
    and machine_spec (node, gpu_type); no rows where the first is not there. A row weighs as much as its instance's life
    is long, so that a short one does not count like a long one: the mean is that over the seconds measured, a
    percentile the smallest value that so many per cent of them do not exceed. Machines with several instances at a
    time are measured several times over. n: rows with the value and a life above 0 s; nodes: machines among them.
    """
    if "machine_metric" not in raw:
        return pl.DataFrame(schema=LOAD_SCHEMA)
    metric = raw["machine_metric"]
    about = metric.select("machine", life_s=pl.col("end_s") - pl.col("start_s")).collect()
    machines = about.select(node=pl.col("machine").drop_nulls().unique())
    types, type_of = _types(machines, raw.get("machine_spec"))
    # A machine as its place in `machines`; the last place is that of rows without one.
    node = about["machine"].cast(pl.Enum(machines["node"])).to_physical().fill_null(machines.height).to_numpy()
    life = about["life_s"].fill_null(0).to_numpy()
    rows = np.flatnonzero(life > 0)
    rows = rows[np.argsort(type_of[node[rows]], kind="stable")]
    life, node = life[rows], node[rows]
    ends = np.searchsorted(type_of[node], np.arange(len(types) + 1))
    # Rows of machines without a type come first.
    segments = [slice(*edges) for edges in pairwise([0, *ends])]
    found = []
    for column, (quantity, unit) in QUANTITIES.items():
        values = metric.select(column).collect().to_series()
        known = values.is_not_null().to_numpy()[rows]
        levels, place = _levels(values.fill_null(0).to_numpy()[rows])
        parts = [
            _Measured.of(
                place[part][known[part]], life[part][known[part]], node[part][known[part]], levels.size, machines.height
            )
            for part in segments
        ]
        named = {"quantity": quantity, "unit": unit}
        found.append(named | {"group_by": "all", "group": "all"} | reduce(add, parts).told(levels))
        for name, part in zip(types, parts[1:], strict=True):
            found.append(named | {"group_by": "gpu_type", "group": name} | part.told(levels))
    return pl.DataFrame(found, schema=LOAD_SCHEMA)


def _types(machines: pl.DataFrame, spec: pl.LazyFrame | None) -> tuple[list[str], np.ndarray]:
    """(GPU types by name, the place of each machine's among them); -1 where it is not known, as for no machine."""
    if spec is None:
        return [], np.full(machines.height + 1, -1, dtype=np.int16)
    told = spec.select("node", "gpu_type").unique("node", keep="first", maintain_order=True).collect()
    types = machines.join(told, on="node", how="left", maintain_order="left")["gpu_type"]
    names = types.drop_nulls().unique().sort().to_list()
    places = types.replace_strict(names, range(len(names)), default=-1, return_dtype=pl.Int16).fill_null(-1)
    return names, np.append(places.to_numpy(), np.int16(-1))


def _levels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(values in ascending order, each of which some may have, and none but these; the place of each value)."""
    low = int(values.min(initial=0))
    room = int(values.max(initial=0)) - low + 1
    if room <= 4 * values.size:
        # Counted through without a sort.
        return np.arange(low, low + room), values - low
    order = order_by(values)
    first = first_of_each(values[order])
    place = np.empty(values.size, np.int64)
    place[order] = np.repeat(np.arange(first.size), np.diff(first, append=values.size))
    return values[order[first]], place


@dataclass(frozen=True)
class _Measured:
    """Some rows: how many, seconds of life at each level of a quantity, and which machines are among them."""

    n: int
    weights: np.ndarray
    machines: np.ndarray

    @classmethod
    def of(cls, place: np.ndarray, lives: np.ndarray, nodes: np.ndarray, levels: int, machines: int) -> "_Measured":
        """place: of a row's value among the levels; lives in seconds; nodes: machines, `machines` is none of them."""
        there = np.bincount(nodes, minlength=machines)[:machines] > 0
        return cls(place.size, group_sums(place, lives, levels), there)

    def __add__(self, other: "_Measured") -> "_Measured":
        return _Measured(self.n + other.n, self.weights + other.weights, self.machines | other.machines)

    def told(self, levels: np.ndarray) -> dict:
        if not self.n:
            return {"n": 0, "nodes": 0, "measured_s": 0, "reason": "no row has a value and a life above 0 s"}
        seconds = total(self.weights)
        percents = weighted_percentiles(levels, self.weights, PERCENTS)
        return {
            "n": self.n,
            "nodes": int(np.count_nonzero(self.machines)),
            "measured_s": seconds,
            "mean": dot(levels, self.weights) / (seconds * MILLI),
            **{f"p{percent}": value / MILLI for percent, value in zip(PERCENTS, percents, strict=True)},
        }

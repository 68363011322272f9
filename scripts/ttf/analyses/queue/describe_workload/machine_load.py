"""Means and percentiles of the load measured on machines, by GPU type."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_workload import MACHINE_LOAD
from ttf.analyses.queue.describe_workload.population import weighted_percentiles
from ttf.engine.counts import distinct_texts, text_codes
from ttf.engine.exact_sums import INT64_LIMIT, dot, total
from ttf.engine.storage.tables import read_blocks

PERCENTS = (25, 50, 75, 90, 95)
# Column of the raw table (whole thousandths) -> the quantity and its unit in the trace. The publisher does not say
# whether GPU use is that of one GPU or the sum over all GPUs of the machine.
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
# If the range of values is wider than this, they are first divided into bins.
MOST_BINS = 1 << 17
_HAS_RUN = pl.col("run_s") > 0


def machine_load(raw: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Return mean and percentiles of each of QUANTITIES, over all machines and by GPU type (MACHINE_LOAD).

    raw: machine_metric (a row per instance: machine, start_s, end_s, and the machine's mean load between them) and
    machine_spec (node, gpu_type). Without machine_metric the result has no rows. A row is weighted by the run time of
    its instance: the mean is over seconds measured, a percentile is the smallest value that this percentage of the
    seconds do not exceed. A machine with several instances at a time is measured once for each of them.
    """
    if "machine_metric" not in raw:
        return MACHINE_LOAD.frame([])
    metric = raw["machine_metric"].select("machine", *QUANTITIES, run_s=pl.col("end_s") - pl.col("start_s"))
    machines = pl.DataFrame({"node": distinct_texts(metric, "machine")}, schema={"node": pl.String})
    types, type_by_machine = _machine_types(machines, raw.get("machine_spec"))
    metric = metric.select(*QUANTITIES, "run_s", node=text_codes("machine", machines["node"].to_list()))
    measurements_by_column = _empty_measurements(metric.filter(_HAS_RUN), type_by_machine)
    for block in read_blocks(metric):
        block = block.filter(_HAS_RUN)
        block = block[np.argsort(type_by_machine[block["node"].to_numpy()], kind="stable")]
        for column, measurements in measurements_by_column.items():
            known_rows = block.select(column, "run_s", "node").drop_nulls()
            measurements.add(*(known_rows[name].to_numpy() for name in known_rows.columns))
    groups = {("all", "all"): slice(None)}
    groups |= {("gpu_type", name): slice(index, index + 1) for index, name in enumerate(types)}
    rows = []
    for column, (quantity, unit) in QUANTITIES.items():
        measurements = measurements_by_column[column]
        bins = measurements.percentile_bins(groups.values())
        exact_values = measurements.values_in_bins(bins, metric.filter(_HAS_RUN).rename({column: "value"}))
        for (group_by, group), type_slice in groups.items():
            keys = {"quantity": quantity, "unit": unit, "group_by": group_by, "group": group}
            rows.append(keys | measurements.table_row(type_slice, bins, exact_values))
    return MACHINE_LOAD.frame(rows)


def _machine_types(machines: pl.DataFrame, spec: pl.LazyFrame | None) -> tuple[list[str], np.ndarray]:
    """Return the GPU types by name, and the index of each machine's type: after the last if its type is not known.

    The last index is that of rows without a machine.
    """
    if spec is None:
        return [], np.zeros(machines.height + 1, dtype=np.int16)
    node_types = spec.select("node", "gpu_type").unique("node", keep="first", maintain_order=True).collect()
    types = machines.join(node_types, on="node", how="left", maintain_order="left")["gpu_type"]
    names = types.drop_nulls().unique().sort().to_list()
    type_indices = types.replace_strict(names, range(len(names)), default=len(names), return_dtype=pl.Int16)
    return names, np.append(type_indices.fill_null(len(names)).to_numpy(), np.int16(len(names)))


def _empty_measurements(metric: pl.LazyFrame, type_by_machine: np.ndarray) -> "dict[str, _Measurements]":
    """Return empty accumulators by column. Raises OverflowError if the sum of run times does not fit 64 bits."""
    range_columns = metric.select(
        pl.col("run_s").cast(pl.Float64).sum(),
        pl.col(*QUANTITIES).min().fill_null(0).name.prefix("low_"),
        pl.col(*QUANTITIES).max().fill_null(0).name.prefix("high_"),
    )
    ranges = range_columns.collect(engine="streaming").row(0, named=True)
    # Percentiles multiply the sum by 100; the rounding error of the sum is far below a thousandth.
    if ranges["run_s"] * 100.1 >= INT64_LIMIT:
        raise OverflowError("times too long for an exact sum")
    return {name: _Measurements(ranges[f"low_{name}"], ranges[f"high_{name}"], type_by_machine) for name in QUANTITIES}


class _Measurements:
    """Number of rows, machines, and seconds of run time by value, of one quantity by GPU type.

    If the range of values is wide, the seconds are those of bins of `width` values from `low` on.
    """

    def __init__(self, low: int, high: int, type_by_machine: np.ndarray) -> None:
        """low, high: least and greatest value; type_by_machine: type of each machine, last that of rows without one."""
        self.type_by_machine = type_by_machine
        self.low = low
        self.width = -(-(high - low + 1) // MOST_BINS)
        # The last type is that of machines without a known type.
        types = int(type_by_machine[-1]) + 1
        self.rows = [0] * types
        self.seconds = np.zeros((types, (high - low) // self.width + 1), np.int64)
        # Sum of (value - low) times seconds of run time.
        self.moments = [0] * types
        self.has_rows = np.zeros(type_by_machine.size, bool)

    def add(self, values: np.ndarray, run_times: np.ndarray, nodes: np.ndarray) -> None:
        """Add seconds of run time by value. nodes: machine of each row, -1 if none; rows sorted by type of machine."""
        types, offsets = self.type_by_machine[nodes].astype(np.int64), values - self.low
        np.add.at(self.seconds.reshape(-1), types * self.seconds.shape[1] + offsets // self.width, run_times)
        self.has_rows[nodes] = True
        for type_, (begin, end) in enumerate(pairwise(np.searchsorted(types, range(len(self.rows) + 1)).tolist())):
            self.rows[type_] += end - begin
            self.moments[type_] += dot(offsets[begin:end], run_times[begin:end])

    def percentile_bins(self, groups: Iterable[slice]) -> np.ndarray:
        """Return the bins in which a percentile of one of these groups of types lies; none if a bin is one value."""
        bins_by_group: list[np.ndarray] = [np.zeros(0, np.int64)]
        for seconds in (self.seconds[types].sum(axis=0) for types in groups):
            if self.width > 1 and seconds.any():
                bins_by_group.append(np.array(weighted_percentiles(np.arange(seconds.size), seconds, PERCENTS)))
        return np.unique(np.concatenate(bins_by_group))

    def values_in_bins(self, bins: np.ndarray, metric: pl.LazyFrame) -> pl.DataFrame:
        """Return type, value and run_s per machine and value, of the rows whose value lies in these bins."""
        is_in_bins = ((pl.col("value") - self.low) // self.width).is_in(bins.tolist())
        # Without bins no row is read.
        rows = metric.filter(is_in_bins) if bins.size else metric.head(0)
        runs = rows.group_by("node", "value").agg(pl.col("run_s").sum()).collect(engine="streaming")
        return runs.select("value", "run_s", type=pl.Series(self.type_by_machine[runs["node"].to_numpy()]))

    def table_row(self, types: slice, bins: np.ndarray, exact_values: pl.DataFrame) -> dict:
        """Return the row of a group of types. exact_values: values in `bins`, used instead of the middles of bins."""
        if not any(self.rows[types]):
            return {"n": 0, "nodes": 0, "measured_s": 0, "reason": "no row has a value and a duration above 0 s"}
        type_indices = range(len(self.rows))[types]
        seconds_by_bin = self.seconds[types].sum(axis=0)
        measured_s = total(seconds_by_bin)
        exact_values = exact_values.filter(pl.col("type").is_in(type_indices))
        other_bins = np.delete(np.arange(seconds_by_bin.size), bins)
        values = np.append(self.low + self.width * other_bins, exact_values["value"])
        order = np.argsort(values, kind="stable")
        seconds = np.append(seconds_by_bin[other_bins], exact_values["run_s"])
        percentiles = weighted_percentiles(values[order], seconds[order], PERCENTS)
        return {
            "n": sum(self.rows[types]),
            "nodes": int(np.count_nonzero(self.has_rows[:-1] & np.isin(self.type_by_machine[:-1], type_indices))),
            "measured_s": measured_s,
            "mean": (sum(self.moments[types]) + self.low * measured_s) / (measured_s * MILLI),
            **{f"p{percent}": value / MILLI for percent, value in zip(PERCENTS, percentiles, strict=True)},
        }

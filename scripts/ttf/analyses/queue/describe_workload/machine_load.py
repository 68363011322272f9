"""Mean and percentile of the load measured on machines."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_workload import MACHINE_LOAD
from ttf.analyses.queue.describe_workload.population import weighted_percentile
from ttf.engine.exact_sums import dot

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


def machine_load(raw: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Return mean and percentile of each of QUANTITIES over all machines (MACHINE_LOAD).

    raw: machine_metric (a row per instance: machine, start_s, end_s, and the machine's mean load between them); without
    it, the result has no rows. A row is weighted by the run time of its instance: the mean is over seconds measured,
    the percentile is the smallest value that 95% of the seconds do not exceed. A machine with several instances at a
    time is measured once for each of them.
    """
    if "machine_metric" not in raw:
        return MACHINE_LOAD.frame([])
    metric = raw["machine_metric"]
    machine = pl.col("machine").cast(pl.Categorical).to_physical()
    runs = metric.select(machine, seconds=pl.col("end_s") - pl.col("start_s")).collect()
    rows = []
    # One quantity at a time is in memory.
    for column, (quantity, unit) in QUANTITIES.items():
        readings = runs.hstack(metric.select(column).collect())
        readings = readings.filter(pl.col("seconds") > 0, pl.col(column).is_not_null())
        nodes = int(np.count_nonzero(np.bincount(readings["machine"].drop_nulls())))
        row: dict[str, str | float] = {"quantity": quantity, "unit": unit, "n": readings.height, "nodes": nodes}
        if readings.height:
            values, seconds = (readings[name].to_numpy() for name in (column, "seconds"))
            p95 = weighted_percentile(values, seconds, 95)
            row |= {"mean": dot(values, seconds) / (int(seconds.sum()) * MILLI), "p95": p95 / MILLI}
        else:
            row["reason"] = "no row has a value and a duration above 0 s"
        rows.append(row)
    return MACHINE_LOAD.frame(rows)

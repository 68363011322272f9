"""Mean and percentile of the load measured on machines."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.queue.describe_workload import MACHINE_LOAD
from ttf.analyses.queue.describe_workload.population import weighted_percentiles
from ttf.engine.exact_sums import INT64_LIMIT, dot, total
from ttf.stats.basics.order import sort_rows

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
    metric = raw["machine_metric"].with_columns(run_s=pl.col("end_s") - pl.col("start_s")).filter(pl.col("run_s") > 0)
    counts = metric.group_by("machine").agg(pl.col(list(QUANTITIES)).count()).collect(engine="streaming")
    rows = []
    # One quantity at a time is in memory.
    for column, (quantity, unit) in QUANTITIES.items():
        nodes = counts.filter(pl.col(column) > 0)["machine"].count()
        row: dict[str, str | float] = {
            "quantity": quantity,
            "unit": unit,
            "n": int(counts[column].sum()),
            "nodes": nodes,
        }
        if not row["n"]:
            rows.append(row | {"reason": "no row has a value and a duration above 0 s"})
            continue
        measured = metric.select(column, "run_s").drop_nulls().collect()
        values, seconds = sort_rows(*(series.to_numpy() for series in measured.get_columns()))
        measured_s = total(seconds)
        # A percentile multiplies the sum by 100.
        if measured_s * 100 >= INT64_LIMIT:
            raise OverflowError("times too long for an exact sum")
        (p95,) = weighted_percentiles(values, seconds, [95])
        rows.append(row | {"mean": dot(values, seconds) / (measured_s * MILLI), "p95": p95 / MILLI})
    return MACHINE_LOAD.frame(rows)

"""How busy the machines are: means and percentiles of what was measured of them, by GPU type."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from ttf.stats.exact import dot
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
    life = pl.col("end_s") - pl.col("start_s")
    rows = raw["machine_metric"].with_columns(life_s=life).filter(pl.col("life_s") > 0)
    if "machine_spec" in raw:
        kinds = raw["machine_spec"].select(machine="node", gpu_type="gpu_type")
        rows = rows.join(kinds, on="machine", how="left", maintain_order="left")
    else:
        rows = rows.with_columns(gpu_type=pl.lit(None, dtype=pl.String))
    loads = rows.with_columns(node=pl.col("machine").rank("dense")).collect()
    types = loads["gpu_type"].drop_nulls().unique().sort().to_list()
    kinds = loads["gpu_type"].replace_strict(types, range(len(types)), default=-1, return_dtype=pl.Int64)
    kind = kinds.fill_null(-1).to_numpy()
    lives, nodes = loads["life_s"].to_numpy(), loads["node"].fill_null(0).to_numpy()
    found = []
    for column, (quantity, unit) in QUANTITIES.items():
        known = loads[column].is_not_null().to_numpy()
        values = loads[column].drop_nulls().to_numpy()
        # Equal values may come in any order: only whole weights are summed.
        order = loads[column].drop_nulls().arg_sort().to_numpy()
        ascending, weights = values[order], lives[known][order]
        of_kind, of_node = kind[known][order], nodes[known][order]
        for group_by, group, mine in [
            ("all", "all", np.ones(ascending.size, dtype=bool)),
            *(("gpu_type", name, of_kind == place) for place, name in enumerate(types)),
        ]:
            named = {"quantity": quantity, "unit": unit, "group_by": group_by, "group": group}
            found.append(named | _weighted(ascending[mine], weights[mine], of_node[mine]))
    return pl.DataFrame(found, schema=LOAD_SCHEMA)


def _weighted(ascending: np.ndarray, weights: np.ndarray, nodes: np.ndarray) -> dict:
    if not ascending.size:
        return {"n": 0, "nodes": 0, "measured_s": 0, "reason": "no row has a value and a life above 0 s"}
    seconds = int(weights.sum())
    percents = weighted_percentiles(ascending, weights, PERCENTS)
    return {
        "n": ascending.size,
        "nodes": int(np.count_nonzero(np.bincount(nodes)[1:])),
        "measured_s": seconds,
        "mean": dot(ascending, weights) / (seconds * MILLI),
        **{f"p{percent}": value / MILLI for percent, value in zip(PERCENTS, percents, strict=True)},
    }

"""The numbers of spares, of all units and all outages."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics
from ttf.outages.strata import ALL

NAMES = {0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p99_9"}
NEEDED = {
    "observed": ("spares_observed", "units"),
    "low": ("observed_low", "units"),
    "high": ("observed_high", "units"),
    "binomial": ("spares_binomial", "units"),
    "simulated": ("spares_simulated", "units"),
    "beside": ("spares_beside", "units"),
    "short_share": "share",
}


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    down = given["units_down"].filter(stratum_by=ALL, outages=ALL)
    source, first = "tables/units_down.csv", down.row(0, named=True)
    if first["down"] is None:
        metrics.put("spares.reason", first["reason"], "label", source)
        return
    metrics.put("spares.units", round(first["units"]), "units", source, first["n"])
    metrics.put("spares.most_down", down.filter(pl.col("time_s") > 0)["down"].max(), "units", source, first["n"])
    mean = float((down["down"] * down["time_share"]).to_numpy().sum())
    metrics.put("spares.mean_down", mean, "units", source, first["n"])
    for row in given["spares"].filter(stratum_by=ALL, outages=ALL).iter_rows(named=True):
        key = f"spares.{NAMES[row['p']]}"
        metrics.put_row(key, row, NEEDED, "tables/spares.csv", row["n"])

"""The numbers of the ledger: each category of all GPU hours, and what they are parts of."""

import polars as pl

from ttf.analyses.account_gpu_hours import ABOVE, UNUSED, USED
from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics

_UNITS = {"gpu_hours": "GPU-hours", "share": "share", "kwh": "kWh", "co2_kg": "kg"}


def numbers(metrics: Metrics, given: Inputs) -> None:
    source = "tables/ledger.csv"
    every = given["ledger"].filter(scope_by="all")
    if not every.height or not every["gpu_hours"].sum():
        return
    for row in every.iter_rows(named=True):
        metrics.put_row(f"ledger.{row['category']}", row, _UNITS, source, row["attempts"])
        metrics.put(f"ledger.{row['category']}.cost", row["cost"], row["currency"] or "currency", source)
    used, unused = (every.filter(pl.col("category").is_in(names))["gpu_hours"].sum() for names in (USED, UNUSED))
    metrics.put("ledger.used_gpu_hours", used, "GPU-hours", source)
    if above := -every.filter(category=ABOVE)["gpu_hours"].sum():
        metrics.put("ledger.above_gpu_hours", above, "GPU-hours", source)
    if unused:
        metrics.put("ledger.capacity_gpu_hours", every["gpu_hours"].sum(), "GPU-hours", source)

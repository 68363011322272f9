"""The annual failure rate of all drives, and the lowest and highest of a model."""

import polars as pl

from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_FAILURES, Metrics, ends, ends_of

_UNIT = "% a year"
_RATE = {"afr": _UNIT} | ends(_UNIT)


def numbers(metrics: Metrics, given: Inputs) -> None:
    """Of the models with FEWEST_FAILURES failures or more the lowest and the highest rate."""
    afr, source = given["afr"], "tables/afr.csv"
    whole = {"drives": "drives", "drive_days": "drive days", "failures": "failures"} | _RATE
    metrics.put_rows("afr", afr.filter(stratum_by="all"), whole, source, "drives")
    models = afr.filter(pl.col("stratum_by") != "all")
    metrics.put("afr.models", models.height, "models", source)
    metrics.put("afr.without_failure", models.filter(failures=0).height, "models", source, models.height)
    known = models.filter(pl.col("failures") >= FEWEST_FAILURES).sort("afr", "stratum")
    for end, row in ends_of(known, "lowest", "highest"):
        units = {"model": ("stratum", "label"), "failures": "failures"} | _RATE
        metrics.put_row(f"afr.{end}", row, units, source, row["drives"])

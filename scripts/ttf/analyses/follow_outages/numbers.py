"""The numbers of the growth of faults: the trend, within groups and in how many of them."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics

UNITS = {"trend": "label", "strata": "groups", "trend_p": "p", "homogeneity_p": "p"}
UNITS |= dict.fromkeys(("beta_within", "beta_within_ci_low", "beta_within_ci_high"), "1")


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    source, every = "tables/growth.csv", given["growth"].filter(pl.col("stratum_by") == "all")
    metrics.put_rows("growth", every, {"n": "faults"}, source, None)
    metrics.put_rows("growth", every, UNITS, source)
    divided = given["growth"].filter(pl.col("stratum_by") == "group").drop_nulls("trend")
    metrics.put("growth.groups.n", divided.height, "groups", source)
    for trend in ("better", "worse"):
        metrics.put(f"growth.groups.{trend}", divided.filter(trend=trend).height, "groups", source)
    last = given["mcf"].filter(pl.col("stratum_by") == "all").tail(1)
    metrics.put_rows("growth.mcf", last, dict.fromkeys(("mcf", "ci_low", "ci_high"), "faults"), "tables/mcf.csv", None)

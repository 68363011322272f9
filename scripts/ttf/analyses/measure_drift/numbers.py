"""The numbers of drift."""

import polars as pl

from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics

SIGNIFICANCE = 0.05


def numbers(metrics: Metrics, given: Inputs) -> None:
    """How many comparisons differ significantly, and what moved most."""
    drift, source = given["drift"], "tables/drift.csv"
    tested = drift.filter(pl.col("p_adjusted").is_not_null())
    moved = tested.filter(pl.col("p_adjusted") < SIGNIFICANCE)
    metrics.put("drift.comparisons", drift.height, "comparisons", source)
    metrics.put("drift.tested", tested.height, "comparisons", source, drift.height)
    metrics.put("drift.moved", moved.height, "comparisons", source, tested.height)
    shown = moved.filter(pl.col("before").is_not_null())
    if shown.height:
        most = shown.row(0, named=True)
        for name in ("window", "against", "column", "value", "statistic"):
            metrics.put(f"drift.most.{name}", most[name], "label", source)
        for name in ("before", "after", "effect", "p_adjusted"):
            metrics.put(f"drift.most.{name}", most[name], "1", source, most["n_before"] + most["n_after"])
        metrics.put("drift.most.effect_name", most["effect_name"], "label", source)

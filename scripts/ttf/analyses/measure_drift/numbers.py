"""The numbers of drift."""

import polars as pl

from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics

SIGNIFICANCE = 0.05


def numbers(metrics: Metrics, given: Inputs) -> None:
    drift, source = given["drift"], "tables/drift.csv"
    tested = drift.filter(pl.col("p_adjusted_clustered").is_not_null())
    moved = tested.filter(pl.col("p_adjusted_clustered") < SIGNIFICANCE)
    alone = drift.filter(pl.col("p_adjusted") < SIGNIFICANCE)
    metrics.put("drift.comparisons", drift.height, "comparisons", source)
    metrics.put("drift.moved_if_independent", alone.height, "comparisons", source, drift.height)
    metrics.put("drift.cluster_by", drift["cluster_by"].drop_nulls().first(), "label", source)
    metrics.put("drift.tested", tested.height, "comparisons", source, drift.height)
    metrics.put("drift.moved", moved.height, "comparisons", source, tested.height)
    shown = moved.filter(pl.col("before").is_not_null())
    if shown.height:
        most = shown.row(0, named=True)
        labels = dict.fromkeys(("window", "against", "column", "value", "statistic", "effect_name"), "label")
        metrics.put_row("drift.most", most, labels, source)
        found = dict.fromkeys(("before", "after", "effect", "p_adjusted_clustered"), "1")
        metrics.put_row("drift.most", most, found, source, most["n_before"] + most["n_after"])

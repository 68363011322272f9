"""The numbers of data quality that the report's prose uses."""

import polars as pl

from ttf.numbers.metrics import Metrics


def of_quality(metrics: Metrics, anomalies: pl.DataFrame, statistics: pl.DataFrame, validation: pl.DataFrame) -> None:
    """What was checked, how much of it was wrong, and how much the suggested schema would let in."""
    source = "quality/anomalies.csv"
    metrics.put("quality.anomalies", anomalies.height, "anomalies", source)
    metrics.put("quality.rows_aside", int(anomalies["rows"].sum()), "rows", source)
    suggested = anomalies.filter(~pl.col("suggestion").str.starts_with("none").fill_null(True))
    metrics.put("quality.suggestions", suggested.height, "suggestions", source)
    metrics.put("quality.rows_suggested", int(suggested["rows"].sum()), "rows", source)
    if anomalies.height:
        worst = anomalies.sort("rows", descending=True, maintain_order=True).row(0, named=True)
        units = {"table": "label", "sentence": "label", "rows": "rows", "share": "share"}
        metrics.put_row("quality.worst", worst, units, source)
    source = "quality/statistics.csv"
    stored = statistics.filter(pl.col("stored_as").is_not_null())
    metrics.put("quality.tables", statistics["table"].n_unique(), "tables", source)
    metrics.put("quality.columns", statistics.height, "columns", source)
    metrics.put("quality.columns_stored", stored.height, "columns", source)
    empty = stored.filter((pl.col("blank") == pl.col("rows")) & (pl.col("rows") > 0))
    metrics.put("quality.columns_blank", empty.height, "columns", source, stored.height)
    source = "quality/validation.csv"
    passed = int((validation["rows_failed"] == 0).sum())
    metrics.put("quality.checks", validation.height, "checks", source)
    metrics.put("quality.checks_passed", passed, "checks", source, validation.height)
    metrics.put("quality.checks_not_passed", validation.height - passed, "checks", source, validation.height)

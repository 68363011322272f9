"""The numbers of data quality."""

import polars as pl
import pytest
from memory_tables import compute_metrics
from ttf.analyses.quality.measure_drift import DRIFT
from ttf.analyses.quality.measure_drift.compute import summarise_drift
from ttf.analyses.quality.measure_drift.numbers import NUMBERS
from ttf.analyses.quality.summarise_results.compute import summarise_quality
from ttf.page.data_numbers import NUMBERS as STAGE_NUMBERS
from ttf.raw.raw_contracts import ANOMALIES, ROW_ACCOUNT, STATISTICS


def frame(schema, *rows):
    return pl.DataFrame(rows, schema=schema, orient="row")


def anomaly(rows, suggestion):
    return {
        "table": "pods",
        "rows": rows,
        "share": rows / 100,
        "sentence": "a <b> is | wrong",
        "suggestion": suggestion,
    }


def numbers(anomalies=(), drift=None):
    statistics = frame(
        STATISTICS.schema,
        {"table": "pods", "stored_as": "name", "rows": 5, "blank": 0},
        {"table": "pods", "stored_as": "state", "rows": 5, "blank": 4},
        {"table": "pods", "stored_as": "gpu_type", "rows": 5, "blank": 5},
        {"table": "pods", "stored_as": None, "rows": 5},
    )
    account = frame(ROW_ACCOUNT.schema)
    tables = {"row_account": account, "anomalies": frame(ANOMALIES.schema, *anomalies), "statistics": statistics}
    metrics = compute_metrics("summarise_results", {"quality_summary": summarise_quality(tables)})
    metrics.add(STAGE_NUMBERS, tables)
    if drift is not None:
        drift = frame(DRIFT.schema, *drift)
        metrics.add(NUMBERS, {"drift": drift, "drift_summary": summarise_drift(drift)})
    return metrics


def test_numbers_of_anomalies():
    metrics = numbers([anomaly(3, "allow the word X for y"), anomaly(9, "none: correct it")])
    assert metrics["quality.rows_suggested"]["value"] == 3
    assert metrics["quality.worst.rows"]["value"] == 9
    assert metrics["quality.columns_blank"]["value"] == 1


@pytest.mark.parametrize("p", [0.001, 0.5, None])
def test_a_window_has_moved_only_if_the_clustered_test_says_so(p):
    row = {"window": "week 2", "before": 0.1, "after": 0.2, "effect": 0.3, "n_before": 1, "n_after": 2}
    row |= {"p_adjusted": 1e-9, "p_adjusted_clustered": p}
    assert numbers(drift=[row])["drift.moved"]["value"] == (p == 0.001)

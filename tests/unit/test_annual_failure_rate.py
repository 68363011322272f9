"""The annual failure rate agrees with SciPy and with figures by hand, and handles empty data."""

from types import SimpleNamespace

import polars as pl
import pytest
from filled_texts import filled
from memory_tables import compute_metrics
from scipy import stats
from ttf.analyses.time_to_failure.annual_failure_rate import AFR
from ttf.analyses.time_to_failure.annual_failure_rate.charts import afr
from ttf.analyses.time_to_failure.annual_failure_rate.compute import failure_rate_table
from ttf.analyses.time_to_failure.annual_failure_rate.page import head
from ttf.display.charts.figure import Study
from ttf.display.trace_numbers import Numbers
from ttf.records.clusters import add_levels
from ttf.stats.durations.mttf import mean_time_to_failure

head = filled(head)

DAY_S = 86_400
# Model -> (drives, days per drive, failures). The last model has no failure.
MODELS = {
    "m1": (40, 90, 12),
    "m2": (50, 80, 1),
    "m3": (30, 100, 15),
    "m4": (40, 70, 3),
    "m5": (45, 90, 6),
    "m6": (9, 5, 0),
}


@pytest.fixture(scope="module")
def durations():
    rows = [
        (f"{model}-{drive}", days * DAY_S, "failure" if drive < failures else None, model)
        for model, (drives, days, failures) in MODELS.items()
        for drive in range(drives)
    ]
    rows.append(("m1-0", DAY_S, None, "m1"))  # back in service
    schema = {"unit_id": pl.String, "duration_s": pl.Int64, "event": pl.String, "model": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return add_levels(frame, {"model": ["model"], "drive": ["unit_id"]}).lazy()


@pytest.fixture(scope="module")
def table(durations):
    afr_table = failure_rate_table(durations, "model")
    AFR.check(afr_table)
    return afr_table


def test_rates_and_intervals_by_hand_and_by_scipy(table):
    for row in table.filter(stratum_by="model").iter_rows(named=True):
        drives, days, failures = MODELS[row["stratum"]]
        drive_days = drives * days + (row["stratum"] == "m1")
        assert (row["drives"], row["drive_days"], row["failures"]) == (drives, drive_days, failures)
        per_failure = 100 / (drive_days / 365)
        assert row["afr"] == pytest.approx(failures * per_failure)
        if failures:
            assert row["ci_low"] == pytest.approx(stats.chi2.ppf(0.025, 2 * failures) / 2 * per_failure)
            assert row["ci_high"] == pytest.approx(stats.chi2.ppf(0.975, 2 * failures + 2) / 2 * per_failure)
        else:
            assert row["ci_low"] is None
            assert row["ci_high"] == pytest.approx(2.995732 * per_failure)
            assert row["reason"] == "no failure: upper bound only"


def test_intervals_are_clustered_by_model(table, durations):
    """The clustered interval for all drives is that of the mean time to failure; one model is one cluster."""
    row = table.row(0, named=True)
    assert (row["stratum"], row["cluster_by"], row["reason"]) == ("all", "model", None)
    mttf = mean_time_to_failure(
        durations.with_columns(gpu_milli=pl.lit(None, pl.Int64), nodes=pl.lit(1)), "failure", ["all"], [0.95]
    ).row(0, named=True)
    year_s = 100 * 365 * DAY_S
    assert row["ci_low_clustered"] == pytest.approx(year_s / mttf["ci_high_clustered_s"])
    assert row["ci_high_clustered"] == pytest.approx(year_s / mttf["ci_low_clustered_s"])
    assert row["ci_low_clustered"] < row["ci_low"]
    models = table.filter(stratum_by="model")
    assert models["ci_low_clustered"].null_count() == models.height
    assert "effective clusters by model" in models["reason"][0]


def test_numbers_and_chart(table):
    metrics = compute_metrics("annual_failure_rate", {"afr": table})
    # 36,500 x 37 / 17,496, 12 / 3,601 and 15 / 3,000.
    assert metrics["afr.afr"]["value"] == pytest.approx(77.19, abs=0.01)
    assert {key: metrics[key]["value"] for key in ("afr.models", "afr.without_failure", "afr.failures")} == {
        "afr.models": 6,
        "afr.without_failure": 1,
        "afr.failures": 37,
    }
    assert (metrics["afr.lowest.model"]["value"], metrics["afr.highest.model"]["value"]) == ("m1", "m3")
    chart = afr({"afr": table}, Study("drive"))
    chart.spec(validate=True)
    rows = chart.datasets["models"]
    assert [row["model"] for row in rows] == ["m3", "m1", "m5", "m4", "m2", "m6"]
    assert "afr" not in rows[-1] and rows[-1]["bound"] > 0
    assert afr({"afr": table.head(1)}, Study("drive")).empty


def test_no_drive_failed(durations):
    table = failure_rate_table(durations.with_columns(event=pl.lit(None, pl.String)), "model")
    AFR.check(table)
    assert table["afr"].unique().to_list() == [0]
    afr({"afr": table}, Study("drive")).spec(validate=True)
    metrics = compute_metrics("annual_failure_rate", {"afr": table})
    assert "afr.ci_low" not in metrics and metrics["afr.ci_high"]["value"] > 0
    page_head = head(SimpleNamespace(info={"unit": "drive"}), Numbers(metrics))
    assert page_head.claim.startswith("Fewer than ") and "None" not in repr(page_head.keys)

"""Frequency, length, causes and trend of outages in real traces, against independent computations."""

import numpy as np
import polars as pl
import pytest
from format_tables import derive_table, ingest_tables
from outage_traces import DAY, infinitehbd
from ttf.analyses.outages.measure_availability import AVAILABILITY
from ttf.analyses.outages.measure_availability.compute import availability, causes
from ttf.analyses.outages.measure_availability.outage_free import outage_free
from ttf.analyses.outages.track_outages import GROWTH
from ttf.analyses.outages.track_outages.compute import analyse_growth
from ttf.records.outages.faults import faults as faults_of
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import build_exposure, is_start_watched, merge_records

HOUR = 3_600


@pytest.fixture(scope="module")
def faults(shared_data):
    if not (shared_data / "infinitehbd" / "fault_trace.json").is_file():
        pytest.skip("the InfiniteHBD trace is not beside the checkout")
    return infinitehbd(shared_data / "infinitehbd")


def row_of_all(table):
    return table.row(by_predicate=(pl.col("stratum_by") == "all"), named=True)


def test_availability_of_400_servers(faults):
    row = row_of_all(availability(*faults, 7))
    assert (row["units"], row["outages"], row["records"], row["open"]) == (400, 582, 584, 0)
    assert row["mtbf_s"] / DAY == pytest.approx(239.85, abs=0.005)
    assert row["mttf_s"] / DAY == pytest.approx(234.30, abs=0.005)
    assert row["mttr_s"] / HOUR == pytest.approx(133.25, abs=0.005)
    assert row["repair_median_s"] / HOUR == pytest.approx(20.41, abs=0.005)
    assert row["availability"] == pytest.approx(0.97685, abs=5e-6)
    rate = [row[name] for name in ("records_per_1000_unit_days", "records_ci_low", "records_ci_high")]
    assert rate == pytest.approx([4.1836, 3.8512, 4.5371], abs=5e-5)
    # Servers differ.
    assert row["mtbf_ci_high_clustered_s"] - row["mtbf_ci_low_clustered_s"] > 1.5 * (
        row["mtbf_ci_high_s"] - row["mtbf_ci_low_s"]
    )


def test_causes_of_584_faults(faults):
    outages, records, _ = faults
    table = causes(outages, records)
    classes = table.filter(pl.col("depth") == "class").select("class", (100 * pl.col("share")).round(2))
    assert classes.height == 22 and classes.row(0) == ("GPU", 27.05)


def test_growth_of_faults(faults):
    _, records, exposure = faults
    row = row_of_all(analyse_growth(records, exposure)["growth"])
    assert row["n"] == 584
    # Weeks are so correlated that the rate of the first months shows no trend.
    assert row["trend"] == "none" and row["trend_p"] > 0.8


def test_lanl(shared_data, tmp_path):
    file = shared_data / "lanl" / "LA-UR-05-7318-failure-data-1996-2005.csv"
    if not file.is_file():
        pytest.skip("the LANL data are not beside the checkout")
    raw, *_ = ingest_tables("lanl", tmp_path, 0, outages=[file])
    exposure = build_exposure("lanl", derive_table("lanl", "exposure", raw))
    outages, records = merge_records("lanl", apply_rules(derive_table("lanl", "outage_records", raw), []), exposure)
    table = availability(outages, records, exposure, 7, "system")
    row = row_of_all(table)
    assert (row["units"], row["outages"], row["under_way"], row["repairs"]) == (5006, 23_324, 3, 23_327)
    open_at_start = table.filter(pl.col("under_way") > 0, stratum_by="group")
    assert open_at_start.select("stratum", "under_way").rows() == [("22", 1), ("24", 1), ("7", 1)]
    growth = analyse_growth(records, exposure)["growth"]
    # An outage of overlapping records has several faults; both tables count the same ones.
    joined = growth.join(table, on=["stratum_by", "stratum"], how="inner").filter(pl.col("stratum_by") != "level")
    assert joined["n"].to_list() == joined["records"].to_list() and (joined["n"] > joined["outages"]).any()
    assert GROWTH.columns["n"].heading == AVAILABILITY.columns["records"].heading == "Faults"
    row_of_growth = row_of_all(growth)
    # Each system by its own time: N / sum ln(T / t), computed by a loop over the faults.
    logs = n = 0
    for _, watched in exposure.group_by("group"):
        system_faults = faults_of(records).join(watched, on="unit_id").filter(is_start_watched())
        begin, end = watched["from_s"].to_numpy(), watched["until_s"].to_numpy()
        for start in system_faults["start_s"]:
            passed = (np.minimum(end, start) - np.minimum(begin, start)).sum()
            logs, n = logs + np.log((end - begin).sum() / passed), n + 1
    assert row_of_growth["beta_within"] == pytest.approx(n / logs) == pytest.approx(0.897, abs=5e-4)
    assert row_of_growth["beta_within_ci_low"] < 0.8 and row_of_growth["beta_within_ci_high"] > 1
    assert row_of_growth["trend"] == "none" and row_of_growth["homogeneity_p"] < 0.001
    trends = growth.filter(stratum_by="group")["trend"].value_counts().drop_nulls()
    assert dict(trends.iter_rows()) == {"none": 16, "better": 3, "unclear": 1}
    assert row["mttf_s"] / DAY == pytest.approx(209.1, abs=0.05)
    assert row["availability"] == pytest.approx(0.9988, abs=5e-5)
    # The page has one interval of the time to failure, clustered by system like that of the durations.
    assert row["cluster_by"] == "system and week"
    assert row["mttf_ci_low_clustered_s"] / DAY < 100 and row["mttf_ci_high_clustered_s"] / DAY > 400
    year = outage_free(outages, exposure, 7, "system").row(-1, named=True)
    assert (year["n"], year["cluster_by"]) == (4624, "system and week")
    assert year["share"] == pytest.approx(outage_free_share(outages, exposure, 365 * DAY), abs=2e-4)
    assert year["ci_low_clustered"] < 0.45 < 0.5 < year["ci_high_clustered"]


def outage_free_share(outages, exposure, span):
    """Return the share of spans without an outage, among daily moments when a node is up and observed for the span."""
    moments_up_count = outage_free_moments = 0
    intervals_by_unit = {
        unit: part.select("start_s", "seen_until_s").to_numpy() for (unit,), part in outages.group_by("unit_id")
    }
    for unit, begin, end in exposure.select("unit_id", "from_s", "until_s").iter_rows():
        moments_of_unit = np.arange(begin + DAY // 2, end - span, DAY)
        starts, ends = intervals_by_unit.get(unit, np.zeros((0, 2), np.int64)).T
        order = np.argsort(starts)
        starts, ends = starts[order], np.maximum.accumulate(ends[order]) if starts.size else ends
        outages_before = np.searchsorted(starts, moments_of_unit, side="right")
        moments_up = moments_of_unit[
            (outages_before == 0) | (np.concatenate(([0], ends))[outages_before] <= moments_of_unit)
        ]
        following = np.append(starts, 1 << 60)[np.searchsorted(starts, moments_up, side="right")]
        moments_up_count, outage_free_moments = (
            moments_up_count + moments_up.size,
            outage_free_moments + (following > moments_up + span).sum(),
        )
    return outage_free_moments / moments_up_count

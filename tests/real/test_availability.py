"""How often and how long nodes of real traces were down, what for, and whether it changed; against what was worked out
by other routes."""

import numpy as np
import polars as pl
import pytest
from of_formats import table_of, typed
from outage_traces import DAY, infinitehbd
from ttf.analyses.outages.follow_outages import GROWTH
from ttf.analyses.outages.follow_outages.compute import analyse_growth
from ttf.analyses.outages.measure_availability import AVAILABILITY
from ttf.analyses.outages.measure_availability.compute import availability, causes
from ttf.analyses.outages.measure_availability.outage_free import outage_free
from ttf.analyses.shared.outages.faults import faults as faults_of
from ttf.records.outages.outage_causes import with_rules
from ttf.records.outages.outage_records import began_under_watch, exposure_of, outages_of

HOUR = 3_600


@pytest.fixture(scope="module")
def faults(shared_data):
    if not (shared_data / "infinitehbd" / "fault_trace.json").is_file():
        pytest.skip("the InfiniteHBD trace is not beside the checkout")
    return infinitehbd(shared_data / "infinitehbd")


def every(table):
    return table.row(by_predicate=(pl.col("stratum_by") == "all"), named=True)


def test_availability_of_400_servers(faults):
    row = every(availability(*faults, 7))
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
    levels = dict(table.filter(pl.col("depth") == "level").select("level", "events").iter_rows())
    assert levels == {"Hardware Failure": 298, "Other Failure": 262, "Software Failure": 24}
    classes = table.filter(pl.col("depth") == "class").select("class", (100 * pl.col("share")).round(2))
    assert classes.height == 22 and classes.row(0) == ("GPU", 27.05)


def test_growth_of_faults(faults):
    _, records, exposure = faults
    row = every(analyse_growth(records, exposure)["growth"])
    found = [row[name] for name in ("n", "beta", "ci_low", "ci_high", "laplace_u")]
    assert found == pytest.approx([584, 1.1366, 1.0463, 1.2306, 0.658], abs=5e-4)
    assert row["mil_hdbk_p"] < 0.01 < 0.5 < row["lewis_robinson_p"]
    # The weeks are so much alike that the rate of the first months tells no trend.
    assert row["trend"] == "none" and row["trend_p"] > 0.8 and row["effective_blocks"] == 4


def test_lanl(shared_data, tmp_path):
    file = shared_data / "lanl" / "LA-UR-05-7318-failure-data-1996-2005.csv"
    if not file.is_file():
        pytest.skip("the LANL data are not beside the checkout")
    raw, *_ = typed("lanl", tmp_path, 0, outages=[file])
    exposure = exposure_of("lanl", table_of("lanl", "exposure", raw))
    outages, records = outages_of("lanl", with_rules(table_of("lanl", "outage_records", raw), []), exposure)
    table = availability(outages, records, exposure, 7, "system")
    row = every(table)
    assert (row["units"], row["outages"], row["under_way"], row["repairs"]) == (5006, 23_324, 3, 23_327)
    under_way = table.filter(pl.col("under_way") > 0, stratum_by="group")
    assert under_way.select("stratum", "under_way").rows() == [("22", 1), ("24", 1), ("7", 1)]
    grown = analyse_growth(records, exposure)["growth"]
    # Faults, of which an outage has several where records overlap: the same ones as in the table of availability.
    both = grown.join(table, on=["stratum_by", "stratum"], how="inner").filter(pl.col("stratum_by") != "level")
    assert both["n"].to_list() == both["records"].to_list() and (both["n"] > both["outages"]).any()
    assert GROWTH.columns["n"].heading == AVAILABILITY.columns["records"].heading == "Faults"
    row_of_growth = every(grown)
    # Each system by its own time: N / sum ln(T / t), by a loop over the faults.
    logs = n = 0
    for _, watched in exposure.group_by("group"):
        mine = faults_of(records).join(watched, on="unit_id").filter(began_under_watch())
        begin, end = watched["from_s"].to_numpy(), watched["until_s"].to_numpy()
        for start in mine["start_s"]:
            passed = (np.minimum(end, start) - np.minimum(begin, start)).sum()
            logs, n = logs + np.log((end - begin).sum() / passed), n + 1
    assert row_of_growth["beta_within"] == pytest.approx(n / logs) == pytest.approx(0.897, abs=5e-4)
    assert row_of_growth["beta"] == pytest.approx(0.409, abs=5e-4)
    assert row_of_growth["beta_within_ci_low"] < 0.8 and row_of_growth["beta_within_ci_high"] > 1
    assert row_of_growth["trend"] == "none" and row_of_growth["homogeneity_p"] < 0.001
    trends = grown.filter(stratum_by="group")["trend"].value_counts().drop_nulls()
    assert dict(trends.iter_rows()) == {"none": 16, "better": 3, "worse": 1}
    assert row["mttf_s"] / DAY == pytest.approx(209.1, abs=0.05)
    assert row["availability"] == pytest.approx(0.9988, abs=5e-5)
    # One interval of the time to failure on the page: by system, as that of the lives.
    assert row["cluster_by"] == "system and week"
    assert row["mttf_ci_low_clustered_s"] / DAY < 100 and row["mttf_ci_high_clustered_s"] / DAY > 400
    year = outage_free(outages, exposure, 7, "system").row(-1, named=True)
    assert (year["n"], year["cluster_by"]) == (4624, "system and week")
    assert year["share"] == pytest.approx(free_for(outages, exposure, 365 * DAY), abs=2e-4)
    assert year["ci_low_clustered"] < 0.45 < 0.5 < year["ci_high_clustered"]


def free_for(outages, exposure, span):
    """Of moments a day apart, at which a node was up and from which it was watched for the span, those without an
    outage in it."""
    moments = free = 0
    down = {unit: part.select("start_s", "seen_until_s").to_numpy() for (unit,), part in outages.group_by("unit_id")}
    for unit, begin, end in exposure.select("unit_id", "from_s", "until_s").iter_rows():
        at = np.arange(begin + DAY // 2, end - span, DAY)
        starts, ends = down.get(unit, np.zeros((0, 2), np.int64)).T
        order = np.argsort(starts)
        starts, ends = starts[order], np.maximum.accumulate(ends[order]) if starts.size else ends
        before = np.searchsorted(starts, at, side="right")
        up = at[(before == 0) | (np.concatenate(([0], ends))[before] <= at)]
        following = np.append(starts, 1 << 60)[np.searchsorted(starts, up, side="right")]
        moments, free = moments + up.size, free + (following > up + span).sum()
    return free / moments

"""Analyses of outages from tables to the page: numbers, charts, heads and tables of any trace."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from given_tables import compute_metrics
from head_checks import check_claim
from hypothesis import given, settings
from hypothesis import strategies as st
from outage_traces import DAY, make_outages
from ttf.analyses.outages import measure_availability, track_outages
from ttf.analyses.outages.measure_availability import ANALYSIS, charts, compute, page
from ttf.analyses.outages.track_outages import charts as growth_charts
from ttf.analyses.outages.track_outages import compute as growth
from ttf.analyses.outages.track_outages import page as growth_page
from ttf.display.charts.figure import Study
from ttf.display.phrases import count_words, strip_markup
from ttf.display.section_head import Head, Line
from ttf.display.trace_numbers import Numbers
from ttf.records.outages.outage_durations import durations_of_outages
from ttf.stats.durations.mttf import mean_time_to_failure

UNTIL = 400 * DAY


def analyse(outages, records, exposure):
    """Return (tables, numbers, trace) of both analyses, or of the first one only if there is no exposure."""
    tables = {
        "outage_causes": compute.causes(outages, records),
        "availability": compute.availability(outages, records, exposure, 7),
        "outage_free": compute.outage_free(outages, exposure, 7),
    }
    if exposure is not None:
        tables |= growth.analyse_growth(records, exposure)
    for contract in (*measure_availability.ANALYSIS.tables, *track_outages.ANALYSIS.tables):
        if contract.name in tables:
            contract.check(tables[contract.name])
    metrics = compute_metrics("measure_availability", tables)
    if exposure is not None:
        metrics |= compute_metrics("track_outages", tables)
    trace = SimpleNamespace(info={"unit": "node"}, table=tables.__getitem__)
    return tables, Numbers(metrics), trace


def fleet(nodes=20, until_s=UNTIL, **columns):
    """Simulate nodes with an outage every 29 days; later nodes have longer outages."""
    intervals = {
        f"n{node}": [(d * DAY, d * DAY + 600 * node + 1) for d in range(40 + node, 400, 29)] for node in range(nodes)
    }
    return make_outages(intervals, until_s, node="unit_id", **columns)


def test_head_of_a_fleet():
    tables, m, trace = analyse(*fleet())
    claim = check_claim(page.head(trace, m), m)
    assert claim.startswith("Nodes were down ") and "half lasted less than" in claim
    labels = [key.label for key in page.head(trace, m).keys]
    assert labels == ["Availability", "Outage of a node every", "Mean repair"]
    assert m.value("growth.trend", None) in {"worse", "better", "none"}
    assert page.lines(trace, m) == growth_page.lines(trace, m) == []
    page_tables = page.tables(trace) | growth_page.tables(trace)
    assert all("<table" in table.html(name) for name, table in page_tables.items() if table.frame.height)
    for build, name in ((charts.outage_causes, "causes"), (growth_charts.mcf, "curve")):
        for study in (Study("node"), Study("node", narrow=True)):
            chart = build(tables, study)
            chart.spec(validate=True)
            assert chart.empty or chart.datasets[name]


def test_the_head_includes_numbers_of_other_analyses():
    _, m, trace = analyse(*fleet())
    added = {"spares.p99.observed": 45, "spares.p99.low": 40, "spares.p99.high": 51, "spares.p99.binomial": 17}
    added |= {"drains.listed": 3, "drains.nodes": 20, "drains.share_of_outages": 0.25}
    units = {"drains.share_of_outages": "share"}
    metrics = {key: {"value": value, "unit": units.get(key, "units"), "n": 9} for key, value in added.items()}
    m = Numbers({**m, **metrics})
    head = page.head(trace, m)
    claim = check_claim(head, m)
    assert claim.startswith("45 spares cover 99% of the time, 17 if nodes failed independently; nodes were down ")
    key = head.keys[3]
    assert (key.label, strip_markup(key.note)) == ("Spares for 99% of time", "95% CI 40–51; binomial 17")
    sentence = "3 of 20 nodes have excess outages (25.0% of all)."
    assert sentence in strip_markup(head.text[0])


def test_head_without_exposure():
    outages, records, _ = fleet(level=pl.lit("hardware"))
    _, m, trace = analyse(outages, records, None)
    head = page.head(trace, m)
    assert check_claim(head, m).endswith("outages are recorded; half lasted less than 1.50\u00a0h")
    assert [key.label for key in head.keys] == ["Mean repair", "Most time down"]
    assert [line.checked for line in page.lines(trace, m)] == [False]


def test_a_line_replaces_the_head_without_outages():
    _, m, trace = analyse(*make_outages({"a": [], "b": []}, UNTIL, node="unit_id"))
    line = page.head(trace, m)
    assert isinstance(line, Line) and strip_markup(line.result) == "no outage of 2 nodes is recorded"
    (line,) = growth_page.lines(trace, m)
    assert strip_markup(line.result) == "0 faults: too few, or in too few weeks, for a trend" and not line.checked


@pytest.mark.parametrize("intervals", [[(10, 20)], [(10, None)], [(0, UNTIL)], [(10, 10), (20, 20)], [(UNTIL, None)]])
def test_unusual_traces_have_a_head_or_a_line(intervals):
    _, m, trace = analyse(*make_outages({"a": intervals, "b": []}, UNTIL))
    head = page.head(trace, m)
    if isinstance(head, Head):
        check_claim(head, m)
    for table in (page.tables(trace) | growth_page.tables(trace)).values():
        assert table.frame.height == 0 or table.html("name")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"trend": "worse"}, "Faults became more frequent (growth β 1.20, 95% CI 1.10–1.30; p = 0.030)."),
        (
            {"trend": "unclear"},
            "Trend in faults unclear (growth β 1.20, 95% CI 1.10–1.30; p = 0.030): not significant ",
        ),
        ({}, "No trend in faults (growth β 1.20, 95% CI 1.10–1.30; p = 0.030)."),
        ({"beta_within_ci_low": None}, "No trend in faults (p = 0.030)."),
        ({"trend": "better", "strata": 4}, "Faults became less frequent within 4 groups (common growth β 1.20"),
        (
            {"strata": 4, "groups.n": 3, "groups.better": 2, "groups.worse": 1, "homogeneity_p": 0.001},
            "No common trend in faults within 4 groups (common growth β 1.20, 95% CI 1.10–1.30; p = 0.030). "
            "Groups differ (p = 0.0010): of 3, 2 became less, 1 more frequent.",
        ),
    ],
)
def test_the_trend_in_words(changes, sentence):
    values = {"beta_within": 1.2, "beta_within_ci_low": 1.1, "beta_within_ci_high": 1.3, "trend_p": 0.03}
    values |= {"trend": "none", "strata": 1, "n": 90} | changes
    metrics = {f"growth.{name}": {"value": value, "unit": "1", "n": 90} for name, value in values.items() if value}
    m = Numbers(metrics)
    assert sentence in strip_markup(growth_page.trend_in_words(m)) and count_words(growth_page.trend_in_words(m)) <= 35


def test_availability_and_mttf_have_the_same_clustered_interval():
    """The interval of a fleet is clustered by system, that of a system by node."""
    rng = np.random.default_rng(4)
    intervals = {
        f"{system}{node}": [(int(t), int(t) + 600) for t in np.sort(rng.integers(1, UNTIL, 1 + 4 * k * node % 30))]
        for k, system in enumerate("abcdef")
        for node in range(6)
    }
    outages, records, exposure = make_outages(intervals, UNTIL, node="unit_id")
    group = pl.col("unit_id").str.slice(0, 1)
    outages, exposure = outages.with_columns(group=group), exposure.with_columns(group=group)
    table = compute.availability(outages, records, exposure, 7, "system")
    measure_availability.AVAILABILITY.check(table)
    overall = table.row(0, named=True)
    durations = durations_of_outages(outages, exposure, [], {"system": ["system"], "node": ["unit_id"]})
    mttf = mean_time_to_failure(durations, "failure", ["all"], [0.95], 7).row(0, named=True)
    assert overall["cluster_by"] == mttf["cluster_by"] == "system and week" and overall["units"] == 36
    for bound in ("low", "high"):
        assert overall[f"mttf_ci_{bound}_clustered_s"] == pytest.approx(mttf[f"ci_{bound}_clustered_s"], rel=0.02)
    by_group = table.filter(stratum_by="group")
    assert set(by_group["cluster_by"]) == {"node and week"} and by_group["units"].to_list() == [6] * 6
    tables = {"availability": table, "outage_causes": compute.causes(outages, records)}
    metrics = compute_metrics(
        "measure_availability", tables | {"outage_free": compute.outage_free(outages, exposure, 7, "system")}
    )
    assert metrics["outages.unit"]["value"] == "node" and metrics["outages.units"]["value"] == 36


def test_causes_beyond_eight_are_combined():
    outages, records, exposure = fleet()
    causes = records.with_columns(level=pl.lit("hardware"), **{"class": pl.format("part {}", pl.col("outage") % 11)})
    tables, *_ = analyse(outages, causes, exposure)
    rows = charts.outage_causes(tables, Study("node")).datasets["causes"]
    assert len(rows) == charts.MOST_BARS and rows[-1]["cause"] == "6 others"
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-5)
    assert sum(row["downtime_share"] for row in rows) == pytest.approx(1, abs=1e-5)


TIMES = st.lists(st.tuples(st.integers(-20, 120), st.one_of(st.none(), st.integers(0, 90))), max_size=4)


@settings(max_examples=15)
@given(st.lists(st.tuples(TIMES, st.sampled_from(["x", "y", None])), min_size=1, max_size=6), st.booleans())
def test_tables_of_any_fleet_meet_the_contracts(fleet, has_exposure):
    intervals = {
        f"n{number}": [(start, None if duration is None else start + duration) for start, duration in times]
        for number, (times, _) in enumerate(fleet)
    }
    outages, records, exposure = make_outages(intervals, 100)
    exposure = exposure.with_columns(group=pl.Series([group for _, group in fleet], dtype=pl.String))
    tables, m, trace = analyse(outages, records, exposure if has_exposure else None)
    if isinstance(head := page.head(trace, m), Head):
        check_claim(head, m)
    if has_exposure:
        sums = tables["availability"].group_by("stratum_by").agg(pl.col("down_s", "outages").sum())
        overall, planned = (sums.filter(stratum_by=kind).row(0)[1:] for kind in ("all", "planned"))
        assert overall == planned
        assert tables["availability"].row(0, named=True)["down_s"] <= 100 * len(fleet)


@pytest.mark.parametrize(("products", "has_period"), [({"outages", "durations"}, False), ({"outages"}, True)])
def test_the_period_is_that_of_outages_only_if_the_trace_has_no_other_data(products, has_period):
    outages = pl.DataFrame({"unit_id": ["a"], "start_s": [0], "seen_until_s": [90_000]})
    is_all = ANALYSIS.settings["is_all"](SimpleNamespace(products=products))
    summary = compute.summarise_outages(outages, None, is_all)
    assert ("period.days" in compute_metrics("measure_availability", {"outages_summary": summary})) == has_period

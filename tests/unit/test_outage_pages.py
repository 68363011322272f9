"""Analyses of outages from tables to the page: numbers, charts, heads and tables of any trace."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from filled_texts import filled
from head_checks import check_claim
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import compute_metrics
from outage_traces import DAY, make_outages
from ttf.analyses.outages import measure_availability, track_outages
from ttf.analyses.outages.measure_availability import ANALYSIS, charts, compute, page
from ttf.analyses.outages.track_outages import charts as growth_charts
from ttf.analyses.outages.track_outages import compute as growth
from ttf.analyses.outages.track_outages import page as growth_page
from ttf.display.charts.figure import Study
from ttf.display.phrases import strip_markup
from ttf.display.section_head import Head, Line
from ttf.display.trace_numbers import Numbers
from ttf.records.outages.outage_durations import durations_of_outages
from ttf.stats.durations.mttf import mean_time_to_failure

page, growth_page = map(filled, (page, growth_page))

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
    assert m.value("growth.trend") in {"worse", "better", "none"}
    assert page.lines(trace, m) == growth_page.lines(trace, m) == []
    page_tables = page.tables(trace) | growth_page.tables(trace)
    assert all("<table" in table.html(name) for name, table in page_tables.items() if table.frame.height)
    for build, name in ((charts.outage_causes, "causes"), (growth_charts.mcf, "curve")):
        chart = build(tables, Study("node"))
        chart.spec(validate=True)
        assert chart.empty or chart.datasets[name]


def test_a_line_replaces_the_head_without_outages():
    _, m, trace = analyse(*make_outages({"a": [], "b": []}, UNTIL, node="unit_id"))
    line = page.head(trace, m)
    assert isinstance(line, Line) and strip_markup(line.result) == "no outage of 2 nodes is recorded"
    (line,) = growth_page.lines(trace, m)
    assert strip_markup(line.result) == "0 faults: too few, or in too few weeks, for a trend" and not line.checked


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


TIMES = st.lists(st.tuples(st.integers(-20, 120), st.one_of(st.none(), st.integers(0, 90))), max_size=4)


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

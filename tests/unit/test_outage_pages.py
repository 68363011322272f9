"""Rooms of outages from tables to the page: numbers, charts, heads and tables, whatever the trace has."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from given_tables import metrics_of
from hypothesis import given, settings
from hypothesis import strategies as st
from outage_traces import DAY, made
from ttf.analyses.outages import follow_outages, measure_availability
from ttf.analyses.outages.follow_outages import charts as growth_charts
from ttf.analyses.outages.follow_outages import compute as growth
from ttf.analyses.outages.follow_outages import page as growth_page
from ttf.analyses.outages.measure_availability import ANALYSIS, charts, compute, page
from ttf.display.charts.figure import Study
from ttf.display.phrases import keys, length, plain
from ttf.display.section_head import Head, Line
from ttf.display.trace_numbers import Numbers
from ttf.records.outages.outage_lives import lives_of_outages
from ttf.stats.durations.mttf import mean_time_to_failure

UNTIL = 400 * DAY


def of(outages, records, exposure):
    """(tables, numbers, trace) of both rooms, of the first alone where nobody knows what was watched."""
    tables = {
        "outage_causes": compute.causes(outages, records),
        "availability": compute.availability(outages, records, exposure, 7),
        "outage_free": compute.outage_free(outages, exposure, 7),
    }
    if exposure is not None:
        tables |= growth.analyse_growth(records, exposure)
    for declared in (*measure_availability.ANALYSIS.tables, *follow_outages.ANALYSIS.tables):
        if declared.name in tables:
            declared.check(tables[declared.name])
    metrics = metrics_of("measure_availability", tables)
    if exposure is not None:
        metrics |= metrics_of("follow_outages", tables)
    trace = SimpleNamespace(about={"unit": "node"}, table=tables.__getitem__)
    return tables, Numbers(metrics), trace


def fleet(nodes=20, until_s=UNTIL, **columns):
    """Nodes that fail every 30 days or so, each twice as long down as the one before; more towards the end."""
    begun = {
        f"n{node}": [(d * DAY, d * DAY + 600 * node + 1) for d in range(40 + node, 400, 29)] for node in range(nodes)
    }
    return made(begun, until_s, node="unit_id", **columns)


def checked(head, m):
    """The claim as it is read; the head keeps to its limits, and each number it names is there."""
    texts = [head.claim, *head.text, *(text for key in head.keys for text in (key.label, key.value, key.note))]
    assert length(head.claim) <= 18 and len(head.keys) <= 4 and sum(length(text) for text in head.text) <= 60
    assert all(key in m for text in texts for key in keys(text))
    assert not [text for text in texts if "None" in text or "nan" in text]
    return plain(head.claim)


def test_head_of_a_fleet():
    tables, m, trace = of(*fleet())
    claim = checked(page.head(trace, m), m)
    assert claim.startswith("Nodes were down ") and "half lasted less than" in claim
    labels = [key.label for key in page.head(trace, m).keys]
    assert labels == ["Availability", "Outage of a node every", "Mean repair"]
    assert m.value("growth.trend", None) in {"worse", "better", "none"}
    assert page.lines(trace, m) == growth_page.lines(trace, m) == []
    shown = page.tables(trace) | growth_page.tables(trace)
    assert all("<table" in table.html(name) for name, table in shown.items() if table.frame.height)
    for build, name in ((charts.outage_causes, "causes"), (growth_charts.mcf, "curve")):
        for study in (Study("node"), Study("node", narrow=True)):
            drawn = build(tables, study)
            drawn.spec(validate=True)
            assert drawn.empty or drawn.datasets[name]


def test_what_other_rooms_add():
    _, m, trace = of(*fleet())
    added = {"spares.p99.observed": 45, "spares.p99.low": 40, "spares.p99.high": 51, "spares.p99.binomial": 17}
    added |= {"drains.listed": 3, "drains.nodes": 20, "drains.share_of_outages": 0.25}
    units = {"drains.share_of_outages": "share"}
    more = {key: {"value": value, "unit": units.get(key, "units"), "n": 9} for key, value in added.items()}
    m = Numbers({**m, **more})
    head = page.head(trace, m)
    claim = checked(head, m)
    assert claim.startswith("45 spares cover 99% of the time, 17 if nodes failed independently; nodes were down ")
    assert (head.keys[3].label, plain(head.keys[3].note)) == (
        "Spares for 99% of time",
        "95% CI 40–51; binomial 17",
    )
    said = "3 of 20 nodes have excess outages (25.0% of all)."
    assert said in plain(head.text[0])


def test_head_without_exposure():
    outages, records, _ = fleet(level=pl.lit("hardware"))
    _, m, trace = of(outages, records, None)
    head = page.head(trace, m)
    assert checked(head, m).endswith("outages are recorded; half lasted less than 1.50\u00a0h")
    assert [key.label for key in head.keys] == ["Mean repair", "Most time down"]
    assert [line.checked for line in page.lines(trace, m)] == [False]


def test_no_outage_is_a_line():
    _, m, trace = of(*made({"a": [], "b": []}, UNTIL, node="unit_id"))
    line = page.head(trace, m)
    assert isinstance(line, Line) and plain(line.found) == "no outage of 2 nodes is recorded"
    (line,) = growth_page.lines(trace, m)
    assert plain(line.found) == "0 faults: too few, or in too few weeks, for a trend" and not line.checked


@pytest.mark.parametrize("intervals", [[(10, 20)], [(10, None)], [(0, UNTIL)], [(10, 10), (20, 20)], [(UNTIL, None)]])
def test_odd_traces_have_words(intervals):
    _, m, trace = of(*made({"a": intervals, "b": []}, UNTIL))
    head = page.head(trace, m)
    if isinstance(head, Head):
        checked(head, m)
    for table in (page.tables(trace) | growth_page.tables(trace)).values():
        assert table.frame.height == 0 or table.html("name")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"trend": "worse"}, "Faults became more frequent (growth β 1.20, 95% CI 1.10–1.30; p = 0.030)."),
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
def test_the_trend_in_words(more, says):
    values = {
        "trend": "none",
        "beta_within": 1.2,
        "beta_within_ci_low": 1.1,
        "beta_within_ci_high": 1.3,
        "trend_p": 0.03,
    }
    values |= {"strata": 1, "n": 90} | more
    told = {f"growth.{name}": {"value": value, "unit": "1", "n": 90} for name, value in values.items() if value}
    m = Numbers(told)
    assert says in plain(growth_page.trend_in_words(m)) and length(growth_page.trend_in_words(m)) <= 35


def test_a_fleet_of_systems_has_one_interval_of_the_time_between_outages_on_its_page():
    """That of its lives, which is by system; of one system it is by node. Units are counted as they are."""
    rng = np.random.default_rng(4)
    begun = {
        f"{system}{node}": [(int(t), int(t) + 600) for t in np.sort(rng.integers(1, UNTIL, 1 + 4 * place * node % 30))]
        for place, system in enumerate("abcdef")
        for node in range(6)
    }
    outages, records, exposure = made(begun, UNTIL, node="unit_id")
    group = pl.col("unit_id").str.slice(0, 1)
    outages, exposure = outages.with_columns(group=group), exposure.with_columns(group=group)
    table = compute.availability(outages, records, exposure, 7, "system")
    measure_availability.AVAILABILITY.check(table)
    every = table.row(0, named=True)
    lives = lives_of_outages(outages, exposure, [], {"system": ["system"], "node": ["unit_id"]})
    mttf = mean_time_to_failure(lives, "failure", ["all"], [0.95], 7).row(0, named=True)
    assert every["cluster_by"] == mttf["cluster_by"] == "system and week" and every["units"] == 36
    for end in ("low", "high"):
        assert every[f"mttf_ci_{end}_clustered_s"] == pytest.approx(mttf[f"ci_{end}_clustered_s"], rel=0.02)
    of_groups = table.filter(stratum_by="group")
    assert set(of_groups["cluster_by"]) == {"node and week"} and of_groups["units"].to_list() == [6] * 6
    tables = {"availability": table, "outage_causes": compute.causes(outages, records)}
    metrics = metrics_of(
        "measure_availability", tables | {"outage_free": compute.outage_free(outages, exposure, 7, "system")}
    )
    assert metrics["outages.unit"]["value"] == "node" and metrics["outages.units"]["value"] == 36


def test_causes_beyond_eight_are_added_up():
    outages, records, exposure = fleet()
    named = records.with_columns(level=pl.lit("hardware"), **{"class": pl.format("part {}", pl.col("outage") % 11)})
    tables, *_ = of(outages, named, exposure)
    rows = charts.outage_causes(tables, Study("node")).datasets["causes"]
    assert len(rows) == charts.MOST_BARS and rows[-1]["cause"] == "6 others"
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-5)
    assert sum(row["downtime_share"] for row in rows) == pytest.approx(1, abs=1e-5)


TIMES = st.lists(st.tuples(st.integers(-20, 120), st.one_of(st.none(), st.integers(0, 90))), max_size=4)


@settings(max_examples=15)
@given(st.lists(st.tuples(TIMES, st.sampled_from(["x", "y", None])), min_size=1, max_size=6), st.booleans())
def test_any_fleet_keeps_the_contracts(fleet, watched):
    intervals = {
        f"n{number}": [(start, None if lasts is None else start + lasts) for start, lasts in times]
        for number, (times, _) in enumerate(fleet)
    }
    outages, records, exposure = made(intervals, 100)
    exposure = exposure.with_columns(group=pl.Series([group for _, group in fleet], dtype=pl.String))
    tables, m, trace = of(outages, records, exposure if watched else None)
    if isinstance(head := page.head(trace, m), Head):
        checked(head, m)
    if watched:
        sums = tables["availability"].group_by("stratum_by").agg(pl.col("down_s", "outages").sum())
        whole, planned = (sums.filter(stratum_by=kind).row(0)[1:] for kind in ("all", "planned"))
        assert whole == planned
        assert tables["availability"].row(0, named=True)["down_s"] <= 100 * len(fleet)


@pytest.mark.parametrize(("products", "has_period"), [({"outages", "lives"}, False), ({"outages"}, True)])
def test_the_period_is_that_of_outages_only_where_nothing_else_was_watched(products, has_period):
    outages = pl.DataFrame({"unit_id": ["a"], "start_s": [0], "seen_until_s": [90_000]})
    is_all = ANALYSIS.settings["is_all"](SimpleNamespace(products=products))
    summary = compute.summarise_outages(outages, None, is_all)
    assert ("period.days" in metrics_of("measure_availability", {"outages_summary": summary})) == has_period

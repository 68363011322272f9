"""Runs with spares: the methods agree on independent exponential nodes, not on nodes that fail together."""

import html
from math import exp

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outage_analyses import Frames, compute_tables, render_analysis
from outage_traces import DAY, make_outages
from scipy import stats
from ttf.analyses.outages.size_spares.run_plans import COMPONENTS, TOO_SMALL
from ttf.analyses.outages.size_spares.ways import METHODS, Planner, fewest_spares, never_short
from ttf.stats.outages.outage_simulation import NO_OUTAGE
from ttf.stats.outages.units_down import list_spans

UPTIME, REPAIR = 20 * DAY, DAY
OPTIONS = {
    "spare_targets": [0.9],
    "spares": [0, 2],
    "simulations": 400,
    "seed": 1,
    "block_days": 7,
    "sizes": [1, 8, 30, 500],
}


def simulate(rng, units=40, days=700):
    intervals = {}
    for unit in range(units):
        time_s, outage_times = 0.0, []
        while (time_s := time_s + rng.exponential(UPTIME)) < days * DAY:
            outage_times.append((int(time_s), int(time_s := time_s + rng.exponential(REPAIR))))
        intervals[f"u{unit:02}"] = outage_times
    outages, *_, exposure = make_outages(intervals, days * DAY)
    return outages, exposure


@pytest.fixture(scope="module")
def planner():
    outages, exposure = simulate(np.random.default_rng(1))
    return Planner(list_spans(outages, exposure), exposure, 2000, 1)


def test_one_node_without_spares_is_never_short_while_it_stays_up():
    assert never_short(1, 0, 5 * DAY, UPTIME, REPAIR) == pytest.approx(20 / 21 * exp(-5 / 20))
    # For zero time only the initial state counts; over a very long time a shortage is certain.
    assert never_short(10, 2, 0, UPTIME, REPAIR) == pytest.approx(stats.binom.cdf(2, 12, 1 / 21))
    assert never_short(10, 2, 1e6 * DAY, UPTIME, REPAIR) == pytest.approx(0, abs=1e-9)
    # Without repair, at most two of twelve nodes may fail.
    assert never_short(10, 2, DAY, UPTIME, 1e12) == pytest.approx(0, abs=1e-3)


def test_methods_agree_on_independent_exponential_nodes(planner):
    first_estimate = planner.estimate("weeks", 30, 4, DAY)
    for nodes, spares in ((8, 1), (30, 4)):
        for time_s in (DAY, 7 * DAY):
            formula = planner.estimate("exponential", nodes, spares, time_s)
            units, share = nodes + spares, planner.down_share
            above = np.arange(spares + 1, units + 1)
            lacking = ((above - spares) * stats.binom.pmf(above, units, share)).sum()
            assert formula["full_share"][0] == pytest.approx(stats.binom.cdf(spares, units, share))
            assert formula["capacity_share"][0] == pytest.approx(1 - lacking / nodes)
            for method, slack in (("observed", 0.01), ("weeks", 0.05)):
                for name, (value, error) in planner.estimate(method, nodes, spares, time_s).items():
                    assert abs(value - formula[name][0]) < 4 * (error or 0) + slack, (method, name, nodes, time_s)
            no_interruption = [planner.p_no_interruption(method, nodes, time_s)[0] for method in METHODS]
            assert no_interruption[0] == pytest.approx(exp(-nodes * time_s / planner.up.mean))
            assert no_interruption[1:] == pytest.approx([no_interruption[0]] * 2, abs=0.06)
    assert planner.estimate("weeks", 30, 4, DAY) == first_estimate, "independent of the calls between"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 1))
def test_the_fewest_spares_match_a_linear_search(probabilities, target):
    increasing = np.sort(probabilities)
    expected = next((n for n, p in enumerate(increasing) if p >= target), None)
    assert fewest_spares(target, len(increasing) - 1, lambda spares: increasing[spares]) == expected


def test_nodes_that_fail_together_need_more_spares(tmp_path):
    """Twenty of forty nodes are down together for one day in every four weeks."""
    rng = np.random.default_rng(2)
    moments = [int((28 * n + rng.uniform(0, 26)) * DAY) for n in range(20)]
    intervals = {f"u{n:02}": [(t + n, t + n + DAY) for t in moments] if n < 20 else [] for n in range(40)}
    outages, *_, exposure = make_outages(intervals, 560 * DAY)
    # Eight nodes need eight spares for 90% by a narrow margin, less than the error of the simulation.
    frames = Frames({"outages": outages, "exposure": exposure}, **(OPTIONS | {"spare_targets": [0.85]}))
    tables = compute_tables("size_spares", frames, tmp_path)
    spares_by_case = {
        (row["nodes"], row["hours"], row["way"]): row["spares"] for row in tables["spares_needed"].iter_rows(named=True)
    }
    assert {nodes for nodes, *_ in spares_by_case} == {1, 8, 30}
    assert spares_by_case[30, 720, "observed"] < 8
    # All 40 nodes include the twenty, and only ten are spare.
    assert spares_by_case[30, 720, "weeks"] is None
    capacity = tables["capacity"].filter(nodes=30, hours=168, spares=2)
    assert capacity["way"].to_list() == list(METHODS)
    # A week without a joint outage is almost certainly free of interruptions, for any number of nodes.
    p_by_method = dict(capacity.select("way", "p_no_interruption").iter_rows())
    assert p_by_method["weeks"] > 0.6 > 0.1 > p_by_method["exponential"]
    m, *_ = render_analysis("size_spares", tables)
    assert m["capacity.nodes"] == 8


def test_gpus_are_rounded_up_to_nodes_and_a_run_lies_in_one_group(tmp_path):
    outages, exposure = simulate(np.random.default_rng(3), 12, 100)
    group = pl.when(pl.col("unit_id") < "u05").then(pl.lit("small")).otherwise(pl.lit("large"))
    rates = pl.DataFrame({"confidence": [0.9], "node_gpus": [8]})
    frames = {"outages": outages, "exposure": exposure.with_columns(group=group), "node_failure_rate": rates}
    tables = compute_tables(
        "size_spares", Frames(frames, **(OPTIONS | {"simulations": 2, "sizes": [1, 4, 20, 200]})), tmp_path
    )
    sizes = tables["capacity"].select("stratum", "gpus", "nodes").unique().sort("nodes")
    assert sizes.rows() == [("large", 4, 1), ("large", 20, 3)]
    monthly = tables["capacity"].filter(way="weeks", nodes=3, spares=2, hours=720)
    assert monthly["p_never_short"].count() == monthly["reason"].null_count()


@pytest.mark.parametrize(
    ("intervals", "columns", "sizes", "reason"),
    [
        ({"a": [], "b": []}, {}, [1], NO_OUTAGE),
        ({"a": [(1, 2)]}, {}, [9], TOO_SMALL),
        ({"a": [(1, 2)], "b": []}, {"node": pl.lit("n")}, [1], COMPONENTS),
    ],
)
def test_blank_plans_have_a_reason(tmp_path, intervals, columns, sizes, reason):
    outages, *_, exposure = make_outages(intervals, 10 * DAY, **columns)
    frames = Frames({"outages": outages, "exposure": exposure}, **(OPTIONS | {"sizes": sizes}))
    tables = compute_tables("size_spares", frames, tmp_path)
    assert [tables[name]["reason"].to_list() for name in ("capacity", "spares_needed")] == [[reason], [reason]]
    _, text, _ = render_analysis("size_spares", tables)
    assert reason in html.unescape(text)

"""Which nodes are listed, what draining them would save, and the backtest of such lists."""

import numpy as np
import polars as pl
import pytest
from filled_texts import filled
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import compute_metrics
from outage_traces import make_outages
from scipy import stats
from ttf.analyses.nodes.find_lemon_nodes import LEMON_NODES
from ttf.analyses.outages.list_drains import DRAIN_BACKTEST, DRAIN_LIST, page
from ttf.analyses.outages.list_drains.backtest import DAY, MIN_HISTORY_S, TOO_SHORT, WEEK, backtest
from ttf.analyses.outages.list_drains.compute import (
    NO_GPUS,
    NO_JOBS,
    NO_SPREAD,
    NO_TEST,
    compare_outages,
    list_nodes,
    summarise_drains,
    top_causes,
)
from ttf.analyses.outages.list_drains.history import History
from ttf.display.node_ranges import SAFE_NAME, hostlist
from ttf.display.phrases import strip_markup
from ttf.display.trace_numbers import Numbers
from ttf.formats.sacct.hostlist import expand
from ttf.stats.nodes.excess_failures import with_posterior

page = filled(page)

HOUR = 3_600


def checked_drain_list(history, outages, lost=None, gpus=None, flags=None):
    nodes = compare_outages(history, outages, lost, gpus or [None] * len(history.names), 0.05)
    table = list_nodes(LEMON_NODES.frame(flags or []), nodes)
    DRAIN_LIST.check(table)
    return table


def history_of(intervals, until_s, **columns):
    outages, _, exposure = make_outages(intervals, until_s, **columns)
    outages, exposure = (frame.with_columns(node="unit_id") for frame in (outages, exposure))
    return History.build(outages, exposure), outages


def test_a_history_by_hand():
    intervals = {"a": [(2 * DAY, 3 * DAY), (3 * DAY + HOUR, 4 * DAY), (9 * DAY, None)], "b": [], "c": [(DAY, 20 * DAY)]}
    history, outages = history_of(intervals, 10 * DAY)
    assert (history.names, history.begin_s, history.end_s) == (["a", "b", "c"], 0, 10 * DAY)
    assert history.up_s(10 * DAY).tolist() == [7 * DAY + HOUR, 10 * DAY, DAY]
    assert history.up_s(2 * DAY + HOUR).tolist() == [2 * DAY, 2 * DAY + HOUR, DAY]
    # The second outage of a repeats the first one.
    assert history.count_outages(0, 10 * DAY).tolist() == [3, 0, 1]
    assert history.count_separate(10 * DAY).tolist() == [2, 0, 1]
    assert history.count_outages(3 * DAY + HOUR, 9 * DAY).tolist() == [1, 0, 0]
    assert history.is_up(DAY, 10 * DAY).tolist() == [True, True, False]
    assert history.is_up(2 * DAY, 10 * DAY).tolist() == [False, True, False]
    assert not history.is_up(DAY, 11 * DAY).any()
    planned = History.build(outages.with_columns(planned=pl.lit(True)), make_outages(intervals, 10 * DAY)[2])
    assert planned.count_separate(10 * DAY).sum() == 0
    assert planned.up_s(10 * DAY).tolist() == history.up_s(10 * DAY).tolist()


def test_what_draining_would_save_by_hand():
    """One of 50 nodes with ten outages of 2 h, the others with one each."""
    intervals = {"bad": [(k * 3 * DAY, k * 3 * DAY + 2 * HOUR) for k in range(1, 11)]}
    intervals |= {f"n{k}": [(k * DAY, k * DAY + 2 * HOUR)] for k in range(1, 50)}
    history, outages = history_of(intervals, 60 * DAY)
    lost = pl.DataFrame({"node": ["bad", "n1"], "jobs_lost": [2, 1], "job_hours": [100.0, 18.0]})
    table = checked_drain_list(history, outages, lost, [8.0] * 50)
    first = table.row(0, named=True)
    assert table.filter("listed")["node"].to_list() == ["bad"] and first["node"] == "bad"
    assert (first["outages"], first["counted"], first["again_24h"], first["jobs_lost"]) == (10, 10, 0, 2)
    assert first["idle_gpu_hours"] == 8 * 168 and first["lost_gpu_hours"] == pytest.approx(8 * 2 + 118 / 59)
    rate = 59 / history.up_s(60 * DAY).sum() * WEEK
    assert first["saved_node_hours"] == pytest.approx((first["rate_ratio"] - 1) * rate * 2)
    assert first["saved_gpu_hours"] == pytest.approx((first["rate_ratio"] - 1) * rate * 18)
    assert first["fleet_rate"] == pytest.approx(rate / 7 * 1000)
    assert first["ci_low"] < first["rate_ratio"] < first["ci_high"] and first["above_1"] > 0.95
    assert table["detectable_ratio"].null_count() == 0 and table["detectable_ratio"].min() > 1
    # A list of components has only nodes that are also significant among the failures, which are the same events.
    for basis, listed in (("component", []), ("state", ["bad"])):
        flags = [{"node": "bad", "basis": basis, "lemon": False}]
        assert checked_drain_list(history, outages, flags=flags).filter("listed")["node"].to_list() == listed
    # Without GPUs and jobs, only the saved node hours are known.
    without = checked_drain_list(history, outages)
    assert without["saved_gpu_hours"].null_count() == 50 and without["saved_node_hours"].null_count() == 0
    assert NO_GPUS in without["reason"][0] and NO_JOBS in without["reason"][0]


def test_the_posterior_is_that_of_a_gamma():
    counted, expected = [9, 0, 1, 0, 0], [1.5, 2.0, 2.0, 2.5, 2.0]
    nodes = pl.DataFrame({"fleet": "f", "counted": counted, "expected": expected})
    posteriors = with_posterior(nodes)
    ratio = posteriors["posterior_rate_ratio"].to_numpy()
    # From the first mean follows the shape.
    shape = (9 - ratio[0] * 1.5) / (ratio[0] - 1)
    posterior = stats.gamma(shape + np.array(counted), scale=1 / (shape + np.array(expected)))
    assert posteriors["posterior_above_1"].to_numpy() == pytest.approx(posterior.sf(1))
    assert posteriors["posterior_ci_low"].to_numpy() == pytest.approx(posterior.ppf(0.025))
    assert posteriors["posterior_ci_high"].to_numpy() == pytest.approx(posterior.ppf(0.975))


@pytest.mark.parametrize("cv", [0.0, 0.71, 1.0])
def test_ordinary_nodes_are_not_listed_and_a_bad_one_is(cv):
    """Ordinary nodes are equal, or differ as much as InfiniteHBD's: a list names one in few clusters."""
    rng, named, clusters, nodes = np.random.default_rng(4), 0, 40, 60
    for bad in [*[0] * clusters, 1]:
        rates = rng.gamma(cv**-2, cv**2, nodes) if cv else np.ones(nodes)
        rates[:bad] = 18
        node = np.repeat(np.arange(nodes), rng.poisson(2 * rates))
        starts = rng.integers(DAY, 300 * DAY, node.size)
        watch = np.arange(nodes), np.zeros(nodes, int), np.full(nodes, 300 * DAY)
        history = History(
            [f"n{k}" for k in range(nodes)], ["all"] * nodes, watch, (node, starts, starts), (node, starts, starts < 0)
        )
        listed = history.compare_nodes(300 * DAY, 0.05)[0]["listed"]
        named += listed[bad:].any()
    assert listed[0] and named <= stats.binom.ppf(0.999, clusters, 0.05)


def test_the_backtest_uses_no_data_of_the_tested_week():
    """Two nodes fail often, one of them only in the last week; forty fail once."""
    days = 11 * 7
    bad_spans = [(k * 3 * DAY + HOUR, k * 3 * DAY + 2 * HOUR) for k in range(1, days // 3)]
    intervals = {
        "bad": bad_spans,
        "late": [(days * DAY - WEEK + k * HOUR, days * DAY - WEEK + k * HOUR + 60) for k in (1, 9)],
    }
    intervals |= {f"n{k}": [(k * DAY, k * DAY + HOUR)] for k in range(1, 41)}
    history, _ = history_of(intervals, days * DAY)
    table = backtest(history, 0.05)
    DRAIN_BACKTEST.check(table)
    weeks = table.filter(pl.col("window") != "all")
    assert weeks["start_s"].to_list() == [MIN_HISTORY_S + k * WEEK for k in range(7)]
    overall = table.row(0, named=True)
    assert overall["listed"] == weeks["listed"].sum() == 7 and overall["failed"] == 7
    assert overall["expected"] == pytest.approx((weeks["listed"] * weeks["base_share"]).sum())
    assert overall["ratio"] == pytest.approx(7 / overall["expected"])
    # The late node was not listed when it failed, so it counts among the others.
    assert weeks["others_failed"][-1] == 1
    # What comes after a week does not change its row.
    cut = {
        node: [(start, end) for start, end in spans if start < MIN_HISTORY_S + 2 * WEEK]
        for node, spans in intervals.items()
    }
    assert backtest(history_of(cut, days * DAY)[0], 0.05)[1:3].equals(weeks[:2])


def test_what_cannot_be_compared_has_a_reason():
    alone, outages = history_of({"a": [(5, 10)]}, 10 * DAY)
    assert NO_TEST in checked_drain_list(alone, outages)["reason"][0]
    table = backtest(alone, 0.05)
    assert table.height == 1 and table["reason"][0] == TOO_SHORT
    even, outages = history_of({"a": [(5, 10)], "b": [(5, 10)]}, 10 * DAY)
    assert NO_SPREAD in checked_drain_list(even, outages)["reason"][0]
    metrics = compute_metrics(
        "list_drains", {"drain_summary": summarise_drains(checked_drain_list(alone, outages)), "drain_backtest": table}
    )
    assert metrics["drains.nodes"]["value"] == 0 and "drains.backtest.listed" not in metrics


@pytest.mark.parametrize(("days", "message"), [(2, "0 of 40, of "), (60, "cannot tell: 40 outages are too few")])
def test_an_empty_list_is_reported_only_with_enough_power(days, message):
    """Forty nodes have the same outages: every other day, or once in a record of 70 days."""
    spans = {
        f"n{k}": [(day * DAY + k * HOUR // 2, day * DAY + k * HOUR) for day in range(5, 70, days)] for k in range(1, 41)
    }
    spans = {node: node_spans[:1] if days == 60 else node_spans for node, node_spans in spans.items()}
    history, outages = history_of(spans, 70 * DAY)
    metrics = compute_metrics("list_drains", {"drain_summary": summarise_drains(checked_drain_list(history, outages))})
    (line,) = page.lines(None, Numbers(metrics))
    assert message in strip_markup(line.result) and line.checked is (days == 2)


def test_causes_are_the_most_frequent():
    outages, *_ = history_of({"a": [(k * DAY, k * DAY + 1) for k in range(1, 8)], "b": []}, 10 * DAY)[1:]
    cause_words = ["x", "y", "y", "z", "w", "w", None]
    causes = top_causes(outages.with_columns(cause=pl.Series(cause_words)))
    assert causes.rows() == [("a", "w (2), y (2), x (1)")]


NAMES = st.lists(
    st.one_of(st.from_regex(r"n[0-9]{1,4}", fullmatch=True), st.from_regex(SAFE_NAME, fullmatch=True)), unique=True
)


@given(NAMES)
def test_a_hostlist_is_what_slurm_makes_of_it(names):
    text = hostlist(names)
    assert sorted(expand(text)) == sorted(names) if names else text == ""


def test_names_that_are_no_names_of_nodes_stay_out_of_a_command_line():
    hostile = ["n1 --uid=0", "n1;id", "$(id)", "n[1-9]", "-x", "n1\n", "", "n1,n2", "..", "nß", "n3"]
    assert hostlist(hostile) == "n3"
    assert hostlist(["n001", "n003", "n002", "n10", "gpu7"]) == "gpu7,n10,n[001-003]"

"""Contours of the expected ETTR: each point lies on its contour, and unreachable levels have a reason."""

import json

import pytest
from drawn_figures import draw_svg
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_inputs import DAY, HABITS, RATE, make_plan_inputs, make_rate
from ttf.analyses.large_runs.plan_ettr import ETTR_CONTOUR
from ttf.analyses.large_runs.plan_ettr.charts import contour_chart
from ttf.analyses.large_runs.plan_ettr.compute import INTERVALS_S, LARGE_GPUS, LEVELS, NEVER, ettr_contour
from ttf.display.charts.figure import Study
from ttf.engine.storage.tables import read_table, write_product
from ttf.stats.large_runs.ettr import Plan, ettr_renewal
from ttf.stats.large_runs.plans import Habits


def ratio_at(row):
    per_s = row["nodes"] * row["failures_per_1000_node_days"] / 1000 / DAY
    names = ("checkpoint_interval_s", "checkpoint_write_s", "restart_s", "queue_s", "productive_s")
    return float(ettr_renewal(Plan(per_s, *(row[name] for name in names))))


@settings(max_examples=8)
@given(
    st.builds(
        Habits,
        st.just(3600),
        st.integers(0, 900),
        st.integers(0, 3600),
        st.floats(0, 7200),
        st.integers(3600, 60 * DAY),
    )
)
def test_every_point_is_on_its_contour_or_unreachable(habit):
    table = ettr_contour(RATE, habit, 1024)
    for row in table.iter_rows(named=True):
        if row["reason"] is None:
            assert ratio_at(row) == pytest.approx(row["ettr"], rel=1e-9)
        else:
            assert row["reason"] == NEVER
            # At best equal at the edge, where no failure happens.
            assert ratio_at(row | {"failures_per_1000_node_days": 0.0}) <= row["ettr"]


def test_free_writes_in_closed_form():
    # Long runs, no waits, no writes: dt lambda / (e^(lambda dt) - 1) = 1/2 at lambda dt = 1.2564...
    table = ettr_contour(RATE, Habits(3600, 0, 0, 0, 3600 * DAY), 8)
    row = table.filter(gpus=8, ettr=0.5, checkpoint_interval_s=3840.0).row(0, named=True)
    assert row["failures_per_1000_node_days"] == pytest.approx(1.2564312086 / 3840 * DAY * 1000, rel=1e-6)


def test_tolerable_rates_scale_inversely_with_nodes():
    table = ettr_contour(RATE, HABITS[0], 1024)
    assert table.height == 2 * len(LEVELS) * len(INTERVALS_S)
    small, large = (table.filter(gpus=gpus)["failures_per_1000_node_days"] for gpus in (1024, LARGE_GPUS))
    assert (small.drop_nulls() * 128 / 12_500).to_list() == pytest.approx(large.drop_nulls().to_list())
    assert ettr_contour(RATE, HABITS[0], LARGE_GPUS)["gpus"].unique().to_list() == [LARGE_GPUS]


def test_chart_and_table_of_any_rate(tmp_path):
    for rate in (RATE, make_rate(0.0, 0.0, 1e-3, 8, "no failures"), make_rate(1e-3, 5e-4, 2e-3, None)):
        table = ettr_contour(rate, HABITS[0], 1024)
        path = str(tmp_path / "t.csv")
        write_product(table, ETTR_CONTOUR, path)
        assert read_table(path, ETTR_CONTOUR).equals(table)
        figure = contour_chart(make_plan_inputs(rate, HABITS[0], 1024, {"ettr_contour": table}), Study())
        assert draw_svg(figure).startswith("<svg")
        assert len(json.dumps(figure.spec())) < 20_000
        assert {row["level"] for row in figure.datasets["contours"]} == {"50%", "70%", "80%", "90%", "95%"}
        assert ("1,024 GPUs" if rate.node_gpus else "1,024 nodes") in figure.alt


def test_sizes_without_gpus_are_nodes_and_unreachable_levels_are_empty():
    table = ettr_contour(make_rate(None, None, None, None, "why"), HABITS[0], 1024)
    assert table["gpus"].null_count() == table.height
    unreachable = ettr_contour(RATE, Habits(60, 0, 0, 10**9, 60), 8)
    assert unreachable["reason"].unique().to_list() == [NEVER]
    ETTR_CONTOUR.check(unreachable)
    assert contour_chart(make_plan_inputs(RATE, HABITS[0], 8, {"ettr_contour": unreachable}), Study()).empty == NEVER

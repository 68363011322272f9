"""Large runs on the page: the finding, what the planner starts at, and the charts of ETTR."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
import vl_convert
from plan_inputs import DAY, HABITS, RATE, SIZES, TOO_LARGE, a_rate, given_plan, target_numbers
from ttf.analyses.large_runs.plan_ettr.charts import SCHEDULED, WALL, ettr_by_gpus
from ttf.analyses.large_runs.plan_ettr.compute import mitigation_table, plan_tables
from ttf.analyses.large_runs.plan_ettr.page import head, planner, tables
from ttf.display import phrases
from ttf.display.charts.figure import Study
from ttf.display.trace_numbers import Numbers
from ttf.page.report.blocks import macros
from ttf.stats.large_runs.plans import Habits

STUDY = Study("job")
QUEUED = [replace(HABITS[0], queue_s=9 * DAY)]
RATE_KEY = "sizes.rate.failures_per_1000_node_days"
NONE = a_rate(None, None, None, 8, TOO_LARGE)


def planned(rate, habits=HABITS, target=1024, largest_nodes=64, by_gpus=None, **more):
    """What the rooms of a trace with this failure rate are given, and its metrics."""
    ettr, outlook = plan_tables(rate, habits, sorted({*SIZES, target}), 50, 1)
    found = {"ettr": ettr, "ettr_outlook": outlook, "mitigations": mitigation_table(rate, habits[0], [target])}
    given = given_plan(rate, habits[0], target, found, largest_run_nodes=largest_nodes, **more)
    if by_gpus is not None:
        given["mttf_by_gpus"] = by_gpus
    else:
        given["mttf_by_gpus"] = given["mttf_by_gpus"].with_columns(p_clustered=None)
    metrics = target_numbers(given)
    return given, Numbers(metrics)


def trace_of(given, drawn=True, unit="job"):
    figures = {"ettr_by_gpus": {"empty": None if drawn else "why"}}
    about = {"unit": unit}
    return SimpleNamespace(table=given.__getitem__, figures=figures, about=about, has_jobs=unit not in ("node", "GPU"))


def told(given, m):
    found = head(trace_of(given), m)
    assert phrases.length(found.claim) <= 18
    assert len(found.keys) <= 4
    assert sum(map(phrases.length, found.text)) <= 60
    texts = [found.claim, *found.text, *(text for key in found.keys for text in (key.value, key.note))]
    for key in (key for text in texts for key in phrases.keys(text)):
        assert m.has(key)
    return found


def test_a_run_that_mostly_works() -> None:
    given, m = planned(RATE)
    found = told(given, m)
    times, ratio = m["ettr.estimate.interruptions"], m["ettr.estimate.ettr"]
    assert phrases.plain(found.claim) == (
        f"A 1,024-GPU run keeps {100 * ratio:.1f}% of its time productive, with {times:.1f} interruptions"
    )
    assert found.charts == ("ettr_by_gpus",)
    assert phrases.plain(found.keys[0].note).startswith(f"90% CI {100 * m['ettr.estimate.ettr_ci_low']:.1f}–")
    assert {key.label for key in found.keys} >= {"Interruptions", "Best checkpoint interval"}
    assert not head(trace_of(given, drawn=False), m).charts


def test_a_run_that_mostly_waits() -> None:
    found = told(*(of := planned(RATE, QUEUED)))
    m = of[1]
    assert m["ettr.estimate.queued_s"] == pytest.approx(9 * DAY * (1 + m["ettr.estimate.interruptions"]))
    share = 100 * m["ettr.estimate.scheduled_share"]
    claim = f"A 1,024-GPU run keeps {share:.1f}% of its scheduled time productive; each start waits 9 days in the queue"
    assert phrases.plain(found.claim).replace("\u00a0", " ") == claim


def test_a_run_without_headway_or_without_failures() -> None:
    found = told(*planned(a_rate(500.0, 400.0, 600.0, 8)))
    assert "would make almost no progress: a failure every" in found.claim
    found = told(*planned(a_rate(0.0, 0.0, 1e-3, None), failures=0, basis="component"))
    assert phrases.plain(found.claim).endswith("with 0 interruptions")
    assert found.callout.lead == "Hardware only."


@pytest.mark.parametrize(
    ("basis", "verdict", "why"),
    [
        ("proxy", "rejected", "infrastructure failures are not recorded"),
        ("event", "rejected", "failures do not grow with the GPUs"),
        ("event", "agrees", "no run was a quarter as large"),
        ("event", None, "too few sizes to test the 1/N law"),
    ],
)
def test_what_cannot_be_estimated_says_why_and_what_it_takes(basis, verdict, why) -> None:
    given, m = planned(NONE, basis=basis)
    m |= {} if verdict is None else {"sizes.law.verdict": {"value": verdict, "n": 1, "unit": "label"}}
    found = told(given, m)
    assert phrases.plain(found.claim) == f"The ETTR of a 1,024-GPU run cannot be estimated: {why}"
    assert (found.callout.kind, found.callout.text) == ("stop", "Needed: larger runs.")
    assert not found.charts and not found.keys
    measured = {
        "ettr.measured.runs": {"value": 7, "n": None, "unit": "runs"},
        "ettr.measured.mean": {"value": 0.9, "n": 7, "unit": "share"},
    }
    found = told(given, Numbers(m | measured))
    assert found.charts == ("ettr_measured",)
    assert phrases.plain(found.keys[0].value) == "90.0%"
    assert planner(trace_of(given), m)["withheld"] == "No run was as large."
    assert "failure rate" not in tables(trace_of(given))["ettr-assumptions"].frame["assumption"]


def test_withheld_values_stand_nowhere() -> None:
    """Numbers of the run that are taken out of the metrics are neither in the finding nor in the planner."""
    given, m = planned(RATE)
    kept = Numbers({key: row for key, row in m.items() if ".estimate." not in key})
    found, starts = head(trace_of(given), kept), planner(trace_of(given), kept)
    assert found.callout.kind == "stop" and not found.charts
    assert starts["fields"]["rate"] is None and set(starts["said"].values()) == {"–"}


def test_the_measured_rate_of_the_size_is_named_where_it_differs() -> None:
    given, m = planned(RATE)
    checked = {"observed": 4, "expected": 11.6, "p_value": 0.02}
    m |= {f"sizes.check.{name}": {"value": value, "n": 1, "unit": "failures"} for name, value in checked.items()}
    m |= {"ettr.measured_rate.ettr": {"value": 0.5, "n": 4, "unit": "share"}}
    found = told(given, m)
    assert (found.callout.kind, found.callout.lead) == ("care", "Measured differs.")
    assert phrases.plain(found.callout.text).endswith("at their own rate ETTR is 50.0%.")


def test_the_planner_starts_at_the_trace() -> None:
    given, m = planned(RATE, [Habits(1800, 20, 60, DAY / 2, 3 * DAY)], target=96)
    starts = planner(trace_of(given), m)
    assert starts["fields"] == pytest.approx(
        {"gpus": 96, "rate": 6.5, "interval": 30, "write": 0.3333, "restart": 1, "queue": 0.5, "work": 3}
    )
    assert (starts["node_gpus"], starts["largest"], starts["unit"]) == (8, 512, "GPUs")
    assert starts["withheld"] is None
    assert phrases.keys(starts["said"]["wall"]) == ["ettr.estimate.wall_s"]
    in_nodes = planner(trace_of(of := planned(a_rate(6.5e-3, 5e-3, 8e-3, None))[0]), planned(RATE)[1])
    assert in_nodes["node_gpus"] == 1 and of["ettr"]["gpus"].null_count() == of["ettr"].height


def test_the_planner_asks_for_spares_where_nodes_down_at_once_are_known() -> None:
    given, m = planned(RATE)
    page = macros(Path(__file__).parents[2] / "report")
    without = planner(trace_of(given), m)
    assert without["down"] is None and "spares" not in str(page.planner(without))
    times = {"stratum": "x", "outages": "all", "down": [0, 1, 2, 3], "time_s": [90, 0, 10, 0], "units": 16.0}
    given["units_down"] = pl.DataFrame(times).with_columns(time_share=pl.col("time_s") / 100)
    given["spares_needed"] = pl.DataFrame({"stratum": ["x"]})
    starts = planner(trace_of(given), Numbers(m | {"capacity.nodes": {"value": 8, "n": None}}))
    assert starts["down"] == {"units": 16, "shares": [0.9, 0.0, 0.1]}
    assert starts["fields"]["spares"] == 0
    assert 'data-units="16" data-down="[0.9, 0.0, 0.1]"' in str(page.planner(starts))
    assert '<output name="short">' in str(page.planner(starts))


def test_the_planner_of_components_starts_at_their_rate_and_goes_where_there_is_none() -> None:
    given, m = planned(NONE, basis="component")
    rate = {RATE_KEY: {"value": 4.78, "unit": "failures per 1000 node days", "n": 90}}
    rate |= {f"sizes.rate.ci_{end}": rate[RATE_KEY] | {"value": value} for end, value in (("low", 2.3), ("high", 10.1))}
    for unit in ("node", "GPU"):
        trace = trace_of(given, unit=unit)
        starts = planner(trace, Numbers(m | rate))
        assert (starts["fields"]["rate"], starts["withheld"], starts["of"]) == (4.78, None, unit)
        assert set(starts["said"].values()) == {"–"}, "the page answers"
        form = str(macros(Path(__file__).parents[2] / "report").planner(starts))
        assert f"{unit[0].upper()}{unit[1:]} failure rate" in form and "No failure rate" not in form
        found = head(trace, Numbers(m | rate))
        assert (
            phrases.plain(found.claim)
            == f"The trace holds no runs: the planner starts from the measured rate of a {unit}"
        )
        assert [phrases.plain(key.value) for key in found.keys] == ["4.78"]
        # Nothing failed, or nobody knows how long anything was watched.
        assert planner(trace, m) is None and head(trace, m).callout.kind == "stop"
    assert planner(trace_of(given), Numbers(m | rate))["fields"]["rate"] is None, "runs of jobs need a projection"


def test_the_tables_hold_no_size_that_is_not_projected() -> None:
    given, _ = planned(replace(RATE, projects_to=200))
    shown = tables(trace_of(given))
    assert shown["ettr"].frame["gpus"].max() <= 200 * 8
    assert "failure rate" in shown["ettr-assumptions"].frame["assumption"]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("habits", [HABITS, QUEUED])
def test_two_lines_by_size(habits, narrow) -> None:
    given, m = planned(RATE, habits)
    drawn = ettr_by_gpus(given, replace(STUDY, narrow=narrow))
    rows = {(row["size"], row["series"]): row for row in drawn.datasets["lines"]}
    assert rows[1024, WALL]["ratio"] == pytest.approx(m["ettr.estimate.ettr"], rel=1e-5)
    assert rows[1024, SCHEDULED]["ratio"] == pytest.approx(m["ettr.estimate.scheduled_share"], rel=1e-5)
    assert all(row["low"] <= row["ratio"] <= row["high"] for row in rows.values())
    # A run on a part of a node takes the node; no job had more than 512 GPUs.
    assert min(size for size, _ in rows) == 8
    assert drawn.datasets["shade"] == [{"low": 512, "high": 131_072}]
    assert drawn.title == "Effective training time ratio (ETTR) by job size"
    spec = drawn.spec(validate=True)
    assert vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[])


def test_sizes_with_a_rate_of_their_own_are_points() -> None:
    rate = replace(RATE, projects_to=0, measured={(1000, 1024): (DAY, DAY / 2, 2 * DAY), (8, 8): (9 * DAY, DAY, DAY)})
    sizes = {"gpus_low": [8, 1000], "gpus_high": [8, 1024], "failures": [10, 12], "p_clustered": [None, None]}
    sizes["ci_low_clustered_s"] = [None, None]
    given, m = planned(rate, by_gpus=pl.DataFrame(sizes, schema_overrides={"p_clustered": pl.Float64}))
    drawn = ettr_by_gpus(given, STUDY)
    assert m["ettr.by"] == "measured_rate"
    assert {row["size"] for row in drawn.datasets["lines"]} == {8, 1000, 1024}
    assert "rates measured by size" in " ".join(drawn.spec(validate=True)["title"]["subtitle"])
    assert told(given, m).callout.lead == "Measured, not projected."
    assert planner(trace_of(given), m)["fields"]["rate"] == pytest.approx(1000 / 128, rel=1e-3)


def test_a_measured_rate_that_differs_is_drawn() -> None:
    rate = replace(RATE, measured={(513, 1024): (10 * DAY, 9 * DAY, 11 * DAY)})
    by_gpus = pl.DataFrame({"gpus_low": [513], "gpus_high": [1024], "failures": [12], "p_clustered": [0.01]})
    by_gpus = by_gpus.with_columns(ci_low_clustered_s=None)
    sizes = {"jobs": 9, "expected_failures": 30.0}
    given, m = planned(rate, by_gpus=by_gpus.with_columns(**{name: pl.lit(value) for name, value in sizes.items()}))
    drawn = ettr_by_gpus(given, STUDY)
    assert drawn.datasets["own"][0]["ratio"] == pytest.approx(m["ettr.measured_rate.ettr"], rel=1e-5)
    assert any("measured rate" in row["text"] for row in drawn.datasets["texts"])

"""Large runs on the page: the finding, the planner's start values and the ETTR charts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from drawn_figures import draw_svg
from filled_texts import filled
from head_checks import check_head
from plan_inputs import DAY, HABITS, RATE, SIZES, TOO_LARGE, make_plan_inputs, make_rate, target_numbers
from ttf.analyses.large_runs.plan_ettr.charts import SCHEDULED, WALL, ettr_by_gpus
from ttf.analyses.large_runs.plan_ettr.compute import mitigation_table, plan_tables
from ttf.analyses.large_runs.plan_ettr.page import head, planner, tables
from ttf.display import phrases
from ttf.display.charts.figure import Study
from ttf.display.trace_numbers import Numbers
from ttf.stats.large_runs.plans import Habits

head, planner = map(filled, (head, planner))

QUEUED = [replace(HABITS[0], queue_s=9 * DAY)]
RATE_KEY = "sizes.rate.failures_per_1000_node_days"
NO_RATE = make_rate(None, None, None, 8, TOO_LARGE)


def planned(rate, habits=HABITS, target=1024, largest_nodes=64, by_gpus=None, **options):
    """Return the tables and numbers of a trace with this failure rate."""
    ettr, outlook = plan_tables(rate, habits, sorted({*SIZES, target}), 50, 1)
    plan = {"ettr": ettr, "ettr_outlook": outlook, "mitigations": mitigation_table(rate, habits[0], [target])}
    inputs = make_plan_inputs(rate, habits[0], target, plan, largest_run_nodes=largest_nodes, **options)
    if by_gpus is not None:
        inputs["mttf_by_gpus"] = by_gpus
    else:
        inputs["mttf_by_gpus"] = inputs["mttf_by_gpus"].with_columns(p_clustered=None)
    metrics = target_numbers(inputs)
    return inputs, Numbers(metrics)


def make_trace(tables, unit="job"):
    figures = {"ettr_by_gpus": {"empty": None}}
    info = {"unit": unit}
    return SimpleNamespace(table=tables.__getitem__, figures=figures, info=info, has_jobs=unit not in ("node", "GPU"))


def checked_head(tables, m):
    return check_head(head(make_trace(tables), m), m)


def test_a_run_that_mostly_works():
    inputs, m = planned(RATE)
    finding = checked_head(inputs, m)
    ratio = m["ettr.estimate.scheduled_ettr"]
    assert finding.charts == ("ettr_by_gpus",)
    key, note = finding.keys[0], phrases.strip_markup(finding.keys[0].note)
    assert (key.label, phrases.strip_markup(key.value)) == ("Scheduled ETTR", f"{100 * ratio:.1f}%")
    assert note.startswith(f"90% CI {100 * m['ettr.estimate.scheduled_ettr_ci_low']:.1f}–")
    assert note.endswith(f"; wall-clock {100 * m['ettr.estimate.wall_clock_ettr']:.1f}%")


def test_a_run_without_progress_or_without_failures():
    finding = checked_head(*planned(make_rate(500.0, 400.0, 600.0, 8)))
    assert "would make almost no progress: a failure every" in finding.claim
    finding = checked_head(*planned(make_rate(0.0, 0.0, 1e-3, None), failures=0, basis="component"))
    assert phrases.strip_markup(finding.claim).endswith("with 0 interruptions")
    assert finding.callout.lead == "Hardware only."


@pytest.mark.parametrize(
    ("basis", "verdict", "reason"),
    [
        ("proxy", "rejected", "infrastructure failures are not recorded"),
        ("event", "rejected", "failures do not grow with the GPUs"),
        ("event", "agrees", "no run was a quarter as large"),
        ("event", None, "too few sizes to test the 1/N law"),
    ],
)
def test_an_impossible_estimate_states_the_reason_and_the_data_needed(basis, verdict, reason):
    inputs, m = planned(NO_RATE, basis=basis)
    m |= {} if verdict is None else {"sizes.law.verdict": {"value": verdict, "n": 1, "unit": "label"}}
    finding = checked_head(inputs, m)
    assert phrases.strip_markup(finding.claim) == f"The ETTR of a 1,024-GPU run cannot be estimated: {reason}"
    assert (finding.callout.kind, finding.callout.text) == ("stop", "Needed: larger runs.")
    assert not finding.charts and not finding.keys
    assert planner(make_trace(inputs), m)["withheld"] == "No run was as large."
    assert "failure rate" not in tables(make_trace(inputs))["ettr-assumptions"].frame["assumption"]


def test_withheld_values_appear_nowhere():
    """Numbers removed from the metrics are neither in the finding nor in the planner."""
    inputs, m = planned(RATE)
    remaining = Numbers({key: row for key, row in m.items() if ".estimate." not in key})
    finding, form = head(make_trace(inputs), remaining), planner(make_trace(inputs), remaining)
    assert finding.callout.kind == "stop" and not finding.charts
    assert form["fields"]["rate"] is None and set(form["said"].values()) == {"–"}


def test_the_planner_starts_with_values_of_the_trace():
    inputs, m = planned(RATE, [Habits(1800, 20, 60, DAY / 2, 3 * DAY)], target=96)
    form = planner(make_trace(inputs), m)
    assert form["fields"] == pytest.approx(
        {"gpus": 96, "rate": 6.5, "interval": 30, "write": 0.3333, "restart": 1, "queue": 0.5, "work": 3}
    )
    assert (form["node_gpus"], form["largest"], form["unit"]) == (8, 512, "GPUs")
    assert form["withheld"] is None


def test_the_planner_of_components_needs_their_failure_rate():
    inputs, m = planned(NO_RATE, basis="component")
    rate = {RATE_KEY: {"value": 4.78, "unit": "failures per 1000 node days", "n": 90}}
    rate |= {f"sizes.rate.ci_{end}": rate[RATE_KEY] | {"value": value} for end, value in (("low", 2.3), ("high", 10.1))}
    trace = make_trace(inputs, unit="GPU")
    values = planner(trace, Numbers(m | rate))
    assert (values["fields"]["rate"], values["withheld"], values["of"]) == (4.78, None, "GPU")
    assert set(values["said"].values()) == {"–"}, "the page answers"
    claim = phrases.strip_markup(head(trace, Numbers(m | rate)).claim)
    assert claim == "The trace holds no runs: the planner starts from the measured rate of a GPU"
    # Without a rate there is no planner.
    assert planner(trace, m) is None and head(trace, m).callout.kind == "stop"
    assert planner(make_trace(inputs), Numbers(m | rate))["fields"]["rate"] is None, "runs of jobs need a projection"


def test_the_tables_hold_only_projected_sizes():
    inputs, _ = planned(replace(RATE, projects_to=200))
    page_tables = tables(make_trace(inputs))
    assert page_tables["ettr"].frame["gpus"].max() <= 200 * 8
    assert "failure rate" in page_tables["ettr-assumptions"].frame["assumption"]


def test_the_chart_has_two_lines_by_size():
    inputs, m = planned(RATE, QUEUED)
    chart = ettr_by_gpus(inputs, Study("job"))
    rows = {(row["size"], row["series"]): row for row in chart.datasets["lines"]}
    assert rows[1024, WALL]["ratio"] == pytest.approx(m["ettr.estimate.wall_clock_ettr"], rel=1e-5)
    assert rows[1024, SCHEDULED]["ratio"] == pytest.approx(m["ettr.estimate.scheduled_ettr"], rel=1e-5)
    assert all(row["low"] <= row["ratio"] <= row["high"] for row in rows.values())
    # A run on a part of a node occupies the node; no job had more than 512 GPUs.
    assert min(size for size, _ in rows) == 8
    assert chart.datasets["shade"] == [{"low": 512, "high": 131_072}]
    assert draw_svg(chart)

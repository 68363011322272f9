"""The planner: what Vega computes in the page is what Python computes, whatever the sliders say; the charts of ETTR."""

import copy
import json
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import polars as pl
import pytest
import vl_convert
from plan_inputs import DAY, HABITS, RATE, SIZES, TOO_LARGE, a_rate, given_plan
from ttf.analyses.measure_ettr.charts import ettr_measured
from ttf.analyses.plan_ettr.charts import ettr_by_gpus
from ttf.analyses.plan_ettr.compute import plan_tables
from ttf.analyses.plan_ettr.planner import planner
from ttf.charts.figure import Study
from ttf.stats.ettr import Plan, ettr_renewal, expected_interruptions, expected_wall_s, optimal_interval_s
from ttf.stats.plans import Habits, NodeRate

STUDY = Study("job")


def evaluated(spec: dict, settings: dict[str, float], names: list[str]) -> dict[str, float]:
    """Parameters of the planner as Vega computes them with these settings: drawn as text, in full, and read back."""
    spec = copy.deepcopy(spec)
    for param in spec["params"]:
        if param["name"] in settings:
            param["value"] = settings[param["name"]]
    text = " + ' ' + ".join(f"format({name}, '.15e')" for name in names)
    spec["vconcat"] = [{"data": {"name": "answer"}, "mark": {"type": "text", "text": {"expr": text}}}]
    svg = vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[])
    drawn = [node.text for node in ET.fromstring(svg).iter() if node.tag.endswith("text") and "e" in (node.text or "")]
    numbers = next(text for text in drawn if re.fullmatch(r"[-−+\d.e ]+", text))
    return dict(zip(names, map(float, numbers.replace("−", "-").split()), strict=True))


NAMES = ["ettr", "interruptions", "wall_s", "best_s", "ettr_at_best", "lost_share", "nodes"]
CASES = [
    {},
    {"log_size": 17, "log_rate": math.log10(6.5), "log_interval": math.log10(7)},
    {"log_size": 0, "log_rate": -2},
    {"log_size": 12.25, "log_rate": 2, "write_s": 900, "start_min": 60, "queue_min": 600, "work_days": 1},
    {"log_size": 14, "log_interval": 3.2, "write_s": 5, "start_min": 0, "queue_min": 0, "work_days": 90},
    {"log_interval": 0, "work_days": 33},
]


@pytest.mark.parametrize("settings", CASES)
def test_vega_computes_what_python_computes(settings: dict[str, float]) -> None:
    spec = planner(given_plan(RATE, HABITS[0], 1024), STUDY).spec()
    found = evaluated(spec, settings, NAMES)
    at = {param["name"]: param.get("value") for param in spec["params"]} | settings
    nodes = math.ceil(round(2 ** at["log_size"]) / 8)
    plan = Plan(
        nodes * 10 ** at["log_rate"] / 1000 / DAY,
        60 * 10 ** at["log_interval"],
        at["write_s"],
        60 * at["start_min"],
        60 * at["queue_min"],
        DAY * at["work_days"],
    )
    best = min(optimal_interval_s(plan.failures_per_s, plan.write_s), plan.productive_s)
    at_best = Plan(plan.failures_per_s, best, plan.write_s, plan.restart_s, plan.queue_s, plan.productive_s)
    assert found == pytest.approx(
        {
            "ettr": ettr_renewal(plan),
            "interruptions": expected_interruptions(plan),
            "wall_s": expected_wall_s(plan),
            "best_s": best,
            "ettr_at_best": ettr_renewal(at_best),
            "lost_share": plan.lost_share,
            "nodes": nodes,
        },
        rel=1e-8,
    )


def test_free_writes_have_no_best_interval() -> None:
    spec = planner(given_plan(RATE, HABITS[0], 1024), STUDY).spec()
    found = evaluated(spec, {"write_s": 0}, ["best_s", "ettr", "ettr_at_best"])
    assert found["best_s"] == 0 and found["ettr"] == found["ettr_at_best"]


def test_the_planner_starts_at_the_trace_and_at_what_is_configured() -> None:
    drawn = planner(given_plan(RATE, Habits(1800, 20, 60, 30, 3 * DAY), 96, basis="event"), STUDY)
    at = {param["name"]: param["value"] for param in drawn.spec()["params"] if "value" in param}
    assert at == pytest.approx(
        {
            "log_size": math.log2(96),
            "log_rate": math.log10(6.5),
            "log_interval": math.log10(30),
            "write_s": 20,
            "start_min": 1,
            "queue_min": 0.5,
            "work_days": 3,
        }
    )
    assert "by states and health events" in drawn.caption
    labels = [param["bind"]["name"] for param in drawn.spec()["params"] if "bind" in param]
    assert labels[:2] == ["GPUs", "Failures per 1000 node-days"]
    # Every slider is told in words, and starts within its range.
    params = {param["name"]: param for param in drawn.spec()["params"]}
    for name, value in at.items():
        assert f"{name}_words" in params
        assert params[name]["bind"]["min"] <= value <= params[name]["bind"]["max"]


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (
            a_rate(None, None, None, 8, "why"),
            "6.5 failures per 1000 node-days, published for RSC-1 and not of this trace, from which it cannot be "
            "estimated: why",
        ),
        (
            a_rate(9e-3, 8e-3, 1e-2, 8, projects_to=127),
            f"published for RSC-1 and not of this trace, from which it cannot be estimated: {TOO_LARGE}",
        ),
        (a_rate(90.0, 80.0, 99.0, None), "90,000 failures per 1000 node-days of the trace"),
    ],
)
def test_what_the_planner_starts_at_is_said(rate: NodeRate, words: str) -> None:
    drawn = planner(given_plan(rate, HABITS[0], 1024), STUDY)
    assert words in drawn.caption
    drawn.spec(validate=True)
    assert vl_convert.vegalite_to_svg(json.dumps(drawn.spec()), allowed_base_urls=[])
    units = drawn.spec()["params"][0]["bind"]["name"]
    assert units == ("Nodes" if rate.node_gpus is None else "GPUs")


def drawn_by_gpus(rate: NodeRate, habits: list[Habits] = HABITS, **more: object):
    ettr, _ = plan_tables(rate, habits, SIZES, 50, 1)
    return ettr_by_gpus(given_plan(rate, habits[0], 1024, {"ettr": ettr}, **more), STUDY), ettr


def test_the_chart_by_size_says_what_the_table_says() -> None:
    drawn, ettr = drawn_by_gpus(RATE)
    mine = ettr.filter(gpus=1024, rate="estimate", checkpoint_interval_s=3600.0).row(0, named=True)
    assert drawn.title == f"In a run of 1,024 GPUs, {100 * mine['ettr_renewal']:.0f} % of the time is productive"
    exact = [row["ratio"] for row in drawn.datasets["lines"] if row["series"] == "exact mean"]
    assert exact == pytest.approx(
        ettr.filter(rate="estimate", checkpoint_interval_s=3600.0)["ettr_renewal"].to_list(), rel=1e-5
    )
    assert "From 16,384 GPUs on, failures take more than 30 %" in drawn.caption
    assert all(row["low"] <= row["high"] for row in drawn.datasets["band"])
    drawn.spec(validate=True)


def test_charts_without_a_rate_or_without_runs_say_so() -> None:
    drawn, _ = drawn_by_gpus(a_rate(None, None, None, 8, "why"))
    assert drawn.empty == "why"
    drawn, _ = drawn_by_gpus(replace(RATE, projects_to=1))
    assert "In a run of 8 GPUs" in drawn.title, "the largest that there is a projection for"
    table = pl.DataFrame(
        schema={"gpus_low": pl.Int64, "gpus_high": pl.Int64, "runs": pl.Int64, "ettr_mean": pl.Float64}
    )
    assert ettr_measured({"ettr_measured": table}, STUDY).empty == "no job run lasted long enough"


def test_the_chart_of_no_headway_and_of_no_failures() -> None:
    assert drawn_by_gpus(a_rate(50.0, 40.0, 60.0, 8))[0].title.startswith("A run of 1,024 GPUs would make no headway")
    calm, _ = drawn_by_gpus(a_rate(0.0, 0.0, 1e-3, None), failures=0, basis="component")
    assert "0 failures; of the machines themselves" in calm.caption
    assert "1,024 nodes" in calm.title
    calm.spec(validate=True)

"""Every chart agrees with its tables for any trace, and its bytes are reproducible."""

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import SimpleNamespace

import altair as alt
import polars as pl
import pytest
import vl_convert
from memory_tables import correlations, observed_times, outcome_table, outcomes_by_gpus, runtime_by_group
from ttf.analyses import module_name
from ttf.analyses.catalogue import load_analyses
from ttf.analyses.factors.correlate.compute import failure_share
from ttf.analyses.outcomes.split_outcomes.compute import runtime_quantiles
from ttf.analyses.time_to_failure.fit_mttf.compute import survival_at, survival_steps
from ttf.display.charts.figure import Figure, Study, make_chart
from ttf.display.charts.inline import extract_drawing, make_page_element
from ttf.display.charts.saving import save_charts
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import WIDE
from ttf.engine import words
from ttf.records.durations import durations_of_jobs, find_strata
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.survival import survival_tables, thin_curves

STUDY = Study("pod")
CUTOFFS = [None, 20_000, 50_000, 100_000]
# Every job chart of these analyses. One chart per drawing function is rendered and validated.
BUILDERS = {
    name: import_module(f"{module_name(analysis)}.charts").CHARTS[name]
    for analysis in ("split_outcomes", "correlate", "fit_mttf")
    for charts in [load_analyses()[analysis].charts]
    for name in (charts(SimpleNamespace(has_jobs=True)) | {"mttf_by_gpu_type": "mttf"} if callable(charts) else charts)
}
CHART_KINDS = {
    *(
        "jobs_and_gpu_time",
        "failure_rate_by_gpus",
        "runtime_distribution",
        "runtime_by_gpu_type",
        "factors_of_run_time",
        "failure_share",
    ),
    *("runtime_by_measured_use", "survival_by_gpu_type", "mttf_by_gpu_type"),
}
# One chart of each kind of these traces is rendered too.
RENDERED_CASES = ("hostile", "every run 0 s")

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><svg onload=x>",
    "'; datum.x || \"",
    "datum['jobs']",
    "V100\u202e001V\x00\x07",
    "V100\x00",
    "V100",
    "🚀 GPU 🧑‍🚀",
    "line\nbreak\ttab",
    "long" * 2_500,
    "long" * 2_500 + "er",
    "",
    "null",
    "{{< include /etc/passwd >}}",
    "$$x$$ [a](javascript:b)",
]


def make_jobs(n: int = 600, types: list[str | None] | None = None, outcomes: list[str] | None = None) -> pl.DataFrame:
    """Jobs of every kind in fixed proportions, with times from 0 s to days."""
    types = [None, "V100", "T4", "P100"] if types is None else types
    outcomes = ["success"] * 5 + ["failure"] * 3 + ["cancelled", "running", "waiting"] if outcomes is None else outcomes
    number = range(n)
    outcome = [outcomes[i % len(outcomes)] for i in number]
    started = [name != "waiting" for name in outcome]
    frame = pl.DataFrame(
        {
            "job_id": [f"j{i}" for i in number],
            "start_s": [1_000 if has_started else None for has_started in started],
            "runtime_s": [
                (i * i * 37) % 10 ** (1 + i % 6) if name in ("success", "failure", "cancelled") else None
                for i, name in enumerate(outcome)
            ],
            "outcome": outcome,
            "gpu_type": [types[i % len(types)] for i in number],
            "gpu_milli": [(0, 250, 500, 1_000, 8_000)[i * 7 % 5] for i in number],
            "cpu_milli": [(0, 4_000, 8_000, 3_152)[i * 5 % 4] for i in number],
            "mem_mib": [1_024 + 7_000 * (i * 3 % 23) for i in number],
            "size": [1 + i * 11 % 9 for i in number],
            "trace_end_s": [500_000] * n,
            "gpu_used_milli": [i * 13 % 900 * 10 for i in number],
            "cpu_used_milli": [i * 17 % 5_000 * 10 for i in number],
        },
        schema_overrides={"runtime_s": pl.Int64, "start_s": pl.Int64, "gpu_type": pl.String},
    )
    return conform(frame, JOB_COLUMNS)


def tables_of(jobs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    durations = durations_of_jobs(jobs)
    strata = find_strata(durations, ["gpu_type", "gpu_count", "account"])
    curves, summary = survival_tables(durations, "failure", strata)
    return {
        "outcomes": outcome_table(jobs),
        "outcomes_by_gpus": outcomes_by_gpus(jobs),
        "runtime_quantiles": runtime_quantiles(observed_times(jobs)),
        "failure_share": failure_share(jobs),
        "runtime_by_group": runtime_by_group(jobs, CUTOFFS),
        "correlations": correlations(jobs, CUTOFFS),
        "survival": thin_curves(curves, 2_000),
        "survival_at": survival_at(curves.filter(stratum_by="all")),
        "survival_steps": survival_steps(curves.filter(stratum_by="all"), jobs),
        "survival_summary": summary,
        "mttf": mean_time_to_failure(durations, "failure", strata),
    }


CASES = {
    "ordinary": make_jobs(),
    "no failure": make_jobs(60, outcomes=["success", "running"]),
    "only waiting": make_jobs(5, outcomes=["waiting"]),
    "one job": make_jobs(1, types=["V100"]),
    "no GPU type": make_jobs(90, types=[None]),
    "hostile": make_jobs(900, types=HOSTILE),
    "no GPU": make_jobs(90).with_columns(gpu_milli=pl.lit(0, dtype=pl.Int64)),
    "every run 0 s": make_jobs(90).with_columns(pl.col("runtime_s") * 0),
}


@pytest.fixture(scope="module")
def all_tables() -> dict[str, dict[str, pl.DataFrame]]:
    return {name: tables_in(name) for name in CASES}


@cache
def tables_in(case: str) -> dict[str, pl.DataFrame]:
    return tables_of(CASES[case])


def charts_of(case: str) -> set[str]:
    """All charts of the ordinary trace; for other traces one chart of each kind."""
    return set(BUILDERS) if case == "ordinary" else CHART_KINDS


@cache
def draw_case(case: str, name: str) -> Figure:
    return BUILDERS[name](tables_in(case), STUDY)


def svg_of(spec: dict) -> str:
    return vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[])


def nested_texts(node: object, keys: set[str]) -> list[str]:
    """Every text nested below one of the keys."""
    if isinstance(node, dict):
        return [
            text
            for key, value in node.items()
            for text in ([json.dumps(value)] if key in keys else nested_texts(value, keys))
        ]
    return [text for value in node for text in nested_texts(value, keys)] if isinstance(node, list) else []


@pytest.mark.parametrize("case", CASES)
def test_every_chart_of_every_trace_can_be_drawn(case):
    for name in charts_of(case):
        figure = draw_case(case, name)
        # The schema is checked once, on the ordinary trace.
        spec = figure.spec(validate=case == "ordinary" and name in CHART_KINDS)
        text = json.dumps(spec)
        assert len(text) < 300_000, name
        assert sum(len(rows) for rows in spec["datasets"].values()) <= 2_100, name
        assert "NaN" not in text, name
        assert not nested_texts(spec, {"url", "calculate"}), name
        if case in RENDERED_CASES and name in CHART_KINDS:
            svg = svg_of(spec)
            width = float(ET.fromstring(svg).get("width"))
            assert width <= WIDE, name
            assert "NaN" not in svg, name
            assert "undefined" not in svg, name
            assert "<script" not in svg, name
        assert (figure.empty is None) == ("nothing to draw" not in figure.title), name
        assert case != "ordinary" or not figure.empty, name


def test_trace_text_never_becomes_an_expression_or_breaks_the_svg():
    for name in CHART_KINDS:
        spec = draw_case("hostile", name).spec()
        code = nested_texts(spec, {"expr", "labelExpr", "filter", "test", "signal"})
        assert not [text for text in code if any(bad in text for bad in ("script", "alert", "['jobs", "long", "🚀"))]
        text = json.dumps(spec, ensure_ascii=False)
        assert "\x00" not in text
        assert "\u202e" not in text
        assert "\\u0000" not in text
        assert "longlonglonglonglonglonglonglonglonglonglong" not in text


def test_different_texts_have_different_labels():
    label_by_text = make_labels(HOSTILE)
    assert set(label_by_text) == set(HOSTILE)
    assert len(set(label_by_text.values())) == len(HOSTILE)
    assert all(0 < len(label) <= 44 for label in label_by_text.values())
    assert make_labels(["A", "A\x00", "A (2)", "A"]) == {"A": "A", "A\x00": "A (2)", "A (2)": "A (2) (2)"}


def test_the_curve_of_run_times(all_tables):
    rows = BUILDERS["runtime_distribution"](all_tables["ordinary"], STUDY).datasets["quantiles"]
    assert min(row["x"] for row in rows) == 1, "0 s stands at 1 s"
    assert min(row["runtime_s"] for row in rows) == 0
    for outcome in ("success", "failure"):
        points = [(row["runtime_s"], row["share"]) for row in rows if row["outcome"] == outcome]
        assert points == sorted(set(points))
        assert points[-1][1] == 1


def test_the_survival_curve_labels_its_estimates_and_a_constant_rate(all_tables):
    tables = all_tables["ordinary"]
    p_day = tables["survival"].filter((pl.col("stratum_by") == "all") & (pl.col("time_s") <= 86_400))["survival"].last()
    mean = tables["mttf"].filter(stratum_by="all", confidence=0.95)["mttf_s"].item()
    figure = BUILDERS["still_running"](tables, replace(STUDY, narrow=True))
    assert figure.datasets["spots"][-1]["label"] == f"{words.share(p_day)} at 1 day"
    assert all(row["v"] == pytest.approx(math.exp(-row["x"] / mean), rel=1e-4) for row in figure.datasets["constant"])
    assert figure.datasets["limits"] == []
    assert f'width="{replace(STUDY, narrow=True).width}' in svg_of(figure.spec())


def test_a_thinned_curve_gives_the_estimates_of_the_full_one(all_tables):
    """In a thinned curve the last step before one day may lie hours earlier."""
    full_tables = all_tables["ordinary"]
    thinned_tables = full_tables | {"survival": thin_curves(full_tables["survival"], 5)}
    figure = BUILDERS["still_running"](thinned_tables, STUDY)
    assert figure.datasets["spots"] == BUILDERS["still_running"](full_tables, STUDY).datasets["spots"]
    for spot in figure.datasets["spots"]:
        survival, thinned_survival = (
            tables["survival"].filter(pl.col("time_s") <= spot["x"], stratum_by="all")["survival"].last()
            for tables in (full_tables, thinned_tables)
        )
        assert spot["v"] == pytest.approx(survival, rel=1e-5)
        assert spot["label"] == f"{words.share(survival)} at {'1 day' if spot['x'] == 86_400 else '1 h'}"
        assert words.share(survival) != words.share(thinned_survival)
        assert spot["label"] in figure.alt


@pytest.mark.parametrize(("jobs", "limits", "is_limit"), [(60, 9, False), (60, 10, True), (1_001, 10, False)])
def test_a_step_is_a_time_limit_if_many_jobs_end_by_it(jobs, limits, is_limit):
    ends = [600] * (jobs - limits) + [3_600] * limits
    frame = pl.DataFrame({"runtime_s": ends, "outcome": ["success"] * (jobs - limits) + ["failure"] * limits})
    frame = frame.with_columns(status_raw=pl.lit("TIMEOUT"), start_s=pl.lit(0), trace_end_s=pl.lit(10**6))
    curve = {"time_s": [600, 3_600], "at_risk": [jobs, limits], "events": [0, limits], "survival": [1.0, 0.0]}
    steps = survival_steps(pl.DataFrame(curve), frame)
    assert steps.select("drop", "time_limits", "is_limit").rows() == [(1.0, limits, is_limit)]


def test_mttf_by_stratum_and_lower_bounds(all_tables):
    (row, *_) = BUILDERS["mttf_by_gpu_type"](all_tables["ordinary"], STUDY).datasets["strata"]
    assert row["low95"] < row["mttf"] < row["high95"]
    bounds = BUILDERS["mttf_by_gpu_type"](all_tables["no failure"], STUDY)
    assert all("mttf" not in row and row["low95"] > 0 for row in bounds.datasets["strata"])


def test_every_chart_labels_a_synthetic_sample(all_tables):
    for name in CHART_KINDS:
        figure = BUILDERS[name](all_tables["ordinary"], Study("task", synthetic=True))
        assert "Synthetic sample: no finding about a real cluster." in figure.spec()["title"]["subtitle"]


def test_charts_are_written_as_drawn_and_reproducible(tmp_path):
    """tests/workflow/test_reruns.py checks that separate processes write the same bytes too."""
    names = ["jobs_and_gpu_time", "failure_share"]
    specs, svgs = ([tmp_path / f"{name}.{ending}" for name in names] for ending in ("vl.json", "svg"))
    figures = {name: draw_case("ordinary", name) for name in names}
    tables = {name: [f"tables/{name}.csv"] for name in names}
    # The first chart is the main one of the page.
    main = names[0]
    entries = [(name, figure, figure if name == main else None) for name, figure in figures.items()]
    small = tmp_path / f"{main}.narrow.svg"
    assert save_charts(entries, tables, specs, svgs, [small], tmp_path / "index.json") == len(names)
    index = json.loads((tmp_path / "index.json").read_text())
    assert list(index) == names
    assert (index[main]["tables"], index[main]["narrow"]) == ([f"tables/{main}.csv"], True)
    same_tables = tables_of(CASES["ordinary"])
    for name, file, svg in zip(names, specs, svgs, strict=True):
        figure = figures[name]
        redrawn = json.loads(json.dumps(BUILDERS[name](same_tables, STUDY).spec()))
        assert json.loads(file.read_text()) == redrawn
        assert ET.fromstring(svg.read_text()).tag.endswith("svg")
        assert figure.subtitle.split()[0] in svg.read_text()
    assert make_page_element(small.read_text(), "a", "t", "d") == make_page_element(
        extract_drawing(svgs[0].read_text()), "a", "t", "d"
    )


def test_an_invalid_chart_ends_the_job_with_the_reason(tmp_path):
    invalid = SimpleNamespace(spec=lambda: {"mark": 1}, title="", subtitle="", caption="", alt="", empty=None)
    files = [[tmp_path / "a.vl.json"], [tmp_path / "a.svg"], [], tmp_path / "index.json"]
    with pytest.raises(RuntimeError, match=r"(?s)a chart cannot be drawn: .*Vega-Lite"):
        save_charts([("a", invalid, None)], {"a": []}, *files)


def test_a_chart_equals_the_chart_of_altair():
    """The project's chart class copies less and names channels itself."""

    def layered(base: alt.Chart) -> dict:
        colour = alt.condition("datum.few", alt.value("red"), alt.value("blue"))
        bars = base.mark_bar().encode(alt.Y("kind:N", title="Kind"), x="low:Q", x2="high:Q", color=colour)
        line = base.mark_rule(strokeDash=[3, 3]).encode(x=alt.datum(1, type="quantitative"), y2=alt.value("height"))
        texts = bars.mark_text().encode(x=alt.value(8), text="said:N", tooltip=["kind:N", alt.Tooltip("low:Q")])
        wide = (bars + line + texts).properties(width=300, title="One").facet(row="kind:N")
        return alt.vconcat(wide, bars.encode(color=alt.value("red")).properties(title="Two")).to_dict()

    assert layered(make_chart("rows")) == layered(alt.Chart(alt.NamedData(name="rows")))

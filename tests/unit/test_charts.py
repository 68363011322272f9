"""Every chart: that it says what the tables say, whatever the trace, and always in the same bytes."""

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
from given_tables import correlations, runtime_by_group
from ttf.analyses import module_name
from ttf.analyses.catalogue import rooms
from ttf.analyses.factors.correlate.compute import failure_share
from ttf.analyses.factors.correlate.run_time_charts import make_points
from ttf.analyses.outcomes.split_outcomes.compute import (
    observed_times,
    outcome_table,
    outcomes_by_gpus,
    runtime_quantiles,
)
from ttf.analyses.time_to_failure.fit_mttf.compute import survival_at, survival_steps
from ttf.display.charts.figure import Figure, Study, chart_of
from ttf.display.charts.inline import bare, inline
from ttf.display.charts.saving import save_charts
from ttf.display.charts.text import labels
from ttf.display.charts.theme import WIDE
from ttf.engine import words
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.records.lives import lives_of_jobs, strata_in
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.survival import survival_tables, thin

STUDY = Study("pod")
CUTOFFS = [None, 20_000, 50_000, 100_000]
# Every chart of jobs of these analyses; of each kind, which one function draws, some are pictured and validated.
BUILDERS = {
    name: import_module(f"{module_name(room)}.charts").CHARTS[name]
    for room in ("split_outcomes", "correlate", "fit_mttf")
    for charts in [rooms()[room].charts]
    for name in (charts(SimpleNamespace(has_jobs=True)) | {"mttf_by_gpu_type": "mttf"} if callable(charts) else charts)
}
OF_EACH_KIND = {
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
# Of these traces they are pictured too.
PICTURED = ("hostile", "no failure", "every run 0 s")

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
    """Jobs of every kind in fixed proportions, times from 0 s to days."""
    types = [None, "V100", "T4", "P100"] if types is None else types
    outcomes = ["success"] * 5 + ["failure"] * 3 + ["cancelled", "running", "waiting"] if outcomes is None else outcomes
    number = range(n)
    outcome = [outcomes[i % len(outcomes)] for i in number]
    started = [name != "waiting" for name in outcome]
    frame = pl.DataFrame(
        {
            "job_id": [f"j{i}" for i in number],
            "start_s": [1_000 if known else None for known in started],
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
    lives = lives_of_jobs(jobs)
    strata = strata_in(lives, ["gpu_type", "gpu_count", "account"])
    curves, summary = survival_tables(lives, "failure", strata)
    return {
        "outcomes": outcome_table(jobs),
        "outcomes_by_gpus": outcomes_by_gpus(jobs),
        "runtime_quantiles": runtime_quantiles(observed_times(jobs)),
        "failure_share": failure_share(jobs),
        "runtime_by_group": runtime_by_group(jobs, CUTOFFS),
        "correlations": correlations(jobs, CUTOFFS),
        "survival": thin(curves, 2_000),
        "survival_at": survival_at(curves.filter(stratum_by="all")),
        "survival_steps": survival_steps(curves.filter(stratum_by="all"), jobs),
        "survival_summary": summary,
        "mttf": mean_time_to_failure(lives, "failure", strata),
    }


CASES = {
    "ordinary": make_jobs(),
    "no failure": make_jobs(60, outcomes=["success", "running"]),
    "no success": make_jobs(60, outcomes=["failure", "waiting"]),
    "only running": make_jobs(30, outcomes=["running"]),
    "only waiting": make_jobs(5, outcomes=["waiting"]),
    "one job": make_jobs(1, types=["V100"]),
    "one failure": make_jobs(1, types=["V100"], outcomes=["failure"]),
    "no GPU type": make_jobs(90, types=[None]),
    "one GPU type": make_jobs(90, types=["V100"]),
    "hostile": make_jobs(900, types=HOSTILE),
    "no GPU": make_jobs(90).with_columns(gpu_milli=pl.lit(0, dtype=pl.Int64)),
    "no end written": make_jobs(90).with_columns(runtime_s=pl.lit(None, dtype=pl.Int64)),
    "every run 0 s": make_jobs(90).with_columns(pl.col("runtime_s") * 0),
}


@pytest.fixture(scope="module")
def all_tables() -> dict[str, dict[str, pl.DataFrame]]:
    return {name: tables_in(name) for name in CASES}


@cache
def tables_in(case: str) -> dict[str, pl.DataFrame]:
    return tables_of(CASES[case])


def charts_of(case: str) -> set[str]:
    """All of the trace that has everything, of another one those of each kind."""
    return set(BUILDERS) if case == "ordinary" else OF_EACH_KIND


@cache
def drawn_of(case: str, name: str) -> Figure:
    return BUILDERS[name](tables_in(case), STUDY)


def svg_of(spec: dict) -> str:
    return vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[])


def texts_under(node: object, keys: set[str]) -> list[str]:
    """Every text that stands somewhere under one of the keys."""
    if isinstance(node, dict):
        return [
            text
            for key, value in node.items()
            for text in ([json.dumps(value)] if key in keys else texts_under(value, keys))
        ]
    return [text for value in node for text in texts_under(value, keys)] if isinstance(node, list) else []


def test_each_chart_declared_can_be_drawn_and_is_of_a_kind():
    assert len(BUILDERS) == 11
    assert set(BUILDERS) >= OF_EACH_KIND


@pytest.mark.parametrize("case", CASES)
def test_every_chart_of_every_trace_can_be_drawn(case):
    for name in charts_of(case):
        drawn = drawn_of(case, name)
        # The schema is checked once, on the charts that have everything.
        spec = drawn.spec(validate=case == "ordinary" and name in OF_EACH_KIND)
        text = json.dumps(spec)
        assert len(text) < 300_000, name
        assert sum(len(rows) for rows in spec["datasets"].values()) <= 2_100, name
        assert "NaN" not in text, name
        assert not texts_under(spec, {"url", "calculate"}), name
        if case in ("ordinary", *PICTURED):
            svg = svg_of(spec)
            width = float(ET.fromstring(svg).get("width"))
            assert width <= WIDE, name
            assert "NaN" not in svg, name
            assert "undefined" not in svg, name
        assert drawn.title, name
        assert drawn.alt.endswith("."), name
        assert (drawn.empty is None) == ("nothing to draw" not in drawn.title), name


def empty_charts(case: str) -> set[str]:
    return {name for name in BUILDERS if drawn_of(case, name).empty}


def test_an_ordinary_trace_has_every_chart():
    assert empty_charts("ordinary") == set()


def test_charts_with_nothing_to_draw_say_so():
    by_type = {"runtime_by_gpu_type", "survival_by_gpu_type", "mttf_by_gpu_type"}
    # Of its 90 jobs no two sizes have enough that ended.
    assert empty_charts("no GPU type") == by_type | {"failure_rate_by_gpus"}
    no_failure = empty_charts("no failure")
    assert {name for name in no_failure if "request" not in name} == {
        *("still_running", "survival_by_gpu_type", "survival_by_gpu_count", "failure_rate_by_gpus"),
        "runtime_by_gpu_type",  # 30 jobs in turn have one type of those known
    }
    assert "jobs_and_gpu_time" not in empty_charts("only waiting")
    assert len(empty_charts("only waiting")) == len(BUILDERS) - 1


def test_trace_text_never_becomes_an_expression_or_breaks_the_svg():
    for name in OF_EACH_KIND:
        spec = drawn_of("hostile", name).spec()
        code = texts_under(spec, {"expr", "labelExpr", "filter", "test", "signal"})
        assert not [text for text in code if any(bad in text for bad in ("script", "alert", "['jobs", "long", "🚀"))]
        text = json.dumps(spec, ensure_ascii=False)
        assert "\x00" not in text
        assert "\u202e" not in text
        assert "\\u0000" not in text
        assert "longlonglonglonglonglonglonglonglonglonglong" not in text
        if "gpu_type" in name or name == "failure_share":
            svg = svg_of(spec)
            assert "<script" not in svg
            ET.fromstring(svg)


def test_different_texts_have_different_labels():
    named = labels(HOSTILE)
    assert set(named) == set(HOSTILE)
    assert len(set(named.values())) == len(HOSTILE)
    assert all(0 < len(label) <= 44 for label in named.values())
    assert labels(["A", "A\x00", "A (2)", "A"]) == {"A": "A", "A\x00": "A (2)", "A (2)": "A (2) (2)"}


def test_every_gpu_type_is_a_row_of_its_own(all_tables):
    spec = BUILDERS["mttf_by_gpu_type"](all_tables["hostile"], STUDY).spec()
    assert len({row["stratum"] for row in spec["datasets"]["strata"]}) == len(HOSTILE)


# ---- what the titles say ----


def test_the_curve_of_run_times(all_tables):
    tables = all_tables["ordinary"]
    drawn = BUILDERS["runtime_distribution"](tables, STUDY)
    rows = drawn.datasets["quantiles"]
    assert min(row["x"] for row in rows) == 1, "0 s stands at 1 s"
    assert min(row["runtime_s"] for row in rows) == 0
    for outcome in ("success", "failure"):
        mine = [(row["runtime_s"], row["share"]) for row in rows if row["outcome"] == outcome]
        assert mine == sorted(set(mine))
        assert mine[-1][1] == 1


def test_the_curve_of_all_names_its_estimates_beside_a_constant_rate(all_tables):
    tables = all_tables["ordinary"]
    at = tables["survival"].filter((pl.col("stratum_by") == "all") & (pl.col("time_s") <= 86_400))["survival"].last()
    n, events, mean = tables["mttf"].filter(stratum_by="all", confidence=0.95).select("n", "events", "mttf_s").row(0)
    for study in (STUDY, replace(STUDY, narrow=True)):
        drawn = BUILDERS["still_running"](tables, study)
        assert drawn.title == "Pods still running without failure"
        assert drawn.datasets["spots"][-1]["label"] == f"{words.share(at)} at 1 day"
        assert drawn.caption == f"n = {n:,} pods, {events:,} failures"
        assert all(
            row["v"] == pytest.approx(math.exp(-row["x"] / mean), rel=1e-4) for row in drawn.datasets["constant"]
        )
        assert drawn.datasets["limits"] == []
        assert f'width="{study.width}' in svg_of(drawn.spec(validate=True))


def test_a_curve_that_is_cut_short_gives_the_estimates_of_the_whole_one(all_tables):
    """Of few steps the last one before a day may lie hours before it."""
    whole = all_tables["ordinary"]
    cut_short = whole | {"survival": thin(whole["survival"], 5)}
    drawn = BUILDERS["still_running"](cut_short, STUDY)
    assert drawn.datasets["spots"] == BUILDERS["still_running"](whole, STUDY).datasets["spots"]
    for spot in drawn.datasets["spots"]:
        left, left_of_few = (
            tables["survival"].filter(pl.col("time_s") <= spot["x"], stratum_by="all")["survival"].last()
            for tables in (whole, cut_short)
        )
        assert spot["v"] == pytest.approx(left, rel=1e-5)
        assert spot["label"] == f"{words.share(left)} at {'1 day' if spot['x'] == 86_400 else '1 h'}"
        assert words.share(left) != words.share(left_of_few)
        assert spot["label"] in drawn.alt


def test_steps_of_time_limits_are_named_and_others_are_not(all_tables):
    frame = make_jobs(900).with_columns(pl.col("runtime_s").clip(upper_bound=3_600))
    frame = frame.with_columns(
        outcome=pl.when(pl.col("runtime_s") == 3_600).then(pl.lit("failure")).otherwise("outcome")
    )
    for status, labelled in (("TIMEOUT", ["1\xa0h limit"]), ("FAILED", [])):
        tables = tables_of(frame.with_columns(status_raw=pl.lit(status)))
        drawn = BUILDERS["still_running"](tables, STUDY)
        assert [row["label"] for row in drawn.datasets["limits"]] == labelled


def test_survival_keeps_first_and_last_step_and_at_most_six_strata(all_tables):
    tables = all_tables["ordinary"]
    curve = tables["survival"].filter(pl.col("stratum_by") == "all")
    steps = [row for row in BUILDERS["still_running"](tables, STUDY).datasets["steps"] if "t" in row or row["x"] > 1]
    assert (steps[0]["t"], steps[-1]["t"]) == (curve["time_s"].first(), curve["time_s"].last())
    assert len(steps) <= 400
    by_count = BUILDERS["survival_by_gpu_count"](tables, STUDY)
    assert len({row["s"] for row in by_count.datasets["steps"]}) == 6
    others = tables["survival_summary"].filter(pl.col("stratum_by") == "gpu_count").sort("n", descending=True)[6:]
    assert f"{others.height} strata left out, with {others['n'].sum():,} (" in by_count.caption


def test_mttf_by_stratum_and_lower_bounds(all_tables):
    tables = all_tables["ordinary"]
    mine = tables["mttf"].filter((pl.col("stratum_by") == "gpu_type") & (pl.col("confidence") == 0.95)).sort("mttf_s")
    drawn = sorted(BUILDERS["mttf_by_gpu_type"](tables, STUDY).datasets["strata"], key=lambda row: row["mttf"])
    assert [row["mttf"] for row in drawn] == pytest.approx((mine["mttf_s"] / 3600).to_list(), rel=1e-5)
    without = BUILDERS["mttf_by_gpu_type"](all_tables["no failure"], STUDY)
    assert all("mttf" not in row and row["low95"] > 0 for row in without.datasets["strata"])
    assert "Triangle: no failure" in without.caption


def test_a_synthetic_sample_says_so_in_every_chart(all_tables):
    for name in OF_EACH_KIND:
        drawn = BUILDERS[name](all_tables["ordinary"], Study("task", synthetic=True))
        assert "Synthetic sample: no finding about a real cluster." in drawn.spec()["title"]["subtitle"]
        assert "synthetic" not in drawn.caption, "the page says it once"
        assert "pod" not in drawn.title


# ---- parts ----


def test_many_groups_are_merged_without_losing_a_job():
    n = 5_000
    groups = pl.DataFrame(
        {
            "outcome_set": ["success"] * n,
            "feature": ["cpu_usage"] * n,
            "cutoff_s": pl.Series([None] * n, dtype=pl.Int64),
            "value": [str(i + 1) for i in range(n)],
            "jobs": [1 + i % 7 for i in range(n)],
            "runtime_mean_s": [float(i % 100) for i in range(n)],
            "runtime_median_s": [float(i % 100) for i in range(n)],
        }
    )
    ready = make_points(groups)
    assert ready.merged == ["cpu_usage"]
    assert len(ready.rows) <= 100
    assert sum(row["jobs"] for row in ready.rows) == groups["jobs"].sum()
    total = (groups["jobs"] * groups["runtime_mean_s"]).sum()
    assert sum(row["jobs"] * row["mean_s"] for row in ready.rows) == pytest.approx(total)
    values = [row["value"] for row in ready.rows]
    assert values == sorted(values) and values[0] >= 1 and values[-1] <= n
    few = make_points(groups.head(250))
    assert not few.merged
    assert len(few.rows) == 250


def test_a_chart_by_one_stratum_of_all_lives_is_not_drawn_again(all_tables):
    tables = all_tables["ordinary"]
    one = {
        name: pl.concat([frame.filter(stratum_by="all"), frame.filter(stratum_by="all").with_columns(
            stratum_by=pl.lit("gpu_type"), stratum=pl.lit("A100"))])
        for name, frame in tables.items() if name in ("survival", "survival_summary", "mttf")
    }  # fmt: skip
    for name in ("survival_by_gpu_type", "mttf_by_gpu_type"):
        assert BUILDERS[name](tables | one, STUDY).empty in (
            "all pods have one GPU type",
            "all at risk have one GPU type",
        )
        assert BUILDERS[name](tables, STUDY).empty is None


# ---- files ----


def test_charts_are_written_as_they_are_drawn_and_the_same_again(tmp_path):
    """In processes of their own they have the same bytes too: tests/workflow/test_reruns.py runs the rule."""
    names = ["jobs_and_gpu_time", "factors_of_run_time", "failure_share", "survival_by_gpu_count"]
    specs, svgs = ([tmp_path / f"{name}.{ending}" for name in names] for ending in ("vl.json", "svg"))
    drawn = {name: drawn_of("ordinary", name) for name in names}
    tables = {name: [f"tables/{name}.csv"] for name in names}
    # The first is of the open page.
    main = names[0]
    given = [(name, figure, figure if name == main else None) for name, figure in drawn.items()]
    small = tmp_path / f"{main}.narrow.svg"
    assert save_charts(given, tables, specs, svgs, [small], tmp_path / "index.json") == len(names)
    index = json.loads((tmp_path / "index.json").read_text())
    assert list(index) == names
    for name, file, svg in zip(names, specs, svgs, strict=True):
        figure = drawn[name]
        said = {part: getattr(figure, part) for part in ("title", "subtitle", "caption", "alt", "empty")}
        assert index[name] == said | {"tables": [f"tables/{name}.csv"], "narrow": name == main}
        again = json.loads(json.dumps(BUILDERS[name](tables_of(CASES["ordinary"]), STUDY).spec()))
        assert json.loads(file.read_text()) == again
        assert ET.fromstring(svg.read_text()).tag.endswith("svg")
        assert figure.subtitle.split()[0] in svg.read_text()
    assert inline(small.read_text(), "a", "t", "d") == inline(bare(svgs[0].read_text()), "a", "t", "d")


def test_a_picture_that_cannot_be_drawn_ends_the_job_with_the_reason(tmp_path):
    broken = SimpleNamespace(spec=lambda: {"mark": 1}, title="", subtitle="", caption="", alt="", empty=None)
    files = [[tmp_path / "a.vl.json"], [tmp_path / "a.svg"], [], tmp_path / "index.json"]
    with pytest.raises(RuntimeError, match=r"(?s)a chart cannot be drawn: .*Vega-Lite"):
        save_charts([("a", broken, None)], {"a": []}, *files)


def test_a_chart_is_what_altair_makes_of_the_same_parts():
    """Ours copies less, and names channels itself."""

    def layered(base: alt.Chart) -> dict:
        colour = alt.condition("datum.few", alt.value("red"), alt.value("blue"))
        bars = base.mark_bar().encode(alt.Y("kind:N", title="Kind"), x="low:Q", x2="high:Q", color=colour)
        line = base.mark_rule(strokeDash=[3, 3]).encode(x=alt.datum(1, type="quantitative"), y2=alt.value("height"))
        texts = bars.mark_text().encode(x=alt.value(8), text="said:N", tooltip=["kind:N", alt.Tooltip("low:Q")])
        wide = (bars + line + texts).properties(width=300, title="One").facet(row="kind:N")
        return alt.vconcat(wide, bars.encode(color=alt.value("red")).properties(title="Two")).to_dict()

    assert layered(chart_of("rows")) == layered(alt.Chart(alt.NamedData(name="rows")))

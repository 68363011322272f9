"""The comparison of traces: cells with one basis, the headline, the page and its table."""

import json
import re
from pathlib import Path

import pytest
from memory_tables import one_row as row_of
from ttf.display.brief_model import Brief, Tile
from ttf.display.report_trace import Trace
from ttf.display.trace_numbers import Numbers
from ttf.page.report.citation import Citation
from ttf.page.report.comparison import (
    TABLES,
    Cell,
    bottom_line,
    clustering_sentence,
    comparison_page,
    comparison_rows,
    make_columns,
)
from ttf.page.report.trace_page import Entry, Frame
from ttf.page.report_contracts import COMPARISON

ROOT = Path(__file__).parents[2]
FACTS = {
    "mine": {"format": "openb", "unit": "pod", "gives": "jobs", "synthetic": False},
    "made": {"format": "pai2020", "unit": "task", "gives": "jobs", "synthetic": True},
    "titan": {"format": "titan", "unit": "GPU", "gives": "durations", "synthetic": False},
}
HOSTILE = (
    "</script><img src=x onerror=alert(1)> {{< include /etc/passwd >}} [a](javascript:b) | ``` \n\n::: $x$ @fig-none"
)
CITED = Citation("Somebody. Something.", "@misc{a}")


def number_of(value, unit="share", n=None) -> dict:
    return {"value": value, "unit": unit, "n": n, "source": "tables/a.csv"}


def trace_of(folder: Path, name: str, entry: dict, basis: str = "event", title: str | None = None, **state) -> Trace:
    """A trace with the numbers and the brief of its page. `state`: tile -> state, or key -> value or None."""
    share, rate, ettr = (
        "outcomes.failure_share",
        "sizes.rate.failures_per_1000_node_days",
        "ettr.estimate.wall_clock_ettr",
    )
    per_node = "failures per 1000 node days"
    numbers = {
        share: number_of(0.318, n=40_226),
        f"{share}_low_clustered": number_of(0.3),
        f"{share}_high_clustered": number_of(0.33),
        "outcomes.cluster_by": number_of("user and week", "label"),
        rate: number_of(9.28, per_node),
        "sizes.rate.ci_low_clustered": number_of(7.64, per_node),
        "sizes.rate.ci_high_clustered": number_of(11.2, per_node),
        "sizes.rate.cluster_by": number_of("user and week", "label"),
        "sizes.rate.above_gpus": number_of(0, "GPUs"),
        "sizes.basis": number_of(basis, "label"),
        ettr: number_of(0.0763),
        "ettr.by": number_of("estimate", "label"),
        "ettr.assumed.size_of_the_run": number_of(1_024, "GPUs"),
        "ettr.assumed.work_of_the_run": number_of(604_800, "s"),
        "data.jobs": number_of(53_806, "jobs"),
        "states.gpu.gpus_max": number_of(48, "GPUs"),
        "lifetimes.shape": number_of(0.463, "1"),
        "mttf.mttf_s": number_of(36_000.0, "s", n=400),
        "mttf.events": number_of(100, "failures"),
        "mttf.ci_low_clustered_s": number_of(30_000.0, "s"),
        "mttf.ci_high_clustered_s": number_of(40_000.0, "s"),
        "mttf.cluster_by": number_of("user and week", "label"),
        "workload.queue.all.median_s": number_of(60.0, "s", n=400),
        "outages.outages": number_of(40, "outages"),
        "outages.unit": number_of("node", "label"),
        "outages.between.mtbf_s": number_of(864_000.0, "s", n=40),
        "outages.between.ci_low_clustered_s": number_of(800_000.0, "s"),
        "outages.between.ci_high_clustered_s": number_of(900_000.0, "s"),
        "outages.up.availability": number_of(0.99, n=40),
        "outages.up.ci_low_clustered": number_of(0.98),
        "outages.up.ci_high_clustered": number_of(0.995),
    }
    numbers |= {key: numbers.get(key, {}) | {"value": value} for key, value in state.items() if "." in key}
    numbers = {key: {"unit": "label", "n": None} | cell for key, cell in numbers.items() if cell["value"] is not None}
    m = Numbers(numbers)
    tiles = [
        Tile(tile_name, tile_name, state.get(tile_name, "shown"), m.tag(key, m.words(key)))
        if state.get(tile_name) != "withheld"
        else Tile(tile_name, tile_name, "withheld", "Cannot be estimated", means=f"No {tile_name}: {HOSTILE}.")
        for tile_name, key in (("failure_rate", share), ("node_rate", rate), ("ettr", ettr))
        if key in m
    ]
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "metrics.json").write_text(json.dumps(numbers))
    brief = Brief("", (), "A", (), ("One.", "Two."), tuple(tiles), period="1 March to 7 June 2025")
    (folder / name / "brief.json").write_text(brief.text())
    return Trace(name, entry | ({"title": title} if title else {}) | {"parts": 0}, folder / name, {})


def cells_of(*traces: Trace) -> dict[str, list[Cell]]:
    return {quantity.plural: cells for quantity, cells in make_columns(traces)}


def lines_of(*traces: Trace) -> tuple[str, str]:
    return bottom_line(make_columns(traces), [trace.name for trace in traces])


def page_of(traces: list[Trace]) -> str:
    frame = Frame(f"Comparison of {len(traces)} traces", False, "1", CITED, [Entry("Comparison", "index.html")])
    hrefs = {trace.name: f"{trace.name}.html" for trace in traces}
    return comparison_page(ROOT / "report", traces, hrefs, frame)


RATES, AVAILABILITIES, SHAPES = "infrastructure failure rates", "availabilities", "Weibull shapes"
FAILURES, MEANS = "job failure rates", "mean times to failure"


def test_a_row_equals_the_page_of_its_trace(tmp_path):
    cells = {name: column[0] for name, column in cells_of(trace_of(tmp_path, "mine", FACTS["mine"])).items()}
    failed, rate, mean = cells[FAILURES], cells[RATES], cells[MEANS]
    assert (failed.value, failed.note, failed.bounds) == ("31.8%", "30.0–33.0%", (0.3, 0.33))
    assert (rate.value, rate.note, rate.scope) == ("9.28", "7.64–11.2", "jobs of all sizes, by health events")
    assert (mean.value, mean.note.replace("\xa0", " ")) == ("10\xa0h", "8.33–11.1 h")
    assert (cells["ETTRs"].value, cells["ETTRs"].scope) == ("7.6%", "1,024 GPUs, 7 days, wall-clock time")
    assert (cells[AVAILABILITIES].value, cells[AVAILABILITIES].note) == ("99.0%", "98.0–99.50%")
    assert cells["times between outages"].value == "10\xa0days"
    assert (cells["median waits"].value, cells[SHAPES].value) == ("1\xa0min", "0.463")


def test_an_interval_without_clusters_is_starred(tmp_path):
    low, high = "outcomes.failure_share_low", "outcomes.failure_share_high"
    exact = {low: 0.3, high: 0.33, f"{low}_clustered": None, f"{high}_clustered": None}
    trace = trace_of(tmp_path, "mine", FACTS["mine"], **exact)
    trace.metrics.update({low: number_of(0.3), high: number_of(0.33)})
    (cell,) = cells_of(trace)[FAILURES]
    assert (cell.note, cell.cluster_by) == ("30.0–33.0%*", "")


def test_shapes_are_those_of_the_page_and_of_one_definition(tmp_path):
    """The overall shape differs: durations of unequal users look as if their hazard fell."""
    traces = [trace_of(tmp_path, name, FACTS["mine"]) for name in ("a", "b", "c")]
    shapes = {"shape_within": 0.63, "shape_within_ci_low_clustered": 0.54, "shape_within_ci_high_clustered": 0.74}
    for trace in traces[:2]:
        trace.metrics.update({f"lifetimes.{name}": number_of(value, "1") for name, value in shapes.items()})
        trace.metrics["lifetimes.group_by"] = number_of("node", "label")
    first, _, other = cells_of(*traces)[SHAPES]
    assert (first.value, first.note, first.scope) == ("0.630", "0.540–0.740", "within a node")
    assert (other.value, other.placeholder) == ("", "not comparable")
    assert other.reason == "jobs, over all; here: jobs, within a node"


def test_what_is_withheld_is_not_estimated(tmp_path):
    withheld = trace_of(tmp_path, "mine", FACTS["mine"], ettr="withheld", node_rate="withheld")
    cells = cells_of(withheld)
    assert (cells["ETTRs"][0].value, cells[RATES][0].value) == ("", "")
    assert cells["ETTRs"][0].reason.startswith("No ettr")
    (proxy,) = cells_of(trace_of(tmp_path, "made", FACTS["made"], basis="proxy"))[RATES]
    assert (proxy.value, proxy.placeholder) == ("", "causes not recorded")
    no_ends = {
        "without_end.share": 0.9,
        "mttf.range.low_s": 60.0,
        "mttf.range.high_s": 3_600.0,
        "mttf.range.why": "few",
    }
    cells = cells_of(trace_of(tmp_path, "blank", FACTS["mine"], **no_ends))
    assert (cells[SHAPES][0].value, cells[SHAPES][0].reason) == ("", "too few failures have a recorded end")
    assert (cells[MEANS][0].note, cells[MEANS][0].exact) == ("range", None)


@pytest.mark.parametrize(
    ("changed", "column", "reason"),
    [
        ({"sizes.basis": "state"}, RATES, "jobs of all sizes, by states; here: jobs of all sizes, by health events"),
        ({"sizes.rate.above_gpus": 128}, RATES, "jobs > 128 GPUs, by health events; here: jobs of all sizes, by h"),
        ({"outages.planned.outages": 3}, AVAILABILITIES, "nodes, planned outages included; here: nodes, planned outag"),
        ({"ettr.assumed.size_of_the_run": 64}, "ETTRs", "64 GPUs, 7 days, wall-clock time, model; here: 1,024"),
    ],
)
def test_another_basis_is_blank_with_its_reason(changed, column, reason, tmp_path):
    traces = [trace_of(tmp_path, name, FACTS["mine"]) for name in ("a", "b")]
    cells = cells_of(*traces, trace_of(tmp_path, "c", FACTS["mine"], **changed))[column]
    assert [bool(cell.value) for cell in cells] == [True, True, False]
    assert cells[2].placeholder == "not comparable"
    assert cells[2].reason.startswith(reason)


def test_components_and_jobs_have_no_common_basis(tmp_path):
    job, gpu = (trace_of(tmp_path, name, FACTS[name], "component") for name in ("mine", "titan"))
    cells = cells_of(job, gpu)
    assert cells[FAILURES][1] == cells["ETTRs"][1] == Cell()
    assert cells[MEANS][1].reason == "GPUs in service; here: jobs"
    assert cells[SHAPES][1].reason == "GPUs, over all; here: jobs, over all"


def test_the_headline_names_what_differs_and_by_how_much(tmp_path):
    share = {"outcomes.failure_share": 0.159} | {
        f"outcomes.failure_share_{side}_clustered": value for side, value in (("low", 0.14), ("high", 0.17))
    }
    traces = [trace_of(tmp_path, "one", FACTS["mine"]), trace_of(tmp_path, "two", FACTS["made"], "proxy", **share)]
    first, second = lines_of(*traces)
    assert first == "Job failure rates differ by a factor of 2.0 (31.8% in one, 15.9% in two)."
    assert second == (
        "No two traces have a common basis for infrastructure failure rates and shares of failed GPU time."
    )
    assert len(f"{first} {second}".split()) <= 45


def test_overlapping_or_unclustered_intervals_are_no_difference(tmp_path):
    first, _ = lines_of(*(trace_of(tmp_path, name, FACTS["mine"]) for name in ("one", "two")))
    assert first.startswith("No measurable difference in infrastructure failure rates, times between outages, ")
    far = {"outcomes.failure_share": 0.9, "outcomes.failure_share_low_clustered": None}
    far |= {"outcomes.failure_share_high_clustered": None}
    first, _ = lines_of(trace_of(tmp_path, "one", FACTS["mine"]), trace_of(tmp_path, "far", FACTS["mine"], **far))
    assert "differ by" not in first


def test_ratios_and_mean_times_of_a_trace_share_their_clusters(tmp_path):
    traces = [trace_of(tmp_path, name, FACTS["mine"]) for name in ("one", "two")]
    assert clustering_sentence(make_columns(traces), ["one", "two"]) == (
        "The intervals of failure rates and MTTF are clustered by user and week (one, two)."
    )


def test_the_page_has_a_row_per_trace(tmp_path):
    text = page_of([trace_of(tmp_path, name, entry) for name, entry in FACTS.items()])
    assert [text.count(f'<a href="{name}.html"><bdi>{name}</bdi></a>') for name in FACTS] == [len(TABLES)] * 3
    assert "<h1>Comparison of 3 traces</h1>" in text
    assert re.findall(r'<table class="compared" data-name="([^"]+)"', text) == ["comparison-nodes", "comparison-jobs"]
    assert "None" not in text


def test_the_table_has_every_cell_of_the_page_or_its_reason(tmp_path):
    changed = {"sizes.rate.above_gpus": 128, "mttf.range.low_s": 60.0, "mttf.range.high_s": 3_600.0}
    traces = [
        trace_of(tmp_path, "mine", FACTS["mine"]),
        trace_of(tmp_path, "made", FACTS["made"], ettr="withheld"),
        trace_of(tmp_path, "other", FACTS["mine"], **changed | {"mttf.range.why": "few ends"}),
        trace_of(tmp_path, "titan", FACTS["titan"]),
    ]
    table = COMPARISON.frame(comparison_rows(traces))
    COMPARISON.check(table)
    cells = {
        (quantity.title, trace.name): cell
        for quantity, column in make_columns(traces)
        for cell, trace in zip(column, traces, strict=True)
    }
    assert {(row["quantity"], row["trace"]): row["value"] for row in table.to_dicts()} == {
        key: cell.exact for key, cell in cells.items()
    }
    assert table.filter(table["value"].is_null() == table["reason"].is_null()).is_empty()
    failed = row_of(table, quantity="Failure rate of ended jobs", trace="mine")
    names = ("number", "unit", "n", "low", "high", "cluster_by")
    assert [failed[name] for name in names] == ["outcomes.failure_share", "share", 40_226, 0.3, 0.33, "user and week"]

    def reason(quantity: str, trace: str) -> str:
        return row_of(table, quantity=quantity, trace=trace)["reason"]

    assert reason("ETTR", "made").startswith("No ettr")
    assert "here: jobs of all sizes" in reason("Infrastructure failures per 1,000 node-days", "other")
    assert reason("MTTF", "other") == "0.0167–1 h, range, few ends"
    assert reason("ETTR", "titan") == "the trace has no jobs"


def test_markup_in_registry_text_is_escaped(tmp_path):
    traces = [trace_of(tmp_path, name, entry, title=HOSTILE, ettr="withheld") for name, entry in FACTS.items()]
    text = page_of(traces)
    assert "<img" not in text
    assert "</script><" not in text.replace("</script>\n<script", "")

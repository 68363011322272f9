"""The comparison of traces: cells of their own tables, charts for every kind of study, and the page."""

import json
import re
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import polars as pl
import pytest
import vl_convert
from given_tables import compute_metrics
from given_tables import one_row as row_of
from ttf.analyses.comparison.compare_traces import ANALYSIS, READ
from ttf.analyses.comparison.compare_traces.charts import CHARTS
from ttf.analyses.comparison.compare_traces.compute import Subject, compare_trace, compute
from ttf.analyses.comparison.compare_traces.trace_labels import LABEL_LENGTH, trace_labels
from ttf.analyses.outcomes.split_outcomes.compute import compute as split_outcomes
from ttf.analyses.queue.describe_workload.workload import percentiles
from ttf.display.brief_model import Brief, Tile
from ttf.display.charts.figure import Study
from ttf.display.charts.saving import save_charts
from ttf.display.charts.theme import WIDE
from ttf.display.report_trace import Trace
from ttf.display.trace_numbers import Numbers
from ttf.engine.size_unit import NODE
from ttf.engine.storage.tables import write_product
from ttf.page.report.citation import Citation
from ttf.page.report.comparison import (
    TABLES,
    WIDTH,
    Cell,
    bottom_line,
    comparison_page,
    draw_dot,
    make_cells,
)
from ttf.page.report.trace_page import Entry, Frame, environment
from ttf.records.durations import durations_of_jobs
from ttf.records.inputs import Inputs
from ttf.records.jobs import JOB_COLUMNS, OUTCOMES, conform
from ttf.records.record_contracts import NODES
from ttf.stats.durations.missing_ends import failures_without_end
from ttf.stats.durations.mttf import mean_time_to_failure

ROOT = Path(__file__).parents[2]
EVERY_OUTCOME = frozenset(OUTCOMES)

# (outcome, milli-GPU per instance, size, start, run time, queueing delay). The trace ends at 1,000 s.
HAND_JOBS = [
    ("success", 1_000, 1, 0, 100, 0),
    ("failure", 500, 1, 0, 10, 5),  # a share of a GPU counts as 1
    ("failure", 1_000, 3, 0, 20, 7),
    ("running", 8_000, 1, 900, None, 1),
    ("waiting", 1_000, 1, None, None, None),
    ("success", 0, 1, 0, 999, 400),  # requested no GPU
    ("failure", None, 1, 0, 888, 300),  # blank request
    ("failure", 1_000, None, 0, 50, None),  # requested an unknown number of GPUs
    ("failure", 4_000, 4, 0, None, None),  # 16 GPUs, blank end
]


def jobs_of(rows: list[tuple]) -> pl.DataFrame:
    names = ["outcome", "gpu_milli", "size", "start_s", "runtime_s", "queue_s"]
    schema = {name: pl.String if name == "outcome" else pl.Int64 for name in names}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_row_index("job_id")
    return conform(frame.with_columns(trace_end_s=pl.lit(1_000, dtype=pl.Int64)), JOB_COLUMNS)


def components(n: int, failures: int, seconds: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "duration_s": [seconds] * n,
            "duration_max_s": [seconds] * n,
            "event": ["failure"] * failures + [None] * (n - failures),
            "gpu_count": [None] * n,
            "gpu_milli": [None] * n,
            "nodes": [1] * n,
        },
        schema={"duration_s": pl.Int64, "duration_max_s": pl.Int64, "event": pl.String}
        | dict.fromkeys(("gpu_count", "gpu_milli", "nodes"), pl.Int64),
    )


def trace_tables(subject: Subject, frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The tables of a trace that the comparison reads, by the analyses of the trace. frame: jobs, or durations."""
    has_jobs = subject.gives == "jobs"
    durations, strata = (durations_of_jobs(frame) if has_jobs else frame), ["all", *["gpu_count"] * has_jobs]
    tables = {
        "mttf": mean_time_to_failure(durations, "failure", strata),
        "failures_without_end": failures_without_end(durations, "failure", strata),
    }
    if not has_jobs:
        return tables
    with tempfile.TemporaryDirectory() as folder:
        files = {name: f"{folder}/{name}.parquet" for name in ("jobs", "nodes")}
        frame.write_parquet(files["jobs"])
        pl.DataFrame(schema=NODES.schema).write_parquet(files["nodes"])
        outcomes = split_outcomes(Inputs(files, {}, {"words": {}}, product=f"{folder}/product"))
        names = {table.name for table in READ}
        return tables | {"percentiles": percentiles(frame)} | {name: outcomes[name] for name in names & outcomes.keys()}


def study(*traces: tuple[Subject, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of some traces. Each frame holds jobs or component durations, as `subject.gives` says."""
    frames: dict[str, list] = {table.name: [table.frame([])] for table in ANALYSIS.tables}
    for subject, frame in traces:
        for name, rows in compare_trace(subject, trace_tables(subject, frame)).items():
            frames[name].append(rows)
    tables = {name: pl.concat(parts) for name, parts in frames.items()}
    for table in ANALYSIS.tables:
        table.check(tables[table.name])
    return tables


# ---- tables ----

SUBJECT = Subject("mine", "pod", outcomes=EVERY_OUTCOME)


def test_every_cell_is_a_cell_of_the_trace():
    tables = trace_tables(SUBJECT, jobs_of(HAND_JOBS))
    compared = compare_trace(SUBJECT, tables)
    outcomes, shares = tables["outcomes"], tables["outcomes_by_gpus"]
    for name in ("jobs", "jobs_share", "gpu_hours", "gpu_hours_share", "n"):
        expected = row_of(outcomes, outcome="failure")[name]
        assert row_of(compared["compared_outcomes"], outcome="failure")[name] == expected, name
    ended = tables["ended_jobs"].row(0, named=True)
    overall = row_of(compared["compared_failure_share"], gpus_high=None)
    single = row_of(compared["compared_failure_share"], gpus_high=1)
    assert (overall["failure_share"], overall["ci_low"]) == (ended["failure_share"], ended["failure_share_low"])
    assert single["failure_share"] == row_of(shares, gpus_high=1)["failure_share"]
    mttf = row_of(compared["compared_mttf"], gpus_high=None, confidence=0.95)
    mean = row_of(tables["mttf"], stratum_by="all", confidence=0.95)
    assert {name: mttf[name] for name in mean if name in mttf} == {name: mean[name] for name in mean if name in mttf}
    assert mttf["without_end"] == 1


def test_only_sizes_of_a_node_and_its_powers_have_rows():
    jobs = jobs_of([("failure", 1_000, gpus, 0, 60, 0) for gpus in (1, 2, 8, 9, 64, 100)])
    tables = study((Subject("t", outcomes=EVERY_OUTCOME), jobs))
    assert tables["compared_failure_share"]["gpus_high"].to_list() == [None, 1, 8, 64]
    assert tables["compared_mttf"].filter(confidence=0.95)["gpus_high"].to_list() == [None, 1, 8, 64]
    assert tables["compared_queueing"]["gpus"].to_list() == ["all", "1", "2-4", "5-8", ">8"]


def test_an_outcome_that_the_format_lacks_is_blank():
    subject = Subject("pai", "task", outcomes=frozenset({"success", "failure", "running"}))
    tables = study((subject, jobs_of(HAND_JOBS)))
    for name in ("compared_outcomes", "compared_run_times"):
        assert row_of(tables[name], outcome="cancelled")["reason"] == "the format has no outcome cancelled"
    assert row_of(tables["compared_outcomes"], outcome="waiting")["jobs"] == 1, "what is there is counted"
    closed = study((Subject("t", outcomes=EVERY_OUTCOME), jobs_of(HAND_JOBS)))["compared_outcomes"]
    assert row_of(closed, outcome="unknown")["reason"] == "no job of this outcome"


def test_sizes_in_other_units_are_not_compared():
    tables = compare_trace(SUBJECT, trace_tables(SUBJECT, jobs_of(HAND_JOBS)), NODE)
    outcome = row_of(tables["compared_outcomes"], outcome="failure")
    assert (outcome["jobs"], outcome["gpu_hours"], outcome["reason"]) == (5, None, "the trace has sizes in nodes")
    assert tables["compared_failure_share"]["gpus_high"].to_list() == [None]
    assert tables["compared_queueing"]["gpus"].to_list() == ["all"]
    assert tables["compared_mttf"]["failures_per_1000_gpu_days"].null_count() == 2


def test_components_appear_only_in_the_mean_time_to_failure():
    tables = study((Subject("titan", "GPU", "durations"), components(10, 4, 1_000)))
    assert {name: table.height for name, table in tables.items() if table.height} == {
        "compared_traces": 1,
        "compared_mttf": 2,
    }
    row = row_of(tables["compared_mttf"], confidence=0.95)
    assert [row[name] for name in ("unit", "gpus_high", "n", "events", "mttf_s")] == ["GPU", None, 10, 4, 2_500]


# ---- labels and numbers ----


def test_labels_are_short_and_different():
    long = ["a" * 60 + "1", "a" * 60 + "21", "a" * 30 + "b" + "a" * 29 + "1"]
    label_by_trace = trace_labels([("sample", True), *((name, False) for name in long), ("sample", True)])
    assert label_by_trace["sample"] == "sample (synthetic)"
    assert len(set(label_by_trace.values())) == 4
    assert all(len(label) <= LABEL_LENGTH + len(" (synthetic)") for label in label_by_trace.values())


def repeat_jobs(outcome_seconds: dict[str, int], n: int = 40) -> pl.DataFrame:
    return jobs_of([(outcome, 1_000, 1, 0, s, s // 10) for outcome, s in outcome_seconds.items() for _ in range(n)])


def test_numbers_of_each_trace():
    traces = [
        (Subject("a", outcomes=EVERY_OUTCOME), repeat_jobs({"failure": 100, "success": 300})),
        (Subject("made", synthetic=True, outcomes=EVERY_OUTCOME), repeat_jobs({"failure": 1, "success": 2})),
        (Subject("gpus", "GPU", "durations"), components(100, 50, 10)),
    ]
    metrics = compute_metrics("compare_traces", study(*traces))
    value = {key: entry["value"] for key, entry in metrics.items()}
    assert value["of.a.gpu_jobs"] == value["of.a.jobs"] == 80
    assert value["of.a.failure_share"] == 0.5
    assert value["of.a.queue_median_s"] == 20
    assert value["of.made.failure.runtime_median_s"] == 1
    assert value["of.gpus.mttf_s"] == 20
    assert json.dumps(metrics, allow_nan=False)


# ---- charts ----

NINE = [
    (Subject(f"t{i}" + "-long" * (4 * i), outcomes=EVERY_OUTCOME), repeat_jobs({"failure": 9 + i, "success": 5}))
    for i in range(9)
]
STUDIES = {
    "two": [
        (Subject("a", "pod", outcomes=EVERY_OUTCOME), jobs_of(HAND_JOBS)),
        (Subject("b", synthetic=True), jobs_of(HAND_JOBS)),
    ],
    "job and component": [
        (Subject("a", outcomes=EVERY_OUTCOME), repeat_jobs({"failure": 100, "success": 300, "cancelled": 5})),
        (Subject("titan", "GPU", "durations"), components(1_000, 40, 10**8)),
    ],
    "components": [
        (Subject("titan", "GPU", "durations"), components(1_000, 40, 10**8)),
        (Subject("lanl", "node", "durations"), components(10, 0, 10**6)),
    ],
    "no failure": [(Subject(n, outcomes=EVERY_OUTCOME), repeat_jobs({"success": 300, "running": 0})) for n in "ab"],
    "only waiting": [(Subject(n), jobs_of([("waiting", 1_000, 1, None, None, None)])) for n in "ab"],
    "nine": NINE,
    "hostile unit": [
        (Subject("a", "</script><b>\x00\u202e" * 20), jobs_of(HAND_JOBS)),
        (Subject("z", "</script><b>\x00\u202e" * 20, "durations"), components(9, 3, 99)),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def studies() -> dict[str, dict[str, pl.DataFrame]]:
    return {name: study(*traces) for name, traces in STUDIES.items()}


@pytest.mark.parametrize("case", STUDIES)
def test_every_chart_of_every_study_can_be_drawn(case, studies):
    for name, build in CHARTS.items():
        figure = build(studies[case], Study())
        text = json.dumps(figure.spec(validate=case == "two"))
        assert not [sign for sign in ("NaN", "\\u0000", "\\u202e") if sign in text], name
        if case in ("two", "no failure", "hostile unit"):
            svg = vl_convert.vegalite_to_svg(text, allowed_base_urls=[])
            assert float(ET.fromstring(svg).get("width")) <= WIDE, name
            assert not [sign for sign in ("undefined", "<script") if sign in svg], name
        assert (figure.empty is None) == ("nothing to draw" not in figure.title), name


def test_empty_charts(studies):
    def empty(case: str) -> set[str]:
        return {name for name, build in CHARTS.items() if build(studies[case], Study()).empty}

    assert empty("two") == set()
    assert empty("components") == set(CHARTS) - {"mttf"}
    assert empty("only waiting") == set(CHARTS)


def test_every_chart_labels_synthetic_traces(studies):
    for name, build in CHARTS.items():
        labels = {row["trace"] for rows in build(studies["two"], Study()).datasets.values() for row in rows}
        assert labels == {"a", "b (synthetic)"}, name


def test_at_most_eight_traces_are_drawn(studies):
    for name, build in CHARTS.items():
        figure = build(studies["nine"], Study())
        assert len({row["trace"] for rows in figure.datasets.values() for row in rows}) == 8, name


def test_a_chart_names_outcomes_that_a_format_lacks(studies):
    outcomes = frozenset({"success", "failure"})
    tables = study(*((Subject(name, outcomes=outcomes), jobs_of(HAND_JOBS)) for name in "ab"))
    assert "a and b: the format has no outcome cancelled." in CHARTS["run_times"](tables, Study()).caption


# ---- rule and section ----

FACTS = {
    "mine": {"format": "openb", "unit": "pod", "gives": "jobs", "synthetic": False},
    "made": {"format": "pai2020", "unit": "task", "gives": "jobs", "synthetic": True},
    "titan": {"format": "titan", "unit": "GPU", "gives": "durations", "synthetic": False},
}
OUTCOMES_OF = {"mine": ["success", "failure", "running"], "made": ["success", "failure", "running", "waiting"]}
CONTRACTS = {table.name: table for table in ANALYSIS.tables}


def run_analysis(frames: dict[str, pl.DataFrame], target: Path, facts: dict) -> None:
    """Run the analysis on jobs or durations by trace."""
    (target / "figures").mkdir(parents=True)
    subjects = {
        name: {key: entry[key] for key in ("unit", "gives", "synthetic")} | {"outcomes": OUTCOMES_OF.get(name)}
        for name, entry in facts.items()
    }
    files: dict[str, list[str]] = {source.name: [] for source in READ}
    traces: dict[str, list[str]] = {source.name: [] for source in READ}
    for name, options in subjects.items():
        made = trace_tables(Subject(name, **options), frames[name])
        for source in READ:
            if source.name in made:
                path = target / "traces" / name / source.path
                path.parent.mkdir(parents=True, exist_ok=True)
                write_product(made[source.name], source, path)
                files[source.name].append(str(path))
                traces[source.name].append(name)
    tables = {name: str(target / table.path) for name, table in CONTRACTS.items()}
    for name, table in compute(Inputs(files, {}, {"about": subjects, "traces_by_table": traces})).items():
        write_product(table, CONTRACTS[name], tables[name])
    inputs = Inputs(tables, CONTRACTS, {})
    (target / "metrics.json").write_text(json.dumps(compute_metrics("compare_traces", inputs)))
    figures = {name: build(inputs, Study()) for name, build in CHARTS.items()}
    specs, svgs = ([str(target / f"figures/{name}.{ending}") for name in CHARTS] for ending in ("vl.json", "svg"))
    charts = ((name, chart, None) for name, chart in figures.items())
    save_charts(charts, dict.fromkeys(CHARTS, ()), specs, svgs, [], str(target / "figures/index.json"))


FRAMES = {"mine": jobs_of(HAND_JOBS), "made": jobs_of(HAND_JOBS), "titan": components(10, 4, 1_000)}


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Path:
    """The folder with the comparison of a real trace, a synthetic trace and components."""
    folder = tmp_path_factory.mktemp("compare")
    run_analysis(FRAMES, folder / "out", FACTS)
    return folder


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
        Tile(tile_name, tile_name, state.get(tile_name, "shown"), m.keyed(key, m.words(key)))
        if state.get(tile_name) != "withheld"
        else Tile(tile_name, tile_name, "withheld", "Cannot be estimated", means=f"No {tile_name}: {HOSTILE}.")
        for tile_name, key in (("failure_rate", share), ("node_rate", rate), ("ettr", ettr))
        if m.has(key)
    ]
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "metrics.json").write_text(json.dumps(numbers))
    brief = Brief("", (), "A", (), ("One.", "Two."), tuple(tiles), period="1 March to 7 June 2025")
    (folder / name / "brief.json").write_text(brief.text())
    return Trace(name, entry | ({"title": title} if title else {}) | {"parts": 0}, folder / name, {})


def cells_of(*traces: Trace) -> dict[str, list[Cell]]:
    return {quantity.plural: make_cells(quantity, traces) for _, _, quantities in TABLES for quantity in quantities}


def lines_of(*traces: Trace) -> tuple[str, str]:
    columns = [(quantity, make_cells(quantity, traces)) for _, _, quantities in TABLES for quantity in quantities]
    return bottom_line(columns, [trace.name for trace in traces])


def page_of(traces: list[Trace], folder: Path) -> str:
    jinja = environment(ROOT / "report", [ROOT / "scripts/ttf/analyses/comparison"])
    compared = Trace("comparison", {}, folder, CONTRACTS)
    frame = Frame(f"Comparison of {len(traces)} traces", False, "1", CITED, [Entry("Comparison", "index.html")])
    hrefs = {trace.name: f"{trace.name}.html" for trace in traces}
    return comparison_page(jinja, ROOT / "report", traces, hrefs, compared, frame)


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
    assert (cells[MEANS][0].note, cells[MEANS][0].scope, cells[MEANS][0].exact) == ("range", "few", None)
    (no_outages,) = cells_of(trace_of(tmp_path, "none", FACTS["mine"], **{"outages.outages": None}))[AVAILABILITIES]
    assert no_outages.reason == "no outages are recorded"


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


def test_the_headline_names_what_differs_and_by_how_much(tmp_path):
    share = {"outcomes.failure_share": 0.159} | {
        f"outcomes.failure_share_{side}_clustered": value for side, value in (("low", 0.14), ("high", 0.17))
    }
    traces = [trace_of(tmp_path, "one", FACTS["mine"]), trace_of(tmp_path, "two", FACTS["made"], "proxy", **share)]
    first, second = lines_of(*traces)
    assert first == "Job failure rates differ by a factor of 2.0 (31.8% in one, 15.9% in two)."
    assert second.startswith("No two traces have a common basis for infrastructure failure rates")


def test_overlapping_or_unclustered_intervals_are_no_difference(tmp_path):
    first, _ = lines_of(*(trace_of(tmp_path, name, FACTS["mine"]) for name in ("one", "two")))
    assert first.startswith("No measurable difference in infrastructure failure rates, times between outages, ")
    far = {"outcomes.failure_share": 0.9, "outcomes.failure_share_low_clustered": None}
    far |= {"outcomes.failure_share_high_clustered": None}
    first, _ = lines_of(trace_of(tmp_path, "one", FACTS["mine"]), trace_of(tmp_path, "far", FACTS["mine"], **far))
    assert "differ by" not in first


def test_dots_are_placed_by_value():
    cell = Cell("1", exact=0.5, bounds=(0.25, 1.0))
    middle = ET.fromstring(draw_dot(cell, 0, 1, "#7b3fb0")).find("circle").get("cx")
    assert float(middle) == WIDTH / 2
    ten = ET.fromstring(draw_dot(Cell("10", exact=10.0), 1, 100, "#7b3fb0", log=True)).find("circle").get("cx")
    assert float(ten) == WIDTH / 2
    assert draw_dot(Cell(reason="none"), 0, 1, "#7b3fb0") == ""


def test_the_page_has_a_row_per_trace_and_folded_details(compared, tmp_path):
    traces = [trace_of(tmp_path, name, entry) for name, entry in FACTS.items()]
    text = page_of(traces, compared / "out")
    assert [f'<a href="{name}.html"><bdi>{name}</bdi></a>' in text for name in FACTS] == [True] * 3
    opened, folded = text.split('<details class="details" id="compared">')
    assert "<h1>Comparison of 3 traces</h1>" in opened
    assert re.findall(r'<table class="compared" data-name="([^"]+)"', opened) == ["comparison-nodes", "comparison-jobs"]
    for name in ("run-times", "failure-share", "mttf"):
        assert f'id="chart-{name}"' in folded
    for name in ("traces", "outcomes", "run_times", "queueing", "failure_share", "mttf"):
        assert f'<table data-name="{name}"' in folded
    assert "the format has no outcome cancelled" in folded.replace("&#32;", " ")
    assert "data-key" not in text, "the pages of the traces have the keys"
    assert "None" not in text


def test_markup_in_registry_text_is_escaped(compared, tmp_path):
    traces = [trace_of(tmp_path, name, entry, title=HOSTILE, ettr="withheld") for name, entry in FACTS.items()]
    text = page_of(traces, compared / "out")
    assert "<img" not in text
    assert "</script><" not in text.replace("</script>\n<script", "")

"""The comparison of traces: tables worked out by hand, charts for every kind of study, the rule and its section."""

import json
import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
import vl_convert
from given_tables import compute_metrics
from given_tables import one_row as row_of
from scipy.stats import chi2
from ttf.analyses.comparison.compare_traces import ANALYSIS, MTTF
from ttf.analyses.comparison.compare_traces import OUTCOMES as COMPARED_OUTCOMES
from ttf.analyses.comparison.compare_traces.charts import CHARTS
from ttf.analyses.comparison.compare_traces.compute import (
    DURATIONS_READ,
    JOBS_READ,
    QUANTILES,
    Subject,
    compare_trace,
    compute,
    count_jobs,
    explain_no_gpu_jobs,
)
from ttf.analyses.comparison.compare_traces.trace_labels import LABEL_LENGTH, list_reasons, trace_labels
from ttf.display.brief_model import Brief, Tile
from ttf.display.charts.figure import Study
from ttf.display.charts.saving import save_charts
from ttf.display.charts.theme import WIDE
from ttf.display.report_trace import Trace
from ttf.display.trace_numbers import Numbers
from ttf.engine.storage.tables import read_table, write_product
from ttf.page.report.citation import Citation
from ttf.page.report.comparison import WIDTH, Cell, bottom_line, comparison_page, draw_dot, rate_axis
from ttf.page.report.comparison import make_row as row_in_page
from ttf.page.report.trace_page import Entry, Frame, environment
from ttf.records.durations import durations_of_jobs
from ttf.records.inputs import Inputs
from ttf.records.jobs import JOB_COLUMNS, OUTCOMES, conform
from ttf.stats.shares import wilson_interval

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
            "event": ["failure"] * failures + [None] * (n - failures),
            "gpu_count": [None] * n,
            "gpu_milli": [None] * n,
            "nodes": [1] * n,
        },
        schema={"duration_s": pl.Int64, "event": pl.String}
        | dict.fromkeys(("gpu_count", "gpu_milli", "nodes"), pl.Int64),
    )


def study(*traces: tuple[Subject, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of some traces. Each frame holds jobs or component durations, as `subject.gives` says."""
    rows: dict[str, list] = {table.name: [] for table in ANALYSIS.tables}
    for subject, frame in traces:
        has_jobs = subject.gives == "jobs"
        jobs, durations = (frame.select(JOBS_READ), durations_of_jobs(frame)) if has_jobs else (None, frame)
        for name, records in compare_trace(subject, jobs, durations.select(DURATIONS_READ)).items():
            rows[name] += records
    tables = {table.name: table.frame(rows[table.name]) for table in ANALYSIS.tables}
    for table in ANALYSIS.tables:
        table.check(tables[table.name])
    return tables


@pytest.fixture(scope="module")
def hand_tables() -> dict[str, pl.DataFrame]:
    return study((Subject("mine", "pod", outcomes=EVERY_OUTCOME), jobs_of(HAND_JOBS)))


# ---- tables ----


def test_outcomes_of_gpu_jobs(hand_tables):
    table = hand_tables["compared_outcomes"]
    assert table.select("outcome", "jobs", "n").rows() == [
        *(("success", 1, 1), ("failure", 4, 2), ("cancelled", 0, 0)),
        *(("unknown", 0, 0), ("running", 1, 1), ("waiting", 1, 0)),
    ]
    # milli-GPU seconds: success 100,000; failure 5,000 + 60,000; running 8,000 x (1,000 - 900).
    failure = row_of(table, outcome="failure")
    assert failure["jobs_share"] == 4 / 7
    assert failure["gpu_hours"] == 65_000 / 3_600_000
    assert failure["gpu_hours_share"] == 65_000 / 965_000
    assert row_of(table, outcome="cancelled")["jobs_share"] == 0
    assert table["reason"].null_count() == 6


def test_run_times_by_nearest_rank(hand_tables):
    failure = row_of(hand_tables["compared_run_times"], outcome="failure")
    # 10, 20 and 50 s are known, of four jobs.
    assert [failure[name] for name in ("jobs", "n", "runtime_mean_s")] == [4, 3, 80 / 3]
    quantiles = [failure[f"runtime_{name}_s"] for name in QUANTILES]
    assert quantiles == [10, 20, 20, 50, 50, 50]
    cancelled = row_of(hand_tables["compared_run_times"], outcome="cancelled")
    assert (cancelled["jobs"], cancelled["n"], cancelled["runtime_median_s"]) == (0, 0, None)
    assert cancelled["reason"] == "no GPU job of this outcome"


def test_queueing_by_number_of_gpus(hand_tables):
    table = hand_tables["compared_queueing"]
    assert table.select("gpus", "jobs", "n", "queue_median_s").rows() == [
        *(("all", 7, 4, 5), ("1", 3, 2, 5), ("2-4", 1, 1, 7), ("5-8", 1, 1, 1), (">8", 1, 0, None)),
    ]
    assert row_of(table, gpus="all")["queue_mean_s"] == 13 / 4
    assert row_of(table, gpus=">8")["reason"] == "no GPU job with so many GPUs has a known queueing delay"


def test_failure_share_by_number_of_gpus(hand_tables):
    table = hand_tables["compared_failure_share"]
    assert table.select("gpus", "gpus_low", "gpus_high", "jobs", "ended", "failures").rows() == [
        ("all", None, None, 7, 5, 4),
        ("1", 1, 1, 3, 2, 1),
        ("2-4", 2, 4, 1, 1, 1),
        ("5-8", 5, 8, 1, 0, 0),
        (">8", 9, None, 1, 1, 1),
    ]
    overall = row_of(table, gpus="all")
    low, high = wilson_interval([4], [5])
    assert (overall["failure_share"], overall["ci_low"], overall["ci_high"]) == (0.8, low[0], high[0])
    blank = row_of(table, gpus="5-8")
    assert (blank["failure_share"], blank["reason"]) == (
        None,
        "no GPU job with so many GPUs ended in success or failure",
    )


def test_mean_time_to_failure_of_gpu_jobs(hand_tables):
    table = hand_tables["compared_mttf"]
    # Durations with a known number of GPUs: 100 s, 10 s (failed), 20 s (failed), 100 s (running).
    overall = row_of(table, gpus="all", confidence=0.95)
    assert [overall[name] for name in ("n", "events", "exposure_s", "mttf_s")] == [4, 2, 230, 115]
    assert overall["without_end"] == 1
    assert overall["ci_low_s"] == pytest.approx(2 * 230 / chi2.ppf(0.975, 6))
    assert overall["ci_high_s"] == pytest.approx(2 * 230 / chi2.ppf(0.025, 4))
    one_gpu = row_of(table, gpus="1", confidence=0.9)
    assert [one_gpu[name] for name in ("n", "events", "exposure_s", "mttf_s")] == [2, 1, 110, 110]
    five_gpus = row_of(table, gpus="5-8", confidence=0.95)
    assert (five_gpus["mttf_s"], five_gpus["ci_high_s"], five_gpus["reason"]) == (
        *(None, None),
        "no failures: lower bound only; less than one GPU-day: no rate per GPU-day; "
        "none that requested a GPU has its nodes written",
    )
    assert five_gpus["ci_low_s"] == pytest.approx(100 / -math.log(0.05))
    lost = row_of(table, gpus=">8", confidence=0.95)
    assert (lost["n"], lost["without_end"]) == (0, 1)
    assert lost["reason"] == "no known duration with so many GPUs"


@pytest.mark.parametrize(
    ("gpus", "bucket"),
    [(1, "1"), (2, "2-4"), (4, "2-4"), (5, "5-8"), (8, "5-8"), (9, ">8"), (4_096, ">8")],
)
def test_buckets(gpus, bucket):
    tables = study((Subject("t", outcomes=EVERY_OUTCOME), jobs_of([("failure", 1_000, gpus, 0, 60, 0)])))
    shares = tables["compared_failure_share"].filter(pl.col("jobs") > 0)["gpus"].to_list()
    assert shares == ["all", bucket]
    assert tables["compared_mttf"].filter(pl.col("n") > 0)["gpus"].unique(maintain_order=True).to_list() == [
        "all",
        bucket,
    ]


def test_an_outcome_that_the_format_lacks_is_blank():
    subject = Subject("pai", "task", outcomes=frozenset({"success", "failure", "running"}))
    tables = study((subject, jobs_of(HAND_JOBS)))
    for name in ("compared_outcomes", "compared_run_times"):
        row = row_of(tables[name], outcome="cancelled")
        assert row["jobs"] is None
        assert row["reason"] == "the format has no outcome cancelled"
    assert row_of(tables["compared_outcomes"], outcome="waiting")["jobs"] == 1, "what is there is counted"


def test_an_absent_outcome_of_an_open_format_is_blank():
    row = row_of(study((Subject("any"), jobs_of(HAND_JOBS)))["compared_outcomes"], outcome="cancelled")
    assert row["jobs"] is None
    assert "does not say" in row["reason"]


def test_a_trace_without_gpu_counts_is_blank_everywhere():
    jobs = jobs_of(HAND_JOBS).with_columns(gpu_milli=pl.lit(None, dtype=pl.Int64))
    tables = study((Subject("t", outcomes=EVERY_OUTCOME), jobs))
    assert tables.pop("compared_traces")["gpu_jobs"].to_list() == [0]
    keys = {"trace", "synthetic", "unit", "gives", "outcome", "gpus", "gpus_low", "gpus_high", "confidence", "reason"}
    for name, table in tables.items():
        assert set(table["reason"]) == {"the trace does not say whether a job requested a GPU"}
        values = table.drop(keys & set(table.columns))
        assert values.null_count().row(0) == (table.height,) * values.width, name


def test_traces_without_gpu_jobs_or_queueing():
    no_gpu = jobs_of(HAND_JOBS).with_columns(gpu_milli=pl.lit(0, dtype=pl.Int64))
    assert explain_no_gpu_jobs(no_gpu) == "no job of the trace requested a GPU"
    assert explain_no_gpu_jobs(no_gpu.clear()) == "the trace has no job"
    assert count_jobs(jobs_of(HAND_JOBS)) == {"jobs": 9, "gpu_jobs": 7, "blank_request": 1, "timeouts": 0}
    no_queue = jobs_of(HAND_JOBS).with_columns(queue_s=pl.lit(None, dtype=pl.Int64))
    table = study((Subject("t", outcomes=EVERY_OUTCOME), no_queue))["compared_queueing"]
    assert set(table["reason"]) == {"the trace has no queueing delay"}
    assert table["n"].null_count() == table.height


def test_unknown_gpu_time_is_blank():
    rows = [("failure", 1_000, 1, 0, None, None), ("success", 1_000, 1, 0, 60, None)]
    table = study((Subject("t", outcomes=EVERY_OUTCOME), jobs_of(rows)))["compared_outcomes"]
    failure = row_of(table, outcome="failure")
    assert (failure["jobs"], failure["n"], failure["gpu_hours"], failure["gpu_hours_share"]) == (1, 0, None, None)
    assert failure["reason"] == "no GPU job of this outcome has a known run time"


def test_components_appear_only_in_the_mean_time_to_failure():
    tables = study((Subject("titan", "GPU", "durations"), components(10, 4, 1_000)))
    assert {name: table.height for name, table in tables.items() if table.height} == {
        "compared_traces": 1,
        "compared_mttf": 2,
    }
    row = row_of(tables["compared_mttf"], confidence=0.95)
    assert [row[name] for name in ("unit", "gpus", "n", "events", "mttf_s")] == ["GPU", "all", 10, 4, 2_500]


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
    assert value["of.a.gpu_jobs"] == 80
    assert value["of.a.failure_share"] == 0.5
    assert value["of.a.queue_median_s"] == 30
    assert value["of.a.failure.jobs_share"] == 0.5
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
    "no end": [(Subject(n, outcomes=EVERY_OUTCOME), jobs_of([("failure", 1_000, 1, 0, None, None)])) for n in "ab"],
    "only waiting": [(Subject(n), jobs_of([("waiting", 1_000, 1, None, None, None)])) for n in "ab"],
    "no GPU": [(Subject(n), jobs_of([("success", 0, 1, 0, 5, 5)])) for n in "ab"],
    "all 0 s": [(Subject(n), repeat_jobs({"failure": 0, "success": 0})) for n in "ab"],
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
        assert "NaN" not in text, name
        assert "\\u0000" not in text, name
        assert "\\u202e" not in text, name
        if case in ("two", "no failure", "hostile unit"):
            svg = vl_convert.vegalite_to_svg(text, allowed_base_urls=[])
            assert float(ET.fromstring(svg).get("width")) <= WIDE, name
            assert "undefined" not in svg, name
            assert "<script" not in svg, name
        assert figure.alt.endswith("."), name
        assert figure.caption.endswith("."), name
        assert (figure.empty is None) == ("nothing to draw" not in figure.title), name


def test_empty_charts(studies):
    def empty(case: str) -> set[str]:
        return {name for name, build in CHARTS.items() if build(studies[case], Study()).empty}

    assert empty("two") == set()
    assert empty("components") == set(CHARTS) - {"mttf"}
    assert empty("only waiting") == empty("no GPU") == set(CHARTS)


def test_every_chart_labels_synthetic_traces(studies):
    for name, build in CHARTS.items():
        labels = {row["trace"] for rows in build(studies["two"], Study()).datasets.values() for row in rows}
        assert labels == {"a", "b (synthetic)"}, name


def test_at_most_eight_traces_are_drawn(studies):
    for name, build in CHARTS.items():
        figure = build(studies["nine"], Study())
        assert len({row["trace"] for rows in figure.datasets.values() for row in rows}) == 8, name
        assert "The first 8 traces of the study; 1 other in the table only." in figure.caption


def test_outcomes_that_a_format_lacks_share_one_reason():
    reasons = [f"the format has no outcome {outcome}" for outcome in ("running", "waiting", "waiting")]
    table = pl.DataFrame({"trace": ["a"] * 4, "reason": [*reasons, "no GPU time was seen"]})
    assert list_reasons(table) == [("a", "the format has no outcome running or waiting"), ("a", "no GPU time was seen")]


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


def run_analysis(folder: Path, target: Path, facts: dict) -> dict[str, bytes]:
    """Run the analysis on <trace>.jobs and <trace>.durations of a folder; return its products as bytes."""
    (target / "figures").mkdir(parents=True)
    jobs = [str(folder / f"{name}.jobs") for name, entry in facts.items() if entry["gives"] == "jobs"]
    files = {"durations": [str(folder / f"{name}.durations") for name in facts]} | ({"jobs": jobs} if jobs else {})
    keys = ("unit", "gives", "synthetic")
    subjects = {
        name: {key: entry[key] for key in keys} | {"outcomes": OUTCOMES_OF.get(name)} for name, entry in facts.items()
    }
    tables = {name: str(target / table.path) for name, table in CONTRACTS.items()}
    for name, table in compute(Inputs(files, {}, {"about": subjects})).items():
        write_product(table, CONTRACTS[name], tables[name])
    inputs = Inputs(tables, CONTRACTS, {})
    metrics = compute_metrics("compare_traces", inputs)
    (target / "metrics.json").write_text(json.dumps(metrics, allow_nan=False))
    figures = {name: build(inputs, Study()) for name, build in CHARTS.items()}
    specs, svgs = ([str(target / f"figures/{name}.{ending}") for name in CHARTS] for ending in ("vl.json", "svg"))
    charts = ((name, chart, None) for name, chart in figures.items())
    save_charts(charts, dict.fromkeys(CHARTS, ()), specs, svgs, [], str(target / "figures/index.json"))
    return {str(file.relative_to(target)): file.read_bytes() for file in sorted(target.rglob("*.*"))}


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Path:
    """The folder with the comparison of a real trace, a synthetic trace and components."""
    folder = tmp_path_factory.mktemp("compare")
    for name in ("mine", "made"):
        jobs = jobs_of(HAND_JOBS)
        jobs.write_parquet(folder / f"{name}.jobs")
        durations_of_jobs(jobs).write_parquet(folder / f"{name}.durations")
    components(10, 4, 1_000).write_parquet(folder / "titan.durations")
    run_analysis(folder, folder / "out", FACTS)
    return folder


def test_the_analysis_writes_reproducible_files(compared, tmp_path):
    expected = {str(f.relative_to(compared / "out")): f.read_bytes() for f in sorted((compared / "out").rglob("*.*"))}
    assert expected == run_analysis(compared, tmp_path / "again", FACTS)
    mttf, outcomes = (read_table(compared / "out" / contract.path, contract) for contract in (MTTF, COMPARED_OUTCOMES))
    assert mttf["trace"].unique(maintain_order=True).to_list() == list(FACTS)
    assert outcomes.filter(pl.col("outcome") == "cancelled")["jobs"].null_count() == 2
    assert dict(outcomes.select("trace", "synthetic").iter_rows()) == {"mine": False, "made": True}


HOSTILE = (
    "</script><img src=x onerror=alert(1)> {{< include /etc/passwd >}} [a](javascript:b) | ``` \n\n::: $x$ @fig-none"
)
CITED = Citation("Somebody. Something.", "@misc{a}")


def number_of(value, unit="share", n=None) -> dict:
    return {"value": value, "unit": unit, "n": n, "source": "tables/a.csv"}


def trace_of(folder: Path, name: str, entry: dict, basis: str = "event", title: str | None = None, **state) -> Trace:
    """A trace with the numbers and the brief of its page. `state` maps tile names to states."""
    share, rate, ettr = "outcomes.failure_share", "sizes.rate.failures_per_1000_node_days", "ettr.estimate.ettr"
    numbers = {
        share: number_of(0.318, n=40_226),
        f"{share}_low_clustered": number_of(0.3),
        f"{share}_high_clustered": number_of(0.33),
        rate: number_of(9.28, "failures per 1000 node days"),
        "sizes.rate.ci_low": number_of(7.64, "failures per 1000 node days"),
        "sizes.rate.ci_high": number_of(11.2, "failures per 1000 node days"),
        "sizes.basis": number_of(basis, "label"),
        ettr: number_of(0.0763),
        "ettr.assumed.size_of_the_run": number_of(1_024, "GPUs"),
        "data.jobs": number_of(53_806, "jobs"),
        "states.gpu.gpus_max": number_of(48, "GPUs"),
        "lifetimes.shape": number_of(0.463, "1"),
    }
    m = Numbers(numbers)
    tiles = [
        Tile(tile_name, tile_name, state.get(tile_name, "shown"), m.keyed(key, m.words(key)))
        if state.get(tile_name) != "withheld"
        else Tile(tile_name, tile_name, "withheld", "Cannot be estimated", means=f"No {tile_name}: {HOSTILE}.")
        for tile_name, key in (("failure_rate", share), ("node_rate", rate), ("ettr", ettr))
    ]
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "metrics.json").write_text(json.dumps(numbers))
    brief = Brief("", (), "A", (), ("One.", "Two."), tuple(tiles), period="1 March to 7 June 2025")
    (folder / name / "brief.json").write_text(brief.text())
    return Trace(name, entry | ({"title": title} if title else {}) | {"parts": 0}, folder / name, {})


def page_of(traces: list[Trace], folder: Path) -> str:
    jinja = environment(ROOT / "report", [ROOT / "scripts/ttf/analyses/comparison"])
    compared = Trace("comparison", {}, folder, CONTRACTS)
    frame = Frame(f"Comparison of {len(traces)} traces", False, "1", CITED, [Entry("Comparison", "index.html")])
    hrefs = {trace.name: f"{trace.name}.html" for trace in traces}
    return comparison_page(jinja, ROOT / "report", traces, hrefs, compared, frame)


def test_a_row_equals_the_page_of_its_trace(tmp_path):
    row = row_in_page(trace_of(tmp_path, "mine", FACTS["mine"]), "mine.html")
    assert (row.jobs.value, row.jobs.note) == ("53,806", "40,226 ended")
    assert (row.failed.value, row.failed.note, row.failed.bounds) == ("31.8%", "30.0–33.0%", (0.3, 0.33))
    assert (row.rate.value, row.rate.note) == ("9.28", "7.64–11.2*"), "not clustered"
    assert (row.ettr.value, row.ettr.note) == ("7.6%", "1,024 GPUs")
    assert (row.largest.value, row.shape.value) == ("48", "0.463")
    assert row.subtitle == "1 March to 7 June 2025"


def test_the_shape_equals_that_of_the_page(tmp_path):
    """The overall shape differs: durations of unequal users look as if their hazard fell."""
    trace = trace_of(tmp_path, "mine", FACTS["mine"])
    shapes = {"shape_within": 0.63, "shape_within_ci_low_clustered": 0.54, "shape_within_ci_high_clustered": 0.74}
    trace.metrics.update({f"lifetimes.{name}": number_of(value, "1") for name, value in shapes.items()})
    trace.metrics["lifetimes.group_by"] = number_of("node", "label")
    shape = row_in_page(trace, "mine.html").shape
    assert (shape.value, shape.note, shape.scope) == ("0.630", "0.540–0.740", "within a node")


def test_what_is_withheld_is_not_estimated(tmp_path):
    withheld = trace_of(tmp_path, "mine", FACTS["mine"], ettr="withheld", node_rate="withheld")
    row = row_in_page(withheld, "mine.html")
    assert (row.ettr.value, row.rate.value) == ("", "")
    assert row.ettr.reason.startswith("No ettr")
    proxy_row = row_in_page(trace_of(tmp_path, "made", FACTS["made"], basis="proxy"), "made.html")
    assert (proxy_row.rate.value, proxy_row.rate.placeholder) == ("", "causes not recorded")
    assert proxy_row.subtitle.startswith("synthetic, ")
    gpu_row = row_in_page(trace_of(tmp_path, "titan", FACTS["titan"], basis="component"), "titan.html")
    assert gpu_row.jobs == gpu_row.failed == gpu_row.ettr == Cell()
    assert (gpu_row.rate.value, gpu_row.shape.value) == ("", "0.463")


@pytest.mark.parametrize(
    ("bases", "expected"),
    [
        (["event", "state"], "All of two traces record causes, so infrastructure rates can be compared."),
        (
            ["event", "state", "proxy"],
            "Only two of three traces record causes, so infrastructure rates can be compared for two.",
        ),
        (["event", "proxy"], "Only one of two traces records causes, so infrastructure rates cannot be compared."),
        (["proxy", "proxy"], "None of two traces record causes, so infrastructure rates cannot be compared."),
        (["proxy"], "The one trace records no causes, so infrastructure rates cannot be compared."),
        (["event"], "The one trace records causes, so infrastructure rates cannot be compared."),
    ],
)
def test_the_bottom_line_counts_traces_with_causes(bases, expected, tmp_path):
    traces = [trace_of(tmp_path, f"t{number}", FACTS["mine"], basis) for number, basis in enumerate(bases)]
    claim, detail = bottom_line(traces)
    assert claim == expected
    assert len(f"{claim} {detail}".split()) <= 45


def test_dots_are_placed_by_value():
    cell = Cell("1", exact=0.5, bounds=(0.25, 1.0))
    middle = ET.fromstring(draw_dot(cell, 0, 1, "#7b3fb0")).find("circle").get("cx")
    assert float(middle) == WIDTH / 2
    ten = ET.fromstring(draw_dot(Cell("10", exact=10.0), 1, 100, "#7b3fb0", log=True)).find("circle").get("cx")
    assert float(ten) == WIDTH / 2
    assert draw_dot(Cell(reason="none"), 0, 1, "#7b3fb0") == ""
    assert rate_axis([Cell("9", exact=9.28, bounds=(0.7, 11.2)), Cell()]) == (0.1, 100)
    assert rate_axis([Cell()]) == (1, 10)


def test_the_page_has_a_row_per_trace_and_folded_details(compared, tmp_path):
    traces = [trace_of(tmp_path, name, entry) for name, entry in FACTS.items()]
    text = page_of(traces, compared / "out")
    assert [f'<a href="{name}.html"><bdi>{name}</bdi></a>' in text for name in FACTS] == [True] * 3
    opened, folded = text.split('<details class="details" id="compared">')
    assert "<h1>Comparison of 3 traces</h1>" in opened
    assert opened.count("<table") == 1
    for name in ("run-times", "failure-share", "mttf"):
        assert f'id="chart-{name}"' in folded
    for name in ("traces", "outcomes", "run_times", "queueing", "failure_share", "mttf"):
        assert f'<table data-name="{name}"' in folded
    assert "made (synthetic)" in folded
    assert "the format has no outcome cancelled" in folded.replace("&#32;", " ")
    headings = re.findall(r"<h(\d)[ >]|^(#+) ", text, re.MULTILINE)
    levels = [int(level) if level else len(signs) for level, signs in headings]
    assert [(higher, lower) for higher, lower in pairwise(levels) if lower > higher + 1] == [], "no level is left out"
    assert (levels.count(1), levels.count(3)) == (1, 4)
    assert "data-key" not in text, "the pages of the traces have the keys"
    assert "None" not in text


def test_markup_in_registry_text_is_escaped(compared, tmp_path):
    traces = [trace_of(tmp_path, name, entry, title=HOSTILE, ettr="withheld") for name, entry in FACTS.items()]
    text = page_of(traces, compared / "out")
    assert "<img" not in text
    assert "</script><" not in text.replace("</script>\n<script", "")


def test_components_are_compared_by_their_lifetimes(tmp_path):
    facts = dict.fromkeys(("one", "two"), FACTS["titan"])
    for name in facts:
        components(10, 4, 1_000).write_parquet(tmp_path / f"{name}.durations")
    run_analysis(tmp_path, tmp_path / "out", facts)
    text = page_of([trace_of(tmp_path, name, entry, "component") for name, entry in facts.items()], tmp_path / "out")
    assert "No trace has jobs" in text
    assert 'id="chart-mttf"' in text
    assert 'id="chart-run-times"' not in text

"""Rule estimate_hazards as a whole: its tables, charts, numbers and section, whatever the lives."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import vl_convert
from ttf.analyses.estimate_hazards import ANALYSIS, page
from ttf.analyses.estimate_hazards.charts import CHARTS
from ttf.analyses.estimate_hazards.compute import compute
from ttf.analyses.estimate_hazards.numbers import numbers
from ttf.analyses.fit_mttf.compute import failures_without_end
from ttf.analyses.fit_mttf.numbers import of_lives, of_mttf, of_survival
from ttf.charts.figure import Study
from ttf.charts.saving import save_charts
from ttf.inputs import Inputs
from ttf.lives import LIFE_COLUMNS
from ttf.numbers.metrics import Metrics
from ttf.report import words
from ttf.report.numbers import Numbers
from ttf.report.source import environment
from ttf.report.trace import Trace
from ttf.rooms import contracts, places
from ttf.stats.mttf import mean_time_to_failure
from ttf.stats.survival import survival_tables
from ttf.tables import write_product

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = contracts()
NAMED = ("duration_s", "entry_s", "event", "gpu_count", "gpu_type", "account")
HOSTILE = ["<script>alert(1)</script>", "{{< include /etc/passwd >}}", "V100\u202e\x00", "line\nbreak", "x" * 5_000]


def lives_of(n=400, ends=("failure", "failure", "success", "success", "cancelled", None), types=("T4", "V100"), late=9):
    rng = np.random.default_rng(n)
    duration = np.ceil(rng.lognormal(7, 2, n)).astype(np.int64)
    frame = pl.DataFrame(
        {
            "duration_s": duration,
            "entry_s": [int(seconds) // 2 if number < late else 0 for number, seconds in enumerate(duration)],
            "event": [ends[number % len(ends)] for number in range(n)],
            "gpu_count": [2 ** (number % 5) for number in range(n)],
            "gpu_type": [types[number // 6 % len(types)] for number in range(n)],
            "account": ["a"] * n,
        },
        schema={name: LIFE_COLUMNS[name] for name in NAMED},
    )
    blank = [pl.lit(None, dtype=kind).alias(name) for name, kind in LIFE_COLUMNS.items() if name not in frame.columns]
    return frame.with_columns(blank).with_columns(gpu_milli=pl.col("gpu_count") * 1000, nodes=1, unit_id=pl.lit("u"))


CASES = {
    "ordinary": lives_of(),
    "hostile": lives_of(types=HOSTILE),
    "no failures": lives_of(ends=("success", None)),
    "all fail": lives_of(ends=("failure",), late=0),
    "tiny": lives_of(n=2),
    "nobody": lives_of(n=0),
    "of 0 s": lives_of(n=40).with_columns(duration_s=0, entry_s=0),
    "ends unknown": lives_of(n=30).with_columns(duration_s=pl.lit(None, pl.Int64), entry_s=0),
}


def run(folder, lives, gives="jobs", causes=()):
    """The analysis on some lives, and beside its tables those of fit_mttf that its section names."""
    (folder / "tables").mkdir(parents=True)
    (folder / "figures").mkdir()
    lives.write_parquet(folder / "lives.parquet")
    settings = {
        "max_steps": 50,
        "strata": ["gpu_type", "gpu_count", "account"] if gives == "jobs" else ["gpu_type"],
        "causes": list(causes),
        "covariates": ["gpu_count", "nodes", "gpu_type", "account"] if gives == "jobs" else ["gpu_type"],
    }
    for name, product in compute(Inputs({"lives": folder / "lives.parquet"}, {}, settings)):
        write_product(product, CONTRACTS[name], str(folder / CONTRACTS[name].path))
    strata = ["all", *settings["strata"]]
    curves, summary = survival_tables(lives, "failure", strata)
    mttf = mean_time_to_failure(lives, "failure", strata)
    write_product(summary, CONTRACTS["survival_summary"], str(folder / "tables" / "survival_summary.csv"))
    write_product(mttf, CONTRACTS["mttf"], str(folder / "tables" / "mttf.csv"))
    trace = Trace("t", 1, {"gives": gives, "analyses": ["estimate_hazards"], "unit": "pod"}, folder, CONTRACTS)
    given = {table.name: trace.table(table.name) for table in ANALYSIS.tables}
    drawn = {name: draw(given, Study("pod")) for name, draw in CHARTS.items()}
    paths = ([str(folder / "figures" / f"{chart}.{ending}") for chart in CHARTS] for ending in ("vl.json", "svg"))
    charts = ((name, chart, None) for name, chart in drawn.items())
    save_charts(charts, dict.fromkeys(CHARTS, ()), *paths, [], str(folder / "figures" / "index.json"))
    metrics = Metrics()
    if gives == "lives":
        of_lives(metrics, lives)
    of_survival(metrics, summary, curves)
    of_mttf(metrics, mttf, failures_without_end(lives, "failure", ["all"]))
    numbers(metrics, given)
    return trace, metrics


def section(trace, metrics, name="hazards"):
    """The text of the section, with tables and charts as [name]."""
    made = {name: shown.html(f"t1-table-{name}") for name, shown in page.tables(trace).items() if shown.frame.height}
    index = trace.figures
    text = (
        environment(ROOT / "report", places().values())
        .get_template(f"{name}.qmd")
        .render(
            id="t1",
            unit="pod",
            trace=trace,
            m=Numbers(metrics),
            strata=[],
            chart=lambda name: "" if name in index and index[name]["empty"] else f"[{name}]",
            table=lambda name, caption: f"[{name}]" if name in made else "",
            has_chart=lambda name: name not in index or not index[name]["empty"],
            has_table=lambda name: name in made or name == "causes",
            logrank=[key.split(".")[1] for key in metrics if key.startswith("logrank.") and key.endswith(".strata")],
            most_strata=12,
        )
    )
    return " ".join(text.split()), made


@pytest.mark.parametrize("gives", ["jobs", "lives"])
@pytest.mark.parametrize("case", CASES)
def test_any_lives_give_tables_charts_and_text(case, gives, tmp_path):
    trace, metrics = run(tmp_path / "t", CASES[case], gives)
    for name in (table.name for table in ANALYSIS.tables):
        table = trace.table(name)
        assert table.select(pl.selectors.float()).unpivot()["value"].drop_nulls().is_finite().all()
        if name in ("logrank", "cox"):
            asked = "statistic" if name == "logrank" else "hazard_ratio"
            unsaid = table.filter(pl.col(asked).is_null() & pl.col("reason").is_null())
            assert unsaid.height == 0 or unsaid["covariate"].to_list() == ["all"]
    for chart in CHARTS if case == "hostile" else ():
        spec = (tmp_path / "t" / "figures" / f"{chart}.vl.json").read_text()
        assert "<svg" in vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    text, made = section(trace, metrics)
    assert not re.search(r"\b(nan|None|inf|null)\b", text)
    assert "0 of 0" not in text and "  " not in text
    assert not any("<script" in html for html in made.values())
    for name in re.findall(r"@tbl-t1-(\w+)", text):
        assert f"[{name}]" in text


def test_what_the_section_tells(tmp_path):
    trace, metrics = run(tmp_path / "t", CASES["ordinary"])
    text, made = section(trace, metrics)
    assert [name for name in made if name != "pairs"] == ["incidence", "logrank", "cox", "delayed"]
    incidence = trace.table("cumulative_incidence")
    assert incidence["event"].unique(maintain_order=True).to_list() == ["failure", "success", "cancelled"]
    assert incidence.group_by("event", "stratum_by", "stratum").len()["len"].max() <= 50
    failures = (CASES["ordinary"]["event"] == "failure").sum()
    assert f"A Cox regression of 400 lives with {failures} failures on all covariates together" in text
    assert "9 of 400 pods had started before the first end" in text
    late = trace.table("mttf_delayed_entry").row(0, named=True)
    plain = trace.table("mttf").row(0, named=True)
    entries = int(CASES["ordinary"]["entry_s"].sum())
    assert late["exposure_s"] == plain["exposure_s"] - entries and late["events"] == plain["events"]
    assert metrics["delayed_entry.late"]["value"] == 9
    assert "By GPU type: 2 strata" in text
    # All pods are on one node.
    ratio = trace.table("cox").filter(covariate="gpu_count")["hazard_ratio"].item()
    assert f"Each doubling of the GPUs of a job multiplies its hazard of failure by {words.number(ratio)} (95 %" in text
    assert "Of the GPUs alone" not in text
    nothing, _ = section(*run(tmp_path / "no", CASES["no failures"]))
    assert "No hazard ratio can be told (fewer than 10 events&#58; no fit)." in nothing


def test_what_would_be_without_other_ends_supposes_that_they_are_independent(tmp_path):
    ordinary, alone = (run(tmp_path / name, CASES[name]) for name in ("ordinary", "all fail"))
    supposed = "other ends come independently of failure, which the data cannot test"
    hazards_text, survival_text = (section(*ordinary, name)[0] for name in ("hazards", "survival"))
    assert "had nothing else ended them, it would be" in hazards_text
    assert "were they not to end for another reason" in survival_text
    assert hazards_text.count(supposed) == survival_text.count(supposed) == 1
    assert supposed not in section(*alone, "survival")[0], "nobody ended otherwise"


def test_bounds_come_first_where_many_ends_are_not_written(tmp_path):
    lost = lives_of(ends=("failure", "success", None), late=0).with_row_index()
    gone = (pl.col("event") == "failure") & (pl.col("index") % 2 == 0)
    lost = lost.with_columns(
        duration_s=pl.when(~gone.fill_null(False)).then("duration_s"), duration_max_s=pl.when(gone).then(10**6)
    )
    trace, metrics = run(tmp_path / "t", lost)
    text, made = section(trace, metrics)
    row = trace.table("incidence_at").row(
        by_predicate=(pl.col("event") == "failure") & (pl.col("time_s") == 86_400), named=True
    )
    assert row["incidence_low"] < row["incidence"] < row["incidence_high"]
    low, high = (f"{100 * row[name]:.1f} %" for name in ("incidence_low", "incidence_high"))
    first = (
        text.replace("\u00a0", " ")
        .replace("\u202f", " ")
        .index(f"By the end of a day between **{low} and {high}** have failed")
    )
    assert first < text.index("have failed; had nothing else")
    assert f"{row['without_end']} failures ended at a time nobody" in text.replace("\u00a0", " ")
    assert "[incidence-bounds]" in text and "incidence-bounds" in made
    # Few without an end: nothing is said of them but in the table.
    few = lost.with_columns(duration_s=pl.col("duration_s").fill_null(pl.when(pl.col("index") > 0).then(50)))
    text, made = section(*run(tmp_path / "few", few))
    assert "between **" not in text and "incidence-bounds" in made


def test_causes_compete_as_what_excludes_what(tmp_path):
    lives = lives_of(ends=("failure", "failure", None), late=0).with_row_index()
    lives = lives.with_columns(
        dbe=(pl.col("event") == "failure").fill_null(False) & (pl.col("index") % 2 == 0),
        otb=(pl.col("event") == "failure").fill_null(False) & (pl.col("index") % 7 < 4),
    )
    trace, metrics = run(tmp_path / "t", lives, "lives", ["dbe", "otb"])
    incidence = trace.table("cumulative_incidence").filter(stratum_by="all")
    names = ["dbe only", "otb only", "dbe and otb", "unknown cause"]
    assert incidence["event"].unique(maintain_order=True).to_list() == names
    for name in ("cumulative_hazard", "logrank", "cox", "mttf_delayed_entry"):
        assert trace.table(name)["event"].unique(maintain_order=True).to_list() == ["failure", "dbe", "otb"]
    text, _ = section(trace, metrics)
    assert "they stand together as an end of their own" in text
    assert "there is no delayed entry" in text


def test_the_ratio_of_a_job_twice_as_large_is_that_of_its_gpus_and_nodes_together(tmp_path):
    lives = CASES["ordinary"].with_row_index()
    lives = lives.with_columns(nodes=1 + (pl.col("index") % 7 * pl.col("gpu_count")) // 8).drop("index")
    trace, metrics = run(tmp_path / "t", lives)
    cox = trace.table("cox").drop_nulls("hazard_ratio")
    (gpus, nodes, total), (ratio,) = (
        cox.filter(pl.col("covariate").is_in(of))["hazard_ratio"].to_list()
        for of in (["gpu_count", "nodes", "job_size"], ["job_size"])
    )
    assert ratio == total == pytest.approx(gpus * nodes)
    text, made = section(trace, metrics)
    assert (
        f"Each doubling of the GPUs and nodes of a job multiplies its hazard of failure by {words.number(total)}"
        in text
    )
    assert f"it would be 2. (Of the GPUs alone, on as many nodes: {words.number(gpus)}," in text
    assert "per doubling of GPUs and nodes" in made["cox"]
    # It is no ratio more that could differ from 1.
    assert metrics["cox.ratios"]["value"] == cox.height - 1
    ratios = json.loads((trace.folder / "figures" / "hazard_ratios.vl.json").read_text())["datasets"]["ratios"]
    assert len(ratios) == cox.height - 1


def test_charts_say_what_the_tables_say(tmp_path):
    trace, _ = run(tmp_path / "t", CASES["ordinary"])
    at_day = trace.table("cumulative_incidence").filter(stratum_by="all").filter(pl.col("time_s") <= 86_400)
    failed = at_day.filter(event="failure")["incidence"][-1]
    assert trace.figures["cumulative_incidence"]["title"].startswith(
        f"After 1 day, {100 * failed:.0f} % of pods have failed"
    )
    ratios = json.loads((trace.folder / "figures" / "hazard_ratios.vl.json").read_text())["datasets"]["ratios"]
    told = trace.table("cox").drop_nulls("hazard_ratio")
    assert [row["ratio"] for row in ratios] == pytest.approx(told["hazard_ratio"].to_list(), rel=1e-5)
    assert [row["changes"] for row in ratios] == (told["proportionality_p"] < 0.05).to_list()

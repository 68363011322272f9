"""Tests of the whole rule estimate_hazards: its tables, charts, numbers and section."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from filled_texts import filled
from memory_tables import compute_metrics, one_row
from ttf.analyses.catalogue import find_analysis_folders
from ttf.analyses.factors.estimate_hazards import ANALYSIS, page
from ttf.analyses.factors.estimate_hazards.charts import CHARTS
from ttf.analyses.factors.estimate_hazards.compute import compute, summarise_ratios
from ttf.analyses.factors.estimate_hazards.forest import MOST_ROWS
from ttf.analyses.time_to_failure.fit_mttf.compute import summarise_durations, survival_at
from ttf.display.charts.figure import Study
from ttf.display.charts.saving import save_charts
from ttf.display.phrases import count_words, strip_markup, to_markdown
from ttf.display.report_trace import Trace
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.engine.storage.tables import write_product
from ttf.page.report.templates import environment
from ttf.page.results_tables import load_all_contracts
from ttf.records.durations import DURATION_COLUMNS
from ttf.records.inputs import Inputs
from ttf.records.jobs import add_blank_columns
from ttf.stats.durations.missing_ends import failures_without_end
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.survival import survival_tables

page = filled(page)

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = load_all_contracts()
SIMULATED_COLUMNS = ("duration_s", "entry_s", "event", "gpu_count", "gpu_type", "account")


def simulate(n=400, ends=("failure", "failure", "success", "success", "cancelled", None), types=("T4", "V100"), late=9):
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
        schema={name: DURATION_COLUMNS[name] for name in SIMULATED_COLUMNS},
    )
    frame = add_blank_columns(frame, DURATION_COLUMNS)
    return frame.with_columns(gpu_milli=pl.col("gpu_count") * 1000, nodes=1, unit_id=pl.lit("u"))


CASES = {"ordinary": simulate(), "no failures": simulate(ends=("success", None))}


def run(folder, durations, gives="jobs", causes=()):
    """Run the analysis on these durations and add the fit_mttf tables that its section cites."""
    (folder / "tables").mkdir(parents=True)
    (folder / "figures").mkdir()
    durations.write_parquet(folder / "durations.parquet")
    settings = {
        "max_steps": 50,
        "strata": ["gpu_type", "gpu_count", "account"] if gives == "jobs" else ["gpu_type"],
        "causes": list(causes),
        "covariates": ["gpu_count", "nodes", "gpu_type", "account"] if gives == "jobs" else ["gpu_type"],
    }
    for name, product in compute(Inputs({"durations": folder / "durations.parquet"}, {}, settings)):
        write_product(product, CONTRACTS[name], str(folder / CONTRACTS[name].path))
    strata = ["all", *settings["strata"]]
    curves, summary = survival_tables(durations, "failure", strata)
    mttf = mean_time_to_failure(durations, "failure", strata)
    write_product(summary, CONTRACTS["survival_summary"], str(folder / "tables" / "survival_summary.csv"))
    write_product(mttf, CONTRACTS["mttf"], str(folder / "tables" / "mttf.csv"))
    trace = Trace(
        "t", {"gives": gives, "analyses": ["estimate_hazards"], "unit": "pod", "subject": "pod"}, folder, CONTRACTS
    )
    tables = {table.name: trace.table(table.name) for table in ANALYSIS.tables}
    chart_by_name = {name: draw(tables, Study("pod")) for name, draw in CHARTS.items()}
    paths = ([str(folder / "figures" / f"{chart}.{suffix}") for chart in CHARTS] for suffix in ("vl.json", "svg"))
    charts = ((name, chart, None) for name, chart in chart_by_name.items())
    save_charts(charts, dict.fromkeys(CHARTS, ()), *paths, [], str(folder / "figures" / "index.json"))
    mttf_tables = {
        "durations_summary": summarise_durations(durations.lazy()).head(gives == "durations"),
        "survival_summary": summary,
        "survival_at": survival_at(curves.filter(event="failure", stratum_by="all")),
        "mttf": mttf,
        "failures_without_end": failures_without_end(durations, "failure", ["all"]),
    }
    metrics = compute_metrics("fit_mttf", mttf_tables)
    metrics |= compute_metrics("estimate_hazards", tables)
    return trace, metrics


def section(trace, metrics, name="hazards"):
    """Render the section with tables and charts as [name]."""
    tables = {name: table.html(f"t1-table-{name}") for name, table in page.tables(trace).items() if table.frame.height}
    index = trace.figures
    text = (
        environment(ROOT / "report", find_analysis_folders().values())
        .get_template(f"{name}.qmd")
        .render(
            id="t1",
            unit="pod",
            subject="pod",
            durations="pods",
            trace=trace,
            m=Numbers(metrics),
            strata=[],
            chart=lambda name: "" if name in index and index[name]["empty"] else f"[{name}]",
            table=lambda name, caption: f"[{name}]" if name in tables else "",
            has_chart=lambda name: name not in index or not index[name]["empty"],
            has_table=lambda name: name in tables or name == "causes",
            logrank=[key.split(".")[1] for key in metrics if key.startswith("logrank.") and key.endswith(".strata")],
            most_strata=12,
        )
    )
    text = to_markdown(text, Numbers(metrics))
    return " ".join(re.sub(r"</?(?:data|bdi)[^>]*>", "", text).split()), tables


def test_the_sections_report_the_tables(tmp_path):
    trace, metrics = run(tmp_path / "t", CASES["ordinary"])
    text, _ = section(trace, metrics)
    incidence = trace.table("cumulative_incidence")
    assert incidence["event"].unique(maintain_order=True).to_list() == ["failure", "success", "cancelled"]
    assert incidence.group_by("event", "stratum_by", "stratum").len()["len"].max() <= 50
    failures = (CASES["ordinary"]["event"] == "failure").sum()
    assert f"of 400 pods with {failures} failures" in text
    delayed = trace.table("mttf_delayed_entry").row(0, named=True)
    plain_mttf = trace.table("mttf").row(0, named=True)
    entries = int(CASES["ordinary"]["entry_s"].sum())
    assert delayed["exposure_s"] == plain_mttf["exposure_s"] - entries and delayed["events"] == plain_mttf["events"]
    assert metrics["delayed_entry.late"]["value"] == 9
    incidence_text = section(trace, metrics, "incidence")[0]
    assert "9 of 400 pods had started before the trace's first end" in incidence_text
    assert incidence_text.count("this assumes that other ends are independent of failure") == 1
    # All pods are on one node.
    ratio = trace.table("cox").filter(covariate="gpu_count")["hazard_ratio"].item()
    assert f"Each doubling of the GPUs of a pod multiplies its hazard by {words.number(ratio)} (95% CI" in text
    without_failures = run(tmp_path / "no", CASES["no failures"])
    assert "No hazard ratio could be estimated (fewer than 10 events&#58; no fit)." in section(*without_failures)[0]
    assert "independent of failure" not in section(*without_failures, "incidence")[0], "nothing failed"


def test_bounds_come_first_if_many_ends_are_missing(tmp_path):
    durations = simulate(ends=("failure", "success", None), late=0).with_row_index()
    missing = (pl.col("event") == "failure") & (pl.col("index") % 2 == 0)
    durations = durations.with_columns(
        duration_s=pl.when(~missing.fill_null(False)).then("duration_s"), duration_max_s=pl.when(missing).then(10**6)
    )
    trace, metrics = run(tmp_path / "t", durations)
    text, tables = section(trace, metrics, "incidence")
    row = one_row(trace.table("incidence_at"), event="failure", time_s=86_400)
    assert row["incidence_low"] < row["incidence_high"] and row["incidence"] is None
    assert "recorded end" in row["reason"]
    low, high = (f"{100 * row[name]:.1f}%" for name in ("incidence_low", "incidence_high"))
    bounds = f"By the end of a day between **{low} and {high}** of"
    assert bounds in text.replace("\u00a0", " ").replace("\u202f", " ")
    assert "[incidence-bounds]" in text and "incidence-bounds" in tables


def test_the_ratio_per_doubling_of_size_is_the_product_of_gpus_and_nodes(tmp_path):
    durations = CASES["ordinary"].with_row_index()
    durations = durations.with_columns(nodes=1 + (pl.col("index") % 7 * pl.col("gpu_count")) // 8).drop("index")
    trace, metrics = run(tmp_path / "t", durations)
    cox = trace.table("cox").drop_nulls("hazard_ratio")
    (gpus, nodes, total), (ratio,) = (
        cox.filter(pl.col("covariate").is_in(covariates))["hazard_ratio"].to_list()
        for covariates in (["gpu_count", "nodes", "job_size"], ["job_size"])
    )
    assert ratio == total == pytest.approx(gpus * nodes)
    text, _ = section(trace, metrics)
    assert f"Each doubling of the GPUs and nodes of a pod multiplies its hazard by {words.number(total)}" in text
    # The total is no further coefficient to test; the shown table has it instead of its two factors.
    assert metrics["cox.ratios"]["value"] == cox.height - 1
    assert metrics["cox.total.ratios"]["value"] == cox.height - 2


def cox_row(covariate, level, ratio, low, high, p=0.001, events=40, n=500, reference=None):
    wald = {"hazard_ratio": ratio, "ci_low": low, "ci_high": high, "ci_low_clustered": low, "ci_high_clustered": high}
    p_values = dict.fromkeys(("p_value", "p_adjusted", "p_clustered", "p_adjusted_clustered"), p)
    if covariate == "job_size":
        p_values |= {"p_adjusted": None, "p_adjusted_clustered": None}
    factor = {"event": "failure", "covariate": covariate, "level": level, "reference": reference, "n": n}
    return factor | wald | p_values | {"events": events, "converged": True, "cluster_by": "user", "clusters": 20.0}


def cox_table(*rows):
    overall = {"event": "failure", "covariate": "all", "n": 1000, "events": 200, "converged": True}
    return CONTRACTS["cox"].frame([*rows, overall | {"cluster_by": "user", "clusters": 20.0}])


def cox_numbers(cox):
    return compute_metrics("estimate_hazards", {"cox": cox, "cox_summary": summarise_ratios(cox)})


def claim_and_head(cox, unit="job", gives="jobs"):
    metrics = cox_numbers(cox)
    head = page.head(Trace("t", {"gives": gives, "unit": unit}, Path(), CONTRACTS), Numbers(metrics))
    assert count_words(head.claim) <= 18
    return strip_markup(head.claim), head


SIZE = cox_row("job_size", "per doubling of GPUs and nodes", 1.23, 1.1, 1.4)
NO_GPU = cox_row("gpu_count", "0", 0.05, 0.02, 0.16, reference="1")


def test_the_claim_names_the_strongest_ratio():
    claim, head = claim_and_head(cox_table(SIZE))
    assert claim == "Jobs on more GPUs fail sooner: each doubling multiplies the adjusted hazard by 1.2"
    assert [strip_markup(key.value) for key in head.keys] == ["1.23", "1 of 1"]
    assert strip_markup(head.keys[0].note) == "95% CI 1.10–1.40 by user only, p = 0.0010"
    claim, head = claim_and_head(cox_table(NO_GPU, SIZE), "task")
    assert claim == "Tasks without a GPU have 0.050 times the adjusted hazard of those on one"
    assert [strip_markup(key.label) for key in head.keys][1] == "Hazard ratio per doubling of GPUs and nodes"


def test_no_factor_is_claimed_if_none_is_significant_or_testable():
    unclear = cox_row("account", "b", 1.3, 0.7, 2.3, p=0.4, reference="a")
    claim, head = claim_and_head(cox_table(unclear))
    assert claim == "No factor is significantly associated with failure (0 of 1 hazard ratios)"
    assert [strip_markup(key.value) for key in head.keys] == ["0 of 1"]
    untested = unclear | dict.fromkeys(("ci_low_clustered", "ci_high_clustered", "p_adjusted_clustered", "p_clustered"))
    assert claim_and_head(cox_table(untested))[0] == "Too few clusters to test whether 1 hazard ratio differs from 1"
    claim, _ = claim_and_head(cox_table(unclear, untested | {"level": "c"}))
    assert claim == "No factor is significantly associated with failure (0 of 2 hazard ratios, 1 untested)"
    metrics = cox_numbers(cox_table().with_columns(reason=pl.lit("fewer than 10 events")))
    trace = Trace("t", {"gives": "jobs", "unit": "job"}, Path(), CONTRACTS)
    assert page.head(trace, Numbers(metrics)) is None
    (line,) = page.lines(trace, Numbers(metrics))
    assert not line.checked and "fewer than 10 events" in strip_markup(line.result)


@pytest.mark.parametrize(
    ("p_values", "changing"), [((0.4, 0.2), 0), ((0.4, None), None), ((None, 0.01), 1), ((None, None), None)]
)
def test_the_count_of_changing_ratios_is_0_only_if_all_are_tested(p_values, changing):
    rows = [NO_GPU | {"level": name, "proportionality_p": p} for name, p in zip("ab", p_values, strict=True)]
    assert Numbers(cox_numbers(cox_table(*rows))).value("cox.changing", None) == changing


def test_a_ratio_of_few_failures_is_not_the_claim():
    few_failures = NO_GPU | {"events": 1}
    assert claim_and_head(cox_table(few_failures, SIZE))[0].startswith("Jobs on more GPUs")
    claim, head = claim_and_head(cox_table(few_failures))
    assert claim == "No factor with 10 failures or more is significantly associated with failure"
    assert [strip_markup(key.value) for key in head.keys] == ["1 of 1"]


def test_the_forest_puts_shares_beside_the_ratios():
    shares = [
        {"feature": "gpu_request", "value": str(100 * gpus), "jobs": 50, "ended": 40, "failures": 10}
        | {"failure_share": 0.25, "ci_low": 0.1, "ci_high": 0.4, "ci_low_clustered": 0.1, "ci_high_clustered": 0.5}
        for gpus in (0, 1, 8)
    ]
    tables = {"cox": cox_table(NO_GPU, SIZE), "failure_share": CONTRACTS["failure_share"].frame(shares)}
    chart = CHARTS["factors_of_failure"](tables, Study())
    chart.spec(validate=True)
    rows = {row["name"]: row for row in chart.datasets["factors"]}
    assert list(rows) == ["Size, per doubling", "No GPU", "1 GPU", "8 GPUs"]
    assert rows["No GPU"]["ratio"] == 0.05 and rows["No GPU"]["share_high"] == 0.5
    assert rows["1 GPU"]["text"] == "reference" and "ratio" not in rows["8 GPUs"]
    many_levels = [cox_row("account", f"a{k}", 1, 0.5, 2, p=1.0, n=100 - k, reference="a") for k in range(30)]
    assert len(CHARTS["factors_of_failure"]({"cox": cox_table(*many_levels)}, Study()).datasets["factors"]) == MOST_ROWS

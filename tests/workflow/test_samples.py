"""All embedded samples: the numbers of their comparison are their own; true causes are found again."""

import json
import re
import shutil

import numpy as np
import polars as pl
import pytest
from metric_cells import wrong_cells
from published_cells import wrong_study_cells
from samples.pack import EMBEDDED
from samples.sacct import sample, sample_logs
from study_runs import SLURM, copy_study
from ttf.analyses.causes.judge_node_errors import ERROR_ATTRIBUTIONS, ERROR_CODES, ERROR_LEAD_TIMES, ERROR_SUMMARY
from ttf.analyses.large_runs.measure_training_runs import TRAINING_INTERRUPTIONS, TRAINING_RUNS
from ttf.engine.storage.tables import read_table
from ttf.page.report_contracts import COMPARISON

SAMPLES = ("sample", "sample_philly", "sample_slurm")


@pytest.fixture(scope="module")
def results(finished_study, finished_slurm, tmp_path_factory):
    checkout = copy_study(finished_slurm, tmp_path_factory.mktemp("samples"))
    for made in ("results/sample", "data/sample", ".snakemake/metadata"):
        shutil.copytree(finished_study.folder / made, checkout.folder / made, dirs_exist_ok=True)
    publish = {"title": "Three clusters", "creators": [{"name": "Doe, Jane"}]}
    config = SLURM | {"study": list(SAMPLES), "publish": publish}
    checkout.snakemake(one_process=True, **config)
    return checkout.folder / "results"


def test_a_comparison_has_its_own_citation(results):
    page = (results / "studies/study/report/index.html").read_text(encoding="utf-8")
    assert re.search(r"Doe, J[.\w]*.* Three clusters", page)


def test_the_comparison_has_numbers_of_the_traces(results):
    compared = read_table(results / "studies/study/comparison.csv", COMPARISON)
    metrics = {name: json.loads((results / name / "metrics.json").read_text()) for name in SAMPLES}
    assert {*compared["trace"]} == {*SAMPLES}
    assert compared.filter(compared["value"].is_null() == compared["reason"].is_null()).is_empty()
    estimated = compared.drop_nulls("value").to_dicts()
    for row in estimated:
        number = metrics[row["trace"]][row["number"]]
        assert {key: row[key] for key in ("value", "n")} == {key: number[key] for key in ("value", "n")}
        values = {number["value"] for number in metrics[row["trace"]].values()}
        assert {row["low"], row["high"]} - {None} <= values
    assert len(estimated) >= 10
    for name in SAMPLES:
        assert wrong_cells(results / name) == []


@pytest.mark.parametrize(
    ("trace", "key"), [("sample", "study1"), ("sample_philly", "jeon2019"), ("sample_slurm", "kokolis2025")]
)
def test_every_printed_value_has_its_place_beside_the_cell_of_the_sample(results, trace, key):
    assert wrong_study_cells(results, "study", trace, key) == []


def test_ratios_and_mttf_of_a_trace_have_the_same_clusters_and_weeks(results):
    for trace in SAMPLES:
        numbers = json.loads((results / trace / "metrics.json").read_text())
        clusters = {
            numbers[f"{group}.cluster_by"]["value"]
            for group in ("outcomes", "mttf", "sizes.rate")
            if f"{group}.cluster_by" in numbers
        }
        assert len(clusters) == 1, (trace, clusters)


def test_an_interruption_loses_time_on_all_gpus_of_its_run(results):
    tables = results / "sample_slurm/tables"
    interruptions = read_table(tables / "training_interruptions.csv", TRAINING_INTERRUPTIONS)
    gpus = read_table(tables / "training_runs.csv", TRAINING_RUNS).select("run", "gpus")
    rows = interruptions.join(gpus, on="run").to_dicts()
    assert rows and all(row["lost_s"] > 0 for row in rows)
    for row in rows:
        assert row["lost_gpu_hours"] == pytest.approx(row["lost_s"] * row["gpus"] / 3600)


def test_the_log_of_the_slurm_sample_shows_its_true_causes(results):
    size, seed = EMBEDDED["sacct"]
    plan, n_nodes = sample.plan(size, seed), sample.node_count(size)
    failures, _ = sample.node_failures(np.random.default_rng([seed, 1]), n_nodes, sample.Hazard())
    runs = sample.simulate_runs(plan, n_nodes, failures)
    true_ends = {
        (sample.node_name(run.failed_node), run.end_s)
        for run in runs
        if run.failed_node is not None and run.end_s < sample.END_S
    }

    def read_own(contract) -> pl.DataFrame:
        return read_table(results / f"sample_slurm/{contract.path}", contract)

    attributions = pl.read_parquet(
        results / "sample_slurm/error_attributions.parquet", schema=ERROR_ATTRIBUTIONS.schema
    )
    hardware = attributions.filter(~pl.col("application"))
    ends = set(hardware.select("node", pl.col("error_s") + pl.col("apart_s")).rows())
    # Some failures write no line, and one node has no log.
    assert len(ends & true_ends) >= 59 and len(true_ends) == 68 and not ends - true_ends
    summary = read_own(ERROR_SUMMARY).row(0, named=True)
    assert summary["expected_false"] < 0.01 * summary["attributed"] and summary["clocks"] == "agree"
    assert summary["nodes_watched"] == n_nodes - 1
    verdicts = dict(read_own(ERROR_CODES).select("code", "verdict").rows())
    assert {code for code, verdict in verdicts.items() if verdict == "precedes failures"} == {
        *("XID 48", "XID 74", "XID 79", "AER", "IB LINK", "STORAGE STALL")
    }
    assert {code for code, verdict in verdicts.items() if verdict == "application"} == {"XID 31", "XID 43", "OOM"}
    lead = read_own(ERROR_LEAD_TIMES).filter(code="all", lead_s=0).row(0, named=True)
    assert sample_logs.LATEST_S <= lead["median_lead_s"] <= sample_logs.EARLIEST_S
    assert lead["announced"] / lead["outages"] > 0.5

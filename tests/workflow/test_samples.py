"""All embedded samples: cells of their comparison are those of the traces' own pages; true causes are found again."""

import json

import numpy as np
import polars as pl
import pytest
from named_cells import wrong_cells
from samples.pack import EMBEDDED
from samples.sacct import sample, sample_logs
from study_runs import SLURM, copy_study
from ttf.analyses.causes.judge_node_errors import ERROR_ATTRIBUTIONS, ERROR_CODES, ERROR_LEAD_TIMES, ERROR_SUMMARY
from ttf.display.report_trace import Trace
from ttf.engine.storage.tables import read_table
from ttf.page.report.comparison import TABLES, make_cells
from ttf.page.results_tables import load_all_contracts

SAMPLES = ("sample", "sample_philly", "sample_slurm")
IS_SIZE = pl.col("group_by").is_in(["all", "gpus"])
# Compared table -> the traces' own table, the condition on its rows, and the columns that name a row in both.
SOURCES = {
    "outcomes": ("outcomes", pl.lit(True), {"outcome": "outcome"}),
    "run_times": (
        "percentiles",
        (pl.col("quantity") == "runtime_s") & (pl.col("group_by") == "all"),
        {"outcome": "outcome_set"},
    ),
    "queueing": (
        "percentiles",
        (pl.col("quantity") == "queue_s")
        & (pl.col("outcome_set") == "all")
        & pl.col("group_by").is_in(["all", "gpus"]),
        {"gpus": "group"},
    ),
    "failure_share": ("outcomes_by_gpus", pl.lit(True), {"gpus_high": "gpus_high"}),
}


@pytest.fixture(scope="module")
def results(finished_slurm, tmp_path_factory):
    checkout = copy_study(finished_slurm, tmp_path_factory.mktemp("samples"))
    checkout.snakemake(one_process=True, **(SLURM | {"study": list(SAMPLES)}))
    return checkout.folder / "results"


def read(path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema_length=None)


@pytest.mark.parametrize("name", SOURCES)
def test_every_compared_cell_is_the_cell_of_the_traces_own_table(results, name):
    table, condition, keys = SOURCES[name]
    compared = read(results / f"studies/study/comparison/{name}.csv").drop("reason")
    n_compared = 0
    for trace in SAMPLES:
        own = read(results / trace / f"tables/{table}.csv").filter(condition)
        rows_by_key = {tuple(row[column] for column in keys.values()): row for row in own.iter_rows(named=True)}
        for row in compared.filter(trace=trace).iter_rows(named=True):
            own_row = rows_by_key.get(tuple(row[column] for column in keys))
            if own_row is None:
                continue
            columns = set(row) & set(own_row) - {"unit"}
            assert {column: row[column] for column in columns} == {column: own_row[column] for column in columns}
            n_compared += len(columns)
    assert n_compared > 30


def test_means_and_shares_of_all_jobs_are_those_of_the_traces(results):
    compared = results / "studies/study/comparison"
    means, shares = read(compared / "mttf.csv"), read(compared / "failure_share.csv")
    for trace in SAMPLES:
        is_all = pl.col("stratum_by") == "all"
        own = read(results / trace / "tables/mttf.csv").filter(is_all, event="failure").drop("reason").to_dicts()
        rows = means.filter(pl.col("gpus_high").is_null(), trace=trace).to_dicts()
        assert [{name: row[name] for name in row if name in own[0]} for row in rows] == [
            {name: row[name] for name in rows[0] if name in row} for row in own
        ]
        ended = read(results / trace / "tables/ended_jobs.csv").row(0, named=True)
        row = shares.filter(pl.col("gpus_high").is_null(), trace=trace).row(0, named=True)
        bounds = {f"ci_{side}": f"failure_share_{side}" for side in ("low", "high", "low_clustered", "high_clustered")}
        names = {name: name for name in ("ended", "failures", "failure_share", "cluster_by", "clusters")} | bounds
        assert {name: row[name] for name in names} == {name: ended[column] for name, column in names.items()}


def test_each_cell_of_the_page_is_a_number_of_the_trace(results):
    contracts = load_all_contracts()
    facts = {"gives": "jobs", "unit": "job", "synthetic": True, "parts": 0}
    traces = [Trace(name, facts, results / name, contracts) for name in SAMPLES]
    n_cells = 0
    for _, _, quantities in TABLES:
        for quantity in quantities:
            for trace, cell in zip(traces, make_cells(quantity, traces), strict=True):
                assert cell.value or cell.reason, (quantity.title, trace.name)
                if cell.exact is not None:
                    values = {number["value"] for number in trace.metrics.values()}
                    assert {cell.exact, *(cell.bounds or ())} <= values, (quantity.title, trace.name)
                    n_cells += 1
    assert n_cells >= 10
    for name in (*SAMPLES, "studies/study/comparison"):
        assert wrong_cells(results / name) == []


def test_ratios_and_mttf_of_a_trace_have_the_same_clusters_and_weeks(results):
    for trace in SAMPLES:
        numbers = json.loads((results / trace / "metrics.json").read_text())
        clusters = {
            numbers[f"{group}.cluster_by"]["value"]
            for group in ("outcomes", "mttf", "sizes.rate")
            if f"{group}.cluster_by" in numbers
        }
        assert len(clusters) == 1, (trace, clusters)


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

"""Run time by feature: the charts and the numbers of the rule correlate."""

from pathlib import Path

import polars as pl
import pytest
from filled_texts import filled
from memory_tables import compute_metrics, correlations, one_row, runtime_by_group
from ttf.analyses.factors.correlate import page
from ttf.analyses.factors.correlate.charts import CHARTS
from ttf.display.charts.figure import Study
from ttf.display.phrases import list_keys, strip_markup
from ttf.display.report_trace import Trace
from ttf.display.trace_numbers import Numbers
from ttf.page.results_tables import load_all_contracts
from ttf.records.clusters import add_clusters

page = filled(page)

CONTRACTS = load_all_contracts()


def jobs_of(users=24, jobs_per_user=21, slope=1.0):
    """Jobs whose run time goes with their GPUs, of users that ask for all sizes; CPU is a multiple of the GPUs."""
    gpus = [2 ** (number % 7) for number in range(users * jobs_per_user)]
    noise = [1 + number * 37 % 11 / 5 for number in range(users * jobs_per_user)]
    return add_clusters(
        pl.DataFrame(
            {
                "user": [f"u{number // jobs_per_user}" for number in range(users * jobs_per_user)],
                "outcome": ["success" if number % 3 else "failure" for number in range(users * jobs_per_user)],
                "runtime_s": [int(600 * number**slope * by) for number, by in zip(gpus, noise, strict=True)],
                "gpu_milli": [1000 * number for number in gpus],
                "cpu_milli": [8000 * number for number in gpus],
                "mem_mib": [1024 * (1 + number % 5) for number in range(users * jobs_per_user)],
                "size": [1] * (users * jobs_per_user),
                "gpu_type": ["T4"] * (users * jobs_per_user),
            }
        )
    )


def tables_of(jobs):
    return {"runtime_by_group": runtime_by_group(jobs, [None, 1000]), "correlations": correlations(jobs, [None, 1000])}


def test_a_panel_for_each_request_with_both_correlations():
    tables = tables_of(jobs_of())
    figure = CHARTS["factors_of_run_time"](tables, Study(narrow=True))
    figure.spec(validate=True)
    # CPU is a multiple of the GPUs, size is always 1.
    assert list(figure.datasets) == ["gpu_request", "memory_request", "gpu_request_notes", "memory_request_notes"]
    assert figure.caption.endswith("CPU request: alike")
    note = figure.datasets["gpu_request_notes"][0]
    row = {"outcome_set": note["outcome"], "feature": "gpu_request", "cutoff_s": None}
    means, jobs = (
        one_row(tables["correlations"], **row, unit=unit, method=method)
        for unit, method in (("group_mean", "pearson"), ("job", "spearman"))
    )
    assert note["means"].startswith(f"r {means['estimate']:.2f}, n 7, p ")
    assert note["over_jobs"].startswith(f"ρ {jobs['estimate']:.2f}, n {jobs['n']}, p ")
    points = figure.datasets["gpu_request"]
    assert sorted({row["value"] for row in points}) == [1, 2, 4, 8, 16, 32, 64]
    mean_of_one = jobs_of().filter(outcome="success", gpu_milli=1000)["runtime_s"].mean()
    assert points[0]["mean_s"] == pytest.approx(mean_of_one, rel=1e-5)


def test_many_values_are_merged_at_weighted_means():
    jobs = jobs_of(users=200).with_row_index()
    jobs = jobs.with_columns(mem_mib=(1024 + pl.col("index") % 2500).cast(pl.Int64)).drop("index")
    figure = CHARTS["factors_of_run_time"](tables_of(jobs), Study())
    success_rows = [row for row in figure.datasets["memory_request"] if row["outcome"] == "success"]
    assert len(success_rows) <= 100
    total = sum(row["mean_s"] * row["jobs"] for row in success_rows)
    assert total == pytest.approx(jobs.filter(outcome="success")["runtime_s"].sum(), rel=1e-4)
    assert "neighbouring values of memory request merged" in figure.caption


def head_of(jobs, without=()):
    metrics = compute_metrics("correlate", {"correlations": correlations(jobs, [None])})
    for key in [key for key in metrics if key.endswith(without)] if without else []:
        del metrics[key]
    trace = Trace("t", {"unit": "pod"}, Path(), CONTRACTS)
    head, lines = page.head(trace, Numbers(metrics)), page.lines(trace, Numbers(metrics))
    for text in [line.result for line in lines] + ([head.claim] if head else []):
        assert set(list_keys(text)) <= set(metrics)
    return head, lines


def test_no_significant_correlation_is_a_line():
    head, (line,) = head_of(jobs_of(slope=0.0))
    assert strip_markup(head.claim) == "No request is significantly associated with run time" and line.checked
    _, (line,) = head_of(jobs_of(slope=0.0), without=(".group_mean.reject",))
    assert not line.checked
    head, _ = head_of(jobs_of(slope=0.0), without=("success.gpu_request.job.reject_clustered",))
    assert "that can be tested" in head.claim
    head, (line,) = head_of(jobs_of(users=1, jobs_per_user=1))
    assert head is None and not line.checked

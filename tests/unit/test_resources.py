"""Resources: the memory and time that jobs request, and their fit to finished studies."""

from pathlib import Path

import pytest
import yaml
from resources import Job, fit_table, read_jobs
from ttf.analyses.catalogue import load_analyses
from ttf.engine.provenance.seal import seal_json
from ttf.study.running.resources import (
    estimate_memory_mb,
    estimate_runtime_min,
    measure_gb,
    parse_benchmark_path,
    read_benchmark,
)

ROOT = Path(__file__).parents[2]
MEASURED = {
    "snakemake_mb": 300,
    "minutes": {"base": 3, "per_gb": 1},
    "other": {"base_mb": 500},
    "rules": {"fit": {"base_mb": 200, "mb_per_gb": {"pai2020": 100, "philly": 400}}, "draw": {"base_mb": 150}},
}
HEADER = "s\th:m:s\tmax_rss\tmax_vms\n"


@pytest.mark.parametrize(
    ("rule", "trace_format", "raw_gb", "attempt", "expected"),
    [
        ("fit", "pai2020", 0, 1, 500),
        ("fit", "pai2020", 2.5, 1, 750),
        ("fit", "titan", 1, 1, 900),
        ("fit", "pai2020", 2.5, 3, 2250),
        ("draw", "pai2020", 10, 1, 450),
        ("new", "pai2020", 10, 1, 800),
    ],
)
def test_memory_grows_with_the_raw_tables_and_with_each_attempt(rule, trace_format, raw_gb, attempt, expected):
    assert estimate_memory_mb(MEASURED, rule, trace_format, raw_gb, attempt) == expected


def test_time_grows_with_the_raw_tables_and_with_each_attempt():
    assert [estimate_runtime_min(MEASURED, raw_gb, attempt) for raw_gb, attempt in [(0, 1), (0.1, 1), (2, 2)]] == [
        3,
        4,
        10,
    ]


def test_a_packed_table_counts_unpacked_and_a_missing_one_not(tmp_path):
    for name, size in [("a.csv", 1000), ("b.csv.gz", 500), ("c.tar.gz", 250)]:
        (tmp_path / name).write_bytes(b"x" * size)
    assert measure_gb([f"{tmp_path}/a.csv"]) == 1e-6
    inside = [f"{tmp_path}/c.tar.gz/one.csv", f"{tmp_path}/c.tar.gz/two.csv"]
    assert measure_gb([f"{tmp_path}/b.csv.gz", *inside, f"{tmp_path}/none.csv"]) == pytest.approx(6e-6)


def test_a_benchmark_is_of_a_rule_and_a_trace(tmp_path):
    assert parse_benchmark_path(tmp_path / "mine/fit.tsv", tmp_path) == ("mine", "fit")
    assert parse_benchmark_path(tmp_path / "mine/ingest_part/a.b.tsv", tmp_path) == ("mine", "ingest_part")
    assert parse_benchmark_path(tmp_path / "studies/weekly/draw.tsv", tmp_path) == (None, "draw")
    assert parse_benchmark_path(tmp_path / "studies/weekly/comparison/fit.tsv", tmp_path) == (None, "fit")
    file = tmp_path / "fit.tsv"
    file.write_text(HEADER + "60.0\t0:01:00\t100.0\t1\n90.0\t0:01:30\t-\t-\n")
    assert read_benchmark(file) == (pytest.approx(104.8576), 1.5)


@pytest.fixture
def finished_study(tmp_path):
    """A finished study of one trace in two parts of 1 MB."""
    results, benchmarks = tmp_path / "results/studies/mine", tmp_path / "benchmarks" / "mine"
    results.mkdir(parents=True)
    benchmarks.mkdir(parents=True)
    for part in ("a.b", "c"):
        (tmp_path / f"{part}.csv").write_bytes(b"x" * 1_000_000)
    (results / "config.yaml").write_text("registry: {mine: {format: pai2020}}\n")
    read = {part: {"trace": "mine", "part": part} for part in ("a.b", "c")}
    jobs = {n: {"rule": "ingest_part", "wildcards": w, "inputs": {f"{n}.csv": "0"}} for n, w in read.items()}
    (results / "manifest.json").write_bytes(seal_json({"raw": {f"{n}.csv": {} for n in read}, "jobs": jobs}))
    (benchmarks / "ingest_part").mkdir()
    (benchmarks / "ingest_part" / "a.b.tsv").write_text(HEADER + "2.0\t0:00:02\t50.0\t1\n")
    (benchmarks / "fit.tsv").write_text(HEADER + "2.0\t0:00:02\t150.0\t1\n")
    (benchmarks / "draw.tsv").write_text(HEADER + "200.0\t0:03:20\t200.0\t1\n")
    return tmp_path


def test_requests_are_fitted_to_the_jobs_of_a_finished_study(finished_study):
    assert {job.rule: job.raw_gb for job in read_jobs(finished_study)} == {
        "draw": 0.002,
        "fit": 0.002,
        "ingest_part": 0.001,
    }
    table = fit_table(list(read_jobs(finished_study)), {})
    assert table == {"rules": {"draw": {"base_mb": 270}, "fit": {"base_mb": 200}, "ingest_part": {"base_mb": 100}}}


def test_memory_per_gb_is_requested_only_where_memory_grows():
    def jobs(rule, *used_mb):
        return [Job(None, rule, "pai2020", gb, mb, 1.0) for gb, mb in zip((0.01, 4, 40), used_mb, strict=True)]

    flat, linear = jobs("flat", 200, 600, 640), jobs("linear", 200, 600, 4200)
    table = fit_table([*flat, *linear], {})
    assert table["rules"] == {
        "flat": {"base_mb": 750, "mb_per_gb": {"pai2020": 10}},
        "linear": {"base_mb": 250, "mb_per_gb": {"pai2020": 130}},
    }
    measured = MEASURED | table | {"snakemake_mb": 0}
    ratios = [
        estimate_memory_mb(measured, job.rule, job.format, job.raw_gb, 1) / job.megabytes for job in flat + linear
    ]
    assert min(ratios) > 1.2


def test_every_rule_that_runs_a_script_asks_for_what_was_measured():
    rules_measured = yaml.safe_load((ROOT / "workflow" / "resources.yaml").read_text())["rules"]
    for file in sorted((ROOT / "workflow" / "rules").glob("*.smk")):
        rules = file.read_text().split("\nrule ")[1:]
        for text in rules:
            name = text.partition(":")[0]
            assert "script:" not in text or "localrule: True" in text or f'request_resources("{name}")' in text, name
    assert set(rules_measured) >= {"ingest", "derive_runtimes", "draw_charts", "write_page_source", "render_page"}
    assert not set(rules_measured) & set(load_analyses()), "those of an analysis stand in its declaration"

"""Benchmark peers reach the study's results, and docs/performance.md reports the measurements."""

import runpy
import subprocess
import sys

import performance
import polars as pl
import pytest
from format_tables import raw_schemas
from pai_products import derive_jobs
from study_runs import ROOT, environment
from ttf.raw.ingest import ingest

PEERS = ROOT / "tools/bench" / "peers"


def run_peer(monkeypatch, capsys, name: str, *arguments: object) -> list[str]:
    """Run a peer as the benchmark does and return its output lines."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(PEERS / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out.splitlines()


@pytest.fixture(scope="module")
def pai(tmp_path_factory):
    """Return (folder of raw tables, the study's jobs) for a small synthetic trace."""
    from samples.pai2020.sample import FILES as SAMPLE
    from samples.pai2020.sample import write_sample

    folder = tmp_path_factory.mktemp("bench_pai")
    write_sample(folder, 2_000, seed=5)
    schemas = raw_schemas("pai2020")
    names = ("job", "task", "instance")
    files = {name: [folder / SAMPLE[name]] for name in names}
    (folder / "raw").mkdir()
    ingest(files, schemas, folder / "raw", 0.0)
    return folder, derive_jobs({name: pl.scan_parquet(folder / "raw" / f"{name}.parquet") for name in names})


def test_duckdb_finds_the_same_jobs(pai, tmp_path, monkeypatch, capsys):
    folder, jobs = pai
    run_peer(monkeypatch, capsys, "duckdb_jobs", folder, tmp_path / "jobs.parquet")
    keys = ["user", "status", "gpu_type", "gpu_milli", "cpu_milli", "mem_mib", "nodes", "start_s", "end_s", "runtime_s"]
    peer = pl.read_parquet(tmp_path / "jobs.parquet").filter(pl.col("runtime_s") >= 0)
    # Compare jobs timed by instances only; for others the study reads the task table and the peer does not.
    timed = jobs.filter(pl.col("runtime_from").is_in(["instance", "siblings"])).rename({"status_raw": "status"})
    joined = timed.select("job_id", "task", *keys, "size").join(
        peer.select(job_id="job_name", task="task_name", **{f"peer_{name}": name for name in [*keys, "size"]}),
        on=["job_id", "task"],
        how="full",
        coalesce=True,
    )
    assert joined.height > 1_000
    nodes = pl.col("nodes").fill_null(0)  # without a recorded machine the study has a blank, the peer 0
    joined = joined.with_columns(nodes=nodes)
    different = joined.filter(
        pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"peer_{name}")) for name in [*keys, "size"])
    )
    assert different.is_empty(), different


def test_the_docs_say_what_was_measured():
    measured = performance.read()
    assert performance.section(measured) in performance.PAGE.read_text(encoding="utf-8"), (
        "python tools/bench/performance.py"
    )


def test_the_benchmarks_start():
    """Start them as `make bench` does, with only their own folder on the path."""
    command = [sys.executable, ROOT / "tools/bench/run.py", "--help"]
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert process.returncode == 0, process.stderr
    assert "measured.json" in process.stdout

"""`ttf report DATA` on dumps of Slurm with logs of nodes beside them: errors, watched spans, an account of lines."""

import random
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
import yaml
from study_runs import ROOT, check_out
from ttf.raw.packed_samples import unpack_sample

CODES = {79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 31: "pid=1, name=python, Ch 00000008"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the checkout of a study of the Slurm sample with a kernel log, and the errors written to it."""
    study = check_out(tmp_path_factory.mktemp("logs") / "checkout")
    folder = study.folder / "cluster"
    folder.mkdir()
    sample = yaml.safe_load((ROOT / "scripts/ttf/formats/sacct/format.yaml").read_text())["sample"]
    unpack_sample(ROOT / sample["packed"], sample["sha256"], folder)
    (folder / "health_events.csv").rename(folder / "health.csv")
    jobs = pl.read_csv(folder / "2025-a.txt", separator="|", infer_schema=False, quote_char=None)
    alone = jobs.filter(pl.col("NodeList").str.contains("^n[0-9]+$") & (pl.col("State") == "FAILED"))
    draw, errors, lines = random.Random(38), set(), []
    for node, end in alone.select("NodeList", pl.col("End").cast(pl.Int64)).head(200).iter_rows():
        code = draw.choice([*CODES])
        errors.add((node, f"XID {code}", end - 60))
        lines += [(end - 60 + n, node, f"NVRM: Xid (PCI:0000:05:00): {code}, {CODES[code]}") for n in range(3)]
        lines += [(end - 3600 * n, node, "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready") for n in range(5)]
    log = [
        f"{datetime.fromtimestamp(s, UTC):%Y-%m-%dT%H:%M:%S}+0000 {n}.example.org kernel: {m}"
        for s, n, m in sorted(lines)
    ]
    (folder / "kern.log").write_text("\n".join(log) + "\ncut here")
    products = ("placements.parquet", "node_errors.parquet", "node_log_watch.parquet", "tables/node_log_lines.csv")
    process = study.report("--", *(f"results/cluster/{name}" for name in products), data="cluster")
    assert process.returncode == 0, process.stdout + process.stderr
    assert "Logs of nodes: health.csv, kern.log." in process.stdout + process.stderr
    return study, errors, len(log) + 1


def read(study, name) -> pl.DataFrame:
    path = Path(study.folder, "results/cluster", name)
    return pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)


def test_the_errors_of_the_log_are_found(finished):
    study, written, _ = finished
    errors = read(study, "node_errors.parquet").filter(pl.col("gpu") == "0000:05:00")
    assert set(errors.select("node", "code", "time_s").rows()) == written
    # Three lines are one error; jobs of an array that end together share it.
    assert errors.filter(pl.col("lines") % 3 != 0).is_empty()
    assert errors.filter(pl.col("code") == "XID 79")["application"].any() is False
    assert errors.filter(pl.col("code") == "XID 31")["application"].all()


def test_every_line_is_accounted_for(finished):
    study, _, lines = finished
    health_lines = len((study.folder / "cluster/health.csv").read_text().splitlines())
    account = {row["code"]: row["rows"] for row in read(study, "tables/node_log_lines.csv").to_dicts()}
    assert (
        account["lines"]
        == lines + health_lines
        == sum(
            account.get(kind, 0) for kind in ("picked", "unmatched", "note", "no_time", "before_trace", "unknown_node")
        )
    )
    assert account["no_time"] == 1


def test_nodes_are_watched(finished):
    study, _, _ = finished
    nodes = set(read(study, "placements.parquet")["node"])
    # The CSV of health checks watches every node of the trace.
    assert set(read(study, "node_log_watch.parquet")["node"]) >= nodes

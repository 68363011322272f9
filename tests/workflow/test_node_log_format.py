"""`ttf report DATA` on a folder of nodes' logs alone: recognised, every line counted, a page with the rate."""

import html
import json
import re

import numpy as np
import polars as pl
import pytest
from study_runs import check_out
from ttf.raw.raw_contracts import ANOMALIES, ROW_ACCOUNT

NODES, DAYS, DAY, START = 20, 100, 86_400, 1_735_689_600
MESSAGES = {
    "pcie": "NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.",
    "gpu_memory": "NVRM: Xid (PCI:0000:05:00): 48, DBE (double bit error)",
    "application": "NVRM: Xid (PCI:0000:05:00): 13, Graphics Exception",
}
ODD = "<img src=x onerror=alert(1)>"


def write_logs(folder) -> dict[str, int]:
    """Write a log a node, and events of one more with an odd name; return the errors of each kind, and the lines."""
    rng, counts = np.random.default_rng(7), dict.fromkeys([*MESSAGES, "lines"], 0)
    folder.mkdir()
    for node in range(NODES):
        lines = [(day * DAY, "usb 1-1: new device") for day in range(DAYS + 1)]
        # An error every 10 days, and as many of applications.
        for second in rng.integers(1, DAYS * DAY, rng.poisson(20)).tolist():
            kind = ["pcie", "gpu_memory", "application", "application"][rng.integers(4)]
            lines.append((second, MESSAGES[kind]))
            counts[kind] += 1
        lines.sort()
        counts["lines"] += len(lines)
        texts = pl.from_epoch(pl.Series([START + second for second, _ in lines])).dt.to_string("%Y-%m-%dT%H:%M:%S+0000")
        name = f"gpu{node:02}" if node < NODES // 2 else f"fat{node:02}"
        log = [f"{text} {name} kernel: {message}\n" for text, (_, message) in zip(texts, lines, strict=True)]
        (folder / f"{name}.log").write_text("".join(log))
    with (folder / "gpu00.log").open("a") as log:
        log.write("a line that is cut\n")
    (folder / "events.csv").write_text(f"node,time,code\n{ODD}1,{START + DAY},XID79\n{ODD}1,{START + 9 * DAY},XID79\n")
    return counts


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    checkout = check_out(tmp_path_factory.mktemp("logs") / "checkout")
    counts = write_logs(checkout.folder / "kernel")
    process = checkout.report(data="kernel")
    assert process.returncode == 0, process.stderr
    return checkout.folder, counts, process.stderr


def test_the_folder_is_recognised(study):
    folder, _, messages = study
    assert "node_logs: logs of nodes: events.csv, fat10.log, fat11.log," in messages.splitlines()[0]
    assert "not read" not in messages
    assert (
        (folder / "results/studies/kernel/study.yaml")
        .read_text()
        .endswith("  kernel: {format: node_logs, folder: kernel}\n")
    )


def test_every_line_is_counted(study):
    folder, counts, _ = study
    quality = folder / "results/kernel/quality"
    # Three lines of the CSV file, and the cut line.
    read = counts["lines"] + 4
    assert pl.read_csv(quality / "row_account.csv").select(*ROW_ACCOUNT.columns).rows() == [("logs", read, read - 1, 1)]
    anomalies = pl.read_csv(quality / "anomalies.csv").select(*ANOMALIES.columns)
    assert anomalies.select("code", "rows", "first_lines").row(0) == (
        "not_a_time",
        1,
        f"{first_cut(folder)} of gpu00.log",
    )


def first_cut(folder) -> int:
    return len((folder / "kernel/gpu00.log").read_text().splitlines())


def test_the_page_has_the_rate(study):
    folder, counts, _ = study
    metrics = json.loads((folder / "results/kernel/metrics.json").read_text())
    # Nobody knows since when the node of the CSV file was watched.
    failures = counts["pcie"] + counts["gpu_memory"]
    assert metrics["mttf.events"]["value"] == failures
    low, high = (metrics[f"mttf.ci_{end}_clustered_s"]["value"] / DAY for end in ("low", "high"))
    assert low < 10 < high
    text = (folder / "results/studies/kernel/report/index.html").read_text(encoding="utf-8")
    assert ODD not in text
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
    assert "How reliably its nodes served, 1 January to" in words
    assert f"{failures} failures: one per node every" in words
    assert "times between errors" in words

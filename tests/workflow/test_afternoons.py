"""Afternoons of an engineer and a reliability lead: the real commands, on generated data.

Other files test the parts; these tests are about the way from one command to the next. The maintainer's afternoon, an
analysis of one's own, is in test_own_analyses.py; the researcher's, a comparison with figures, in test_samples.py.
"""

import csv
import html
import json
import re
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import csv_traces
import polars as pl
import yaml
from acceptance import CHROMIUM, DESK, PHONE, browsing, open_page
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from simulated_cluster import DAY, DAYS, FIRST_S, simulate
from study_runs import Checkout, clone, environment, ttf_command
from ttf.analyses.outages.list_drains import DRAIN_LIST
from ttf.analyses.shared.risk.score import SCORES
from ttf.engine.storage.tables import read_table


def type_command(folder: Path, *command: str, status: int = 0) -> str:
    """Run the command in the checkout and return what it prints."""
    process = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=900
    )
    assert process.returncode == status, process.stdout + process.stderr
    return process.stdout + process.stderr


def read_page(folder: Path, study: str, page: str = "index") -> str:
    """Return the text of a page with single spaces, without tags."""
    text = (folder / f"results/studies/{study}/report/{page}.html").read_text(encoding="utf-8")
    text = re.sub(r"<(script|style|template)\b.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def read_values(folder: Path, trace: str) -> dict:
    metrics = json.loads((folder / f"results/{trace}/metrics.json").read_text())
    return {key: metric["value"] for key, metric in metrics.items()}


def test_an_engineer_with_one_csv(tmp_path):
    """From an unknown table to a page, an edited mapping, and the risk of new jobs in the same columns."""
    folder = clone(tmp_path / "checkout")
    ended = csv_traces.write_runs(folder / "runs.csv")
    printed = type_command(folder, *ttf_command(folder, "report", "runs.csv"))
    drafted = """\
runs.csv: no known format; drafted as a table of jobs from its header and 5,000 rows:
  job_id: run_id; start: created_at; end: finished_at; user: owner; gpus: gpus
  status: state (success: succeeded 3,282; failure: failed 1,313; cancelled: cancelled 396; running: running 9)
  submit: created_at (also start, so no waits are computed)
"""
    assert drafted in printed
    assert "study runs; its configuration, to be kept and edited: results/studies/runs/study.yaml" in printed
    values = read_values(folder, "runs")
    assert values["outcomes.failure.jobs"] == sum(row[5] == "failed" for row in ended)
    assert values["risk.jobs.ended"] == len(ended)
    jobs = pl.read_parquet(folder / "results/runs/jobs.parquet")
    assert jobs.select("submit_s").equals(jobs.select(submit_s="start_s"))
    run_times = [datetime.fromisoformat(row[4][:19]) - datetime.fromisoformat(row[3][:19]) for row in ended]
    assert jobs["runtime_s"].sum() == sum(run_times, timedelta()).total_seconds()
    no_waiting = "Waits in the queue Every start equals its submission, so no waiting is computed."
    assert no_waiting in read_page(folder, "runs")

    scored = folder / "scored"  # the study reads the folder of runs.csv
    scored.mkdir()
    with (scored / "new.csv").open("w", newline="") as file:
        rows = [[f"new-{n}", f"u{n}", n, "2024-05-30T08:00:00Z", "", ""] for n in range(12)]
        csv.writer(file).writerows([csv_traces.HEADER, *rows])
    printed = type_command(folder, *ttf_command(folder, "score", "scored/new.csv"))
    assert "The highest 10 of 12 scores:" in printed
    scores = pl.read_csv(folder / "results/runs/scores/new.csv")
    assert scores.height == 12 and scores["probability"].null_count() == 0

    # Rows of the table as they are, and the same rows as the job record has them, get the same scores.
    header, *rows = (folder / "runs.csv").read_text().splitlines()
    (scored / "own.csv").write_text("\n".join([header, *rows[-30:]]) + "\n")
    printed = type_command(folder, *ttf_command(folder, "score", "scored/own.csv"))
    assert "note: columns that the model does not use, left out: finished_at, state." in printed
    scores = read_table(folder / "results/runs/scores/own.csv", SCORES)
    known = scores.select("job_id").join(jobs, on="job_id", how="left", maintain_order="left")
    known.select("job_id", "submit_s", "user", "gpu_milli").write_csv(scored / "record.csv")
    type_command(folder, *ttf_command(folder, "score", "scored/record.csv"))
    assert read_table(folder / "results/runs/scores/record.csv", SCORES).equals(scores)

    # Cancelled runs are failures in this team.
    mapping = folder / "results/studies/runs/study.yaml"
    config = yaml.safe_load(mapping.read_text())
    outcomes = config["registry"]["runs"]["outcomes"]
    outcomes["failure"] += outcomes.pop("cancelled")
    mapping.write_text(yaml.safe_dump(config))
    type_command(folder, *ttf_command(folder, "report", "runs.csv", "--snakemake=results/runs/metrics.json"))
    is_failure = [row[5] in ("failed", "cancelled") for row in ended]
    assert read_values(folder, "runs")["outcomes.failure.jobs"] == sum(is_failure)


def check_that_the_command_is_copied_whole(file: Path, text: str) -> None:
    for size in (DESK, PHONE):
        with browsing() as browser, open_page(browser, file, size) as (page, faults):
            command = page.locator("#actions code.command")
            assert command.inner_text() == text
            command.click()
            assert page.evaluate("getSelection().toString()").strip() == text
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and faults == []


def test_a_reliability_lead_with_slurm(tmp_path):
    """Nodes to drain with the command and money; a second dump; what changed; metrics; nothing left over."""
    folder = clone(tmp_path / "checkout")
    cluster = simulate(seed=1, bad=3)
    border_s = FIRST_S + (DAYS - 14) * DAY
    first, second = cluster.dump.filter(pl.col("Start") < border_s), cluster.dump.filter(pl.col("Start") >= border_s)
    (folder / "dumps").mkdir()
    first.write_csv(folder / "dumps/a.txt", separator="|")
    cluster.events.write_csv(folder / "events.csv")
    entry = {"format": "sacct", "folder": "dumps", "health_events": "events.csv"}
    prices = {"price_per_gpu_hour": 2.5, "currency": "EUR"}
    (folder / "mine.yaml").write_text(
        yaml.safe_dump({"study": ["mine"], "registry": {"mine": entry}, "ledger": prices})
    )
    first_run = Checkout(folder).report(config="mine.yaml")
    assert first_run.returncode == 0, first_run.stderr
    before = read_values(folder, "mine")
    subprocess.run(["cp", "-a", "results", "before"], cwd=folder, check=True)

    second.write_csv(folder / "dumps/b.txt", separator="|")
    printed = type_command(folder, *ttf_command(folder, "report", "--config=mine.yaml"))
    assert printed.count("ingest_part: ") == 1
    text = read_page(folder, "mine")
    assert "What changed with b.txt" in text
    # Money stands in the bottom line, in a tile and beside the action.
    assert len(re.findall(r"[\d,]+ EUR\b", text.partition("Outcomes · How do jobs end?")[0])) >= 3
    results = folder / "results/mine"
    assert not (results / "outages.parquet").exists()
    assert (results / "drains/exclude.txt").read_text() == "--exclude=n[064,082,122]\n"
    evidence = read_table(results / "tables/drain_list.csv", DRAIN_LIST)
    assert sorted(evidence["node"]) == ["n064", "n082", "n122"] and set(evidence["listed_by"]) == {"failures"}
    assert evidence["failure_causes"].null_count() == 0
    page = (folder / "results/studies/mine/report/index.html").read_text(encoding="utf-8")
    command = "scontrol update NodeName='n[064,082,122]' State=DRAIN Reason='excess failures'"
    assert f'<code class="command">{html.escape(command)}</code>'.replace("&#x27;", "&#39;") in page
    assert re.search(r"of all · <data data-key=\"actions\.drain\.cost\">[\d,]+</data> <bdi>EUR</bdi>", page)
    if CHROMIUM:
        check_that_the_command_is_copied_whole(folder / "results/studies/mine/report/index.html", command)
    after = read_values(folder, "mine")
    assert after["data.jobs"] == cluster.dump.height > before["data.jobs"]
    printed = type_command(folder, *ttf_command(folder, "check", "--against=before"))
    assert "largest" in printed
    type_command(folder, *ttf_command(folder, "metrics"))
    metrics = (folder / "results/studies/mine/monitoring/time_to_failure.prom").read_text()
    assert len([*text_string_to_metric_families(metrics)]) > 10
    type_command(folder, *ttf_command(folder, "verify"))

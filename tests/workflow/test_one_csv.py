"""`ttf report DATA` on a CSV of no known format: the drafted mapping, the whole study, and the file to complete."""

import html
import json
import re

import pytest
from csv_traces import HEADER, write_runs
from study_runs import Checkout, check_out

REPORT = "results/studies/{}/report/index.html"


def page_text(study: Checkout, name: str) -> str:
    text = (study.folder / REPORT.format(name)).read_text(encoding="utf-8")
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Checkout:
    return check_out(tmp_path_factory.mktemp("csv") / "checkout")


def test_a_submission_time_alone_is_enough_for_risk_and_dates(study):
    header = [{"created_at": "submitted_at"}.get(name, name) for name in HEADER]
    ended = write_runs(study.folder / "submitted.csv", header=header)
    process = study.report(data="submitted.csv")
    assert process.returncode == 0, process.stderr
    assert "  start: no usable column, so no run times are computed" in process.stderr.splitlines()
    metrics = json.loads((study.folder / "results/submitted/metrics.json").read_text())
    assert metrics["risk.jobs.ended"]["value"] == len(ended)
    text = page_text(study, "submitted")
    assert "How reliably its jobs ran, 1 January to" in text
    assert "No run time is known, as starts or ends are not recorded." in text
    assert "without an end" not in text.partition("Details")[0]
    assert "What changed with" not in text, "one file has no part before it"


def test_an_unsure_mapping_stops_with_the_file_to_complete(study):
    write_runs(study.folder / "odd.csv", states=("succeeded", "flaky", "cancelled"))
    process = study.report(data="odd.csv")
    assert process.returncode == 1
    assert process.stderr.splitlines()[-4:] == [
        "Complete under registry.odd in results/studies/odd/study.yaml:",
        "  outcomes.unclear: move each word to the outcome that it means: flaky",
        "Then type:",
        "  ttf report odd.csv",
    ]
    assert [path.name for path in (study.folder / "results/studies/odd").iterdir()] == ["study.yaml"]
    study.edit("results/studies/odd/study.yaml", "  unclear: [flaky]", "  failure: [flaky]")
    planned = study.report("-n", data="odd.csv")
    assert planned.returncode == 0, planned.stderr
    assert "results/studies/odd/study.yaml was edited, and is used as it stands." in planned.stderr

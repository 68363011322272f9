"""One job of 63 that reaches its time limit late is no step of the survival curve, and no limit of many jobs."""

import json
import re

import pytest
from study_runs import check_out

PAGE = "results/studies/late/report/index.html"


@pytest.fixture(scope="module")
def study(tmp_path_factory, shared_data):
    folder = shared_data / "strangers/reports/one_time_limit"
    if not folder.is_dir():
        pytest.skip("the inputs out of public reports are not beside the checkout")
    study = check_out(tmp_path_factory.mktemp("late") / "checkout")
    study.snakemake(
        "--", PAGE, one_process=True, study=["late"], registry={"late": {"format": "sacct", "folder": str(folder)}}
    )
    return study.folder


def test_no_sentence_speaks_of_many_jobs_or_of_steps(study):
    metrics = json.loads((study / "results/late/metrics.json").read_text())
    assert (metrics["data.jobs"]["value"], metrics["outcomes.timeouts"]["value"]) == (63, 1)
    assert metrics["survival.steps.time_limits"]["value"] == 1 and not metrics["survival.steps.is_limit"]["value"]
    assert not [key for key in metrics if key.startswith("survival.limits.")]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", (study / PAGE).read_text()))
    assert "any jobs hit their time limit" not in text and "in steps" not in text and "in a step" not in text

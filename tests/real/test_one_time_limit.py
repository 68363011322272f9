"""One job of 63 that reaches its time limit late is no step of the survival curve, and no limit of many jobs."""

import json
import re


def test_no_sentence_speaks_of_many_jobs_or_of_steps(results):
    metrics = json.loads((results / "late/metrics.json").read_text())
    assert (metrics["data.jobs"]["value"], metrics["outcomes.timeouts"]["value"]) == (63, 1)
    assert metrics["survival.steps.time_limits"]["value"] == 1 and not metrics["survival.steps.is_limit"]["value"]
    assert not [key for key in metrics if key.startswith("survival.limits.")]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", (results / "studies/study/report/late.html").read_text()))
    assert "any jobs hit their time limit" not in text and "in steps" not in text and "in a step" not in text

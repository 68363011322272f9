"""Run a small part of the fault harness (make test-faults) with a fixed seed; test_prefixes.py has edges."""

import pytest
from faults import run


# Shares that take about five seconds each.
@pytest.mark.parametrize(("kind", "share"), [("input", 0.025), ("configuration", 0.15)])
def test_no_case_falls_short(kind, share):
    verdicts = list(run.judge_kind(kind, [2024], share))
    assert verdicts
    assert [(verdict.name, verdict.words) for verdict in verdicts if verdict.shortcoming] == []

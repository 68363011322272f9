"""A small part of the harness of faults (make test-faults), by a seed of its own; edges are in test_prefixes.py."""

import pytest
from faults import run


# Of each kind as many as take some ten seconds.
@pytest.mark.parametrize(("kind", "share"), [("input", 0.04), ("configuration", 0.15)])
def test_no_case_falls_short(kind, share):
    verdicts = list(run.of_kind(kind, [2024], share))
    assert verdicts
    assert [(verdict.name, verdict.words) for verdict in verdicts if verdict.shortcoming] == []

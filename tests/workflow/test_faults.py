"""A small part of the harness of faults (make test-faults), by a seed of its own."""

import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[1] / "faults"


@pytest.fixture(scope="module")
def harness():
    sys.path.insert(0, str(FAULTS))
    import run

    yield run
    sys.path.remove(str(FAULTS))


# Of each kind as many as take some ten seconds.
@pytest.mark.parametrize(("kind", "share"), [("input", 0.05)])
def test_no_case_falls_short(harness, kind, share):
    verdicts = list(harness.of_kind(kind, [2024], share))
    assert verdicts
    assert [(verdict.name, verdict.words) for verdict in verdicts if verdict.shortcoming] == []

"""Good input at its edges stops no analysis: the first rows of a file, and traces in which something is all alike.

Every case of tests/support/edge_traces.py takes many minutes; here are those that once stopped a run, and some more.
"""

import contextlib
import io
import random

import pytest
from edge_traces import MADE, ROWS, write_case
from study_runs import tables_without_sense
from ttf.display.charts import saving
from whole_study import run

LONG = {"pai2020", "philly", "philly_sample", "sacct_with_events"}
# Pictures and pages, which take most of the time, are for the harness.
SKIPPED = ("score_claims", "write_page_template")
TESTED_SHAPES = (
    "zero_length_failed",
    "alike_in_time",
    "outages_of_no_length",
    "one_node_always_down",
    "no_gpu_lived",
    "blank_when_ended",
)
FIXED = [("titan", 1), *((name, None) for name in TESTED_SHAPES)]
# The samples take longer to make than to study.
REST = [(name, rows) for name in MADE.keys() - LONG for rows in ROWS if (name, rows) not in FIXED]
SAMPLED = random.Random(19).sample(sorted(REST), 3)


@pytest.fixture
def without_pictures(monkeypatch):
    """Build the charts without drawing them."""
    monkeypatch.setattr(saving, "_painter", lambda: contextlib.nullcontext(io.StringIO()))


@pytest.mark.parametrize("case", [*FIXED, *SAMPLED], ids=str)
def test_an_edge_of_good_input_stops_no_analysis(case, tmp_path, without_pictures):
    config = write_case(case, tmp_path)
    outcome = run(config, tmp_path, only=lambda job: not job.script.startswith(("write_", "render_", *SKIPPED)))
    assert (outcome.job, outcome.refused, outcome.crash, outcome.warned) == (None, None, None, [])
    assert tables_without_sense(tmp_path / "results/mine") == []

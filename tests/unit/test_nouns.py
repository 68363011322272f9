"""Sentences name the units that their tables count, such as nodes or gaps between outages."""

import numpy as np
import pytest
from noun_checks import CONTRACTS, load_trace_words
from outage_traces import DAY, make_outages
from ttf.analyses.outages.measure_availability import OUTAGE_FREE, SPANS
from ttf.analyses.outages.measure_availability.outage_free import outage_free
from ttf.display.phrases import noun
from ttf.engine.columns import GAP

NODES = {"unit": "node", "subject": GAP, "gives": "durations"}


def test_each_table_has_a_noun_for_its_counts_in_each_trace():
    tables = {table.name: table for table in CONTRACTS}
    for name in ("survival_at", "lifetime_verdict", "mttf", "incidence_at", "cox"):
        assert noun(tables[name], NODES) == GAP
        assert noun(tables[name], load_trace_words("titan")) == "GPU"
        assert noun(tables[name], load_trace_words("openb")) == "pod"
    assert noun(tables["outage_free"], NODES) == "node" and noun(tables["bursts"], NODES) == "outage"
    assert noun(tables["lost_work"], load_trace_words("sample_slurm")) == "attempt"
    assert load_trace_words("lanl") == NODES


def test_the_outage_free_share_matches_a_count_of_moments():
    """Count the moments at which a unit is up and observed for the span, and those without an outage in it."""
    day, end_s = 86_400, 40 * DAY
    rng = np.random.default_rng(3)
    intervals = {
        f"u{n}": [
            (int(t), int(t) + int(rng.integers(0, 2 * DAY)))
            for t in np.sort(rng.integers(1, end_s, rng.integers(0, 9)))
        ]
        for n in range(6)
    }
    outages, _, exposure = make_outages(intervals, end_s)
    table = outage_free(outages, exposure, 7)
    OUTAGE_FREE.check(table)
    spans_by_unit = {unit: outages.filter(unit_id=unit).select("start_s", "seen_until_s").rows() for unit in intervals}
    for span, row in zip((day, 7 * day), table.head(2).iter_rows(named=True), strict=True):
        moments = hits = 0
        for spans in spans_by_unit.values():
            for t in range(0, end_s - span, 600):
                if not any(start <= t < end for start, end in spans):
                    moments, hits = moments + 600, hits + 600 * (not any(t < start <= t + span for start, _ in spans))
        assert row["moments_s"] == pytest.approx(moments, rel=2e-3)
        assert row["share"] == pytest.approx(hits / moments, abs=2e-3)
        assert row["ci_low_clustered"] < row["share"] < row["ci_high_clustered"]
    assert table["n"].to_list() == [6, 6, 6, 0] and "watched for so long" in table["reason"][3]
    without_exposure = outage_free(outages, None, 7)
    OUTAGE_FREE.check(without_exposure)
    assert without_exposure["span_s"].to_list() == [span for span, _ in SPANS.values()]

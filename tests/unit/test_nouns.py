"""Sentences name the units that their tables count, such as nodes or gaps between outages."""

from types import SimpleNamespace

import numpy as np
import pytest
from nouns import CONTRACTS, load_trace_words, wrong_nouns
from outage_traces import DAY, make_outages
from ttf.analyses.outages.measure_availability import OUTAGE_FREE, SPANS
from ttf.analyses.outages.measure_availability.outage_free import outage_free
from ttf.analyses.time_to_failure.fit_mttf.page import head
from ttf.display.phrases import noun, strip_markup
from ttf.display.trace_numbers import Numbers
from ttf.engine.columns import GAP
from ttf.page.brief.tiles import tiles

NODES = {"unit": "node", "subject": GAP, "gives": "durations"}
KM = {"survival.1y.survival": 0.235, "survival.1d.survival": 0.885}
VERDICT = {"lifetimes.exponential_survival": 0.858, "lifetimes.km_survival": 0.541}


def numbers(**more_values):
    sources = {"survival": "survival_at", "lifetimes": "lifetime_verdict", "free": "outage_free"}
    values = KM | VERDICT | {"free.1y.share": 0.488, "free.1y.ci_low_clustered": 0.4, "free.1y.ci_high_clustered": 0.6}
    values |= {"survival.events": 90, "survival.n": 120, "lifetimes.largest_gap": 0.3, "lifetimes.at_s": 9 * DAY}
    values |= {"lifetimes.verdict": "falls", "lifetimes.verdict_within": "falls", "durations.units": 40} | more_values
    return Numbers(
        {
            key: {
                "value": value,
                "n": 90,
                "unit": "share" if isinstance(value, float) else "s" if key.endswith("_s") else "failures",
                "source": f"tables/{sources.get(key.partition('.')[0])}.csv",
            }
            for key, value in values.items()
        }
    )


def page_texts(m, words):
    trace = SimpleNamespace(info=words, has_jobs=words["gives"] == "jobs")
    section_head = head(trace, m)
    time_tiles = [tile for tile in tiles(m, {}, words) if tile.name == "when"]
    return [section_head.claim, *section_head.text, *(f"{tile.value} {tile.unit}" for tile in time_tiles)]


def test_sentences_on_repaired_nodes_distinguish_gaps_from_nodes():
    m = numbers()
    claim, text, tile = page_texts(m, NODES)
    assert strip_markup(claim) == (
        "48.8% of nodes go a year without outage from a random moment; the hazard decreases after a repair"
    )
    assert strip_markup(text).startswith(
        "After a repair, 23.5% of gaps between outages last a year. A constant rate (dashed)"
    )
    assert "85.8% of gaps between outages" in strip_markup(text) and strip_markup(tile).startswith(
        "48.8% of nodes go a year"
    )
    assert not wrong_nouns("\n".join((claim, text, tile)), dict(m), CONTRACTS, NODES)


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("After 1 year {survival.1y.survival|23.5%} of nodes have not failed", "survival_at counts durations"),
        ("{free.1y.share|48.8%} of all gaps between outages go on", "outage_free counts units"),
        ('<data data-key="survival.1y.survival">23.5%</data> of <b>jobs</b>', "survival_at counts durations"),
    ],
)
def test_a_sentence_with_a_wrong_noun_is_found(sentence, fault):
    (message,) = wrong_nouns(sentence, dict(numbers()), CONTRACTS, NODES)
    assert message.endswith(fault)


def test_each_table_has_a_noun_for_its_counts_in_each_trace():
    tables = {table.name: table for table in CONTRACTS}
    for name in ("survival_at", "lifetime_verdict", "mttf", "incidence_at", "cox"):
        assert noun(tables[name], NODES) == GAP
        assert noun(tables[name], load_trace_words("titan")) == "GPU"
        assert noun(tables[name], load_trace_words("openb")) == "pod"
    assert noun(tables["outage_free"], NODES) == "node" and noun(tables["bursts"], NODES) == "outage"
    assert noun(tables["lost_work"], load_trace_words("sample_slurm")) == "attempt"
    assert noun(tables["again_after_repair"], NODES) == "repair"
    assert load_trace_words("lanl") == load_trace_words("infinitehbd") | {"gives": "durations"} == NODES
    assert load_trace_words("backblaze")["subject"] == "period at risk"


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

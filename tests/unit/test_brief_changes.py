"""The brief's changes between parts of a trace: its sentences and the metrics they name."""

from dataclasses import asdict

from filled_texts import filled
from made_numbers import ABOUT, numbers
from memory_tables import compute_metrics
from ttf.analyses.quality.compare_parts import CHANGES, FORECAST, GONE_SUSPECTS, NEW_SUSPECTS, NEW_WORDS
from ttf.analyses.quality.compare_parts.compute import summarise_changes
from ttf.analyses.quality.compare_parts.forecast import WEEK_S, rolling_forecasts
from ttf.display import phrases
from ttf.display.brief_model import read_brief
from ttf.display.statement_rules import list_withheld
from ttf.display.trace_numbers import Numbers
from ttf.page.brief.brief import MAX_ACTIONS_WITH_CHANGES, make_brief
from ttf.page.brief.changes import changes

changes = filled(changes)

NAMES = ("failure_share", "infra_rate", "scheduled_ettr", "lost_time", "suspect_nodes", "failure_words")
NEW = {
    "new_failure_words": NEW_WORDS.frame(
        [{"kind": "reason", "word": "{a.b|9} <i>", "failures": 1200, "clusters": 3, "chance": 0.1}]
    ),
    "new_suspect_nodes": NEW_SUSPECTS.frame(
        {"node": f"n{number}", "counted_before": 0, "counted": 3, "expected": 0.1, "q_value": 0.01}
        for number in range(5)
    ),
    "gone_suspect_nodes": GONE_SUSPECTS.frame([]),
}
GONE = {"gone_suspect_nodes": GONE_SUSPECTS.frame([{"node": "n7", "counted_before": 9, "counted": 2}])}
NOTHING_NEW = NEW | {"new_suspect_nodes": NEW_SUSPECTS.frame([])}


def trace_numbers(verdicts=None, parts=8, base=None):
    """The numbers of a trace. A measure missing in `verdicts` is `within chance`."""
    values = {"before": 0.25, "after": 0.3, "difference": 0.05, "ci_low": -0.01, "ci_high": 0.11}
    values["detectable_ratio"] = 1.4
    rows = []
    for name in NAMES:
        row = {"measure": name, "unit": "share", "part": "week9.csv", "parts_before": parts, "n_of": "jobs"}
        row |= {
            "n_before": 1000,
            "n_after": 120,
            "detectable_ratio": 1.4,
            "cluster_by": "user",
            "p_value": 0.5,
            "p_adjusted": 1.0,
            "to_s": 0,
        }
        row |= {"verdict": (verdicts or {}).get(name, "within chance")}
        rows.append(row | ({} if row["verdict"].startswith("too few") else values))
    table = CHANGES.frame(rows)
    weeks = [
        row | {"what": "failed_jobs"}
        for row in rolling_forecasts([100, 120, 90, 110, 100, 120, 90, 110, 300], 9 * WEEK_S)
    ]
    weeks.append({"what": "infra_failures", "week": 1, "weeks_before": 0, "tried": 0, "reason": "no whole week"})
    tables = {"changes": table, "changes_summary": summarise_changes(table, *list(NEW.values())[:2])}
    metrics = compute_metrics("compare_parts", tables | {"week_forecast": FORECAST.frame(weeks)})
    return Numbers((base or {}) | metrics)


def sentence(tables=NOTHING_NEW, **settings):
    return phrases.strip_markup(changes(trace_numbers(**settings), tables, "job").summary)


def test_the_sentence_counts_and_names_changes():
    assert sentence() == "No measurable change in 6 measures; 6 within normal variation (≈)."
    one_change = {"failure_share": "changed", "lost_time": "too few to tell"}
    text = sentence(verdicts=one_change)
    assert "the failure share 25.0% → 30.0%; 4 within normal variation (≈), 1 with too little data (?)." in text
    assert "2 with too few weeks (?)" in sentence(
        verdicts=dict.fromkeys(("failure_share", "infra_rate"), "too few weeks to tell")
    )


def test_differences_have_their_intervals_and_n():
    details_by_name = {row.name: phrases.strip_markup(row.details) for row in changes(trace_numbers(), NEW, "job").rows}
    assert details_by_name["failure_share"] == (
        "+5.0 points (95% CI −1.0 to 11.0; detectable: 1.40 times) · n = 1,000 and 120 jobs"
    )
    assert details_by_name["suspect_nodes"] == "New: n0, n1, n2 and 2 more · n = 1,000 and 120 jobs"
    suspects = next(
        row for row in changes(trace_numbers(), NOTHING_NEW | GONE, "job").rows if row.name == "suspect_nodes"
    )
    assert phrases.strip_markup(suspects.details) == "Nothing new; gone: n7 · n = 1,000 and 120 jobs"
    # Text from the trace is never read as a metric key.
    assert details_by_name["failure_words"] == "New: reason (a.b|9) <i> (1,200) · n = 1,000 and 120 jobs"


def test_the_brief_names_no_unknown_number(tmp_path):
    m = trace_numbers({"scheduled_ettr": "changed"}, base=dict(numbers()))
    brief = make_brief(m, NEW, ABOUT, list_withheld(m))
    texts = [brief.changes.summary, brief.changes.forecast, *brief.changes.notes]
    texts += [text for row in brief.changes.rows for text in (row.before, row.after, row.details)]
    named_keys = {key for text in texts for key in phrases.list_keys(text)}
    assert named_keys <= set(m)
    ettr = next(row for row in brief.changes.rows if row.name == "scheduled_ettr")
    assert (ettr.verdict, bool(ettr.before)) == ("changed", True)
    assert len(brief.actions) <= MAX_ACTIONS_WITH_CHANGES
    (tmp_path / "brief.json").write_text(brief.text(), encoding="utf-8")
    assert asdict(read_brief(tmp_path / "brief.json")) == asdict(brief)


def test_a_trace_without_parts_has_no_changes():
    assert changes(numbers(), {}, "job") is None
    assert not compute_metrics("compare_parts", {"changes": CHANGES.frame([]), "week_forecast": FORECAST.frame([])})

"""The brief of a trace, out of its numbers and tables."""

from collections.abc import Mapping

from ttf.display.brief_model import Brief
from ttf.display.metrics import Metrics
from ttf.display.phrases import in_unit, plain
from ttf.display.statement_rules import withhold
from ttf.display.trace_numbers import Numbers
from ttf.engine.size_unit import GPU
from ttf.page.brief.actions import actions
from ttf.page.brief.bottom_line import bottom_line
from ttf.page.brief.changes import changes
from ttf.page.brief.facts import facts, period, subtitle
from ttf.page.brief.grade import grade_of
from ttf.page.brief.tiles import tiles
from ttf.records.inputs import Inputs

MOST_BESIDE_CHANGES = 4


def summed_up(metrics: Metrics, given: Inputs, about: Mapping) -> Brief:
    """The brief; out of the metrics goes what may not be said, and the grade into them."""
    withheld = withhold(Numbers(metrics))
    for key in withheld:
        metrics.pop(key, None)
    brief = brief_of(Numbers(metrics), given, about, withheld)
    reason = plain(brief.grade_reasons[0]) if brief.grade_reasons else "no reservations"
    for key, value in (("grade", brief.grade), ("grade_reason", reason)):
        about = {"value": value, "unit": "label", "n": None, "source": "brief.json", "column": key, "line": None}
        metrics[f"quality.{key}"] = about
    return brief


def brief_of(m: Numbers, given: Mapping, about: Mapping, withheld: Mapping[str, str] | None = None) -> Brief:
    """about: what the report says of the trace, with `clock`, `failure_words` and `targets` of its configuration."""
    found, not_worth, claim = actions(m, about["unit"])
    grade, reasons = grade_of(m, about["unit"])
    changed = changes(m, given, about["unit"])
    brief = Brief(
        subtitle=subtitle(m, about),
        facts=facts(m, about | {"failure_words": _words_seen(given, about)}),
        grade=grade,
        grade_reasons=reasons,
        bottom_line=bottom_line(m, about),
        tiles=tiles(m, given, about),
        actions_claim=claim,
        # What changed takes the place of the last.
        actions=found[:MOST_BESIDE_CHANGES] if changed else found,
        not_worth=not_worth,
        withheld=dict(withheld or {}),
        period=period(m, about),
        changes=changed,
    )
    return brief if m.size == GPU else in_unit(brief, m.size)


def _words_seen(given: Mapping, about: Mapping) -> list[str]:
    """The words for a failure that the trace has."""
    words = list(about["failure_words"])
    if "states" not in given:
        return words
    seen = set(given["states"].filter(kind="state")["state"])
    return [word for word in words if word in seen] or words

"""The brief of a trace, out of its numbers and tables."""

from collections.abc import Mapping

from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics
from ttf.page.actions import actions
from ttf.page.bottom_line import bottom_line
from ttf.page.changes import changes
from ttf.page.facts import facts, period, subtitle
from ttf.page.grade import grade_of
from ttf.page.model import Brief
from ttf.page.numbers import Numbers
from ttf.page.phrases import in_unit, plain
from ttf.page.rules import withhold
from ttf.page.tiles import tiles
from ttf.size_unit import GPU

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

"""The brief of a trace, from its numbers and tables."""

from collections.abc import Mapping

from ttf.display.brief_model import Brief
from ttf.display.metrics import Metrics, Tables
from ttf.display.phrases import convert_units, fill_slots, strip_markup
from ttf.display.statement_rules import list_withheld, mark_bounds
from ttf.display.trace_numbers import Numbers
from ttf.page.brief.actions import MAX_ACTIONS, actions
from ttf.page.brief.bottom_line import bottom_line
from ttf.page.brief.changes import changes
from ttf.page.brief.drain_commands import SLURM_FORMATS
from ttf.page.brief.facts import facts, period, subtitle
from ttf.page.brief.grade import grade_data
from ttf.page.brief.tiles import tiles
from ttf.records.inputs import Inputs

MAX_ACTIONS_WITH_CHANGES = 4


def summarise_trace(metrics: Metrics, inputs: Inputs, trace_info: Mapping) -> Brief:
    """Return the brief, and add the grade to the metrics."""
    numbers = Numbers(metrics)
    mark_bounds(numbers)
    brief = make_brief(numbers, inputs, trace_info, list_withheld(numbers))
    reason = strip_markup(brief.grade_reasons[0]) if brief.grade_reasons else "no reservations"
    grade_definition = "Grade of the data: A, and a step lower for each reservation."
    for key, value, definition in (
        ("grade", brief.grade, grade_definition),
        ("grade_reason", reason, "The first reservation about the data."),
    ):
        cell = {"value": value, "unit": "label", "n": None, "source": "brief.json", "column": key, "line": None}
        metrics[f"quality.{key}"] = cell | {"definition": definition}
    return brief


def make_brief(m: Numbers, inputs: Tables, trace_info: Mapping, withheld: Mapping[str, str] | None = None) -> Brief:
    """Return the brief. trace_info: the registry entry with `clock`, `failure_words` and `targets`."""
    drains = inputs["drain_list"].drop_nulls("listed_by")["node"].to_list() if "drain_list" in inputs else []
    in_slurm = trace_info.get("format") in SLURM_FORMATS
    grade, reasons = grade_data(m, trace_info["unit"])
    change_rows = changes(m, inputs, trace_info["unit"])
    # The strip of changes takes the place of the last action.
    most = MAX_ACTIONS_WITH_CHANGES if change_rows else MAX_ACTIONS
    unit = trace_info["unit"]
    action_rows, more_actions, not_worth, actions_claim = actions(m, unit, drains, in_slurm, most)
    brief = Brief(
        subtitle=subtitle(m, trace_info),
        facts=facts(m, {**trace_info, "failure_words": _list_failure_words(inputs, trace_info)}),
        grade=grade,
        grade_reasons=reasons,
        bottom_line=bottom_line(m, trace_info),
        tiles=tiles(m, inputs, trace_info),
        actions_claim=actions_claim,
        actions=action_rows,
        more_actions=more_actions,
        not_worth=not_worth,
        withheld=dict(withheld or {}),
        period=period(m, trace_info),
        changes=change_rows,
    )
    return convert_units(fill_slots(brief, m), m.size)


def _list_failure_words(inputs: Tables, trace_info: Mapping) -> list[str]:
    """Return the words for failure that the trace's states contain, or all of its format if none does."""
    words = list(trace_info["failure_words"])
    if "states" not in inputs:
        return words
    recorded = set(inputs["states"].filter(kind="state")["state"])
    return [word for word in words if word in recorded] or words

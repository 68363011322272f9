"""Changes with the last part of the records; the page of a trace in parts begins with them."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ttf.analyses.quality.compare_parts import CHANCE, CHANGED, FEWEST_PARTS, TOO_FEW, TOO_FEW_WEEKS
from ttf.display import statement_rules
from ttf.display.brief_model import Change, Changes
from ttf.display.metrics import Tables
from ttf.display.phrases import fill_slots, join_parts, quote_trace_text, strip_markup
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MARKS = {CHANGED: "≠", CHANCE: "≈", TOO_FEW_WEEKS: "?", TOO_FEW: "?"}
_UNCHANGED = {CHANCE: "within normal variation", TOO_FEW_WEEKS: "with too few weeks", TOO_FEW: "with too little data"}


class Measure(NamedTuple):
    """title: heading of the row, {} stands for the noun of a job; name: within a sentence; unit: of the difference.

    new_rows: the table of new entries and a function that formats its rows.
    """

    title: str
    name: str
    unit: str = " points"
    new_rows: tuple[str, Callable[[dict], str]] | None = None


def _quote_node(row: dict) -> str:
    return quote_trace_text(row["node"], 24)


_MEASURES = {
    "failure_share": Measure("Failed {}s", "the failure share"),
    "infra_rate": Measure("Infrastructure failure rate", "the failure rate of nodes", " per 1,000 node-days"),
    "scheduled_ettr": Measure("Scheduled ETTR", "the scheduled ETTR"),
    "lost_time": Measure("GPU time in failed attempts", "the GPU time in failed attempts"),
    "suspect_nodes": Measure("Suspect nodes", "suspect nodes", new_rows=("new_suspect_nodes", _quote_node)),
    "failure_words": Measure(
        *("Failure reasons", "failure reasons"),
        new_rows=(
            "new_failure_words",
            lambda row: f"{row['kind']} {quote_trace_text(row['word'], 40)} ({words.count(row['failures'])})",
        ),
    ),
}
MOST_NAMED = 3
# Letters of title and summary, which fill two lines of a wide screen.
MOST_LETTERS = 215


def changes(m: Numbers, inputs: Tables, unit: str) -> Changes | None:
    """Return the changes, or None if fewer than two parts have jobs."""
    if "changes.part" not in m:
        return None
    rows = tuple(_make_change(m, inputs, name, unit) for name in _MEASURES)
    title = f"What changed with {quote_trace_text(m['changes.part'])}"
    return Changes(
        title=title,
        summary=_summarise(m, inputs, rows, MOST_LETTERS - len(strip_markup(title))),
        rows=rows,
        forecast=_forecast_text(m, unit),
        notes=tuple(_list_test_notes(m, unit)),
    )


def _summarise(m: Numbers, inputs: Tables, rows: tuple[Change, ...], most_letters: int) -> str:
    """Return what changed, each clause in its longest wording that fits."""
    changed_rows = [row for row in rows if row.verdict == CHANGED]
    claims = ["No measurable change in [changes.measures] measures"]
    if changed_rows:
        names = [_MEASURES[row.name].name for row in changed_rows]
        values = [f"{name} {row.before} → {row.after}" for name, row in zip(names, changed_rows, strict=True)]
        claim = f"{words.count(len(names))} of [changes.measures] measures changed ({MARKS[CHANGED]})"
        claims = [*(f"{claim}: {words.join_list(texts)}" for texts in (values, names)), claim]
    counts = Counter(row.verdict for row in rows)
    if counts[TOO_FEW]:
        counts[TOO_FEW] += counts.pop(TOO_FEW_WEEKS, 0)
    unchanged = [(counts[verdict], f"{text} ({MARKS[verdict]})") for verdict, text in _UNCHANGED.items()]
    rest = ", ".join(f"{words.count(n)} {text}" for n, text in unchanged if n)
    suspects, clauses = _word_suspects(inputs), list[str]()
    # The claim leaves room for the suspect nodes.
    left = most_letters - len("; ".join(["", *suspects[-1:]]))
    for wordings in fill_slots([claims, suspects, [rest]], m):
        clauses += [text for text in wordings if text and len(strip_markup(text)) <= left][:1]
        left = most_letters - len(strip_markup("; ".join([*clauses, ""])))
    return f"{'; '.join(clauses)}."


def _word_suspects(inputs: Tables) -> list[str]:
    """Return wordings of the suspect nodes that are new or gone, the longest first; none if the list is the same."""
    counts = {side: inputs[f"{side}_suspect_nodes"].height for side in ("new", "gone")}
    sides = [side for side, n in counts.items() if n]
    names = [f"{side} {_list_first_rows(inputs, f'{side}_suspect_nodes', _quote_node)}" for side in sides]
    short = [f"{words.count(counts[side])} {side}" for side in sides]
    return [f"suspect nodes: {', '.join(texts)}" for texts in (names, short) if texts]


def _make_change(m: Numbers, inputs: Tables, name: str, unit: str) -> Change:
    key = f"changes.{name}"
    # Withheld estimates are removed from the numbers.
    verdict = m.value(f"{key}.verdict", TOO_FEW)
    style = ":count" if _MEASURES[name].new_rows else ""
    has_values = f"{key}.before" in m and f"{key}.after" in m
    is_any_failure = name == "infra_rate" and statement_rules.r1_cause_unknown(m)
    return Change(
        name=name,
        title="Failure rate per node" if is_any_failure else _MEASURES[name].title.format(unit),
        before=f"[{key}.before{style}]" if has_values else "",
        after=f"[{key}.after{style}]" if has_values else "",
        verdict=verdict,
        mark=MARKS[verdict],
        details=_details_text(m, inputs, name, verdict),
    )


def _details_text(m: Numbers, inputs: Tables, name: str, verdict: str) -> str:
    """Return the difference with interval and n, or the new entries, or the reason why there is none.

    A measure without a significant change states the smallest detectable one.
    """
    key = f"changes.{name}"
    sample_sizes = ""
    if f"{key}.n_before" in m and f"{key}.n_after" in m:
        counts = " and ".join(f"[{key}.n_{side}]" for side in ("before", "after"))
        sample_sizes = f"n = {counts} {m.unit(f'{key}.n_after')}"
    if f"{key}.difference" not in m:
        return join_parts(words.capitalise(m.value(f"{key}.reason", "not estimated")), sample_sizes)
    if new_rows := _MEASURES[name].new_rows:
        return join_parts(_format_new_rows(inputs, *new_rows), sample_sizes)
    format_value = words.points if _MEASURES[name].unit == " points" else words.number
    value = m[f"{key}.difference"]
    difference = m.tag(f"{key}.difference", f"{'+' * (value > 0)}{format_value(value)}") + _MEASURES[name].unit
    ci = ""
    if f"{key}.low" in m and f"{key}.high" in m:
        ci = f"95% CI {m.span(f'{key}.low', f'{key}.high', format_value=format_value)}"
        if verdict == CHANCE and f"{key}.detectable_ratio" in m:
            ci += f"; detectable: [{key}.detectable_ratio] times"
    elif verdict != TOO_FEW_WEEKS and f"{key}.reason" in m:
        ci = m[f"{key}.reason"]
    gpu_hours = ""
    if f"{key}.gpu_hours_after" in m:
        gpu_hours = f"[{key}.gpu_hours_before] and [{key}.gpu_hours_after] GPU-h"
    return join_parts(f"{difference}{f' ({ci})' if ci else ''}", gpu_hours, sample_sizes)


def _format_new_rows(inputs: Tables, table: str, format_row: Callable[[dict], str]) -> str:
    names, gone = _list_first_rows(inputs, table, format_row), ""
    if table == "new_suspect_nodes" and inputs["gone_suspect_nodes"].height:
        gone = f"gone: {_list_first_rows(inputs, 'gone_suspect_nodes', _quote_node)}"
    return join_parts(f"New: {names}" if names else "Nothing new", gone, by="; ")


def _list_first_rows(inputs: Tables, table: str, format_row: Callable[[dict], str]) -> str:
    rows = inputs[table].head(MOST_NAMED).iter_rows(named=True)
    items = ", ".join(format_row(row) for row in rows)
    hidden = inputs[table].height - MOST_NAMED
    return f"{items}{f' and {words.count(hidden)} more' if hidden > 0 else ''}"


def _forecast_text(m: Numbers, unit: str) -> str:
    """Return "Next week: 123 failed jobs (90% PI 82–170; 4 of 4 past weeks inside), ..."."""
    clauses = []
    for name, subject in (("failed_jobs", f"failed {unit}s"), ("infra_failures", "infrastructure failures")):
        key = f"forecast.{name}"
        if f"{key}.high" not in m:
            clauses.append(f"{subject}: no forecast ({m.value(f'{key}.reason', 'not known')})")
            continue
        bounds = m.span(f"{key}.low", f"{key}.high", format_value=words.count)
        hits = f"; [{key}.held] of [{key}.tried] past weeks inside" if m.value(f"{key}.tried") else ""
        clauses.append(f"[{key}.expected] {subject} (90% PI {bounds}{hits})")
    return f"Next week: {', '.join(clauses)}."


def _list_test_notes(m: Numbers, unit: str) -> list[str]:
    notes = [
        (
            "The last part is compared with the [changes.parts_before part] before it. This version of the program "
            "computes both sides from the raw data, so no change comes from another version."
        )
    ]
    if "changes.failure_share.follow_up_s" in m:
        follow_up = "[changes.failure_share.follow_up_s]"
        notes.append(
            f"Failed {unit}s: the failure share of {unit}s that started at least {follow_up} before the end of their "
            f"part and ended within {follow_up} of their start. Both sides exclude all others."
        )
        notes.append(
            "Rates and GPU time are split where the last part begins. A run across this border counts on both sides, "
            "its failure where it ended."
        )
    notes.append(
        "A measure changed if its adjusted p is below 0.05 (Holm): of twenty parts without a real change, about one "
        "shows a change. Detectable: the smallest change found with 80% power if no other measure changes."
    )
    if m["changes.parts_before"] < FEWEST_PARTS:
        notes.append(
            f"The variation between parts is known from {FEWEST_PARTS} earlier parts on; until then, rates and shares "
            "have no verdict."
        )
    if "changes.suspect_nodes.p_value" in m:
        notes.append(
            "Suspect nodes have excess failures; both sides cover equally long times. A node is new if it fails more "
            "often in the last part than before, not because it was observed longer; it is gone if it no longer has "
            "excess failures."
        )
    return notes

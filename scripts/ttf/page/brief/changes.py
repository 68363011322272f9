"""What changed since the last part of the records: with what the page of such a trace begins."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ttf.analyses.quality.compare_parts import CHANCE, CHANGED, FEWEST_PARTS, TOO_FEW, TOO_FEW_WEEKS
from ttf.display import statement_rules
from ttf.display.brief_model import Change, Changes
from ttf.display.phrases import joined, of_trace, with_numbers
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MARKS = {CHANGED: "≠", CHANCE: "≈", TOO_FEW_WEEKS: "?", TOO_FEW: "?"}


class Measure(NamedTuple):
    """title: over its row, with {} for what a job is called; name: within a sentence; unit: of a difference in points
    or by its own words; new: of a list the table of what is new, and its rows in words.
    """

    title: str
    name: str
    unit: str = " points"
    new: tuple[str, Callable[[dict], str]] | None = None


_MEASURES = {
    "failure_share": Measure("Failed {}s", "the failure share"),
    "infra_rate": Measure("Infrastructure failure rate", "the failure rate of nodes", " per 1,000 node-days"),
    "ettr": Measure("ETTR", "the ETTR"),
    "lost_time": Measure("Lost GPU time", "the lost GPU time"),
    "suspect_nodes": Measure(
        "Suspect nodes", "suspect nodes", new=("new_suspect_nodes", lambda row: of_trace(row["node"]))
    ),
    "failure_words": Measure(
        *("Failure reasons", "failure reasons"),
        new=(
            "new_failure_words",
            lambda row: f"{row['kind']} {of_trace(row['word'], 40)} ({words.count(row['failures'])})",
        ),
    ),
}
MOST_NAMED = 3


@with_numbers
def changes(m: Numbers, given: Mapping, unit: str) -> Changes | None:
    """None of a trace with fewer than two parts that have jobs."""
    if not m.has("changes.part"):
        return None
    rows = tuple(_change(m, given, name, unit) for name in _MEASURES)
    return Changes(
        title=f"What changed with {of_trace(m['changes.part'])}",
        summary=_summary(m, rows),
        rows=rows,
        forecast=_forecast(m, unit),
        notes=tuple(_notes(m, unit)),
    )


def _summary(m: Numbers, rows: tuple[Change, ...]) -> str:
    of_verdict = {verdict: [row.name for row in rows if row.verdict == verdict] for verdict in MARKS}
    changed = [_MEASURES[name].name for name in of_verdict[CHANGED]]
    of = "of [changes.measures] measures"
    said = [f"None {of} changed"]
    if changed:
        said = [f"{words.count(len(changed))} {of} changed ({MARKS[CHANGED]}): {words.listed(changed)}"]
    for verdict in (CHANCE, TOO_FEW_WEEKS, TOO_FEW):
        if of_verdict[verdict]:
            said.append(f"{words.count(len(of_verdict[verdict]))} {verdict} ({MARKS[verdict]})")
    return f"{'; '.join(said)}."


def _change(m: Numbers, given: Mapping, name: str, unit: str) -> Change:
    key = f"changes.{name}"
    # What may not be said of the run is out of the numbers.
    verdict = m.value(f"{key}.verdict", TOO_FEW)
    how = ":count" if _MEASURES[name].new else ""
    both = m.has(f"{key}.before") and m.has(f"{key}.after")
    any_failure = name == "infra_rate" and statement_rules.r1_cause_unknown(m)
    return Change(
        name=name,
        title="Failure rate per node" if any_failure else _MEASURES[name].title.format(unit),
        before=f"[{key}.before{how}]" if both else "",
        after=f"[{key}.after{how}]" if both else "",
        verdict=verdict,
        mark=MARKS[verdict],
        details=_details(m, given, name, verdict),
    )


def _details(m: Numbers, given: Mapping, name: str, verdict: str) -> str:
    """Difference with its interval, n of both sides; of a list what is new; or why there is nothing.

    What is within chance says which change would have been seen.
    """
    key = f"changes.{name}"
    ns = ""
    if m.has(f"{key}.n_before") and m.has(f"{key}.n_after"):
        counts = " and ".join(f"[{key}.n_{side}]" for side in ("before", "after"))
        ns = f"n = {counts} {m.unit(f'{key}.n_after')}"
    if not m.has(f"{key}.difference"):
        return joined(words.capital(m.value(f"{key}.reason", "not estimated")), ns)
    if _MEASURES[name].new:
        return joined(_new(given, *_MEASURES[name].new), ns)
    worded = words.points if _MEASURES[name].unit == " points" else words.number
    value = m[f"{key}.difference"]
    difference = m.keyed(f"{key}.difference", f"{'+' * (value > 0)}{worded(value)}") + _MEASURES[name].unit
    ci = ""
    if m.has(f"{key}.low") and m.has(f"{key}.high"):
        ci = f"95% CI {m.span(f'{key}.low', f'{key}.high', worded=worded)}"
        if verdict == CHANCE and m.has(f"{key}.detectable_ratio"):
            ci += f"; detectable: [{key}.detectable_ratio] times"
    elif verdict != TOO_FEW_WEEKS and m.has(f"{key}.reason"):
        ci = m[f"{key}.reason"]
    lost = ""
    if m.has(f"{key}.gpu_hours_after"):
        lost = f"[{key}.gpu_hours_before] and [{key}.gpu_hours_after] GPU-h"
    return joined(f"{difference}{f' ({ci})' if ci else ''}", lost, ns)


def _new(given: Mapping, table: str, what: Callable[[dict], str]) -> str:
    rows = given[table].head(MOST_NAMED).iter_rows(named=True)
    named = ", ".join(what(row) for row in rows)
    more = given[table].height - MOST_NAMED
    return f"New: {named}{f' and {words.count(more)} more' if more > 0 else ''}" if named else "Nothing new"


def _forecast(m: Numbers, unit: str) -> str:
    """Next week: 123 failed jobs (90% PI 82–170; 4 of 4 weeks held), 7.88 infrastructure failures (90% PI 4–14)."""
    said = []
    for name, what in (("failed_jobs", f"failed {unit}s"), ("infra_failures", "infrastructure failures")):
        key = f"forecast.{name}"
        if not m.has(f"{key}.high"):
            said.append(f"{what}: no forecast ({m.value(f'{key}.reason', 'not known')})")
            continue
        ends = m.span(f"{key}.low", f"{key}.high", worded=words.count)
        held = ""
        if m.value(f"{key}.tried", 0):
            held = f"; [{key}.held] of [{key}.tried] weeks held"
        said.append(f"[{key}.expected] {what} (90% PI {ends}{held})")
    return f"Next week: {', '.join(said)}."


def _notes(m: Numbers, unit: str) -> list[str]:
    """How it was tested, in the fold."""
    notes = [
        (
            "The part is compared with the [changes.parts_before part] before it. Both sides are computed "
            "by this version of the program from the raw data: no version explains a change."
        )
    ]
    if m.has("changes.failure_share.follow_up_s"):
        within = "[changes.failure_share.follow_up_s]"
        notes.append(
            f"Failed {unit}s: of those that started {within} or more before the end of their part and ended within "
            f"{within}; all others are left out of both sides alike."
        )
        notes.append(
            "Rates and lost time go by time: a run across the border counts on both sides, its failure at its end."
        )
    notes.append(
        "A verdict needs an adjusted p below 0.05 (Holm): in the long run one of twenty parts in which nothing changed "
        "has any change. Detectable: by how much a measure, if it alone changes, has to change to be found with 80% "
        "power."
    )
    if m["changes.parts_before"] < FEWEST_PARTS:
        notes.append(
            f"How parts differ among themselves is known from {FEWEST_PARTS} parts before on; until then rates and "
            "shares have no verdict."
        )
    if m.has("changes.suspect_nodes.p_value"):
        notes.append(
            "Suspect nodes are those with excess failures in as much time before as after. A node is new if it fails "
            "more often in the part than before: not because more was seen of it."
        )
    return notes

"""What changed since the last part of the records: with what the page of such a trace begins."""

from collections.abc import Callable, Mapping

from ttf import words
from ttf.analyses.compare_parts import CHANCE, CHANGED, FEWEST_PARTS, TOO_FEW, TOO_FEW_WEEKS
from ttf.page import rules
from ttf.page.model import Change, Changes
from ttf.page.numbers import Numbers
from ttf.page.phrases import joined, number, of_trace, plural, span

MARKS = {CHANGED: "≠", CHANCE: "≈", TOO_FEW_WEEKS: "?", TOO_FEW: "?"}
_TITLES = {
    "failure_share": "Failed {}s",
    "infra_rate": "Infrastructure failure rate",
    "ettr": "ETTR",
    "lost_time": "Lost GPU time",
    "suspect_nodes": "Suspect nodes",
    "failure_words": "Failure reasons",
}
_IN_SENTENCES = {
    "failure_share": "the failure share",
    "infra_rate": "the failure rate of nodes",
    "ettr": "the ETTR",
    "lost_time": "the lost GPU time",
    "suspect_nodes": "suspect nodes",
    "failure_words": "failure reasons",
}
MOST_NAMED = 3


def changes(m: Numbers, given: Mapping, unit: str) -> Changes | None:
    """None of a trace with fewer than two parts that have jobs."""
    if not m.has("changes.part"):
        return None
    rows = tuple(_change(m, given, name, unit) for name in _TITLES)
    return Changes(
        title=f"What changed with {of_trace(m['changes.part'])}",
        summary=_summary(m, rows),
        rows=rows,
        forecast=_forecast(m, unit),
        notes=tuple(_notes(m, unit)),
    )


def _summary(m: Numbers, rows: tuple[Change, ...]) -> str:
    of_verdict = {verdict: [row.name for row in rows if row.verdict == verdict] for verdict in MARKS}
    changed = [_IN_SENTENCES[name] for name in of_verdict[CHANGED]]
    of = f"of {number(m, 'changes.measures', words.count)} measures"
    said = [f"None {of} changed"]
    if changed:
        *most, last = changed
        named = f"{', '.join(most)} and {last}" if most else last
        said = [f"{words.count(len(changed))} {of} changed ({MARKS[CHANGED]}): {named}"]
    for verdict in (CHANCE, TOO_FEW_WEEKS, TOO_FEW):
        if of_verdict[verdict]:
            said.append(f"{words.count(len(of_verdict[verdict]))} {verdict} ({MARKS[verdict]})")
    return f"{'; '.join(said)}."


def _change(m: Numbers, given: Mapping, name: str, unit: str) -> Change:
    key = f"changes.{name}"
    # What may not be said of the run is out of the numbers.
    verdict = m.value(f"{key}.verdict", TOO_FEW)
    worded = _WORDED[name]
    both = m.has(f"{key}.before") and m.has(f"{key}.after")
    any_failure = name == "infra_rate" and rules.r1_cause_unknown(m)
    return Change(
        name=name,
        title="Failure rate per node" if any_failure else _TITLES[name].format(unit),
        before=number(m, f"{key}.before", worded) if both else "",
        after=number(m, f"{key}.after", worded) if both else "",
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
        counts = " and ".join(number(m, f"{key}.n_{side}", words.count) for side in ("before", "after"))
        ns = f"n = {counts} {m.unit(f'{key}.n_after')}"
    if name in _LISTS and m.has(f"{key}.difference"):
        return joined(_LISTS[name](given), ns)
    if not m.has(f"{key}.difference"):
        return joined(_capital(m.value(f"{key}.reason", "not estimated")), ns)
    worded, of = _DIFFERENCES[name]
    difference = f"{_signed(m, f'{key}.difference', worded)}{of}"
    ci = ""
    if m.has(f"{key}.low") and m.has(f"{key}.high"):
        ci = f"95% CI {span(m, f'{key}.low', f'{key}.high', worded)}"
        if verdict == CHANCE and m.has(f"{key}.detectable_ratio"):
            ci += f"; detectable: {number(m, f'{key}.detectable_ratio')} times"
    elif verdict != TOO_FEW_WEEKS and m.has(f"{key}.reason"):
        ci = m[f"{key}.reason"]
    lost = ""
    if m.has(f"{key}.gpu_hours_after"):
        lost = f"{number(m, f'{key}.gpu_hours_before')} and {number(m, f'{key}.gpu_hours_after')} GPU-h"
    return joined(f"{difference}{f' ({ci})' if ci else ''}", lost, ns)


def _signed(m: Numbers, key: str, worded: Callable[[float], str]) -> str:
    sign = "+" if m[key] > 0 else ""
    return number(m, key, text=f"{sign}{worded(m[key])}")


def _new(given: Mapping, table: str, what: Callable[[dict], str]) -> str:
    rows = given[table].head(MOST_NAMED).iter_rows(named=True)
    named = ", ".join(what(row) for row in rows)
    more = given[table].height - MOST_NAMED
    return f"New: {named}{f' and {words.count(more)} more' if more > 0 else ''}" if named else "Nothing new"


def _points(value: float) -> str:
    return f"{100 * value:.1f}".replace("-", "−")


_WORDED = {
    "failure_share": words.share,
    "infra_rate": words.number,
    "ettr": words.share,
    "lost_time": words.share,
    "suspect_nodes": words.count,
    "failure_words": words.count,
}
_DIFFERENCES = {
    "failure_share": (_points, " points"),
    "infra_rate": (words.number, " per 1,000 node-days"),
    "ettr": (_points, " points"),
    "lost_time": (_points, " points"),
}
_LISTS = {
    "suspect_nodes": lambda given: _new(given, "new_suspect_nodes", lambda row: of_trace(row["node"])),
    "failure_words": lambda given: _new(
        given,
        "new_failure_words",
        lambda row: f"{row['kind']} {of_trace(row['word'], 40)} ({words.count(row['failures'])})",
    ),
}


def _forecast(m: Numbers, unit: str) -> str:
    """Next week: 123 failed jobs (90% PI 82–170; 4 of 4 weeks held), 7.88 infrastructure failures (90% PI 4–14)."""
    said = []
    for name, what in (("failed_jobs", f"failed {unit}s"), ("infra_failures", "infrastructure failures")):
        key = f"forecast.{name}"
        if not m.has(f"{key}.high"):
            said.append(f"{what}: no forecast ({m.value(f'{key}.reason', 'not known')})")
            continue
        ends = span(m, f"{key}.low", f"{key}.high", words.count)
        held = ""
        if m.value(f"{key}.tried", 0):
            of = number(m, f"{key}.tried", words.count)
            held = f"; {number(m, f'{key}.held', words.count)} of {of} weeks held"
        said.append(f"{number(m, f'{key}.expected', words.number)} {what} (90% PI {ends}{held})")
    return f"Next week: {', '.join(said)}."


def _notes(m: Numbers, unit: str) -> list[str]:
    """How it was tested, in the fold."""
    notes = [
        f"The part is compared with the {plural(m, 'changes.parts_before', 'part')} before it. Both sides are computed "
        "by this version of the program from the raw data: no version explains a change."
    ]
    if m.has("changes.failure_share.follow_up_s"):
        within = number(m, "changes.failure_share.follow_up_s", words.duration)
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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

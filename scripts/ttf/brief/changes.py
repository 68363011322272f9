"""What changed since the last part of the records: with what the page of such a trace begins."""

from collections.abc import Callable, Mapping

from ttf.analyses.compare_parts import CHANCE, CHANGED, FEWEST_PARTS, TOO_FEW
from ttf.brief.model import Change, Changes
from ttf.brief.texts import joined, plural, span
from ttf.report import words
from ttf.report.numbers import Numbers
from ttf.report.said import number, of_trace

MARKS = {CHANGED: "≠", CHANCE: "≈", TOO_FEW: "?"}
# What each measure is called, and its place in a sentence.
_TITLES = {
    "failure_share": ("Failed jobs", "the share of failed jobs"),
    "infra_rate": ("Infrastructure rate", "the infrastructure failure rate"),
    "ettr": ("ETTR", "the ETTR"),
    "lost_time": ("Lost GPU time", "the lost GPU time"),
    "suspect_nodes": ("Suspect nodes", "suspect nodes"),
    "failure_words": ("Failure reasons", "failure reasons"),
}
MOST_NAMED = 3


def changes(m: Numbers, given: Mapping, unit: str) -> Changes | None:
    """None of a trace with fewer than two parts that have jobs."""
    if not m.has("changes.part"):
        return None
    rows = tuple(_change(m, given, name, unit) for name in _TITLES)
    before = plural(m, "changes.parts_before", "part")
    return Changes(
        title=f"What changed with {of_trace(m['changes.part'])}, against {before} before",
        summary=_summary(m, rows),
        rows=rows,
        forecast=_forecast(m, unit),
        notes=tuple(_notes(m, unit)),
    )


def _summary(m: Numbers, rows: tuple[Change, ...]) -> str:
    changed = [_TITLES[row.name][1] for row in rows if row.verdict == CHANGED]
    few = [row for row in rows if row.verdict == TOO_FEW]
    signs = [f"{MARKS[CHANCE]} within chance"] if len(changed) + len(few) < len(rows) else []
    signs += [f"{MARKS[TOO_FEW]} too few to tell"] if few else []
    of = f"of {number(m, 'changes.measures', words.count)} measures"
    if not changed:
        first = f"None {of} changed beyond chance"
    else:
        named = " and ".join(filter(None, (", ".join(changed[:-1]), changed[-1])))
        first = f"{number(m, 'changes.changed', words.count)} {of} changed ({MARKS[CHANGED]}): {named}"
    alone = m["changes.parts_before"] < FEWEST_PARTS and m.has("changes.cluster_by")
    by = f" among {m['changes.cluster_by']}s alone" if alone else ""
    if signs and by:
        signs[0] += by if signs[0].endswith("chance") else ""
    return f"{first}; {', '.join(signs)}." if signs else f"{first}."


def _change(m: Numbers, given: Mapping, name: str, unit: str) -> Change:
    key = f"changes.{name}"
    # What may not be said of the run is out of the numbers.
    verdict = m.value(f"{key}.verdict", TOO_FEW)
    worded = _WORDED[name]
    both = m.has(f"{key}.before") and m.has(f"{key}.after")
    title = _TITLES[name][0].replace("jobs", f"{unit}s")
    return Change(
        name=name,
        title=title,
        before=number(m, f"{key}.before", worded) if both else "",
        after=number(m, f"{key}.after", worded) if both else "",
        verdict=verdict,
        mark=MARKS[verdict],
        details=_details(m, given, name),
    )


def _details(m: Numbers, given: Mapping, name: str) -> str:
    """Difference with its interval, n of both sides; of a list what is new; or why there is nothing."""
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
    elif m.has(f"{key}.reason"):
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
    return f"New: {named}{f' and {words.count(more)} more' if more > 0 else ''}" if named else "None is new"


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
    """Next week: 82–170 failed jobs (4 of 4 weeks held), 4–14 infrastructure failures (4 of 4)."""
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
        said.append(f"{number(m, f'{key}.expected', words.number)} {what} (90% {ends}{held})")
    return f"Next week: {', '.join(said)}."


def _notes(m: Numbers, unit: str) -> list[str]:
    """How it was tested, in the fold."""
    notes = ["Both sides are computed by this version of the program from the raw data: no version explains a change."]
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
        "has any change."
    )
    if m["changes.parts_before"] < FEWEST_PARTS:
        notes.append(
            f"How parts differ among themselves is known from {FEWEST_PARTS} parts before on; until then a change may "
            "be one that parts often have."
        )
    if m.value("changes.new_suspect_nodes", 0):
        notes.append("A node is suspect as soon as enough was seen of it: it may have failed as often before.")
    return notes


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

"""The page that compares the traces of a study: a row for each, of what is defined alike in all that have it.

Everything is from each trace's brief and numbers: what its own page withholds, or tells of something else, such as a
rate of any failure, is "not estimated" here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2

from ttf.analyses.comparison.compare_traces import page as room
from ttf.display import phrases
from ttf.display.brief_model import FEW, WITHHELD, Tile
from ttf.display.charts.theme import FAILURE, GRID, INFRA
from ttf.display.phrases import joined
from ttf.display.report_trace import Trace
from ttf.display.statement_rules import choose_shape
from ttf.display.trace_numbers import interval_about
from ttf.engine import words
from ttf.engine.size_unit import GPU
from ttf.page.report.blocks import Blocks, counted, macros, raw
from ttf.page.report.trace_page import Entry, Frame, data_of_scripts

# px
WIDTH, HEIGHT, RADIUS = 140, 16, 4.5
_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_CAUSES = "sizes.basis"


@dataclass(frozen=True)
class Cell:
    """value: in words, with `note` and `within` below; exact, ends: the number and its interval. reason: why there is
    none, and `says` what stands in its place. Neither: nothing of the kind can be.
    """

    value: str = ""
    note: str = ""
    within: str = ""
    exact: float | None = None
    ends: tuple[float, float] | None = None
    few: bool = False
    reason: str = ""
    says: str = "not estimated"


@dataclass(frozen=True)
class Row:
    """What the table says of a trace; href: its own page."""

    href: str
    title: str
    about: str
    jobs: Cell
    failed: Cell
    rate: Cell
    largest: Cell
    ettr: Cell
    shape: Cell


def row_of(trace: Trace, href: str) -> Row:
    """The row of a trace of jobs, or of components, which take part in what is defined of them."""
    m, about = trace.metrics, trace.about
    kind = "synthetic" if about["synthetic"] else ""
    says = [kind, "" if trace.has_jobs else f"lifetimes of {about['unit']}s", trace.brief.period]
    key, within = choose_shape(m)
    shape = replace(_cell(m, key, words.number), within=within)
    if not trace.has_jobs:
        per = Cell(reason=f"its rate is of a {about['unit']} in service, not of a node that jobs use", says="not alike")
        return Row(href, trace.title, joined(*says, by=", "), Cell(), Cell(), per, Cell(), Cell(), shape)
    ended = words.count(m.n("outcomes.failure_share")) if m.has("outcomes.failure_share") else "0"
    rate = _of_tile(trace, "node_rate", words.number)
    if m.value(_CAUSES, "proxy") == "proxy":
        rate = Cell(reason="any failure would count as one of the infrastructure", says="causes not recorded")
    ettr = _of_tile(trace, "ettr", words.share)
    if ettr.value and m.has("ettr.assumed.size_of_the_run"):
        unit = m.value("ettr.unit", "GPUs")
        note = f"{words.count(m['ettr.assumed.size_of_the_run'])} {unit}"
        ettr = replace(ettr, note=note)
    return Row(
        *(href, trace.title, joined(*says, by=", ")),
        jobs=Cell(words.count(m["data.jobs"]) if m.has("data.jobs") else "", f"{ended} ended"),
        failed=_of_tile(trace, "failure_rate", words.share),
        rate=rate,
        largest=_largest(m),
        ettr=ettr,
        shape=shape,
    )


def _largest(m) -> Cell:
    if not m.has("states.gpu.gpus_max"):
        return Cell(reason="no number of GPUs is recorded")
    return Cell(words.count(m["states.gpu.gpus_max"]), "" if m.size == GPU else f"{m.size}s")


def _of_tile(trace: Trace, name: str, worded: Callable[[float], str]) -> Cell:
    """What a tile of the trace's own page gives: the number, or why there is none."""
    tile: Tile | None = next((tile for tile in trace.brief.tiles if tile.name == name), None)
    if tile is None or tile.state == WITHHELD or not phrases.keys(tile.value):
        why = tile.interval or tile.means if tile else "the trace has no such number"
        return Cell(reason=phrases.plain(why).rstrip("."))
    key = phrases.keys(tile.value)[0]
    cell = _cell(trace.metrics, key, worded, tile.state == FEW)
    # A bound, "< 0.4", is no estimate to draw.
    return cell if tile.value.startswith("{") else Cell(phrases.plain(tile.value), few=cell.few)


def _cell(m, key: str, worded: Callable[[float], str], few: bool = False) -> Cell:
    if not m.has(key):
        return Cell(reason="the trace has no such number")
    low, high, _ = interval_about(m, key) or (None, None, "")
    if low is None or high is None:
        return Cell(worded(m[key]), exact=m[key], few=few)
    ends = (f"{key}_low", f"{key}_ci_low", f"{key.rpartition('.')[0]}.ci_low")
    clustered = any(f"{end}_clustered" in m for end in ends)
    note = words.span(worded(low), worded(high)) + ("" if clustered else "*")
    return Cell(worded(m[key]), note, exact=m[key], ends=(low, high), few=few)


def dot(cell: Cell, low: float, high: float, colour: str, log: bool = False) -> str:
    """The cell on a line from `low` to `high`: a point, and a bar for its interval. What it says stands beside it."""
    if cell.exact is None:
        return ""
    scale = math.log10 if log else float

    def at(value: float) -> float:
        share = (scale(min(max(value, low), high)) - scale(low)) / (scale(high) - scale(low))
        return round(RADIUS + share * (WIDTH - 2 * RADIUS), 1)

    middle, first, last = HEIGHT / 2, *(cell.ends or (cell.exact, cell.exact))
    return (
        f'<svg class="dot" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true">'
        f'<path d="M0,{middle:g}H{WIDTH}" stroke="{GRID}"/>'
        f'<path d="M{at(first):g},{middle:g}H{at(last):g}" stroke="{colour}" stroke-width="2"/>'
        f'<circle cx="{at(cell.exact):g}" cy="{middle:g}" r="{RADIUS}" fill="{colour}"/></svg>'
    )


def decades(cells: Sequence[Cell]) -> tuple[float, float]:
    """From a power of ten to a power of ten, around all that is drawn."""
    values = [value for cell in cells if cell.exact for value in (cell.exact, *(cell.ends or ())) if value > 0]
    low, high = math.floor(math.log10(min(values, default=1))), math.ceil(math.log10(max(values, default=10)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def bottom_line(traces: Sequence[Trace]) -> tuple[str, str]:
    """Which rates can be compared, and what a failure is."""
    of_jobs = [trace for trace in traces if trace.has_jobs]
    known = sum(trace.metrics.value(_CAUSES, "proxy") != "proxy" for trace in of_jobs)
    n = len(of_jobs)
    if not n:
        return "No trace has jobs: only the ages at which components fail can be compared.", ""
    of = f"{_count(n)} trace{'s' * (n > 1)}{' of jobs' * (n < len(traces))}"
    if n == 1:
        first = f"The {of} records {'' if known else 'no '}causes"
    elif known == n:
        first = f"All of {of} record causes"
    else:
        first = f"{f'Only {_count(known)}' if known else 'None'} of {of} record{'s' * (known == 1)} causes"
    which = "" if known == n else f" for {_count(known)}"
    can = f"can be compared{which}" if known > 1 else "cannot be compared"
    return f"{first}, so infrastructure rates {can}.", "Failure rates count what each system calls a failure."


def _count(number: int) -> str:
    return _SMALL[number] if number < len(_SMALL) else words.count(number)


def comparison_page(
    jinja: jinja2.Environment,
    templates: Path,
    traces: Sequence[Trace],
    hrefs: Mapping[str, str],
    compared: Trace,
    frame: Frame,
) -> str:
    """The page as .qmd. compared: what rule compare_traces made, as a trace; hrefs: trace -> its page."""
    rows = [row_of(trace, hrefs[trace.name]) for trace in traces]
    low, high = decades([row.rate for row in rows])
    dots = [(dot(row.failed, 0, 1, FAILURE), dot(row.rate, low, high, INFRA, log=True)) for row in rows]
    blocks = Blocks(compared, templates, room.tables(compared, traces))
    frame.top = [{"anchor": "overview", "title": "Overview"}]
    frame.groups = [("Details", [Entry("Tables and charts", "#compared")]), ("Study", frame.others)]
    first, second = bottom_line(traces)
    starred = any(cell.note.endswith("*") for row in rows for cell in (row.failed, row.rate, row.shape))
    overview = macros(templates, "comparison.html").comparison(
        frame, rows, dots, first, second, f"{low:,g} to {high:,g}", starred
    )
    fold = jinja.get_template("compare_traces/comparison.qmd").render(
        room.context(compared, traces) | {"m": compared.metrics, "chart": blocks.chart, "table": blocks.table}
    )
    shared = macros(templates)
    what = "outcomes, run times, queueing, failure share and MTTF of GPU jobs"
    heading = '<section id="details"><h2 class="kicker">Tables and charts</h2>'
    opened = f"{heading}{shared.fold('compared', 'Details', what, *counted(fold))}"
    details = raw(opened) + fold + raw("</details></section>")
    data = data_of_scripts({name: compared.spec(name) for name in blocks.charts}, frame.citation)
    opening = f"{shared.opening(frame)}{frame.footer_of_print()}{overview}"
    body = raw(opening) + details + raw(f"{shared.closing(frame)}{data}")
    return words.unbroken(frame.front(f"{first} {second}") + body)

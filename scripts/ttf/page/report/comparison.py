"""The page that compares the traces of a study: one row per trace, only measures with the same definition everywhere.

The rows come from the brief and the numbers of each trace. What the page of a trace withholds, or defines differently
(such as a rate of any failure), is "not estimated" here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2

from ttf.analyses.comparison.compare_traces import page as analysis_page
from ttf.display import phrases
from ttf.display.brief_model import FEW, WITHHELD, Tile
from ttf.display.charts.theme import FAILURE, GRID, INFRA
from ttf.display.phrases import join_parts
from ttf.display.report_trace import Trace
from ttf.display.statement_rules import choose_shape
from ttf.display.trace_numbers import find_interval
from ttf.engine import words
from ttf.engine.size_unit import GPU
from ttf.page.report.blocks import Blocks, count_blocks, macros, raw_block
from ttf.page.report.trace_page import Entry, Frame, embed_script_data

# px
WIDTH, HEIGHT, RADIUS = 140, 16, 4.5
_SMALL_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_CAUSE_BASIS = "sizes.basis"


@dataclass(frozen=True)
class Cell:
    """value: the formatted number, with `note` and `scope` below; exact, bounds: the number and its interval.

    reason: why there is no number, and `placeholder` the text in its place. Without value and reason: not applicable.
    """

    value: str = ""
    note: str = ""
    scope: str = ""
    exact: float | None = None
    bounds: tuple[float, float] | None = None
    is_few: bool = False
    reason: str = ""
    placeholder: str = "not estimated"


@dataclass(frozen=True)
class Row:
    """The row of a trace; href: its own page."""

    href: str
    title: str
    subtitle: str
    jobs: Cell
    failed: Cell
    rate: Cell
    largest: Cell
    ettr: Cell
    shape: Cell


def make_row(trace: Trace, href: str) -> Row:
    """Return the row of a trace of jobs, or of components, which have few of the measures."""
    m, trace_info = trace.metrics, trace.info
    kind = "synthetic" if trace_info["synthetic"] else ""
    notes = [kind, "" if trace.has_jobs else f"lifetimes of {trace_info['unit']}s", trace.brief.period]
    key, scope = choose_shape(m)
    shape = replace(_number_cell(m, key, words.number), scope=scope)
    if not trace.has_jobs:
        reason = f"its rate is per {trace_info['unit']} in service, not per node that jobs use"
        rate = Cell(reason=reason, placeholder="not comparable")
        return Row(href, trace.title, join_parts(*notes, by=", "), Cell(), Cell(), rate, Cell(), Cell(), shape)
    ended = words.count(m.n("outcomes.failure_share")) if m.has("outcomes.failure_share") else "0"
    rate = _tile_cell(trace, "node_rate", words.number)
    if m.value(_CAUSE_BASIS, "proxy") == "proxy":
        rate = Cell(reason="every failure would count as infrastructure", placeholder="causes not recorded")
    ettr = _tile_cell(trace, "ettr", words.share)
    if ettr.value and m.has("ettr.assumed.size_of_the_run"):
        ettr = replace(ettr, note=f"{words.count(m['ettr.assumed.size_of_the_run'])} {m.value('ettr.unit', 'GPUs')}")
    return Row(
        *(href, trace.title, join_parts(*notes, by=", ")),
        jobs=Cell(words.count(m["data.jobs"]) if m.has("data.jobs") else "", f"{ended} ended"),
        failed=_tile_cell(trace, "failure_rate", words.share),
        rate=rate,
        largest=_largest_job_cell(m),
        ettr=ettr,
        shape=shape,
    )


def _largest_job_cell(m) -> Cell:
    if not m.has("states.gpu.gpus_max"):
        return Cell(reason="no number of GPUs is recorded")
    return Cell(words.count(m["states.gpu.gpus_max"]), "" if m.size == GPU else f"{m.size}s")


def _tile_cell(trace: Trace, name: str, format_value: Callable[[float], str]) -> Cell:
    """Return the number of a tile of the trace's page, or the reason why there is none."""
    tile: Tile | None = next((tile for tile in trace.brief.tiles if tile.name == name), None)
    if tile is None or tile.state == WITHHELD or not phrases.list_keys(tile.value):
        reason = tile.interval or tile.means if tile else "the trace has no such number"
        return Cell(reason=phrases.strip_markup(reason).rstrip("."))
    key = phrases.list_keys(tile.value)[0]
    cell = _number_cell(trace.metrics, key, format_value, tile.state == FEW)
    # A bound such as "< 0.4" is not an estimate, so it is not drawn.
    return cell if tile.value.startswith("{") else Cell(phrases.strip_markup(tile.value), is_few=cell.is_few)


def _number_cell(m, key: str, format_value: Callable[[float], str], is_few: bool = False) -> Cell:
    if not m.has(key):
        return Cell(reason="the trace has no such number")
    low, high, _ = find_interval(m, key) or (None, None, "")
    if low is None or high is None:
        return Cell(format_value(m[key]), exact=m[key], is_few=is_few)
    low_keys = (f"{key}_low", f"{key}_ci_low", f"{key.rpartition('.')[0]}.ci_low")
    is_clustered = any(f"{end}_clustered" in m for end in low_keys)
    note = words.join_range(format_value(low), format_value(high)) + ("" if is_clustered else "*")
    return Cell(format_value(m[key]), note, exact=m[key], bounds=(low, high), is_few=is_few)


def draw_dot(cell: Cell, low: float, high: float, colour: str, log: bool = False) -> str:
    """Draw the cell on a line from `low` to `high`: a point, and a bar for its interval."""
    if cell.exact is None:
        return ""
    scale = math.log10 if log else float

    def position(value: float) -> float:
        share = (scale(min(max(value, low), high)) - scale(low)) / (scale(high) - scale(low))
        return round(RADIUS + share * (WIDTH - 2 * RADIUS), 1)

    middle, x_low, x_high = HEIGHT / 2, *(cell.bounds or (cell.exact, cell.exact))
    return (
        f'<svg class="dot" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true">'
        f'<path d="M0,{middle:g}H{WIDTH}" stroke="{GRID}"/>'
        f'<path d="M{position(x_low):g},{middle:g}H{position(x_high):g}" stroke="{colour}" stroke-width="2"/>'
        f'<circle cx="{position(cell.exact):g}" cy="{middle:g}" r="{RADIUS}" fill="{colour}"/></svg>'
    )


def rate_axis(cells: Sequence[Cell]) -> tuple[float, float]:
    """Return the powers of ten below and above all values drawn."""
    values = [value for cell in cells if cell.exact for value in (cell.exact, *(cell.bounds or ())) if value > 0]
    low, high = math.floor(math.log10(min(values, default=1))), math.ceil(math.log10(max(values, default=10)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def bottom_line(traces: Sequence[Trace]) -> tuple[str, str]:
    """Return two sentences: which rates can be compared, and what counts as a failure."""
    job_traces = [trace for trace in traces if trace.has_jobs]
    n_known = sum(trace.metrics.value(_CAUSE_BASIS, "proxy") != "proxy" for trace in job_traces)
    n = len(job_traces)
    if not n:
        return "No trace has jobs: only the ages at which components fail can be compared.", ""
    traces_text = f"{_format_count(n)} trace{'s' * (n > 1)}{' of jobs' * (n < len(traces))}"
    if n == 1:
        first = f"The {traces_text} records {'' if n_known else 'no '}causes"
    elif n_known == n:
        first = f"All of {traces_text} record causes"
    else:
        subject = f"Only {_format_count(n_known)}" if n_known else "None"
        first = f"{subject} of {traces_text} record{'s' * (n_known == 1)} causes"
    subset = "" if n_known == n else f" for {_format_count(n_known)}"
    conclusion = f"can be compared{subset}" if n_known > 1 else "cannot be compared"
    return f"{first}, so infrastructure rates {conclusion}.", "Failure rates count what each system calls a failure."


def _format_count(number: int) -> str:
    return _SMALL_NUMBERS[number] if number < len(_SMALL_NUMBERS) else words.count(number)


def comparison_page(
    jinja: jinja2.Environment,
    templates: Path,
    traces: Sequence[Trace],
    hrefs: Mapping[str, str],
    comparison: Trace,
    frame: Frame,
) -> str:
    """Return the page as .qmd. comparison: the products of rule compare_traces as a trace; hrefs: trace -> its page."""
    rows = [make_row(trace, hrefs[trace.name]) for trace in traces]
    low, high = rate_axis([row.rate for row in rows])
    dots = [(draw_dot(row.failed, 0, 1, FAILURE), draw_dot(row.rate, low, high, INFRA, log=True)) for row in rows]
    blocks = Blocks(comparison, templates, analysis_page.tables(comparison, traces))
    frame.top = [{"anchor": "overview", "title": "Overview"}]
    frame.groups = [("Details", [Entry("Tables and charts", "#compared")]), ("Study", frame.page_links)]
    first, second = bottom_line(traces)
    starred = any(cell.note.endswith("*") for row in rows for cell in (row.failed, row.rate, row.shape))
    overview = macros(templates, "comparison.html").comparison(
        frame, rows, dots, first, second, f"{low:,g} to {high:,g}", starred
    )
    fold = jinja.get_template("compare_traces/comparison.qmd").render(
        analysis_page.context(comparison, traces)
        | {"m": comparison.metrics, "chart": blocks.chart, "table": blocks.table}
    )
    shared = macros(templates)
    contents = "outcomes, run times, queueing, failure share and MTTF of GPU jobs"
    heading = '<section id="details"><h2 class="kicker">Tables and charts</h2>'
    opening = f"{heading}{shared.fold('compared', 'Details', contents, *count_blocks(fold))}"
    details = raw_block(opening) + fold + raw_block("</details></section>")
    data = embed_script_data({name: comparison.spec(name) for name in blocks.charts}, frame.citation)
    body_start = f"{shared.opening(frame)}{frame.print_footer()}{overview}"
    body = raw_block(body_start) + details + raw_block(f"{shared.closing(frame)}{data}")
    return words.add_no_break_spaces(frame.front(f"{first} {second}") + body)

"""The comparison of the traces of a study, as a page and as a table: only numbers with the same basis and unit.

Every value is that of the trace's own page, from its brief and its numbers. What that page withholds is "not estimated"
here; what has another basis than most traces is "not comparable".
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from ttf.display import phrases, statement_rules
from ttf.display.brief_model import FEW, WITHHELD, Tile
from ttf.display.charts.theme import FAILURE, GRID, INFRA
from ttf.display.phrases import join_parts
from ttf.display.report_trace import Trace
from ttf.display.trace_numbers import Numbers, find_interval
from ttf.engine import words
from ttf.page.report.blocks import raw_block
from ttf.page.report.templates import macros
from ttf.page.report.trace_page import Frame, embed_script_data

# px
WIDTH, HEIGHT, RADIUS = 140, 16, 4.5
# The bottom line names at most so many differences.
MOST_DIFFERENCES = 2
NO_NUMBER, JOBS = "the trace has no such number", "jobs"


@dataclass(frozen=True)
class Cell:
    """value: the formatted number, with `note` and `scope` below; key, exact, bounds: the number and its interval.

    basis: what the number counts; numbers with different bases are not comparable. cluster_by: clusters of the
    interval; "" if it is valid only for independent failures. reason: why there is no number, and `placeholder` the
    text in its place. Without value and reason: not applicable.
    """

    value: str = ""
    note: str = ""
    scope: str = ""
    key: str = ""
    exact: float | None = None
    bounds: tuple[float, float] | None = None
    is_few: bool = False
    basis: str = ""
    cluster_by: str = ""
    reason: str = ""
    placeholder: str = "not estimated"


class Quantity(NamedTuple):
    """A column of the page. make: its cell of a trace; of_jobs: components have none; has_ratio: ratios have a meaning.

    plural: in the headline, "" if it does not name the quantity. colour: of its dots; "" for none.
    """

    title: str
    note: str
    plural: str
    make: Callable[[Trace], Cell]
    of_jobs: bool = False
    has_ratio: bool = True
    colour: str = ""


def _jobs_cell(trace: Trace) -> Cell:
    m = trace.metrics
    ended = words.count(m.n("outcomes.failure_share")) if "outcomes.failure_share" in m else "0"
    largest = ""
    if "states.gpu.gpus_max" in m:
        largest = f"largest: {words.plural(m['states.gpu.gpus_max'], m.size)}"
    return replace(_number_cell(m, "data.jobs", words.count), note=f"{ended} ended", scope=largest)


def _failure_cell(trace: Trace) -> Cell:
    return _tile_cell(trace, "failure_rate", words.share)


def _lost_time_cell(trace: Trace) -> Cell:
    return replace(_tile_cell(trace, "failed_gpu_time", words.share), basis=f"{trace.metrics.size} time")


def _wait_cell(trace: Trace) -> Cell:
    reason = trace.metrics.value("queue.reason", "no wait is known")
    return _number_cell(trace.metrics, "workload.queue.all.median_s", words.duration, reason=reason)


def _mttf_cell(trace: Trace) -> Cell:
    """Return the mean time to failure of all jobs or components, or its range if few ends are recorded."""
    m, basis = trace.metrics, JOBS if trace.has_jobs else f"{words.plural_noun(trace.info['unit'])} in service"
    if "mttf.range.low_s" in m:
        low, high = m["mttf.range.low_s"], m["mttf.range.high_s"]
        return Cell(words.time_range(low, high, high), "range", m["mttf.range.why"], basis=basis)
    is_few = statement_rules.r8_few(m.value("mttf.events", 0))
    return replace(_number_cell(m, "mttf.mttf_s", words.duration, is_few), basis=basis)


def _shape_cell(trace: Trace) -> Cell:
    m = trace.metrics
    key, scope = statement_rules.choose_shape(m)
    if statement_rules.r6_ends_unknown(m):
        return Cell(reason="too few failures have a recorded end")
    kind = JOBS if trace.has_jobs else words.plural_noun(trace.info["unit"])
    return replace(_number_cell(m, key, words.number), scope=scope, basis=f"{kind}, {scope or 'over all'}")


def _rate_cell(trace: Trace) -> Cell:
    m = trace.metrics
    if trace.has_jobs and statement_rules.r1_cause_unknown(m):
        return Cell(reason="every failure would count as infrastructure", placeholder="causes not recorded")
    cell = _tile_cell(trace, "node_rate", words.number)
    if not trace.has_jobs:
        return replace(cell, basis=f"per {trace.info['unit']} in service")
    above = m.value("sizes.rate.above_gpus", 0)
    size = f"jobs > {words.plural(above, m.size)}" if above else "jobs of all sizes"
    source = {"state": "states", "event": "health events"}.get(m["sizes.basis"], m["sizes.basis"])
    basis = f"{size}, by {source}"
    has_mean = cell.value and "sizes.rate.days_per_failure" in m
    mean = f"MTTF of a node: {words.number(m['sizes.rate.days_per_failure'])} days; " if has_mean else ""
    return replace(cell, basis=basis, scope=f"{mean}{basis}")


def _ettr_cell(trace: Trace) -> Cell:
    m = trace.metrics
    cell = _tile_cell(trace, "ettr", words.share)
    if not cell.value or "ettr.assumed.size_of_the_run" not in m:
        return cell
    base = "scheduled time" if statement_rules.ettr_key(m).endswith("scheduled_ettr") else "wall-clock time"
    run = f"{statement_rules.target(m)}, {m.value('ettr.assumed.work_of_the_run', 0) / 86_400:g} days"
    kind = "measured" if statement_rules.r13_long_runs_differ(m) else "model"
    return replace(cell, scope=f"{run}, {base}", basis=f"{run}, {base}, {kind}")


def _outage_cell(trace: Trace, key: str, format_value: Callable[[float], str]) -> Cell:
    m = trace.metrics
    if not m.value("outages.outages"):
        return Cell(reason="no outages are recorded", placeholder="not recorded")
    is_few = statement_rules.r8_few(m["outages.outages"])
    cell = _number_cell(m, key, format_value, is_few, reason="the observed units are unknown")
    planned = f"planned outages {'included' if 'outages.planned.outages' in m else 'not recorded'}"
    return replace(cell, scope=f"of a {m['outages.unit']}", basis=f"{m['outages.unit']}s, {planned}")


_RATE = Quantity(
    "Infrastructure failures per 1,000 node-days",
    "90% CI",
    "infrastructure failure rates",
    _rate_cell,
    colour=INFRA,
)
_FAILURE = Quantity(
    "Failure rate of ended jobs", "0 to 100%, 95% CI", "job failure rates", _failure_cell, of_jobs=True, colour=FAILURE
)
# Name of a table, its heading and its columns.
TABLES: tuple[tuple[str, str, tuple[Quantity, ...]], ...] = (
    (
        "nodes",
        "Nodes",
        (
            _RATE,
            Quantity(
                "Time between outages",
                "95% CI",
                "times between outages",
                partial(_outage_cell, key="outages.between.mtbf_s", format_value=words.duration),
            ),
            Quantity(
                "Availability",
                "95% CI",
                "availabilities",
                partial(_outage_cell, key="outages.up.availability", format_value=words.near_one),
                has_ratio=False,
            ),
            Quantity("ETTR", "at the target size", "ETTRs", _ettr_cell, of_jobs=True, has_ratio=False),
        ),
    ),
    (
        "jobs",
        "Jobs and components",
        (
            Quantity("Jobs", "", "", _jobs_cell, of_jobs=True),
            _FAILURE,
            Quantity("MTTF", "any failure, 95% CI", "mean times to failure", _mttf_cell),
            Quantity(
                "GPU time in failed attempts", "95% CI", "shares of failed GPU time", _lost_time_cell, of_jobs=True
            ),
            Quantity("Median wait", "", "median waits", _wait_cell, of_jobs=True),
            Quantity("Weibull shape", "95% CI", "Weibull shapes", _shape_cell, has_ratio=False),
        ),
    ),
)


def _tile_cell(trace: Trace, name: str, format_value: Callable[[float], str]) -> Cell:
    """Return the number of a tile of the trace's page, or the reason why there is none."""
    tile: Tile | None = next((tile for tile in trace.brief.tiles if tile.name == name), None)
    if tile is None or tile.state == WITHHELD or not phrases.list_keys(tile.value):
        reason = tile.interval or tile.means if tile else NO_NUMBER
        return Cell(reason=phrases.strip_markup(reason).rstrip("."))
    key = phrases.list_keys(tile.value)[0]
    cell = _number_cell(trace.metrics, key, format_value, tile.state == FEW)
    # A bound such as "< 0.4" is not an estimate, so it is not drawn.
    return cell if tile.value.startswith("{") else Cell(phrases.strip_markup(tile.value), is_few=cell.is_few)


def _number_cell(
    m: Numbers, key: str, format_value: Callable[[float], str], is_few: bool = False, reason: str = NO_NUMBER
) -> Cell:
    if key not in m:
        return Cell(reason=reason)
    low, high, cluster_by = find_interval(m, key) or (None, None, "")
    if low is None or high is None:
        return Cell(format_value(m[key]), key=key, exact=m[key], is_few=is_few)
    low_keys = (f"{key}_low", f"{key}_ci_low", f"{key.rpartition('.')[0]}.ci_low")
    is_clustered = any(f"{end}_clustered{suffix}" in m for end in low_keys for suffix in ("", "_s"))
    is_time = m.unit(key) == "s"
    note = words.time_range(low, high, m[key]) if is_time else words.join_range(format_value(low), format_value(high))
    note += "" if is_clustered else "*"
    clusters = (cluster_by or "cluster") if is_clustered else ""
    return Cell(
        format_value(m[key]), note, key=key, exact=m[key], bounds=(low, high), is_few=is_few, cluster_by=clusters
    )


def make_cells(quantity: Quantity, traces: Sequence[Trace]) -> list[Cell]:
    """Return the cells of a column: those with the basis of most traces; others are blank, with the reason."""
    cells = [quantity.make(trace) if trace.has_jobs or not quantity.of_jobs else Cell() for trace in traces]
    if not (bases := Counter(cell.basis for cell in cells if cell.value)):
        return cells
    (common_basis, _), *_ = bases.most_common(1)
    return [
        Cell(reason=f"{cell.basis}; here: {common_basis}", placeholder="not comparable")
        if cell.value and cell.basis != common_basis
        else cell
        for cell in cells
    ]


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


def bottom_line(columns: Sequence[tuple[Quantity, Sequence[Cell]]], names: Sequence[str]) -> tuple[str, str]:
    """Return two sentences: what differs and by how much, and what cannot be compared.

    A difference is named if the clustered intervals of the highest and the lowest trace do not overlap.
    """
    differences, equal, incomparable = [], [], []
    for quantity, cells in columns:
        if not quantity.plural:
            continue
        numbers = [(cell.exact, cell, name) for cell, name in zip(cells, names, strict=True) if cell.exact is not None]
        if len(numbers) < 2:
            incomparable.append(quantity.plural)
            continue
        (low, lowest, low_name), (high, highest, high_name) = (
            min(numbers, key=itemgetter(0)),
            max(numbers, key=itemgetter(0)),
        )
        if not (lowest.bounds and highest.bounds):
            continue
        if not (lowest.cluster_by and highest.cluster_by) or lowest.bounds[1] >= highest.bounds[0]:
            equal.append(quantity.plural)
            continue
        factor = ""
        if quantity.has_ratio and low:
            factor = f" by a factor of {words.number(high / low, 2)}"
        values = f"{highest.value} in {high_name}, {lowest.value} in {low_name}"
        differences.append(f"{quantity.plural} differ{factor} ({values})")
    if differences:
        first = f"{words.capitalise('; '.join(differences[:MOST_DIFFERENCES]))}."
    elif equal:
        first = f"No measurable difference in {words.join_list(equal)}."
    else:
        first = "No quantity can be compared between the traces."
    if not (differences or equal) or not incomparable:
        return first, ""
    return first, f"No two traces have a common basis for {words.join_list(incomparable)}."


def clustering_sentence(columns: Sequence[tuple[Quantity, Sequence[Cell]]], names: Sequence[str]) -> str:
    """Return how the intervals of failure rates and mean times to failure are clustered, by trace."""
    names_by_clusters: dict[str, list[str]] = {}
    for quantity, cells in columns:
        for cell, name in zip(cells, names, strict=True):
            if cell.cluster_by and quantity.make in (_failure_cell, _mttf_cell):
                names_by_clusters.setdefault(cell.cluster_by, []).append(name)
    clauses = [f"by {clusters} ({', '.join(dict.fromkeys(group))})" for clusters, group in names_by_clusters.items()]
    if not clauses:
        return ""
    return f"The intervals of failure rates and MTTF are clustered {words.join_list(clauses)}."


def make_columns(traces: Sequence[Trace]) -> list[tuple[Quantity, list[Cell]]]:
    """Return each quantity with its cell of each trace."""
    return [(quantity, make_cells(quantity, traces)) for _, _, quantities in TABLES for quantity in quantities]


def comparison_rows(traces: Sequence[Trace]) -> list[dict]:
    """Return the rows of COMPARISON: one per quantity and trace."""
    rows = []
    for quantity, cells in make_columns(traces):
        for trace, cell in zip(traces, cells, strict=True):
            number = trace.metrics.get(cell.key, {})
            low, high = cell.bounds or (None, None)
            row = {"quantity": quantity.title, "trace": trace.name, "number": cell.key or None, "value": cell.exact}
            row |= {"unit": number.get("unit") or None, "n": number.get("n"), "low": low, "high": high}
            row |= {"cluster_by": cell.cluster_by or None, "basis": cell.basis or None}
            rows.append(row | {"reason": None if cell.key else _explain_blank(cell)})
    return rows


def _explain_blank(cell: Cell) -> str:
    """Return why the comparison has no number: also what is known instead, such as a range."""
    if cell == Cell():
        return "the trace has no jobs"
    return cell.reason or join_parts(cell.value, cell.note, cell.scope, by=", ").replace("\xa0", " ")


def comparison_page(templates: Path, traces: Sequence[Trace], hrefs: Mapping[str, str], frame: Frame) -> str:
    """Return the page as .qmd. hrefs: trace -> its page."""
    names = [trace.name for trace in traces]
    columns = make_columns(traces)
    cells_by_quantity = {quantity.title: cells for quantity, cells in columns}
    low, high = rate_axis(cells_by_quantity[_RATE.title])
    tables = []
    for name, title, quantities in TABLES:
        shown = [column for column in quantities if any(cell != Cell() for cell in cells_by_quantity[column.title])]
        drawn = (
            [(cell, _draw(column, cell, low, high)) for cell in cells_by_quantity[column.title]] for column in shown
        )
        tables.append((name, title, shown, list(zip(*drawn, strict=True))))
    frame.top = [{"anchor": "overview", "title": "Overview"}]
    frame.groups = [("Study", frame.page_links)]
    first, second = bottom_line(columns, names)
    heads = [(hrefs[trace.name], trace.title, _subtitle(trace)) for trace in traces]
    starred = any(cell.note.endswith("*") for _, cells in columns for cell in cells)
    decades, clusters = f"{low:,g} to {high:,g}, log scale", clustering_sentence(columns, names)
    overview = macros(templates, "comparison.html").comparison(
        frame, tables, heads, first, second, decades, clusters, starred
    )
    shared = macros(templates)
    opening = raw_block(f"{shared.opening(frame)}{frame.print_footer()}{overview}")
    closing = raw_block(f"{shared.closing(frame)}{embed_script_data({}, frame.citation)}")
    return words.add_no_break_spaces(frame.front(f"{first} {second}".strip()) + opening + closing)


def _subtitle(trace: Trace) -> str:
    kind = "" if trace.has_jobs else f"lifetimes of {trace.info['unit']}s"
    return join_parts("synthetic" if trace.info["synthetic"] else "", kind, trace.brief.period, by=", ")


def _draw(quantity: Quantity, cell: Cell, low: float, high: float) -> str | None:
    if not quantity.colour:
        return None
    if quantity is _RATE:
        return draw_dot(cell, low, high, quantity.colour, log=True)
    return draw_dot(cell, 0, 1, quantity.colour)

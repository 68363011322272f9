"""The published values of others that a tile lists in a fold, because they are defined as its own value is."""

from collections.abc import Iterator, Mapping

import polars as pl

from ttf.display import phrases
from ttf.display.brief_model import WITHHELD
from ttf.display.report_trace import Trace
from ttf.engine import words
from ttf.engine.size_unit import GPU

MOST_WORDS = 40
_LONGEST_CITATION = 40


def compare_tiles(published: pl.DataFrame, trace: Trace) -> dict[str, list[str]]:
    """Return the lines of the fold by tile, for tiles with a value. published: PUBLISHED_VALUES."""
    lines_by_tile = {
        tile.name: list(_cut([_line(row) for row in _select_alike(published, tile.name, trace)]))
        for tile in trace.brief.tiles
        if tile.state != WITHHELD
    }
    return {name: lines for name, lines in lines_by_tile.items() if lines}


def _select_alike(published: pl.DataFrame, tile: str, trace: Trace) -> Iterator[Mapping]:
    """Yield others' values of the same basis, unit, node and job size; a rate of failures of any cause has none."""
    basis, m = "component", trace.metrics
    if trace.has_jobs:
        basis = "infra" if m.value("sizes.basis", "proxy") in ("event", "state") else ""
    trace_values = {
        "unit": trace.info["unit"] if basis == "component" else "node",
        "node_gpus": m.value("sizes.node_gpus"),
        "gpus": m.value("ettr.assumed.size_of_the_run") if m.size == GPU else None,
    }
    others = published.filter(~pl.col("dataset").is_in(trace.info["datasets"]), tile=tile, basis=basis)
    for row in others.iter_rows(named=True):
        if all(row[name] in (None, value) for name, value in trace_values.items()):
            yield row


def _line(row: Mapping) -> str:
    """Return "Llama 3: 3.79, 90% CI 3.49–4.11 if independent (Dubey et al. 2024; unplanned)"."""
    formats = {"mttf": lambda hours: words.duration(3600 * hours), "availability": words.near_one}
    format_value = formats.get(row["tile"], words.number)
    interval = ""
    if row["ci_low"] is not None:
        bounds = words.join_range(format_value(row["ci_low"]), format_value(row["ci_high"]))
        interval = f", 90% CI {bounds} if independent"
    name, author = phrases.quote_trace_text(row["name"]), row["source"].partition(",")[0]
    origin = f"{phrases.quote_trace_text(author, _LONGEST_CITATION)} {row['year']}"
    remark = f"; {phrases.quote_trace_text(row['remark'])}" if row["remark"] else ""
    return f"{name}: {format_value(row['value'])}{interval} ({origin}{remark})"


def _cut(lines: list[str]) -> Iterator[str]:
    """Yield the lines within MOST_WORDS words, and where the others are."""
    rest = "{} more in published_values.csv"
    left = MOST_WORDS - len(rest.split())
    for index, line in enumerate(lines):
        left -= phrases.count_words(line)
        if left < 0:
            yield rest.format(len(lines) - index)
            return
        yield line

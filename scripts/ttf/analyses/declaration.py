"""What an analysis declares. Its rule, charts, numbers and section on the page follow from that declaration.

An analysis is a folder `analyses/<section>/<name>/`; the name is that of the rule and of the module. `__init__.py`
holds the declaration `ANALYSIS` and the contracts of its tables. Every start of the workflow loads it, so it imports
neither Polars nor NumPy nor Altair. The other files are optional:
    compute.py    compute(inputs) -> {table: frame}, or an iterator of such pairs; inputs: ttf.records.inputs.Inputs.
                  For a folder: {folder: {file name: text}}
    charts.py     CHARTS: chart -> a function (inputs, Study) -> Figure
    numbers.py    NUMBERS: the cells of tables that sentences need (ttf.display.metrics.cells)
    page.py       tables(trace) -> {name: ttf.display.report_tables.PageTable}; head(trace, m) and lines(trace, m):
                  ttf.display.section_head
    <section>.qmd the text of each section
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ttf.engine.contract import Table
from ttf.records.record_contracts import NODE_LOG_LINES, OF_TRACES, TRAINING_LOG_LINES

PRICE_KEYS = ("price_per_gpu_hour", "currency")
# Inputs other than tables: products of the stages that run before the analyses.
PRODUCTS = {product.name: product.path for product in (*OF_TRACES, NODE_LOG_LINES, TRAINING_LOG_LINES)} | {"raw": "raw"}


def unit_block_days(trace: Any) -> int | None:
    """Return `inference.block_days` for a trace of units, which are at risk for long; None for a trace of jobs."""
    return None if trace.has_jobs else trace.settings["inference"]["block_days"]


def price_settings(trace: Any) -> dict[str, Any]:
    """Return the keys of `ledger` that give the cost of GPU hours, as far as they are set."""
    return {key: trace.settings["ledger"][key] for key in PRICE_KEYS if key in trace.settings["ledger"]}


@dataclass(frozen=True)
class Analysis:
    """The declaration of an analysis.

    question: what it answers, in one line. theme: a key of ttf.analyses.sections. rank: its position within the theme.

    needs: products (above), files of the trace (ttf.study.study_analysis.SOURCES) or tables of any analysis that it
    cannot run without. uses: inputs that it reads if the trace has them. applies: whether a trace
    (ttf.study.trace.Trace) with these inputs has the analysis.
    settings: name -> key of the configuration ("lemons/window_days"), or a function of the trace.
    updated: its own tables that it reads back from its last run, unless somebody has edited them.
    folders: folders of text files that it writes. The data decide which files these hold.
    charts: name -> the tables with its numbers; or a function of the trace that returns such a mapping.
    main: names of charts that are always visible on the page; they are also drawn for phones.
    sections: its templates; "theme/section" for a section of another theme.
    memory_mb: memory of the script for any trace. mb_per_gb: further memory for each GB of raw tables, by format.
    in_size_unit: it reads and writes job sizes in the unit of the trace (ttf.engine.size_unit), not only in GPUs.
    """

    question: str
    theme: str
    rank: int = 50
    needs: Sequence[str] = ()
    uses: Sequence[str] = ()
    applies: Callable[[Any], bool] = lambda trace: True
    settings: Mapping[str, str | Callable[[Any], Any]] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    updated: Sequence[str] = ()
    folders: Sequence[str] = ()
    charts: Mapping[str, str | Sequence[str]] | Callable[[Any], Mapping[str, str | Sequence[str]]] = field(
        default_factory=dict
    )
    main: Sequence[str] = ()
    sections: Sequence[str] = ()
    memory_mb: int = 500
    mb_per_gb: Mapping[str, int] = field(default_factory=dict)
    threads: int = 1
    in_size_unit: bool = False

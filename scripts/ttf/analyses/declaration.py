"""What an analysis declares. Its rule, its drawing, its numbers and its place on the page follow from that.

An analysis is a folder `analyses/<section>/<name>/`; its name is that of the rule and of the module. `__init__.py`
holds the declaration `ANALYSIS` and the contracts of its tables. It imports neither Polars nor NumPy nor Altair, as
every start of the workflow loads it. Beside it stand
    compute.py    compute(given) -> {table: frame}, or pairs of them one after the other; given: Inputs of
                  ttf.records.inputs. Of a folder {folder: {name of a file: its text}}
    charts.py     CHARTS: chart -> a function of (tables, Study) -> Figure
    numbers.py    NUMBERS: the cells of tables that sentences need (ttf.display.metrics.cells)
    page.py       tables(trace) -> {name: ttf.display.report_tables.Shown}; head(trace, m) and lines(trace, m):
                  ttf.display.section_head
    <section>.qmd what the fold of each section says
of which an analysis has what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ttf.engine.contract import Table
from ttf.records.record_contracts import OF_TRACES

# What a trace may have besides tables: the products of the stages before the analyses.
PRODUCTS = {product.name: product.path for product in OF_TRACES} | {"raw": "raw"}


def block_days_of_units(trace: Any) -> int | None:
    """A setting: the days of a block of time, for traces of units that are at risk for longer; None where jobs are."""
    return None if trace.has_jobs else trace.settings["inference"]["block_days"]


@dataclass(frozen=True)
class Analysis:
    """question: what it answers, in a line; theme: a key of ttf.analyses.sections; rank: its place within the theme.

    needs: products (above), files of the trace (study.study_analysis.SOURCES) or tables of any analysis, without which
    it cannot run; uses: those it takes where the trace has them. applies: whether a trace that has what it needs
    (study.trace.Trace) has the analysis.
    settings: name -> key of the configuration ("lemons/window_days"), or a function of the trace.
    updated: names of tables of its own that it reads as its last run left them, where nobody has edited them.
    folders: names of folders of text files that it writes beside the tables: which files, only the data say.
    charts: name -> the tables that its numbers stand in; or a function of the trace that gives that. The first of
    `tables` whose name a chart has is meant where none is named.
    main: names of charts that stand open on the page: drawn for a phone too.
    sections: its templates; one that belongs to another theme as "theme/section".
    memory_mb: of the script with any trace; mb_per_gb: and for each GB of raw tables, by format.
    keeps_freed_memory: it works on one large block after another (ttf.engine.process.memory).
    in_size_unit: sizes of jobs are read and written in the unit of the trace (ttf.engine.size_unit), not in GPUs alone.
    of_study: it runs once, on all traces together.
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
    keeps_freed_memory: bool = False
    in_size_unit: bool = False
    of_study: bool = False

"""The report's .qmd source: templates under report/ filled in with the metrics, tables and charts of every trace.

The templates are Jinja with <% %> and << >>, because {{< >}} is Quarto's. What they leave is plain .qmd,
which Quarto and Pandoc both render.
"""

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import jinja2
import polars as pl

from ttf.analyses import contracts_of
from ttf.report import words
from ttf.report.blocks import Charts, table_block
from ttf.report.tables import Shown
from ttf.report.trace import Trace
from ttf.rooms import rooms
from ttf.themes import THEMES

# The sections of the stages before the analyses.
_OF_STAGES = {"data": ["sections/data", "sections/quality"]}


# Traces whose findings stand in full on top of the page; of more, a line each on top and the rest in their chapters.
MOST_IN_FULL = 3
# Parts of a trace in the table of its rows: the newest.
MOST_PARTS = 20


@dataclass(frozen=True)
class Chapter:
    """A theme with the templates of the sections that apply to one trace."""

    title: str
    anchor: str
    sections: list[str]


def themes_of(analyses: Iterable[str], folders: tuple[str, ...] = ()) -> list[Chapter]:
    """The themes of a trace with these analyses that have a section, in the order of the page."""
    sections = {theme: list(_OF_STAGES.get(theme, [])) for theme in THEMES}
    for name, analysis in rooms(folders).items():
        for section in analysis.sections if name in analyses else ():
            theme, _, template = section.rpartition("/")
            sections[theme or analysis.theme].append(f"{name}/{template}")
    return [Chapter(*THEMES[theme], found) for theme, found in sections.items() if found]


def environment(templates: Path, rooms: Iterable[Path] = ()) -> jinja2.Environment:
    """Jinja with the templates and those of the rooms, set up for .qmd.

    An undefined name is an error: a number must not go missing in silence.
    """
    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader([templates, *rooms]),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # a heading needs the blank line before it, also after an include
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # the output is Markdown; texts go through the filters md and label
    )
    of_words = (
        *("label", "count", "number", "share", "duration", "until"),
        *("plural", "p_value", "part", "wait", "typst_strings"),
    )
    jinja.filters |= {"md": words.markdown} | {name: getattr(words, name) for name in of_words}
    return jinja


def trace_source(
    jinja: jinja2.Environment, trace: Trace, charts: Charts, rule: str, traces: int = 1, folders: tuple = ()
) -> str:
    """The .qmd of one trace of a study of so many.

    rule: the one that drew its charts; the charts go to `charts`. folders: of analyses outside the checkout.
    """
    pages = {name: page for name in trace.analyses if (page := _page(name))}
    tables, metrics = _tables(trace), trace.metrics
    context = {}
    for page in pages.values():
        tables |= page.tables(trace)
        if "context" in vars(page):
            context |= page.context(trace, metrics)
    tables = {name: shown for name, shown in tables.items() if shown.frame.height}
    # Of an analysis that words no table of its own, each stands as its contract says.
    as_declared = contracts_of(name for name in trace.analyses if name not in pages)
    figures = trace.figures

    def chart(name: str) -> str:
        return charts.place(f"{trace.id}-{name.replace('_', '-')}", trace.folder, name, figures, rule)

    def table(name: str, caption: str) -> str:
        shown = tables.get(name)
        if name in as_declared and (frame := trace.table(name)).height:
            columns = [column for column in as_declared[name].columns if frame[column].count()]
            shown = Shown(frame, columns, as_declared[name])
        if not shown:
            return ""
        html = shown.html(f"{trace.id}-table-{name}")
        return table_block(f"tbl-{trace.id}-{name}", html, caption, f"{trace.name}/{shown.contract.path}")

    return jinja.get_template("trace.qmd").render(
        trace=trace,
        themes=themes_of(trace.analyses, folders),
        findings_here=traces > MOST_IN_FULL,
        id=trace.id,
        unit=trace.about["unit"],
        m=metrics,
        chart=chart,
        table=table,
        has_chart=lambda name: name in figures and not figures[name]["empty"],
        has_table=lambda name: name in tables,
        most_parts=MOST_PARTS,
        **context,
    )


def _page(analysis: str) -> ModuleType | None:
    """The module of an analysis with its part of the page, if it has one."""
    name = f"ttf.analyses.{analysis}.page"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def report_source(
    jinja: jinja2.Environment, traces: list[Trace], significance: float, sections: Mapping[str, str], home: str
) -> str:
    """The .qmd of the page, which includes one per trace; `sections` of the whole study: comparison, scorecard.

    home: the folder of the study.
    """
    return jinja.get_template("report.qmd").render(
        traces=traces,
        most_in_full=MOST_IN_FULL,
        versions=_versions(),
        home=home,
        significance=f"{significance:g}",
        comparison=sections.get("comparison", ""),
        ettr_reference=sections["ettr_reference"],
        scorecard=sections["scorecard"],
    )


def _versions() -> str:
    """The packages that the numbers and the charts come from; the manifest has them all."""
    names = ("Snakemake", "Polars", "NumPy", "SciPy", "Altair", "Great Tables")
    *most, last = (f"{name} {version(name.replace(' ', '-'))}" for name in names)
    return f"{', '.join(most)} and {last}"


def _tables(trace: Trace) -> dict[str, Shown]:
    """The tables on data quality, and on whether two sources of times agree."""

    def of(table: str, columns: Mapping | Sequence, frame: pl.DataFrame | None = None, **settings) -> Shown:
        """A table of the page, of the rows of `table` or those in `frame`."""
        return Shown(trace.table(table) if frame is None else frame, columns, trace.contracts[table], **settings)

    account = ("table", "rows_read", "rows_kept", "rows_quarantined")
    validation, statistics = trace.table("validation"), trace.table("statistics")
    failed = validation.filter((pl.col("rows_failed") != 0) | pl.col("rows_failed").is_null())
    values = ("minimum", "middle", "maximum")
    statistics = statistics.with_columns(
        pl.Series(name, [_raw_value(*row) for row in statistics.select("type", name).iter_rows()], dtype=pl.String)
        for name in values
    )
    of_values = dict.fromkeys(("column", "type", "rows", "blank_share", "distinct"))
    of_values |= {name: (trace.contracts["statistics"].columns[name].heading, str) for name in values}
    suggested = ("table", "code", "sentence", "rows", "share", "first_lines", "suggestion")
    tables = {
        "rows": of("row_account", account),
        "suggestions": of("anomalies", suggested, longest=200),
        "validation": of("validation", failed.columns, failed, longest=200),
        "statistics": of("statistics", of_values, statistics, group="table"),
    }
    if trace.about["parts"] > 1:
        by_part = trace.table("row_account_by_part")
        newest = by_part["part"].unique(maintain_order=True).tail(MOST_PARTS)
        by_part = by_part.filter(pl.col("part").is_in(newest.implode()))
        tables["parts"] = of("row_account_by_part", ("part", *account), by_part)
    if trace.has_jobs and (agreement := trace.table("runtime_agreement"))["n"].sum():
        ends = {"p05": "5th percentile (s)", "median": "Median (s)", "p95": "95th percentile (s)", "mean": "Mean (s)"}
        columns = {"time": None, "n": None, "equal_share": None}
        columns |= {f"difference_{end}_s": (heading, words.number) for end, heading in ends.items()}
        tables["agreement"] = of("runtime_agreement", columns, agreement)
    return tables


def _raw_value(kind: str, value: float | None) -> str | None:
    """A value of a raw table by the type of its column: a time (s since 1970) as a moment, a count whole."""
    if value is None:
        return None
    if kind == "time":
        return datetime.fromtimestamp(value, UTC).strftime(f"%Y-%m-%d{words.NO_BREAK}%H:%M")
    return words.count(value) if kind in ("seconds", "count") else words.number(value)

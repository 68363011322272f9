"""The published findings about a trace on its page: a table for each table of a publication, and one for the rest."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ttf.display.report_tables import Column, Formatter, Interval, PageTable
from ttf.display.report_trace import Trace
from ttf.engine import words
from ttf.engine.storage.tables import read_table
from ttf.page.replication import scorecard as cards
from ttf.page.replication.study_tables import UNNAMED_UNITS, format_printed, format_value
from ttf.page.report_contracts import SCORECARD, STUDY_TABLES

LONGEST_NOTE = 220
# Verdict -> class of a cell with a number of the trace; page.css colours it.
VERDICT_CLASSES = {cards.REPRODUCED: "same", "agrees": "same", cards.DIFFERS: "differs"} | dict.fromkeys(
    (cards.SUSPECT, "malformed", "identical", "impossible"), "doubt"
)
# Verdicts on findings as ends of a sentence (singular, plural), the most notable first.
_VERDICT_CLAUSES = {
    cards.DIFFERS: ("differs", "differ"),
    cards.SUSPECT: ("has a source that is itself in doubt", "have a source that is itself in doubt"),
    cards.REPRODUCED: ("is reproduced", "are reproduced"),
    cards.NOT_COMPUTABLE: ("cannot be computed", "cannot be computed"),
}


@dataclass(frozen=True)
class PublishedTable:
    """A table for the page; caption: Markdown; chart: the figure above it."""

    name: str
    caption: str
    table: PageTable
    chart: str | None = None


@dataclass(frozen=True)
class PublishedStudy:
    """A publication on the page of a trace; verdicts: ends of a sentence on the comparison."""

    key: str
    title: str
    dataset: str
    verdicts: list[str]
    tables: list[PublishedTable]


def read_studies(trace: str, scorecard: Path, tables: Path) -> list[PublishedStudy]:
    """Read the publications about a trace from scorecard.csv and study_tables.csv, those with own tables first."""
    cells = read_table(tables, STUDY_TABLES).filter(trace=trace)
    findings = read_table(scorecard, SCORECARD).filter(pl.col("verdict") != cards.NOT_RUN, trace=trace)
    titles = dict.fromkeys([*cells["source"], *findings["source"]])
    in_tables = findings["id"].is_in(cells["claim"].drop_nulls().implode())
    findings = findings.with_columns(in_table=in_tables)
    return [
        _describe_study(f"published{number}", title, findings.filter(source=title), cells.filter(source=title))
        for number, title in enumerate(titles, 1)
    ]


def _describe_study(key: str, title: str, findings: pl.DataFrame, cells: pl.DataFrame) -> PublishedStudy:
    key, counts = next(iter(cells["key"]), key), Counter(findings["verdict"])
    verdicts = [
        f"{words.count(counts[verdict])} {singular if counts[verdict] == 1 else plural}"
        for verdict, (singular, plural) in _VERDICT_CLAUSES.items()
        if counts[verdict]
    ]
    tables = [build_table(part) for part in cells.partition_by("table", maintain_order=True)]
    # A publication about other clusters has only its tables here.
    rest = findings.filter(~pl.col("in_table"))
    if rest.height and cards.OTHER_CLUSTER not in counts:
        caption = "Further numbers" if tables else "Published numbers"
        tables.append(PublishedTable(f"{key}-findings", f"{caption} of {title}.", _build_findings_table(rest)))
    dataset = next(iter([*findings["dataset"], *cells["dataset"]]))
    return PublishedStudy(key, title, dataset, verdicts, tables)


def build_table(cells: pl.DataFrame) -> PublishedTable:
    """Return a published table from its cells: for each column the printed number and that of the trace."""
    rows: dict[tuple, dict] = {}
    first = cells.row(0, named=True)
    columns: dict[str, Column] = {"row": (first["heading"], None)}
    classes = {}
    for index, part in enumerate(cells.partition_by("column", maintain_order=True)):
        heading, units = part["column"][0], part["unit"].drop_nulls().unique().to_list()
        unit = units[0] if len(units) == 1 else None
        heading += f" ({unit})" if unit not in (None, heading.lower(), *UNNAMED_UNITS) else ""
        printed, here = f"printed_{index}", f"here_{index}"
        is_printed, is_here = part["printed"].count() > 0, part["value"].count() > 0
        if is_printed:
            is_number = part["printed"].str.contains(r"\d").any()
            columns[printed] = (f"{heading}, printed" if is_here else heading, str if is_number else None)
        if is_here:
            heading = f"{heading}, here" if is_printed else heading
            # Numbers of several units are texts.
            bounds = {"low": f"{here}_low", "high": f"{here}_high"}
            is_one_unit = len(units) < 2
            columns[here] = Interval(heading, _make_formatter(unit), **bounds) if is_one_unit else (heading, str)
            classes[here] = f"{here}_class"
        for cell in part.iter_rows(named=True):
            row = rows.setdefault((cell["group"], cell["row"]), {"group": cell["group"], "row": cell["row"], "n": None})
            value = cell["value"]
            if len(units) > 1 and value is not None:
                value = format_value(value, cell["unit"])
            row |= {printed: cell["printed"], here: value}
            row |= {f"{here}_low": cell["ci_low"], f"{here}_high": cell["ci_high"]}
            row[f"{here}_class"] = VERDICT_CLASSES.get(cell["verdict"], "")
            row["n"] = cell["n"] if row["n"] is None else row["n"]
            row.setdefault("notes", []).append(cell["note"])
    for row in rows.values():
        row["note"] = "; ".join(dict.fromkeys(filter(None, row.pop("notes")))) or None
    # A note on every row is one on the table.
    common_note = first["remark"]
    if len(rows) > 1 and len(notes := {row["note"] for row in rows.values()}) == 1 and None not in notes:
        common_note = ". ".join(filter(None, (common_note, words.capitalise(notes.pop()))))
        for row in rows.values():
            row["note"] = None
    frame = pl.DataFrame([*rows.values()], infer_schema_length=None)
    # n of its own column only, if no other has it.
    has_n = frame["n"].count() and not any(frame["n"].equals(frame[name], check_names=False) for name in classes)
    columns |= {"n": ("n", words.count)} if has_n else {}
    columns |= {"note": ("Note", None)} if frame["note"].count() else {}
    table = PageTable(frame, columns, STUDY_TABLES, first["group"] and "group", LONGEST_NOTE, classes=classes)
    caption = ". ".join(filter(None, (first["title"], common_note)))
    return PublishedTable(first["table"], f"{caption.rstrip('.')}.", table, first["chart"])


def _make_formatter(unit: str | None) -> Formatter:
    return lambda value: format_value(value, unit)


def _build_findings_table(findings: pl.DataFrame) -> PageTable:
    """Return the table of findings that no table of their publication has."""
    shown = findings.select(
        "statement", "n", "evidence", "verdict", "note", *_format_numbers(findings), class_=_verdict_class()
    )
    columns: dict[str, Column] = {"statement": ("Finding", None), "published": ("Printed", str)}
    columns |= {"computed": ("Here", str)} if shown["computed"].count() else {}
    columns |= {name: None for name in ("n", "evidence", "verdict", "note") if shown[name].count()}
    return PageTable(shown, columns, SCORECARD, longest=LONGEST_NOTE, classes={"computed": "class_"})


def _format_numbers(findings: pl.DataFrame) -> Iterator[pl.Series]:
    for name, formatter in (("published", format_printed), ("computed", format_value)):
        texts = [_format_with_unit(formatter, *row) for row in findings.select(name, "unit").iter_rows()]
        yield pl.Series(name, texts, dtype=pl.String)


def _format_with_unit(formatter: Formatter, value: float | None, unit: str | None) -> str | None:
    if value is None:
        return None
    text = formatter(value, unit)
    return text if unit in (None, *UNNAMED_UNITS) else f"{text}{words.NO_BREAK}{unit}"


def _verdict_class() -> pl.Expr:
    return pl.col("verdict").replace_strict(VERDICT_CLASSES, default="")


def describe_comparison(study: PublishedStudy, trace: Trace) -> str:
    """Return the sentence on what the printed numbers are of, and what this trace is."""
    info = trace.info
    fitted = f" The generator of the sample was fitted to printed values: {info['fitted']}." if "fitted" in info else ""
    if study.dataset not in info["datasets"]:
        return f"Printed of another cluster ({study.dataset}), so numbers of this trace have no verdict.{fitted}"
    if info["synthetic"]:
        return f"Printed of the real trace; here: a synthetic sample.{fitted}"
    return "" if trace.name == study.dataset else "Printed of the whole trace; here: a copy or a part of it."

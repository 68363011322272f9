"""The published findings about a trace on its page: the scorecard and the implied numbers of points."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ttf.display.report_tables import Column, PageTable, format_rows
from ttf.engine import words
from ttf.engine.storage.tables import read_table
from ttf.page.replication import scorecard as cards
from ttf.page.report_contracts import IMPLIED_N, SCORECARD

LONGEST_NOTE = 220
# Rows of a table of findings; scorecard.csv has all of them.
MOST_ROWS = 40
# Verdicts on computed findings as ends of a sentence (singular, plural), the most notable first.
_VERDICT_CLAUSES = {
    cards.DIFFERS: ("differs", "differ"),
    cards.SUSPECT: ("has a source that is itself in doubt", "have a source that is itself in doubt"),
    cards.REPRODUCED: ("is reproduced", "are reproduced"),
}
# Units that are not printed.
_UNITS_NOT_SHOWN = (None, "share", "r", "p")


@dataclass(frozen=True)
class TraceFindings:
    """The published findings of one trace: tables by name, and the variables of sections/scorecard.qmd."""

    tables: dict[str, PageTable]
    context: dict


def read_findings(trace: str, scorecard: Path, implied: Path) -> TraceFindings | None:
    """Read the findings about a trace from scorecard.csv and implied_n.csv; None if there are none."""
    findings = read_table(scorecard, SCORECARD).filter(trace=trace)
    if not findings.height:
        return None
    pairs = read_table(implied, IMPLIED_N).filter(pl.col("n_in_data").is_not_null(), trace=trace)
    tables, rows = _build_tables(findings, pairs)
    counts = Counter(findings["verdict"])

    def cut_note(name: str) -> str:
        """Return the note of a caption on rows that are not shown."""
        return f" The first {MOST_ROWS} of {words.count(rows[name])}." if rows[name] > MOST_ROWS else ""

    context = {
        "claims": findings.height,
        "compared": [
            f"{words.count(counts[verdict])} {singular if counts[verdict] == 1 else plural}"
            for verdict, (singular, plural) in _VERDICT_CLAUSES.items()
            if counts[verdict]
        ],
        "computed": findings["computed"].count(),
        "cut": cut_note,
    }
    return TraceFindings(tables, context)


def _build_tables(findings: pl.DataFrame, pairs: pl.DataFrame) -> tuple[dict[str, PageTable], dict[str, int]]:
    """Return the tables by name, and the full number of rows of each table of findings."""
    tables, rows = {}, {}

    def add_table(name: str, frame: pl.DataFrame, columns: Mapping[str, Column]) -> None:
        rows[name] = frame.height
        if frame.height:
            tables[f"scorecard-{name}"] = PageTable(frame.head(MOST_ROWS), columns, SCORECARD, "source", LONGEST_NOTE)

    source_counts = findings.group_by("source", maintain_order=True).agg(
        pl.len().alias("findings"), *((pl.col("verdict") == verdict).sum().alias(verdict) for verdict in cards.VERDICTS)
    )
    verdicts = (cards.DIFFERS, cards.SUSPECT, cards.REPRODUCED, cards.NOT_COMPUTABLE, cards.NOT_RUN)
    columns: dict[str, Column] = {"source": ("Source", None), "findings": ("Findings", words.count)}
    columns |= {verdict: (verdict.removesuffix(" in the source").capitalize(), words.count) for verdict in verdicts}
    tables["scorecard-sources"] = PageTable(source_counts, columns, SCORECARD, longest=LONGEST_NOTE)
    computed = findings.filter(pl.col("computed").is_not_null())
    computed = computed.with_columns(
        format_rows(computed, (name, "unit"), _format_value).alias(name) for name in ("published", "computed")
    )
    agrees = pl.col("verdict") == cards.REPRODUCED
    for name, rows_shown, omitted in (
        ("differs", computed.filter(~agrees).sort(pl.col("verdict") != cards.DIFFERS, maintain_order=True), None),
        ("reproduced", computed.filter(agrees), "verdict"),
    ):
        columns = {"statement": None, "trace": None, "published": ("Published", str), "computed": ("Computed", str)}
        columns |= {} if rows_shown["n"].null_count() == rows_shown.height else {"n": None}
        columns |= {column: None for column in ("evidence", "verdict", "note") if column != omitted}
        add_table(name, rows_shown, columns)
    not_computable = findings.filter(pl.col("verdict") == cards.NOT_COMPUTABLE)
    missing = not_computable.group_by("source", "trace", "note", maintain_order=True).agg(pl.len().alias("findings"))
    columns = {"trace": None, "findings": ("Findings", words.count), "note": "What is missing"}
    add_table("missing", missing, columns)
    if pairs.height:
        largest = pl.coalesce(pl.col("n_high").cast(pl.String), pl.lit("any"))
        pairs = pairs.with_columns(range=pl.format("{} to {}", "n_low", largest))
        columns = {"statement": "Correlation", "printed_r": ("r", str), "printed_p": ("p", str)}
        columns |= {"range": ("n that fits", str), "n_in_data": "n found", "verdict": None, "note": None}
        tables["scorecard-implied"] = PageTable(pairs, columns, IMPLIED_N, "source", LONGEST_NOTE)
    return tables, rows


def _format_value(value: float, unit: str | None) -> str:
    """Format a number with its unit as findings are printed: whole numbers whole, others to five significant digits."""
    is_whole = value == round(value) and abs(value) >= 1
    number = words.count(round(value)) if is_whole else f"{value:,.5g}".replace("-", "−")
    return number if unit in _UNITS_NOT_SHOWN else f"{number}{words.NO_BREAK}{unit}"

"""The published findings about a trace on its page: the scorecard, and the numbers of points it implies."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ttf.display.report_tables import Shown
from ttf.engine import words
from ttf.engine.storage.tables import read_table
from ttf.page.replication import scorecard as cards
from ttf.page.report_contracts import IMPLIED_N, SCORECARD

LONGEST_NOTE = 220
# Rows of a table of findings; scorecard.csv has all of them.
MOST_ROWS = 40
# Verdicts of what was computed, as the end of a sentence: one, several; those to look at first.
_SAID = {
    cards.DIFFERS: ("differs", "differ"),
    cards.SUSPECT: ("has a source that is itself in doubt", "have a source that is itself in doubt"),
    cards.REPRODUCED: ("is reproduced", "are reproduced"),
}
# What stands without a unit: a share is one of 1.
_NO_UNIT = (None, "share", "r", "p")


@dataclass(frozen=True)
class Scored:
    """The published findings of one trace: the tables by name, and what the text of sections/scorecard.qmd asks for."""

    tables: dict[str, Shown]
    context: dict


def scored_of(trace: str, scorecard: Path, implied: Path) -> Scored | None:
    """From scorecard.csv and implied_n.csv; None where no finding is about the trace."""
    scored = read_table(scorecard, SCORECARD).filter(trace=trace)
    if not scored.height:
        return None
    pairs = read_table(implied, IMPLIED_N).filter(pl.col("n_found").is_not_null(), trace=trace)
    tables, rows = _tables(scored, pairs)
    counts = Counter(scored["verdict"])

    def cut(name: str) -> str:
        """What a caption says of rows that are not shown."""
        return f" The first {MOST_ROWS} of {words.count(rows[name])}." if rows[name] > MOST_ROWS else ""

    context = {
        "claims": scored.height,
        "compared": [
            f"{words.count(counts[verdict])} {one if counts[verdict] == 1 else many}"
            for verdict, (one, many) in _SAID.items()
            if counts[verdict]
        ],
        "computed": scored["computed"].count(),
        "cut": cut,
    }
    return Scored(tables, context)


def _tables(scored: pl.DataFrame, pairs: pl.DataFrame) -> tuple[dict[str, Shown], dict[str, int]]:
    """The tables by name, and how many rows those of findings would have."""
    tables, rows = {}, {}

    def add(name: str, frame: pl.DataFrame, columns: Mapping) -> None:
        rows[name] = frame.height
        if frame.height:
            shown = frame.head(MOST_ROWS)
            tables[f"scorecard-{name}"] = Shown(shown, columns, SCORECARD, "source", LONGEST_NOTE)

    by_source = scored.group_by("source", maintain_order=True).agg(
        pl.len().alias("findings"), *((pl.col("verdict") == verdict).sum().alias(verdict) for verdict in cards.VERDICTS)
    )
    in_order = (cards.DIFFERS, cards.SUSPECT, cards.REPRODUCED, cards.NOT_COMPUTABLE, cards.NOT_RUN)
    columns = {"source": ("Source", None), "findings": ("Findings", words.count)}
    columns |= {verdict: (verdict.removesuffix(" in the source").capitalize(), words.count) for verdict in in_order}
    tables["scorecard-sources"] = Shown(by_source, columns, SCORECARD, longest=LONGEST_NOTE)
    computed = scored.filter(pl.col("computed").is_not_null())
    computed = computed.with_columns(_numbers(computed[name], computed["unit"]) for name in ("published", "computed"))
    agrees = pl.col("verdict") == cards.REPRODUCED
    for name, chosen, left_out in (
        ("differs", computed.filter(~agrees).sort(pl.col("verdict") != cards.DIFFERS, maintain_order=True), None),
        ("reproduced", computed.filter(agrees), "verdict"),
    ):
        columns = {"statement": None, "trace": None, "published": ("Published", str), "computed": ("Computed", str)}
        columns |= {} if chosen["n"].null_count() == chosen.height else {"n": None}
        columns |= {column: None for column in ("evidence", "verdict", "note") if column != left_out}
        add(name, chosen, columns)
    blank = scored.filter(pl.col("verdict") == cards.NOT_COMPUTABLE)
    missing = blank.group_by("source", "trace", "note", maintain_order=True).agg(pl.len().alias("findings"))
    columns = {"trace": None, "findings": ("Findings", words.count), "note": "What is missing"}
    add("missing", missing, columns)
    if pairs.height:
        largest = pl.coalesce(pl.col("n_high").cast(pl.String), pl.lit("any"))
        pairs = pairs.with_columns(range=pl.format("{} to {}", "n_low", largest))
        columns = {"statement": "Correlation", "printed_r": ("r", str), "printed_p": ("p", str)}
        columns |= {"range": ("n that fits", str), "n_found": "n found", "verdict": None, "note": None}
        tables["scorecard-implied"] = Shown(pairs, columns, IMPLIED_N, "source", LONGEST_NOTE)
    return tables, rows


def _numbers(values: pl.Series, units: pl.Series) -> pl.Series:
    """Whole numbers whole, others to five significant digits, about as many as findings are printed with; units."""

    def worded(value: float, unit: str | None) -> str:
        whole = value == round(value) and abs(value) >= 1
        number = words.count(round(value)) if whole else f"{value:,.5g}".replace("-", "−")
        return number if unit in _NO_UNIT else f"{number}{words.NO_BREAK}{unit}"

    return _texts(values, units, worded)


def _texts(values: pl.Series, kinds: pl.Series, worded: Callable[[float, str | None], str]) -> pl.Series:
    """Numbers in words, each by its kind."""
    pairs = zip(values, kinds, strict=True)
    return pl.Series(values.name, [None if value is None else worded(value, kind) for value, kind in pairs], pl.String)

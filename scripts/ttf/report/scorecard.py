"""The report's section on published findings, from the scorecard and the numbers of points that it implies."""

from collections import Counter
from pathlib import Path

import jinja2
import polars as pl

from ttf.replication import scorecard as cards
from ttf.report import words
from ttf.report.blocks import div
from ttf.report.tables import html_table

LONGEST_NOTE = 220


def scorecard_section(jinja: jinja2.Environment, scorecard: Path, implied: Path) -> str:
    """The .qmd of the section, from results/scorecard.csv and results/implied_n.csv."""
    scored = pl.read_csv(scorecard, schema=cards.SCORECARD_SCHEMA)
    pairs = pl.read_csv(implied, schema=cards.IMPLIED_SCHEMA).filter(pl.col("n_found").is_not_null())
    html = _tables(scored, pairs)
    counts = Counter(scored["verdict"])
    absent = Counter(scored.filter(pl.col("verdict") == cards.NOT_RUN)["trace"])
    return jinja.get_template("sections/scorecard.qmd").render(
        claims=scored.height,
        counts={verdict: counts[verdict] for verdict in cards.VERDICTS},
        computed=scored["computed"].count(),
        absent=absent,
        table=lambda name, caption: div(f"tbl-scorecard-{name}", html[name], caption) if name in html else "",
        has_table=lambda name: name in html,
    )


def _tables(scored: pl.DataFrame, pairs: pl.DataFrame) -> dict[str, str]:
    tables = {}
    computed = scored.filter(pl.col("computed").is_not_null())
    if computed.height:
        columns = {
            "statement": ("Finding", None),
            "trace": ("Trace", None),
            "published_words": ("Published", str),
            "computed_words": ("Computed", str),
            "n": ("n", words.count),
            "unit": ("Unit", None),
            "evidence": ("Evidence", None),
            "verdict": ("Verdict", None),
            "note": ("Note", None),
        }
        computed = computed.with_columns(
            published_words=_numbers(computed["published"]), computed_words=_numbers(computed["computed"])
        )
        tables["computed"] = html_table(computed, columns, "table-scorecard", group="source", longest=LONGEST_NOTE)
    blank = scored.filter(pl.col("verdict") == cards.NOT_COMPUTABLE)
    if blank.height:
        columns = {"statement": ("Finding", None), "trace": ("Trace", None), "note": ("What is missing", None)}
        tables["missing"] = html_table(blank, columns, "table-missing", group="source", longest=LONGEST_NOTE)
    if pairs.height:
        columns = {
            "statement": ("Correlation", None),
            "printed_r": ("r", str),
            "printed_p": ("p", str),
            "range": ("n that fits", str),
            "n_found": ("n found", words.count),
            "verdict": ("Verdict", None),
            "note": ("Note", None),
        }
        pairs = pairs.with_columns(
            range=pl.when(pl.col("n_low").is_not_null()).then(
                pl.format("{} to {}", "n_low", pl.coalesce(pl.col("n_high").cast(pl.String), pl.lit("any")))
            )
        )
        tables["implied"] = html_table(pairs, columns, "table-implied", group="source", longest=LONGEST_NOTE)
    return tables


def _numbers(values: pl.Series) -> pl.Series:
    """Whole numbers whole, others to five significant digits, about as many as findings are printed with."""
    texts = [
        words.count(round(value)) if value == round(value) and abs(value) >= 1 else f"{value:.5g}" for value in values
    ]
    return pl.Series(texts, dtype=pl.String)

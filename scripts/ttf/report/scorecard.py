"""The report's section on published findings, from the scorecard and the numbers of points that it implies."""

from collections import Counter
from pathlib import Path

import jinja2
import polars as pl

from ttf.replication import scorecard as cards
from ttf.report import words
from ttf.report.blocks import table_block
from ttf.report.tables import html_table

LONGEST_NOTE = 220
# Rows of a table of findings; results/scorecard.csv has all of them.
MOST_ROWS = 40
# Verdicts of what was computed, as the end of a sentence: one, several; those to look at first.
_SAID = {
    cards.DIFFERS: ("differs", "differ"),
    cards.SUSPECT: ("has a source that is itself in doubt", "have a source that is itself in doubt"),
    cards.REPRODUCED: ("is reproduced", "are reproduced"),
}
# What stands without a unit: a share is one of 1.
_NO_UNIT = ("share", "r", "p")
_FILES = {"implied": "implied_n.csv"}


def scorecard_section(jinja: jinja2.Environment, scorecard: Path, implied: Path) -> str:
    """The .qmd of the section, from results/scorecard.csv and results/implied_n.csv."""
    scored = pl.read_csv(scorecard, schema=cards.SCORECARD_SCHEMA)
    pairs = pl.read_csv(implied, schema=cards.IMPLIED_SCHEMA).filter(pl.col("n_found").is_not_null())
    html, rows = _tables(scored, pairs)
    counts = Counter(scored["verdict"])

    def cut(name: str) -> str:
        """What a caption says of rows that are not shown."""
        return f" The first {MOST_ROWS} of {words.count(rows[name])}." if rows[name] > MOST_ROWS else ""

    return jinja.get_template("sections/scorecard.qmd").render(
        claims=scored.height,
        compared=[
            f"{words.count(counts[verdict])} {one if counts[verdict] == 1 else many}"
            for verdict, (one, many) in _SAID.items()
            if counts[verdict]
        ],
        computed=scored["computed"].count(),
        absent=Counter(scored.filter(pl.col("verdict") == cards.NOT_RUN)["trace"]),
        cut=cut,
        table=lambda name, caption: (
            table_block(f"tbl-scorecard-{name}", html[name], caption, _FILES.get(name, scorecard.name))
            if name in html
            else ""
        ),
        has_table=lambda name: name in html,
    )


def _tables(scored: pl.DataFrame, pairs: pl.DataFrame) -> tuple[dict[str, str], dict[str, int]]:
    """The HTML tables of the section by name, and how many rows those of findings would have."""
    tables, rows = {}, {}
    by_source = scored.group_by("source", maintain_order=True).agg(
        pl.len().alias("findings"), *((pl.col("verdict") == verdict).sum().alias(verdict) for verdict in cards.VERDICTS)
    )
    columns = {"source": ("Source", None), "findings": ("Findings", words.count)}
    columns |= {
        verdict: (verdict.removesuffix(" in the source").capitalize(), words.count)
        for verdict in (cards.DIFFERS, cards.SUSPECT, cards.REPRODUCED, cards.NOT_COMPUTABLE, cards.NOT_RUN)
    }
    tables["sources"] = html_table(by_source, columns, "table-sources", longest=LONGEST_NOTE)
    computed = scored.filter(pl.col("computed").is_not_null())
    computed = computed.with_columns(
        **{f"{name}_words": _numbers(computed[name], computed["unit"]) for name in ("published", "computed")}
    )
    columns = {
        "statement": ("Finding", None),
        "trace": ("Trace", None),
        "published_words": ("Published", str),
        "computed_words": ("Computed", str),
        "n": ("n", words.count),
        "evidence": ("Evidence", None),
        "verdict": ("Verdict", None),
        "note": ("Note", None),
    }
    agrees = pl.col("verdict") == cards.REPRODUCED
    for name, chosen in (
        ("differs", computed.filter(~agrees).sort(pl.col("verdict") != cards.DIFFERS, maintain_order=True)),
        ("reproduced", computed.filter(agrees)),
    ):
        rows[name] = chosen.height
        if chosen.height:
            left_out = {"verdict"} if name == "reproduced" else set()
            left_out |= {"n"} if chosen["n"].null_count() == chosen.height else set()
            shown = {column: told for column, told in columns.items() if column not in left_out}
            tables[name] = html_table(
                chosen.head(MOST_ROWS), shown, f"table-{name}", group="source", longest=LONGEST_NOTE
            )
    blank = scored.filter(pl.col("verdict") == cards.NOT_COMPUTABLE)
    missing = blank.group_by("source", "trace", "note", maintain_order=True).agg(pl.len().alias("findings"))
    rows["missing"] = missing.height
    if missing.height:
        columns = {"trace": ("Trace", None), "findings": ("Findings", words.count), "note": ("What is missing", None)}
        tables["missing"] = html_table(
            missing.head(MOST_ROWS), columns, "table-missing", group="source", longest=LONGEST_NOTE
        )
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
    return tables, rows


def _numbers(values: pl.Series, units: pl.Series) -> pl.Series:
    """Whole numbers whole, others to five significant digits, about as many as findings are printed with; units."""
    texts = [
        (words.count(round(value)) if value == round(value) and abs(value) >= 1 else f"{value:,.5g}".replace("-", "−"))
        + ("" if unit in _NO_UNIT else f"{words.NO_BREAK}{unit}")
        for value, unit in zip(values, units, strict=True)
    ]
    return pl.Series(texts, dtype=pl.String)

"""The section of the report on what the paper states about effective training time."""

from pathlib import Path

import jinja2
import polars as pl

from ttf.report import words
from ttf.report.blocks import table_block
from ttf.report.tables import Shown, texts
from ttf.stages import ETTR_REFERENCE
from ttf.tables import read_table

LONGEST_NOTE = 160
_WORDED = {
    "ettr": lambda share: f"{words.number(100 * share, 2)}\u00a0%",
    "mttf_h": lambda hours: words.duration(3600 * hours),
    "error_percent": lambda percent: f"{words.number(percent, 2)}\u00a0%",
}


def reference_section(jinja: jinja2.Environment, reference: Path) -> str:
    """The .qmd of what the paper states about effective training time, from ettr_reference.csv."""
    table = read_table(reference, ETTR_REFERENCE)

    def in_words(column: str) -> pl.Series:
        return texts(table, (column, "quantity"), lambda value, quantity: _WORDED[quantity](value))

    shown = table.with_columns(
        **{name: in_words(name) for name in ("published", "computed", "exact")},
        reproduced=pl.when("reproduced").then(pl.lit("reproduced")).otherwise(pl.lit("not reproduced")),
    )
    columns = {
        "statement": None,
        "published": ("Published", str),
        "computed": ("Formula", str),
        "exact": ("Exact", str),
        "reproduced": None,
        "note": None,
    }
    html = Shown(shown, columns, ETTR_REFERENCE, "source", LONGEST_NOTE).html("table-ettr-reference")
    caption = (
        "What the paper states about effective training time and mean time to failure, and what its formulas give: "
        "reproduced where that rounds to the digits published; errors of the approximation to half a per cent."
    )
    return jinja.get_template("sections/ettr_reference.qmd").render(
        statements=table.height,
        reproduced=int(table["reproduced"].sum()),
        table=table_block("tbl-ettr-reference", html, caption, reference.name),
    )

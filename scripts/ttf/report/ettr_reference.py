"""The section of the report on what the paper states about effective training time."""

from pathlib import Path

import jinja2
import polars as pl

from ttf.report import words
from ttf.report.blocks import table_block
from ttf.report.tables import html_table
from ttf.stages import ETTR_REFERENCE
from ttf.tables import read_table

LONGEST_NOTE = 160


def reference_section(jinja: jinja2.Environment, reference: Path) -> str:
    """The .qmd of what the paper states about effective training time, from ettr_reference.csv."""
    table = read_table(reference, ETTR_REFERENCE)
    worded = {
        "ettr": lambda share: f"{words.number(100 * share, 2)}\u00a0%",
        "mttf_h": lambda hours: words.duration(3600 * hours),
        "error_percent": lambda percent: f"{words.number(percent, 2)}\u00a0%",
    }
    shown = table.with_columns(
        *(
            pl.Series(
                name,
                [
                    None if value is None else worded[quantity](value)
                    for quantity, value in table.select("quantity", name).iter_rows()
                ],
                dtype=pl.String,
            )
            for name in ("published", "computed", "exact")
        ),
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
    html = html_table(
        shown, columns, "table-ettr-reference", group="source", longest=LONGEST_NOTE, contract=ETTR_REFERENCE
    )
    caption = (
        "What the paper states about effective training time and mean time to failure, and what its formulas give: "
        "reproduced where that rounds to the digits published; errors of the approximation to half a per cent."
    )
    return jinja.get_template("sections/ettr_reference.qmd").render(
        statements=table.height,
        reproduced=int(table["reproduced"].sum()),
        table=table_block("tbl-ettr-reference", html, caption, reference.name),
    )

"""The line at the end of the page that says that no row was quarantined."""

from ttf import words
from ttf.page.head import Line
from ttf.page.numbers import Numbers
from ttf.page.phrases import number
from ttf.page.trace import Trace


def lines(trace: Trace, m: Numbers) -> list[Line]:
    """The number of rows checked, where none was quarantined; else appendix A lists those that were."""
    if m["data.rows_quarantined"]:
        return []
    aside, rows = (number(m, f"data.rows_{name}", words.count) for name in ("quarantined", "read"))
    return [Line("Quarantined rows", f"{aside} of {rows}", "quality/row_account.csv")]

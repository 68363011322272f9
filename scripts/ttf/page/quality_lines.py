"""What the stages before the analyses checked and did not find: a line for the end of the page."""

from ttf import words
from ttf.page.head import Line
from ttf.page.numbers import Numbers
from ttf.page.phrases import number
from ttf.page.trace import Trace


def lines(trace: Trace, m: Numbers) -> list[Line]:
    """The data checks where all passed and no row was quarantined; else appendix A has them."""
    if m["quality.checks_not_passed"] or m["data.rows_quarantined"]:
        return []
    passed, checks = (number(m, f"quality.{name}", words.count) for name in ("checks_passed", "checks"))
    aside, rows = (number(m, f"data.rows_{name}", words.count) for name in ("quarantined", "read"))
    return [
        Line(
            "Data checks", f"{passed} of {checks} passed; rows quarantined: {aside} of {rows}", "quality/validation.csv"
        )
    ]

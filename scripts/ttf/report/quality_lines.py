"""What the stages before the analyses checked and did not find: a line for the end of the page."""

from ttf.brief.texts import plural
from ttf.report import words
from ttf.report.head import Line
from ttf.report.numbers import Numbers
from ttf.report.said import number
from ttf.report.trace import Trace


def lines(trace: Trace, m: Numbers) -> list[Line]:
    """The data checks where all passed and no row was quarantined; else appendix A has them."""
    if m["quality.checks_not_passed"] or m["data.rows_quarantined"]:
        return []
    passed, checks = (number(m, f"quality.{name}", words.count) for name in ("checks_passed", "checks"))
    aside = number(m, "data.rows_quarantined", words.count)
    rows = plural(m, "data.rows_read", "row")
    return [
        Line("Data checks", f"{passed} of {checks} passed; {aside} of {rows} quarantined", "quality/validation.csv")
    ]

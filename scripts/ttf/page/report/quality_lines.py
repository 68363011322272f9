"""The line at the end of the page which states that no row was quarantined."""

from ttf.display.report_trace import Trace
from ttf.display.section_head import Line
from ttf.display.trace_numbers import Numbers


def lines(trace: Trace, m: Numbers) -> list[Line]:
    """Return a line with the number of rows checked if none was quarantined; else appendix A lists them."""
    if m["data.rows_quarantined"]:
        return []
    rows = "[data.rows_quarantined] of [data.rows_read]"
    file = "scripts/ttf/page/report/quality_lines.py"
    return [Line("Quarantined rows", rows, "quality/row_account.csv", file=file)]

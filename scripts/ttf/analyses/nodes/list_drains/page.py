"""Table of the nodes to drain."""

from ttf.analyses.nodes.list_drains import DRAIN_EVIDENCE
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace

MOST_NODES = 15


def tables(trace: Trace) -> dict[str, PageTable]:
    nodes = trace.table("drain_evidence")
    shown = nodes.head(MOST_NODES)
    columns = [name for name in DRAIN_EVIDENCE.columns if name != "excluded" and shown[name].count()]
    return {"drain-evidence": PageTable(shown, columns, DRAIN_EVIDENCE)}

"""Tables of suggested requests."""

from ttf.analyses.queue.suggest_requests import SUGGESTED_MEMORY, SUGGESTED_TIME_LIMITS
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace

MOST_ROWS = 10
LONGEST_REQUEST = 90
_COUNTS = ("user", "request", "n", "successes", "at_limit", "gpu_hours")


def tables(trace: Trace) -> dict[str, PageTable]:
    shown = {}
    for contract, unit in ((SUGGESTED_TIME_LIMITS, "s"), (SUGGESTED_MEMORY, "mib")):
        columns = dict.fromkeys((*_COUNTS, "tested", "fitted_share", f"requested_{unit}", f"suggested_{unit}"))
        rows = trace.table(contract.name).drop_nulls(f"suggested_{unit}").head(MOST_ROWS)
        shown[contract.name.replace("_", "-")] = PageTable(rows, columns, contract, longest=LONGEST_REQUEST)
    return shown

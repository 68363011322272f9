"""The table of measured job runs in the report."""

from ttf.analyses.large_runs.measure_ettr import ETTR_MEASURED
from ttf.display.report_tables import CLUSTERED, PageTable, add_size_labels
from ttf.display.report_trace import Trace


def tables(trace: Trace) -> dict[str, PageTable]:
    rows = add_size_labels(trace.table("ettr_measured"))
    columns = {
        "gpus": ("GPUs", None),
        **dict.fromkeys(("runs", "attempts", "interruptions")),
        "ettr_mean": CLUSTERED,
        **dict.fromkeys(("ettr_if_all_interrupted_mean", "expected_ettr")),
    }
    return {"ettr-measured": PageTable(rows, columns, ETTR_MEASURED)}

"""The table of measured job runs in the report."""

from ttf.analyses.large_runs.measure_ettr import ETTR_MEASURED
from ttf.display.report_tables import CLUSTERED, Shown, with_sizes
from ttf.display.report_trace import Trace


def tables(trace: Trace) -> dict[str, Shown]:
    rows = with_sizes(trace.table("ettr_measured"))
    columns = {
        "gpus": ("GPUs", None),
        **dict.fromkeys(("runs", "attempts", "interruptions")),
        "ettr_mean": CLUSTERED,
        **dict.fromkeys(("ettr_if_all_interrupted_mean", "expected_ettr")),
    }
    return {"ettr-measured": Shown(rows, columns, ETTR_MEASURED)}

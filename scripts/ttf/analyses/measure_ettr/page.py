"""The table of measured job runs in the report."""

from ttf import words
from ttf.analyses.measure_ettr import ETTR_MEASURED
from ttf.page.tables import CLUSTERED, Shown, texts
from ttf.page.trace import Trace


def tables(trace: Trace) -> dict[str, Shown]:
    rows = trace.table("ettr_measured")
    rows = rows.with_columns(size=texts(rows, ("gpus_low", "gpus_high"), _gpus))
    columns = {
        "size": ("GPUs", None),
        **dict.fromkeys(("runs", "attempts", "interruptions")),
        "ettr_mean": CLUSTERED,
        **dict.fromkeys(("ettr_if_all_interrupted_mean", "expected_ettr")),
    }
    return {"ettr-measured": Shown(rows, columns, ETTR_MEASURED)}


def _gpus(low: int, high: int) -> str:
    return words.count(high) if low == high else f"{words.count(low)}–{words.count(high)}"

"""The ledger on the page: its table, and the key value that stands open beside what failures cost."""

import polars as pl

from ttf.analyses.lost.account_gpu_hours import LEDGER, RUNNING, UNKNOWN
from ttf.analyses.lost.account_gpu_hours.category_labels import LABELS
from ttf.display.phrases import with_numbers
from ttf.display.report_tables import Shown
from ttf.display.report_trace import Trace
from ttf.display.section_head import Key
from ttf.display.trace_numbers import Numbers

COLUMNS = ("category", "attempts", "gpu_hours", "share", "cost", "kwh", "co2_kg", "note")


# With more recorded than there can be, shares of all GPU hours do not stand open.
MOST_ABOVE = 0.05
# Where more of the GPU time used is of jobs of which nobody knows how they end, what is productive is not known.
MOST_OPEN = 0.5


@with_numbers
def productive(m: Numbers) -> list[Key]:
    """What of all GPU hours was productive, where results and the number of GPUs are known and the records fit it."""
    open_hours = sum(m.value(f"ledger.{category}.gpu_hours", 0) for category in (RUNNING, UNKNOWN))
    if open_hours > MOST_OPEN * m.value("ledger.used_gpu_hours", 0):
        return []
    above = -m.value("ledger.above_capacity.share", 0)
    if not m.has("ledger.capacity_gpu_hours") or not m.has("ledger.productive.share") or above > MOST_ABOVE:
        return []
    return [Key("Productive", "[ledger.productive.share]", "of capacity, [ledger.capacity_gpu_hours] GPU-h")]


def tables(trace: Trace) -> dict[str, Shown]:
    every = trace.table("ledger").filter(scope_by="all")
    every = every.with_columns(pl.col("category").replace_strict(LABELS))
    columns = [name for name in COLUMNS if every[name].count()]
    return {"ledger": Shown(every, columns, LEDGER, longest=120)}

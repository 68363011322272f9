"""The account on the page: its table, and the key value shown with the cost of failures."""

import polars as pl

from ttf.analyses.lost.account_gpu_hours import LEDGER, RUNNING, UNKNOWN
from ttf.analyses.lost.account_gpu_hours.category_labels import LABELS
from ttf.display.phrases import fill_numbers
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace
from ttf.display.section_head import Key
from ttf.display.trace_numbers import Numbers

COLUMNS = ("category", "attempts", "gpu_hours", "share", "cost", "kwh", "co2_kg", "note")
# The key value is hidden when recorded use exceeds capacity by more than this share.
MOST_ABOVE = 0.05
# The key value is hidden when jobs with an unknown end used more than this share of the GPU time.
MOST_OPEN = 0.5


@fill_numbers
def list_productive_keys(m: Numbers) -> list[Key]:
    """Return the productive share of capacity as a key value, if results and capacity are known."""
    open_hours = sum(m.value(f"ledger.{category}.gpu_hours", 0) for category in (RUNNING, UNKNOWN))
    if open_hours > MOST_OPEN * m.value("ledger.used_gpu_hours", 0):
        return []
    above = -m.value("ledger.above_capacity.share", 0)
    if not m.has("ledger.capacity_gpu_hours") or not m.has("ledger.productive.share") or above > MOST_ABOVE:
        return []
    return [Key("Productive", "[ledger.productive.share]", "of capacity, [ledger.capacity_gpu_hours] GPU-h")]


def tables(trace: Trace) -> dict[str, PageTable]:
    ledger = trace.table("ledger").filter(scope_by="all").with_columns(pl.col("category").replace_strict(LABELS))
    columns = [column for column in COLUMNS if ledger[column].count()]
    return {"ledger": PageTable(ledger, columns, LEDGER, longest=120)}

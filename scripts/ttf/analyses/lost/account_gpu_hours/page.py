"""The account on the page: its table."""

import polars as pl

from ttf.analyses.lost.account_gpu_hours import LEDGER
from ttf.analyses.lost.account_gpu_hours.category_labels import LABELS
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace

COLUMNS = ("category", "attempts", "gpu_hours", "share", "cost", "kwh", "co2_kg", "note")


def tables(trace: Trace) -> dict[str, PageTable]:
    ledger = trace.table("ledger").filter(scope_by="all").with_columns(pl.col("category").replace_strict(LABELS))
    columns = [column for column in COLUMNS if ledger[column].count()]
    return {"ledger": PageTable(ledger, columns, LEDGER, longest=120)}

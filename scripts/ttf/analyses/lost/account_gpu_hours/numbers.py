"""Numbers of the account: GPU hours by category, and their totals."""

from ttf.analyses.lost.account_gpu_hours import LEDGER, LEDGER_SUMMARY
from ttf.display.metrics import cells

NUMBERS = [
    cells(
        LEDGER, "ledger.{category}", "gpu_hours share cost kwh co2_kg", not_blank="share", n="attempts", scope_by="all"
    ),
    cells(LEDGER_SUMMARY, "ledger"),
]

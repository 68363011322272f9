"""Table of the models of the latest windows."""

import polars as pl

from ttf.analyses.risk.train_model import LINEAGE
from ttf.analyses.shared.risk import KINDS
from ttf.display.report_tables import CLUSTERED, PageTable
from ttf.display.report_trace import Trace
from ttf.display.trace_numbers import Numbers

MOST_WINDOWS = 20
COLUMNS = {
    **dict.fromkeys(
        ("window", "decision", "kind", "n", "n_test", "log_loss_new", "log_loss_current", "log_loss_base_rate")
    ),
    **dict.fromkeys(("difference", "difference_upper", "tolerance", "gain_lower")),
    "warm_minus_cold": CLUSTERED,
    **dict.fromkeys(("drift_max", "drift_feature", "reason")),
}
LONGEST_REASON = 160


def context(trace: Trace, m: Numbers) -> dict:
    """Return what the section's template uses besides numbers: a lookup of the names of kinds of model."""
    return {"kind_of_model": KINDS.get}


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return the table of the models of the latest MOST_WINDOWS windows."""
    lineage = trace.table("model_lineage").tail(MOST_WINDOWS).with_columns(pl.col("kind").replace(KINDS))
    return {"model_lineage": PageTable(lineage, COLUMNS, LINEAGE, longest=LONGEST_REASON)}

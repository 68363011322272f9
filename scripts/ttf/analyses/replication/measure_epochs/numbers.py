"""The numbers of epochs to the lowest loss: who needed all of them, and the time spent on the last 0.1%."""

import polars as pl

from ttf.analyses.replication.measure_epochs import EPOCHS, EPOCHS_SUMMARY
from ttf.display.metrics import CI, cells

_UNKNOWN, _BY_OUTCOME = "not_in_trace", "epochs.{outcome}"
_SHARES = f"needing_all_share {CI} after_near_share_mean"
NUMBERS = [
    cells(EPOCHS_SUMMARY, "epochs", f"{_UNKNOWN}=jobs_logged", outcome=_UNKNOWN),
    cells(EPOCHS_SUMMARY, _BY_OUTCOME, _SHARES, pl.col("outcome") != _UNKNOWN, pl.col("n") > 0),
    cells(EPOCHS, _BY_OUTCOME, "near_by_40_percent=jobs_share", quantity="within_0.1_percent", epochs_share=0.4),
]

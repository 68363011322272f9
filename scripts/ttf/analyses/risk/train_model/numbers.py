"""How many windows trained a model, what became of these, and which is in use."""

import polars as pl

from ttf.analyses.risk.train_model import LINEAGE, MODELS_SUMMARY
from ttf.display.metrics import cells

# There may be none: no window, or none that trained a model worth using.
_IN_USE = pl.col("trained") & (pl.col("model") == pl.col("current").last())
NUMBERS = [
    cells(MODELS_SUMMARY, "models"),
    cells(LINEAGE, "models.not_trained", "why=reason", ~pl.col("trained"), take=-1),
    cells(LINEAGE, "models", "current=window", _IN_USE),
    cells(LINEAGE, "models.current", "kind jobs=n log_loss_new log_loss_base_rate warm_minus_cold", _IN_USE),
]

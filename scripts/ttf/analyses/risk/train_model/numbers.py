"""Numbers of models: windows that trained one, the decisions, and the model in use."""

import polars as pl

from ttf.analyses.risk.train_model import LINEAGE, MODELS_SUMMARY
from ttf.display.metrics import cells

# No row if no model is in use.
_IN_USE = pl.col("trained") & (pl.col("model") == pl.col("current").last())
NUMBERS = [
    cells(MODELS_SUMMARY, "models"),
    cells(LINEAGE, "models.not_trained", "why=reason", ~pl.col("trained"), take=-1),
    cells(LINEAGE, "models", "current=window", _IN_USE),
    cells(LINEAGE, "models.current", "kind jobs=n", _IN_USE),
]

"""How many windows trained a model, what became of these, and which is in use."""

import polars as pl

from ttf.analyses.train_model.gate import PROMOTED, UNTOLD, WORSE
from ttf.analyses.train_model.lineage import ONLY, PENDING
from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics
from ttf.risk import KINDS

SOURCE = "tables/model_lineage.csv"
DECISIONS = {"promoted": PROMOTED, "worse": WORSE, "untold": UNTOLD, "pending": PENDING, "only": ONLY}


def numbers(metrics: Metrics, given: Inputs) -> None:
    lineage = given["model_lineage"]
    trained = lineage.filter("trained")
    metrics.put("models.windows", lineage.height, "windows", SOURCE)
    metrics.put("models.trained", trained.height, "models", SOURCE, lineage.height)
    for name, decision in DECISIONS.items():
        number = (trained["decision"] == decision).sum()
        metrics.put(f"models.{name}", number, "models", SOURCE, trained.height)
    refused = lineage.filter(~pl.col("trained"))
    metrics.put("models.not_trained", refused.height, "windows", SOURCE, lineage.height)
    if refused.height:
        metrics.put("models.not_trained.why", refused["reason"][-1], "label", SOURCE)
    tested = trained.filter(pl.col("log_loss_new").is_not_null())
    metrics.put("models.tested", tested.height, "models", SOURCE, trained.height)
    # There may be none: no window, or none that trained a model worth using.
    in_use = trained.filter(pl.col("model").eq_missing(lineage["current"].last()))
    if in_use.height:
        row = in_use.row(0, named=True)
        metrics.put("models.current", row["window"], "label", SOURCE)
        metrics.put("models.current.kind", KINDS[row["kind"]], "label", SOURCE)
        metrics.put("models.current.jobs", row["n"], "jobs", SOURCE)
        units = dict.fromkeys(("log_loss_new", "log_loss_base_rate", "warm_minus_cold"), "1")
        metrics.put_row("models.current", row, units, SOURCE, row["n_test"])

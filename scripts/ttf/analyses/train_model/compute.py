"""From the jobs of a trace to a model after each window, and what became of it."""

from typing import Any

import polars as pl

from ttf.analyses.train_model import LINEAGE, MODELS_SUMMARY
from ttf.analyses.train_model.gate import PROMOTED, UNTOLD, WORSE
from ttf.analyses.train_model.lineage import ONLY, lineage
from ttf.analyses.train_model.windows import windows_of
from ttf.inputs import Inputs
from ttf.risk.features import Data, features_of


def compute(given: Inputs) -> dict[str, Any]:
    """A trace that grew by a window costs the features of all jobs, which each run makes anew, the models of the last
    two windows, and one from nothing, of all jobs before: the others and their tests are kept (`before`).
    """
    settings = given.settings
    data = Data.of(given.scan("jobs"), features_of(settings.risk["features"]), settings.risk["clock"])
    found = lineage(data, windows_of(data.jobs, settings.windows, settings.parts), settings.drift_limit, given.kept)
    table = LINEAGE.frame(found.rows)
    return {"model_lineage": table, "models_summary": summarise_decisions(table), "models": found.files}


def summarise_decisions(lineage: pl.DataFrame) -> pl.DataFrame:
    """The one row of MODELS_SUMMARY. lineage: LINEAGE."""
    trained = lineage.filter("trained")
    row = {"windows": lineage.height, "trained": trained.height, "not_trained": lineage.height - trained.height}
    decisions = {"only": ONLY, "promoted": PROMOTED, "worse": WORSE, "untold": UNTOLD}
    row |= {name: (trained["decision"] == decision).sum() for name, decision in decisions.items()}
    return MODELS_SUMMARY.frame([row | {"tested": trained["log_loss_new"].count()}])

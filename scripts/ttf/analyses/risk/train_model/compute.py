"""From the jobs of a trace to a model after each window, and what became of it."""

from typing import Any

import polars as pl

from ttf.analyses.risk.train_model import LINEAGE, MODELS_SUMMARY
from ttf.analyses.risk.train_model.cache import Cache
from ttf.analyses.risk.train_model.gate import PROMOTED, UNTOLD, WORSE
from ttf.analyses.risk.train_model.lineage import ONLY, lineage
from ttf.analyses.risk.train_model.training_windows import windows_of
from ttf.analyses.shared.risk.features import Data, features_of
from ttf.records.inputs import Inputs


def compute(given: Inputs) -> dict[str, Any]:
    settings = given.settings
    data = Data.of(given.scan("jobs"), features_of(settings.risk["features"]), settings.risk["clock"])
    cache = Cache(data, given.previous.get("model_cache"), given.code)
    found = lineage(data, windows_of(data.jobs, settings.windows, settings.parts), settings.drift_limit, cache)
    table = LINEAGE.frame(found.rows)
    tables = {"model_lineage": table, "models_summary": summarise_decisions(table), "model_cache": cache.table()}
    return tables | {"models": found.files}


def summarise_decisions(lineage: pl.DataFrame) -> pl.DataFrame:
    """The one row of MODELS_SUMMARY. lineage: LINEAGE."""
    trained = lineage.filter("trained")
    row = {"windows": lineage.height, "trained": trained.height, "not_trained": lineage.height - trained.height}
    decisions = {"only": ONLY, "promoted": PROMOTED, "worse": WORSE, "untold": UNTOLD}
    row |= {name: (trained["decision"] == decision).sum() for name, decision in decisions.items()}
    return MODELS_SUMMARY.frame([row | {"tested": trained["log_loss_new"].count()}])

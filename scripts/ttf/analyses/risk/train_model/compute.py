"""Train a model after each window of a trace and decide on its promotion."""

from typing import Any

import polars as pl

from ttf.analyses.risk.train_model import LINEAGE, MODELS_SUMMARY
from ttf.analyses.risk.train_model.cache import Cache
from ttf.analyses.risk.train_model.gate import INCONCLUSIVE, PROMOTED, WORSE
from ttf.analyses.risk.train_model.lineage import ONLY_MODEL, train_lineage
from ttf.analyses.risk.train_model.training_windows import split_windows
from ttf.analyses.shared.risk.features import Data, parse_features
from ttf.records.inputs import Inputs


def compute(inputs: Inputs) -> dict[str, Any]:
    """Return the tables of the analysis, and the texts of the model files by name under `models`."""
    settings = inputs.settings
    data = Data.load(inputs.scan("jobs"), parse_features(settings.risk["features"]), settings.risk["clock"])
    cache = Cache(data, inputs.previous.get("model_cache"), inputs.code)
    windows = split_windows(data.jobs, settings.windows, settings.parts)
    result = train_lineage(data, windows, settings.drift_limit, cache)
    table = LINEAGE.frame(result.rows)
    tables = {"model_lineage": table, "models_summary": summarise_decisions(table), "model_cache": cache.table()}
    return tables | {"models": result.files}


def summarise_decisions(lineage: pl.DataFrame) -> pl.DataFrame:
    """Return the one row of MODELS_SUMMARY. lineage: LINEAGE."""
    trained = lineage.filter("trained")
    row = {"windows": lineage.height, "trained": trained.height, "not_trained": lineage.height - trained.height}
    decisions = {"only": ONLY_MODEL, "promoted": PROMOTED, "worse": WORSE, "untested": INCONCLUSIVE}
    row |= {name: trained.filter(decision=decision).height for name, decision in decisions.items()}
    return MODELS_SUMMARY.frame([row | {"tested": trained["log_loss_new"].count()}])

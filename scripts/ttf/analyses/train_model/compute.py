"""From the jobs of a trace to a model after each window, and what became of it."""

from typing import Any

from ttf.analyses.train_model import LINEAGE
from ttf.analyses.train_model.lineage import Data, lineage
from ttf.analyses.train_model.windows import windows_of
from ttf.inputs import Inputs
from ttf.risk.features import features_of, submitted
from ttf.risk.population import population


def compute(given: Inputs) -> dict[str, Any]:
    settings = given.settings
    features = features_of(settings.risk["features"])
    columns = [column for feature in features for column in feature.columns]
    jobs = population(given.scan("jobs"), columns)
    data = Data(jobs, submitted(jobs.jobs, features, settings.risk["clock"], jobs), features)
    found = lineage(data, windows_of(jobs, settings.windows, settings.parts), settings.drift_limit)
    return {"model_lineage": LINEAGE.frame(found.rows), "models": found.files}

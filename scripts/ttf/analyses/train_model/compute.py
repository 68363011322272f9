"""From the jobs of a trace to a model after each window, and what became of it."""

from typing import Any

from ttf.analyses.train_model import LINEAGE
from ttf.analyses.train_model.lineage import lineage
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
    return {"model_lineage": LINEAGE.frame(found.rows), "models": found.files}

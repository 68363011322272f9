"""The challenger: histogram gradient boosting of scikit-learn, if the study requests it and it is installed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy.special import expit

from ttf.analyses.shared.risk.encoder import Encoder
from ttf.analyses.shared.risk.features import JobFeatures
from ttf.analyses.shared.risk.model import fit_platt, log_odds

NOT_REQUESTED = "not requested (risk.challenger)"
NOT_INSTALLED = "scikit-learn is not installed, which the challenger needs"
# scikit-learn accepts at most this many levels; beyond, the index of a level (most common first) is used as a number.
MOST_LEVELS = 255


@dataclass(frozen=True)
class Challenger:
    """missing: why there is no challenger; seed: random state."""

    missing: str | None
    seed: int

    @classmethod
    def create(cls, is_requested: bool, seed: int) -> Challenger:
        """Return a challenger; its `missing` says why it cannot be used: not requested or not installed."""
        if not is_requested:
            return cls(NOT_REQUESTED, seed)
        return cls(None if find_spec("sklearn") else NOT_INSTALLED, seed)

    def probability(
        self,
        encoder: Encoder,
        features: JobFeatures,
        failed: np.ndarray,
        is_training: np.ndarray,
        is_calibration: np.ndarray,
        rows: np.ndarray,
    ) -> np.ndarray:
        """Return the probability of failure of `rows`, recalibrated like the logistic model.

        It sees the columns of the design, with one column per category. It runs in one thread
        (`ttf.engine.process.entry`): with more threads than free cores it stalls.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier

        training_columns = _design_columns(encoder, features, np.flatnonzero(is_training))
        sizes = [size for _, size in encoder.design(features.take(rows[:0])).levels]
        is_category = [False] * (training_columns.shape[1] - len(sizes)) + [size <= MOST_LEVELS for size in sizes]
        model = HistGradientBoostingClassifier(
            early_stopping=False, categorical_features=is_category, random_state=self.seed
        ).fit(training_columns, failed[is_training])
        eta, calibration_eta = (
            log_odds(model.predict_proba(_design_columns(encoder, features, part))[:, 1]) if len(part) else np.empty(0)
            for part in (rows, np.flatnonzero(is_calibration))
        )
        shift, slope = fit_platt(calibration_eta, failed[is_calibration])
        return expit(shift + slope * eta)


def _design_columns(encoder: Encoder, features: JobFeatures, rows: np.ndarray) -> np.ndarray:
    """Return a matrix of jobs `rows`: the numeric columns of the design, then one column of codes per category."""
    design = encoder.design(features.take(rows))
    return np.column_stack([design.numbers, *(codes for codes, _ in design.levels)])

"""The challenger: histogram gradient boosting of scikit-learn, where the study asks for it and it is installed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy.special import expit

from ttf.analyses.shared.risk.encoder import Encoder
from ttf.analyses.shared.risk.features import Submitted
from ttf.analyses.shared.risk.model import log_odds, platt

NOT_ASKED = "not requested (risk.challenger)"
NOT_INSTALLED = "scikit-learn is not installed, which the challenger needs"
# Of more levels than scikit-learn takes, the place of one, the commonest first, counts as a number.
MOST_LEVELS = 255


@dataclass(frozen=True)
class Challenger:
    """lacks: why there is none; seed: of its draws."""

    lacks: str | None
    seed: int

    @classmethod
    def of(cls, asked: bool, seed: int) -> Challenger:
        if not asked:
            return cls(NOT_ASKED, seed)
        return cls(None if find_spec("sklearn") else NOT_INSTALLED, seed)

    def probability(
        self,
        encoder: Encoder,
        known: Submitted,
        failed: np.ndarray,
        learn: np.ndarray,
        again: np.ndarray,
        rows: np.ndarray,
    ) -> np.ndarray:
        """That each of `rows` fails, recalibrated as the logistic model is.

        It has the columns of the design, a category as one. One thread (`ttf.engine.process.entry`): with more of them
        than cores are free it stands still.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier

        learnt = _columns(encoder, known, np.flatnonzero(learn))
        sizes = [size for _, size in encoder.design(known.take(rows[:0])).levels]
        categories = [False] * (learnt.shape[1] - len(sizes)) + [size <= MOST_LEVELS for size in sizes]
        model = HistGradientBoostingClassifier(
            early_stopping=False, categorical_features=categories, random_state=self.seed
        ).fit(learnt, failed[learn])
        eta, of_again = (
            log_odds(model.predict_proba(_columns(encoder, known, which))[:, 1]) if len(which) else np.empty(0)
            for which in (rows, np.flatnonzero(again))
        )
        shift, slope = platt(of_again, failed[again])
        return expit(shift + slope * eta)


def _columns(encoder: Encoder, known: Submitted, rows: np.ndarray) -> np.ndarray:
    design = encoder.design(known.take(rows))
    return np.column_stack([design.numbers, *(codes for codes, _ in design.levels)])

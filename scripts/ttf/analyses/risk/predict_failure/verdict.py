"""Decide from the tests of three origins whether failure is predicted and acting on it pays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ttf.analyses.risk.predict_failure import PROBABILITY, VERDICT
from ttf.analyses.risk.predict_failure.risk_labels import (
    CANNOT_SAY,
    MODERATE,
    NONE,
    ORIGINS,
    STRONG,
    UNPRICED,
    WEAK,
    WITHOUT_MOST,
)

# Each step of the verdict needs this many of the three origins.
MOST_ORIGINS = 2
# A strong score saves at least this multiple of its cost.
TIMES_COST = 2
_ABOVE, _SAVED, _SAVED_OVER_COST = "pr_auc_above_base_rate", "gpu_hours_saved", "gpu_hours_saved_over_cost"


@dataclass(frozen=True)
class Origin:
    """Test of an origin.

    model: the serving model, "" if none does; measures: metric -> its row of risk_evaluation for that model; reason:
    why it could not be tested, else None.
    """

    split: str
    model: str
    measures: Mapping[str, Mapping]
    reason: str | None

    @property
    def is_predicted(self) -> bool | None:
        """Whether the whole interval of the PR-AUC gain on the base rate is above 0; None without an interval."""
        low = self._get_measure(_ABOVE, "ci_low_clustered")
        return None if low is None else low > 0

    @property
    def pays(self) -> bool | None:
        """Whether the whole interval of the net saving is above 0; None if unknown."""
        if not self.is_predicted:
            return self.is_predicted
        low = self._get_measure(_SAVED, "ci_low_clustered")
        if low is None:
            # No job would be tried.
            return False if self._get_measure(_SAVED, "estimate") == 0 else None
        return low > 0

    @property
    def is_saving_clear(self) -> bool | None:
        """Whether the whole interval of saving over cost is above TIMES_COST; None if unknown."""
        if not self.pays:
            return self.pays
        low = self._get_measure(_SAVED_OVER_COST, "ci_low_clustered")
        return None if low is None else low > TIMES_COST

    def explain_missing(self, metric: str = _ABOVE) -> str | None:
        """Return why a measure cannot be judged; None if it can."""
        if self.reason is not None or metric not in self.measures:
            return self.reason
        return self.measures[metric]["reason"] if self._get_measure(metric, "ci_low_clustered") is None else None

    def _get_measure(self, metric: str, column: str) -> float | None:
        return self.measures[metric][column] if metric in self.measures else None


def read_origins(evaluation: pl.DataFrame) -> list[Origin]:
    """Read the tests of the origins from risk_evaluation, in order; origins without rows are omitted."""
    rows = evaluation.filter(stage=PROBABILITY, slice="all")
    return [_make_origin(split, split_rows) for split in ORIGINS if (split_rows := rows.filter(split=split)).height]


def _make_origin(split: str, rows: pl.DataFrame) -> Origin:
    measures = {row["metric"]: row for row in rows.filter("serves").iter_rows(named=True)}
    pr_auc = measures.get("pr_auc") or rows.row(0, named=True)
    reason = None if pr_auc["estimate"] is not None else pr_auc["reason"]
    return Origin(split, pr_auc["model"] if measures else "", measures, reason)


def last_tested(tests: Sequence[Origin]) -> Origin | None:
    """Return the last origin that could be tested, or None."""
    return next((test for test in reversed(tests) if test.reason is None), None)


def verdict(tests: Sequence[Origin]) -> str:
    """Return STRONG to NONE, or CANNOT_SAY. Each step needs two of three origins; untested ones do not count."""
    predicted = _majority(test.is_predicted for test in tests)
    if not predicted:
        return CANNOT_SAY if predicted is None else NONE
    pays = _majority(test.pays for test in tests)
    if not pays:
        return UNPRICED if pays is None else WEAK
    return STRONG if _majority(test.is_saving_clear for test in tests) else MODERATE


def _majority(answers: Iterable[bool | None]) -> bool | None:
    """Return the answer of at least MOST_ORIGINS origins; None if neither has enough."""
    answers = list(answers)
    return next((answer for answer in (True, False) if answers.count(answer) >= MOST_ORIGINS), None)


def summarise_tests(evaluation: pl.DataFrame, features: pl.DataFrame, importance: pl.DataFrame) -> pl.DataFrame:
    """Return the one row of VERDICT from risk_evaluation, risk_features and risk_importance."""
    tests, used_features = read_origins(evaluation), features.filter("used")
    user_features = used_features.filter(pl.col("columns").str.split(", ").list.contains("user"))
    row: dict[str, Any] = {"features": features.height, "features_used": used_features.height}
    row["features_of_user"] = user_features.height
    row["features_that_matter"] = importance.filter(pl.col("ci_low_clustered") > 0, how="permuted").height
    if not (origin := last_tested(tests)):
        return VERDICT.frame([row])
    row |= {"origin": origin.split, "verdict": verdict(tests), "origins": len(tests)}
    row["origins_tested"] = sum(test.reason is None for test in tests)
    for name, answers in (
        ("predicted", [test.is_predicted for test in tests]),
        ("paying", [test.pays for test in tests]),
    ):
        known_answers = [answer for answer in answers if answer is not None]
        row |= {f"origins_{name}": sum(known_answers), f"origins_{name}_of": len(known_answers)}
    filters = {"stage": PROBABILITY, "split": origin.split, "slice": WITHOUT_MOST, "metric": "pr_auc"}
    without_most = evaluation.filter("serves", **filters)
    if without_most.height:
        row["failures"] = origin.measures["pr_auc"]["failures"]
        row["failures_of_largest_cluster"] = row["failures"] - without_most["failures"].item()
    return VERDICT.frame([row])

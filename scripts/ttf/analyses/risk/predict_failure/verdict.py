"""Whether failure is told in advance and acting on it pays, by the tests of the three origins."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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

# Each step of the verdict needs so many of the three origins.
MOST_ORIGINS = 2
# A strong score saves so many times its cost.
TIMES_COST = 2
_ABOVE, _SAVED, _SAVED_OVER_COST = "pr_auc_above_base_rate", "gpu_hours_saved", "gpu_hours_saved_over_cost"


@dataclass(frozen=True)
class Origin:
    """The test of an origin. model: the one that serves; measures: name -> its row of risk_evaluation, of that model;
    reason: why it could not be tested, None where it could."""

    split: str
    model: str | None
    measures: Mapping[str, Mapping]
    reason: str | None

    @property
    def is_predicted(self) -> bool | None:
        """Whether PR-AUC is above that of the base rate by its whole interval; None without an interval."""
        low = self._measure(_ABOVE, "ci_low_clustered")
        return None if low is None else low > 0

    @property
    def pays(self) -> bool | None:
        """Whether acting on the score saves more than it costs, by the whole interval; None where that is not known."""
        if not self.is_predicted:
            return self.is_predicted
        low = self._measure(_SAVED, "ci_low_clustered")
        if low is None:
            # Nobody would be tried.
            return False if self._measure(_SAVED, "estimate") == 0 else None
        return low > 0

    @property
    def pays_well(self) -> bool | None:
        if not self.pays:
            return self.pays
        low = self._measure(_SAVED_OVER_COST, "ci_low_clustered")
        return None if low is None else low > TIMES_COST

    def _measure(self, metric: str, column: str) -> float | None:
        return self.measures[metric][column] if metric in self.measures else None


def origins(evaluation: pl.DataFrame) -> list[Origin]:
    """The tests of the three origins, in their order; none where there are no rows."""
    rows = evaluation.filter(stage=PROBABILITY, slice="all")
    return [_origin(split, of_it) for split in ORIGINS if (of_it := rows.filter(split=split)).height]


def _origin(split: str, rows: pl.DataFrame) -> Origin:
    measures = {row["metric"]: row for row in rows.filter("serves").iter_rows(named=True)}
    pr_auc = measures.get("pr_auc") or rows.row(0, named=True)
    reason = None if pr_auc["estimate"] is not None else pr_auc["reason"]
    return Origin(split, pr_auc["model"] if measures else None, measures, reason)


def reported(tests: Sequence[Origin]) -> Origin | None:
    """The last origin that could be tested; None where there is none."""
    return next((test for test in reversed(tests) if test.reason is None), None)


def verdict(tests: Sequence[Origin]) -> str:
    """How worth acting on the score is. Each step needs two of three origins; one that cannot be tested has no say."""
    predicted = _agreed(test.is_predicted for test in tests)
    if not predicted:
        return CANNOT_SAY if predicted is None else NONE
    pays = _agreed(test.pays for test in tests)
    if not pays:
        return UNPRICED if pays is None else WEAK
    return STRONG if _agreed(test.pays_well for test in tests) else MODERATE


def _agreed(answers: Iterable[bool | None]) -> bool | None:
    """What most origins answer; None where neither answer has enough."""
    answers = list(answers)
    return next((answer for answer in (True, False) if answers.count(answer) >= MOST_ORIGINS), None)


def summarise_tests(evaluation: pl.DataFrame, features: pl.DataFrame, importance: pl.DataFrame) -> pl.DataFrame:
    """The one row of VERDICT; of risk_evaluation, risk_features and risk_importance."""
    tests, used = origins(evaluation), features.filter("used")
    from_user = used.filter(pl.col("columns").str.split(", ").list.contains("user"))
    row = {"features": features.height, "features_used": used.height, "features_of_user": from_user.height}
    row["features_that_matter"] = importance.filter(pl.col("ci_low_clustered") > 0, how="permuted").height
    against = evaluation.filter(pl.col("split").is_in(ORIGINS), stage=PROBABILITY, metric="pr_auc_above_logistic")
    against = against.filter(slice="all").drop_nulls("estimate")
    if against.height:
        row |= {"boosting_tested": against.height, "boosting_won": (against["ci_low_clustered"] > 0).sum()}
    if not (last := reported(tests)):
        return VERDICT.frame([row])
    row |= {"origin": last.split, "verdict": verdict(tests), "origins": len(tests)}
    row["origins_tested"] = sum(test.reason is None for test in tests)
    for name, answers in (
        ("predicted", [test.is_predicted for test in tests]),
        ("paying", [test.pays for test in tests]),
    ):
        definite = [answer for answer in answers if answer is not None]
        row |= {f"origins_{name}": sum(definite), f"origins_{name}_of": len(definite)}
    rest = evaluation.filter("serves", stage=PROBABILITY, split=last.split, slice=WITHOUT_MOST, metric="pr_auc")
    if rest.height:
        row["failures"] = last.measures["pr_auc"]["failures"]
        row["failures_of_most"] = row["failures"] - rest["failures"].item()
    return VERDICT.frame([row])

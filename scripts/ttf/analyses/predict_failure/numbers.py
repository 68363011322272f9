"""The numbers of failure risk: whether failure is told in advance, what tells it, what it is worth, where it ends."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ttf.analyses.predict_failure import HOURS, LANDMARK, PROBABILITY
from ttf.analyses.predict_failure.names import (
    CANNOT_SAY,
    MODELS,
    MODERATE,
    NONE,
    ORIGINS,
    RANDOM,
    STRONG,
    UNPRICED,
    UNSEEN,
    WEAK,
)
from ttf.analyses.predict_failure.trials import WITHOUT_MOST
from ttf.numbers.metrics import OLD_CLUSTERS, Metrics

# Each step of the verdict needs so many of the three origins.
MOST_ORIGINS = 2
# A strong score saves so many times its cost.
TIMES_COST = 2
_ABOVE, _OVER_HISTORY, _SAVED, _SAVED_OVER_COST = (
    *("pr_auc_above_base_rate", "pr_auc_above_nested_rate"),
    *("gpu_hours_saved", "gpu_hours_saved_over_cost"),
)
_UNITS = {
    "pr_auc": "PR-AUC",
    _ABOVE: "PR-AUC",
    _OVER_HISTORY: "PR-AUC",
    "calibration_slope": "ratio",
    "median_factor_off": "times",
}
_EVALUATION, _IMPORTANCE = "tables/risk_evaluation.csv", "tables/risk_importance.csv"


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


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    evaluation = given["risk_evaluation"]
    probability = evaluation.filter(stage=PROBABILITY, slice="all")
    for split in (*ORIGINS, RANDOM):
        _of_models(metrics, f"risk.{split}", probability.filter(split=split))
    tests = origins(evaluation)
    _of_verdict(metrics, tests)
    if last := reported(tests):
        of_last = evaluation.filter(split=last.split)
        _of_models(metrics, "risk.landmark", of_last.filter(stage=LANDMARK))
        for name in (*UNSEEN, WITHOUT_MOST):
            rows = of_last.filter("serves", stage=PROBABILITY, slice=name, metric="pr_auc")
            _of_kind(metrics, f"risk.{name}", rows)
        if (rest := metrics.get(f"risk.{WITHOUT_MOST}.failures")) is not None:
            every = metrics[f"risk.{last.split}.failures"]["value"]
            metrics.put(f"risk.{WITHOUT_MOST}.held", every - rest["value"], "failures", _EVALUATION, every)
        _of_hours(metrics, of_last.filter(stage=HOURS))
        _of_savings(metrics, last, given["risk_decisions"])
    _of_importance(metrics, given["risk_importance"])
    _of_extrapolation(metrics, given["risk_extrapolation"])
    _of_challenger(metrics, probability)
    for which, jobs in given["risk_jobs"].select("jobs_are", "jobs").iter_rows():
        metrics.put(f"risk.jobs.{which.replace(' ', '_')}", jobs, "jobs", "tables/risk_jobs.csv")
    used = given["risk_features"].filter("used")
    source = "tables/risk_features.csv"
    metrics.put("risk.features", used.height, "features", source, given["risk_features"].height)
    of_user = used.filter(pl.col("columns").str.split(", ").list.contains("user"))
    metrics.put("risk.features_of_user", of_user.height, "features", source, used.height)


def _of_verdict(metrics: Metrics, tests: Sequence[Origin]) -> None:
    for test in tests:
        if test.reason is not None:
            metrics.put(f"risk.{test.split}.reason", test.reason, "label", _EVALUATION)
    last = reported(tests)
    if last is None:
        return
    metrics.put("risk.origin", last.split, "label", _EVALUATION)
    metrics.put("risk.verdict", verdict(tests), "label", _EVALUATION, len(tests))
    metrics.put("risk.origins", sum(test.reason is None for test in tests), "origins", _EVALUATION, len(tests))
    for name, answers in (
        ("predicted", [test.is_predicted for test in tests]),
        ("paying", [test.pays for test in tests]),
    ):
        known = [answer for answer in answers if answer is not None]
        metrics.put(f"risk.origins_{name}", sum(known), "origins", _EVALUATION, len(known))


def _of_models(metrics: Metrics, key: str, rows: pl.DataFrame) -> None:
    """How well the models tell failure on one split, with its jobs and failures; more stands in the table."""
    known = rows.filter(pl.col("estimate").is_not_null(), pl.col("metric").is_in(list(_UNITS)))
    for row in known.iter_rows(named=True):
        if row["metric"] == "pr_auc":
            _estimate(metrics, f"{key}.{row['model']}.{row['metric']}", row, _UNITS[row["metric"]])
        if row["serves"]:
            _estimate(metrics, f"{key}.served.{row['metric']}", row, _UNITS[row["metric"]])
    for row in rows.filter("serves", metric="pr_auc").iter_rows(named=True):
        metrics.put(f"{key}.served", MODELS[row["model"]], "label", _EVALUATION, row["n"])
        _counted(metrics, key, row)
        metrics.put_row(f"{key}.served", row, OLD_CLUSTERS, _EVALUATION, row["n"])


def _estimate(metrics: Metrics, key: str, row: Mapping, unit: str, source: str = _EVALUATION, of: str = "estimate"):
    """An estimate with its clustered interval, as key, key_ci_low_clustered and key_ci_high_clustered."""
    metrics.put(key, row[of], unit, source, row["n"])
    for end in ("low", "high"):
        metrics.put(f"{key}_ci_{end}_clustered", row[f"ci_{end}_clustered"], unit, source, row["n"])


def _counted(metrics: Metrics, key: str, row: Mapping, source: str = _EVALUATION) -> None:
    metrics.put(f"{key}.jobs", row["n"], "jobs", source)
    metrics.put(f"{key}.failures", row["failures"], "failures", source, row["n"])


def _of_kind(metrics: Metrics, key: str, rows: pl.DataFrame) -> None:
    """Of test jobs of some kind: how many, how well it is told of them, or why that cannot be said."""
    for row in rows.iter_rows(named=True):
        _counted(metrics, key, row)
        if row["estimate"] is None:
            metrics.put(f"{key}.reason", row["reason"], "label", _EVALUATION, row["n"])
        else:
            _estimate(metrics, f"{key}.pr_auc", row, "PR-AUC")


def _of_hours(metrics: Metrics, rows: pl.DataFrame) -> None:
    known = rows.filter(pl.col("estimate").is_not_null(), pl.col("metric").is_in(list(_UNITS)))
    for row in known.iter_rows(named=True):
        key = "risk.hours" if row["model"] == "lognormal" else "risk.hours.base_rate"
        _estimate(metrics, f"{key}.{row['metric']}", row, _UNITS[row["metric"]])
    for row in rows.filter(pl.col("estimate").is_null(), model="lognormal").head(1).iter_rows(named=True):
        metrics.put("risk.hours.reason", row["reason"], "label", _EVALUATION, row["n"])


def _of_savings(metrics: Metrics, last: Origin, decisions: pl.DataFrame) -> None:
    """What a trial on one GPU of the jobs at risk would have saved; an upper bound."""
    for metric, name, unit in (
        (_SAVED, "gpu_hours", "GPU-hours"),
        (_SAVED_OVER_COST, "over_cost", "times"),
        ("gpu_hours_saved_of_oracle", "of_oracle", "share"),
    ):
        if (row := last.measures.get(metric)) is None:
            continue
        if row["estimate"] is None:
            metrics.put(f"risk.savings.{name}_reason", row["reason"], "label", _EVALUATION, row["n"])
        else:
            _estimate(metrics, f"risk.savings.{name}", row, unit)
    source, tried = "tables/risk_decisions.csv", decisions.filter("chosen")
    jobs = decisions["flagged"].max()
    for row in tried.filter(model=last.model).iter_rows(named=True):
        metrics.put("risk.savings.tried", row["flagged"], "jobs", source, jobs)
        metrics.put("risk.savings.caught", row["caught"], "jobs", source, row["flagged"])
    for model in ("oracle", "everyone"):
        for row in tried.filter(model=model).iter_rows(named=True):
            metrics.put(f"risk.savings.{model}_gpu_hours", row["net_gpu_hours"], "GPU-hours", source, jobs)


def _of_importance(metrics: Metrics, importance: pl.DataFrame) -> None:
    """The features whose loss is told from 0, the largest first; and the loss of a model without any history."""
    told = importance.filter(pl.col("ci_low_clustered") > 0, how="permuted")
    told = told.sort("drop", "feature", descending=[True, False])
    metrics.put("risk.importance.features", told.height, "features", _IMPORTANCE)
    left_out = importance.filter(pl.col("drop").is_not_null(), feature="history", how="left_out")
    rows = [*zip(("importance.first", "importance.second"), told.iter_rows(named=True), strict=False)]
    for name, row in [*rows, *(("history", row) for row in left_out.iter_rows(named=True))]:
        key = f"risk.{name}"
        metrics.put(f"{key}.feature", row["feature"], "label", _IMPORTANCE, row["n"])
        _estimate(metrics, f"{key}.drop", row, "PR-AUC", _IMPORTANCE, "drop")
        metrics.put(f"{key}.share_of_gain", row["share_of_gain"], "share", _IMPORTANCE, row["n"])


def _of_extrapolation(metrics: Metrics, rows: pl.DataFrame) -> None:
    source = "tables/risk_extrapolation.csv"
    for row in rows.filter(metric="pr_auc").iter_rows(named=True):
        key = f"risk.{row['held_out']}"
        metrics.put(f"{key}.which", row["value"], "label", source)
        if row["estimate"] is None:
            metrics.put(f"{key}.reason", row["reason"], "label", source, row["n"])
            continue
        _counted(metrics, key, row, source)
        _estimate(metrics, f"{key}.{row['trained']}.pr_auc", row, "PR-AUC", source)


def _of_challenger(metrics: Metrics, probability: pl.DataFrame) -> None:
    """At how many origins gradient boosting is better than the logistic regression; or why it was not tried."""
    boosting = probability.filter(pl.col("split").is_in(ORIGINS), model="gradient_boosting")
    against = boosting.filter(pl.col("estimate").is_not_null(), metric="pr_auc_above_logistic")
    key = "risk.gradient_boosting"
    if against.height:
        won = int((against["ci_low_clustered"] > 0).sum())
        metrics.put(f"{key}.origins_won", won, "origins", _EVALUATION, against.height)
        return
    for row in boosting.tail(1).iter_rows(named=True):
        metrics.put(f"{key}.reason", row["reason"], "label", _EVALUATION)

"""The numbers of failure risk: whether failure is told in advance, what tells it, what it is worth, where it ends."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.predict_failure import HOURS, LANDMARK, PROBABILITY
from ttf.analyses.predict_failure.names import LAST, ORIGINS, RANDOM, UNSEEN
from ttf.numbers.metrics import CLUSTERS, Metrics

# Whether failure can be told in advance: at most of the origins, at most of them not, or neither can be said.
TOLD, NOT_TOLD, CANNOT_SAY = "can be told", "cannot be told", "the data cannot say"
MOST_ORIGINS = 2
_ABOVE = "pr_auc_above_base_rate"
_UNITS = {"pr_auc": "PR-AUC", _ABOVE: "PR-AUC", "calibration_slope": "ratio", "median_factor_off": "times"}
# Of what sentences tell, by model: the measures.
_SAID = {
    "base_rate": ["pr_auc"],
    "logistic": ["pr_auc", _ABOVE, "calibration_slope"],
    "gradient_boosting": ["pr_auc"],
}
_EVALUATION, _IMPORTANCE = "tables/risk_evaluation.csv", "tables/risk_importance.csv"


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    evaluation = given["risk_evaluation"]
    probability = evaluation.filter(stage=PROBABILITY, slice="all")
    for split in (*ORIGINS, RANDOM):
        _of_models(metrics, f"risk.{split}", probability.filter(split=split))
    _of_verdict(metrics, probability)
    _of_models(metrics, "risk.landmark", evaluation.filter(stage=LANDMARK, split=LAST))
    for name in UNSEEN:
        rows = evaluation.filter(stage=PROBABILITY, slice=name, split=LAST, model="logistic", metric="pr_auc")
        _of_kind(metrics, f"risk.{name}", rows)
    _of_hours(metrics, evaluation.filter(stage=HOURS, split=LAST))
    _of_savings(metrics, probability.filter(split=LAST, model="logistic"), given["risk_decisions"])
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


def verdict(above: pl.DataFrame) -> str:
    """Whether failure is told in advance; above: the rows of pr_auc_above_base_rate, one an origin.

    An origin tells it where the clustered interval lies above 0, and does not where it reaches down to 0; without an
    interval it says neither.
    """
    told = (above["ci_low_clustered"] > 0).sum()
    if told >= MOST_ORIGINS:
        return TOLD
    return NOT_TOLD if above["ci_low_clustered"].count() - told >= MOST_ORIGINS else CANNOT_SAY


def _of_verdict(metrics: Metrics, probability: pl.DataFrame) -> None:
    known = probability.filter(pl.col("estimate").is_not_null(), model="logistic", metric=_ABOVE)
    above = known.filter(pl.col("split").is_in(ORIGINS))
    last = probability.filter(split=LAST, model="logistic", metric="pr_auc")
    for reason, n in last.filter(pl.col("estimate").is_null()).select("reason", "n").iter_rows():
        metrics.put("risk.reason", reason, "label", _EVALUATION, n)
    if f"risk.{LAST}.logistic.pr_auc" not in metrics:
        return
    n = int(above["n"].sum())
    metrics.put("risk.verdict", verdict(above), "label", _EVALUATION, n)
    metrics.put("risk.origins", above.height, "origins", _EVALUATION, n)
    metrics.put("risk.origins_with_interval", above["ci_low_clustered"].count(), "origins", _EVALUATION, n)
    metrics.put("risk.origins_told", int((above["ci_low_clustered"] > 0).sum()), "origins", _EVALUATION, n)


def _of_models(metrics: Metrics, key: str, rows: pl.DataFrame) -> None:
    """How well the models tell failure on one split, with its jobs and failures; more stands in the table."""
    known = rows.filter(pl.col("estimate").is_not_null(), pl.col("metric").is_in(list(_UNITS)))
    for row in known.iter_rows(named=True):
        if row["metric"] in _SAID.get(row["model"], ()):
            _estimate(metrics, f"{key}.{row['model']}.{row['metric']}", row, _UNITS[row["metric"]])
    for row in rows.filter(metric="pr_auc", model="logistic").iter_rows(named=True):
        _counted(metrics, key, row)
        metrics.put_row(f"{key}.logistic", row, CLUSTERS, _EVALUATION, row["n"])


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


def _of_savings(metrics: Metrics, rows: pl.DataFrame, decisions: pl.DataFrame) -> None:
    """What a trial on one GPU of the jobs at risk would have saved; an upper bound."""
    for metric, name, unit in (
        ("gpu_hours_saved", "gpu_hours", "GPU-hours"),
        ("gpu_hours_saved_of_oracle", "of_oracle", "share"),
    ):
        for row in rows.filter(metric=metric).iter_rows(named=True):
            if row["estimate"] is None:
                metrics.put(f"risk.savings.{name}_reason", row["reason"], "label", _EVALUATION, row["n"])
            else:
                _estimate(metrics, f"risk.savings.{name}", row, unit)
    source, tried = "tables/risk_decisions.csv", decisions.filter("chosen")
    jobs = decisions["flagged"].max()
    for row in tried.filter(model="logistic").iter_rows(named=True):
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
    for row in boosting.filter(split=LAST).head(1).iter_rows(named=True):
        metrics.put(f"{key}.reason", row["reason"], "label", _EVALUATION)

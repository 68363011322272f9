"""The numbers of failure risk: whether failure is told in advance, what tells it, what it is worth, where it ends."""

import polars as pl

from ttf.analyses.risk.predict_failure import (
    DECISIONS,
    EVALUATION,
    EXTRAPOLATION,
    HOURS,
    IMPORTANCE,
    LANDMARK,
    PROBABILITY,
    TAKEN,
    VERDICT,
)
from ttf.analyses.risk.predict_failure.risk_labels import ORIGINS
from ttf.display.metrics import CLUSTERS, Cells, cells

_SERVES, _UNKNOWN = pl.col("serves"), pl.col("estimate").is_null()
_WHOLE = (pl.col("stage") == PROBABILITY) & (pl.col("slice") == "all")
_AT_ORIGIN, _OF_PR_AUC = pl.col("split").is_in(ORIGINS), pl.col("metric") == "pr_auc"
_TESTED = _WHOLE & _AT_ORIGIN & _OF_PR_AUC & _SERVES & ~_UNKNOWN
_LAST = pl.col("split") == pl.col("split").filter(_TESTED).max()
# Of an origin without a model none serves, and all rows say why.
_SAYS_WHY = _SERVES | ~(_WHOLE & _SERVES).any().over("split")
_BOOSTING = _WHOLE & _AT_ORIGIN & (pl.col("model") == "gradient_boosting")
_BEATEN = _WHOLE & _AT_ORIGIN & (pl.col("metric") == "pr_auc_above_logistic") & ~_UNKNOWN
_OFF = "median_factor_off"
_TAKEN = ("ended", "running", "waiting", "earlier", "no submission", "ended before it was submitted")


def _list_columns(name: str, column: str = "estimate") -> str:
    """The columns of an estimate and of its clustered interval."""
    return f"{name}={column} {name}_ci_low_clustered=ci_low_clustered {name}_ci_high_clustered=ci_high_clustered"


def _select_models(key: str, *where: pl.Expr) -> list[Cells]:
    """How well the models tell failure on one split, with its jobs and failures; more stands in the table."""
    served = ("pr_auc", "pr_auc_above_base_rate", "pr_auc_above_nested_rate", "calibration_slope")
    return [
        cells(EVALUATION, f"{key}.{{model}}", _list_columns("pr_auc"), *where, metric="pr_auc"),
        *(cells(EVALUATION, f"{key}.served", _list_columns(name), *where, _SERVES, metric=name) for name in served),
        cells(EVALUATION, key, "served=model jobs=n failures", *where, _SERVES, metric="pr_auc"),
        cells(EVALUATION, f"{key}.served", CLUSTERS, *where, _SERVES, metric="pr_auc"),
    ]


def _select_savings(name: str, metric: str) -> list[Cells]:
    """What a trial on one GPU of the jobs at risk would have saved, an upper bound; or why that is not known."""
    where = (_WHOLE, _LAST, _SERVES, pl.col("metric") == metric)
    return [
        cells(EVALUATION, "risk.savings", _list_columns(name), *where, unit_by="unit"),
        cells(EVALUATION, "risk.savings", f"{name}_reason=reason", *where, _UNKNOWN),
    ]


_KIND = (_LAST, _SERVES, _OF_PR_AUC, pl.col("slice") != "all")
_MATTERS = (pl.col("ci_low_clustered") > 0, pl.col("how") == "permuted")
_DROP = f"feature {_list_columns('drop', 'drop')} share_of_gain"
NUMBERS = [
    *_select_models("risk.{split}", _WHOLE),
    cells(EVALUATION, "risk.{split}", "reason", _WHOLE, _AT_ORIGIN, _OF_PR_AUC, _UNKNOWN, _SAYS_WHY),
    cells(VERDICT, "risk", "origin verdict origins=origins_tested origins_predicted origins_paying"),
    *_select_models("risk.landmark", _LAST, pl.col("stage") == LANDMARK),
    cells(EVALUATION, "risk.{slice}", f"{_list_columns('pr_auc')} jobs=n failures", *_KIND, stage=PROBABILITY),
    cells(EVALUATION, "risk.{slice}", "reason", *_KIND, _UNKNOWN, stage=PROBABILITY),
    cells(VERDICT, "risk.without_most", "held=failures_of_most"),
    *(
        cells(EVALUATION, key, _list_columns(_OFF), _LAST, stage=HOURS, model=model, metric=_OFF)
        for key, model in (("risk.hours", "lognormal"), ("risk.hours.base_rate", "base_rate"))
    ),
    cells(EVALUATION, "risk.hours", "reason", _LAST, _UNKNOWN, stage=HOURS, model="lognormal", take=1),
    *_select_savings("gpu_hours", "gpu_hours_saved"),
    *_select_savings("over_cost", "gpu_hours_saved_over_cost"),
    *_select_savings("of_oracle", "gpu_hours_saved_of_oracle"),
    cells(DECISIONS, "risk.savings", "tried=flagged caught", pl.col("chosen"), _SERVES),
    *(
        cells(DECISIONS, "risk.savings", f"{model}_gpu_hours=net_gpu_hours", pl.col("chosen"), model=model)
        for model in ("oracle", "everyone")
    ),
    cells(VERDICT, "risk.importance", "features=features_that_matter"),
    # The two whose loss is told from 0 and largest, and a model without any history.
    cells(IMPORTANCE, "risk.importance.{rank}", _DROP, *_MATTERS, sort="-drop feature", take=2),
    cells(IMPORTANCE, "risk.history", _DROP, not_blank="drop", feature="history", how="left_out"),
    cells(EXTRAPOLATION, "risk.{held_out}", "which=value", n="", metric="pr_auc"),
    cells(EXTRAPOLATION, "risk.{held_out}", "jobs=n failures", not_blank="estimate", metric="pr_auc"),
    cells(EXTRAPOLATION, "risk.{held_out}", "reason", _UNKNOWN, metric="pr_auc"),
    cells(EXTRAPOLATION, "risk.{held_out}.{trained}", _list_columns("pr_auc"), metric="pr_auc"),
    cells(VERDICT, "risk.gradient_boosting", "origins_won=boosting_won"),
    cells(EVALUATION, "risk.gradient_boosting", "reason", _BOOSTING, _BEATEN.sum() == 0, take=-1),
    *(cells(TAKEN, "risk.jobs", f"{which.replace(' ', '_')}=jobs", jobs_are=which) for which in _TAKEN),
    cells(VERDICT, "risk", "features=features_used features_of_user"),
]

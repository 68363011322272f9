"""Numbers of failure risk: how well failure is predicted, by which features, the savings, and the limits."""

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

_SERVES, _IS_UNKNOWN = pl.col("serves"), pl.col("estimate").is_null()
_IS_WHOLE = (pl.col("stage") == PROBABILITY) & (pl.col("slice") == "all")
_IS_ORIGIN, _IS_PR_AUC = pl.col("split").is_in(ORIGINS), pl.col("metric") == "pr_auc"
_HAS_TEST = _IS_WHOLE & _IS_ORIGIN & _IS_PR_AUC & _SERVES & ~_IS_UNKNOWN
_IS_LAST = pl.col("split") == pl.col("split").filter(_HAS_TEST).max()
# An origin without a model has no serving row; all its rows hold the reason.
_HAS_REASON = _SERVES | ~(_IS_WHOLE & _SERVES).any().over("split")
_OFF = "median_factor_off"
_TAKEN = ("ended", "running", "waiting", "earlier", "no submission", "ended before it was submitted")


def _list_columns(name: str, column: str = "estimate") -> str:
    """Return the argument of `cells` that renames an estimate's column, and its clustered interval, to `name`."""
    return f"{name}={column} {name}_ci_low_clustered=ci_low_clustered {name}_ci_high_clustered=ci_high_clustered"


def _select_models(key: str, *filters: pl.Expr) -> list[Cells]:
    """Return the cells on how well each model predicts, under `key`; filters: select the rows of one split."""
    served = ("pr_auc", "pr_auc_above_base_rate", "pr_auc_above_nested_rate")
    return [
        cells(EVALUATION, f"{key}.{{model}}", _list_columns("pr_auc"), *filters, metric="pr_auc"),
        *(cells(EVALUATION, f"{key}.served", _list_columns(name), *filters, _SERVES, metric=name) for name in served),
        cells(EVALUATION, key, "served=model jobs=n failures", *filters, _SERVES, metric="pr_auc"),
        cells(EVALUATION, f"{key}.served", CLUSTERS, *filters, _SERVES, metric="pr_auc"),
    ]


def _select_savings(name: str, metric: str) -> list[Cells]:
    """Select the upper bound on savings from trials on one GPU, or why it is unknown."""
    filters = (_IS_WHOLE, _IS_LAST, _SERVES, pl.col("metric") == metric)
    return [
        cells(EVALUATION, "risk.savings", _list_columns(name), *filters, unit_by="unit"),
        cells(EVALUATION, "risk.savings", f"{name}_reason=reason", *filters, _IS_UNKNOWN),
    ]


_KIND = (_IS_LAST, _SERVES, _IS_PR_AUC, pl.col("slice") != "all")
_MATTERS = (pl.col("ci_low_clustered") > 0, pl.col("how") == "permuted")
_DROP = f"feature {_list_columns('drop', 'drop')} share_of_gain"
NUMBERS = [
    *_select_models("risk.{split}", _IS_WHOLE),
    cells(EVALUATION, "risk.{split}", "reason", _IS_WHOLE, _IS_ORIGIN, _IS_PR_AUC, _IS_UNKNOWN, _HAS_REASON),
    cells(VERDICT, "risk", "origin verdict origins=origins_tested origins_predicted origins_paying"),
    *_select_models("risk.landmark", _IS_LAST, pl.col("stage") == LANDMARK),
    cells(EVALUATION, "risk.{slice}", f"{_list_columns('pr_auc')} jobs=n failures", *_KIND, stage=PROBABILITY),
    cells(EVALUATION, "risk.{slice}", "reason", *_KIND, _IS_UNKNOWN, stage=PROBABILITY),
    cells(VERDICT, "risk.without_most", "held=failures_of_largest_cluster"),
    *(
        cells(EVALUATION, key, _list_columns(_OFF), _IS_LAST, stage=HOURS, model=model, metric=_OFF)
        for key, model in (("risk.hours", "lognormal"), ("risk.hours.base_rate", "base_rate"))
    ),
    cells(EVALUATION, "risk.hours", "reason", _IS_LAST, _IS_UNKNOWN, stage=HOURS, model="lognormal", take=1),
    *_select_savings("gpu_hours", "gpu_hours_saved"),
    *_select_savings("over_cost", "gpu_hours_saved_over_cost"),
    *_select_savings("of_oracle", "gpu_hours_saved_of_oracle"),
    cells(DECISIONS, "risk.savings", "tried=flagged caught", pl.col("chosen"), _SERVES),
    *(
        cells(DECISIONS, "risk.savings", f"{model}_gpu_hours=net_gpu_hours", pl.col("chosen"), model=model)
        for model in ("oracle", "everyone")
    ),
    cells(VERDICT, "risk.importance", "features=features_that_matter"),
    # The two features with the largest significant loss, and a model without history.
    cells(IMPORTANCE, "risk.importance.{rank}", _DROP, *_MATTERS, sort="-drop feature", take=2),
    cells(IMPORTANCE, "risk.history", _DROP, not_blank="drop", feature="history", how="left_out"),
    cells(EXTRAPOLATION, "risk.{held_out}", "which=value", n="", metric="pr_auc"),
    cells(EXTRAPOLATION, "risk.{held_out}", "jobs=n failures", not_blank="estimate", metric="pr_auc"),
    cells(EXTRAPOLATION, "risk.{held_out}", "reason", _IS_UNKNOWN, metric="pr_auc"),
    cells(EXTRAPOLATION, "risk.{held_out}.{trained}", _list_columns("pr_auc"), metric="pr_auc"),
    *(cells(TAKEN, "risk.jobs", f"{subset.replace(' ', '_')}=jobs", jobs_are=subset) for subset in _TAKEN),
    cells(VERDICT, "risk", "features=features_used features_of_user"),
]

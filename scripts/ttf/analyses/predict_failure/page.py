"""What the section on failure risk says in the open, and its tables."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.predict_failure import (
    COEFFICIENTS,
    EVALUATION,
    EXTRAPOLATION,
    FEATURES,
    LANDMARK,
    PROBABILITY,
)
from ttf.analyses.predict_failure.names import LAST, MODELS, RANDOM, SPLITS, UNSEEN, feature_name
from ttf.analyses.predict_failure.numbers import CANNOT_SAY, NOT_TOLD, TOLD
from ttf.charts.text import plural
from ttf.report import words
from ttf.report.head import Callout, Head, Key, Line
from ttf.report.numbers import Numbers
from ttf.report.said import number, of_trace
from ttf.report.tables import CLUSTERED, Interval, Shown, yes_or_no
from ttf.report.trace import Trace

MOST_TERMS = 20
NO_BREAK_HYPHEN = "\u2011"  # in a finding, whose lines are short on a phone
# From which share of ends without a result on the target is explained.
MANY_UNKNOWN = 0.1
_LOGISTIC = f"risk.{LAST}.logistic"
_MEASURES = ("pr_auc", "roc_auc", "brier", "log_loss", "calibration_slope")


def head(trace: Trace, m: Numbers) -> Head | Line:
    """The finding in figures; its chart, calibration, is for those who open the fold."""
    unit, units = trace.about["unit"], plural(trace.about["unit"])
    if not m.has("risk.verdict"):
        found = f"failure cannot be predicted: {m.value('risk.reason', f'no {unit} has ended')}"
        return Line("Failure risk", found, "risk_evaluation", checked=False)
    return Head(
        claim=_claim(m),
        keys=tuple(_keys(m, units)),
        text=tuple(_text(m)),
        callout=_callout(m, units),
        details="calibration, what carries it, trials on one GPU, where it ends, models",
    )


def lines(trace: Trace, m: Numbers) -> list[Line]:
    """Of a score that is worth no trial: a line, where there is one at all."""
    if not m.has("risk.verdict") or m.has("risk.savings.gpu_hours"):
        return []
    reason = m.value("risk.savings.gpu_hours_reason", "no trial can be judged")
    return [Line("Trials of jobs at risk", reason, "risk_evaluation", checked=False)]


def _claim(m: Numbers) -> str:
    pr_auc, base = number(m, f"{_LOGISTIC}.pr_auc"), number(m, f"risk.{LAST}.base_rate.pr_auc")
    against = f"PR{NO_BREAK_HYPHEN}AUC {pr_auc}, base rate {base}"
    if m["risk.verdict"] == TOLD:
        return f"Failure can be told in advance: {against}"
    if m["risk.verdict"] == NOT_TOLD:
        return f"Failure cannot be told in advance here: {against}"
    if m.has(f"{_LOGISTIC}.pr_auc_ci_low_clustered") or not m.has(f"{_LOGISTIC}.clusters"):
        return f"The data cannot say whether failure can be told in advance: {against}"
    by, clusters = m[f"{_LOGISTIC}.cluster_by"], number(m, f"{_LOGISTIC}.clusters")
    return f"The data cannot say whether failure can be told: failures are of {clusters} effective {plural(by)}"


def _keys(m: Numbers, units: str) -> list[Key]:
    pr_auc, above, saved = f"{_LOGISTIC}.pr_auc", f"{_LOGISTIC}.pr_auc_above_base_rate", "risk.savings.gpu_hours"
    n = f"n = {number(m, f'risk.{LAST}.jobs', words.count)}"
    keys = [Key("PR-AUC, last origin", number(m, pr_auc), _joined(interval(m, pr_auc) or _few(m), n))]
    if m["risk.verdict"] == CANNOT_SAY:
        return keys
    if m.has(above):
        told = f"> 0 at {number(m, 'risk.origins_told', words.count)} of {m['risk.origins']} origins"
        keys.append(Key("Above the base rate", number(m, above), _joined(interval(m, above), told)))
    if m.has(saved):
        label = f"Saved by trying {units} at risk on one GPU first"
        keys.append(Key(label, f"{number(m, saved)} GPU-h", _joined(interval(m, saved), worth(m))))
    return keys


def interval(m: Numbers, key: str) -> str:
    """The clustered interval of a number in words; nothing where it has none."""
    return m.interval(f"{key}_ci_{{}}") if m.has(f"{key}_ci_low_clustered") else ""


def _few(m: Numbers) -> str:
    if not m.has(f"{_LOGISTIC}.clusters"):
        return "no interval"
    by = m[f"{_LOGISTIC}.cluster_by"]
    return f"no interval: {number(m, f'{_LOGISTIC}.clusters')} effective {plural(by)}"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def worth(m: Numbers) -> str:
    """Whether acting on the score saves anything: of what knowing all failures would save, where that can be told."""
    key = "risk.savings.gpu_hours"
    if not m.has(f"{key}_ci_low_clustered") or m[f"{key}_ci_low_clustered"] <= 0 <= m[f"{key}_ci_high_clustered"]:
        return "no saving can be told"
    if m[f"{key}_ci_high_clustered"] < 0:
        return "it costs more than it saves"
    if not m.has("risk.savings.of_oracle"):
        return "upper bound"
    return f"upper bound, {number(m, 'risk.savings.of_oracle', words.share)} of what knowing all failures would save"


def _text(m: Numbers) -> list[str]:
    """What carries the score, and whom it is of."""
    if m["risk.verdict"] == CANNOT_SAY:
        return []
    of_users = "It rests on users' own history: not for ranking people." if m.value("risk.features_of_user", 0) else ""
    return [" ".join(part for part in (carried(m), of_users) if part)] if carried(m) or of_users else []


def carried(m: Numbers) -> str:
    """A sentence: the features that the score rests on most, and what is left without any history."""
    if not m.has("risk.importance.first.drop"):
        return ""
    names = [_feature(m, place) for place in ("first", "second") if m.has(f"risk.importance.{place}.drop")]
    first = f"The score rests most on {', then '.join(names)}"
    if not m.has("risk.history.share_of_gain"):
        return f"{first}."
    share = number(m, "risk.history.share_of_gain", words.share)
    low, noted = "risk.history.drop_ci_low_clustered", " (no interval)"
    if m.has(low):
        noted = " (CI includes 0)" if m[low] <= 0 else ""
    return f"{first}; without history it loses {share} of its gain{noted}."


def _feature(m: Numbers, place: str) -> str:
    name = m[f"risk.importance.{place}.feature"]
    return "the history of failures" if name == "history" else of_trace(feature_name(name))


def _callout(m: Numbers, units: str) -> Callout | None:
    if m.value("outcomes.unknown.jobs_share", 0) < MANY_UNKNOWN:
        return None
    unknown = number(m, "outcomes.unknown.jobs_share", words.share)
    return Callout(
        "care", f"{unknown} of {units} end unrecorded.", "Predicted is a recorded failure, against all other ends."
    )


# Tables --------------------------------------------------------------------------------------------------------


def tables(trace: Trace) -> dict[str, Shown]:
    """Nothing where no model could be tried: a line says why."""
    evaluation = trace.table("risk_evaluation")
    if not evaluation["estimate"].count():
        return {}
    columns = {
        "model": ("Model", None),
        "n": None,
        "failures": None,
        **{name: _measured(name, heading) for name, heading in (("pr_auc", "PR-AUC"), ("roc_auc", "ROC-AUC"))},
        "brier": ("Brier score", words.number),
        "calibration_slope": _measured("calibration_slope", "Calibration slope"),
    }
    found = {"risk-evaluation": Shown(models(evaluation), columns, EVALUATION, "test")}
    terms = trace.table("risk_coefficients").with_columns(pl.col("feature").map_elements(feature_name, pl.String))
    kept = terms.sort(pl.col("coefficient").abs(), descending=True, maintain_order=True, nulls_last=True)
    of_terms = {"term": None, "coefficient": CLUSTERED, "odds_ratio": None}
    found["risk-coefficients"] = Shown(kept.head(MOST_TERMS), of_terms, COEFFICIENTS, "feature")
    found["risk-extrapolation"] = _extrapolation(trace.table("risk_extrapolation"))
    features = trace.table("risk_features").with_columns(
        pl.col("feature").map_elements(feature_name, pl.String), yes_or_no("used")
    )
    of_features = dict.fromkeys(("feature", "kind", "columns", "known", "used", "reason"))
    found["risk-features"] = Shown(features, of_features, FEATURES)
    return found


def _measured(name: str, heading: str) -> Interval:
    return Interval(heading, words.number, f"{name}_low", f"{name}_high")


def models(evaluation: pl.DataFrame) -> pl.DataFrame:
    """A row for each model and test: the origins, the random split, jobs still running, and kinds never seen."""
    tests = [
        (SPLITS[split], {"stage": PROBABILITY, "slice": "all", "split": split}) for split in SPLITS if split != RANDOM
    ]
    tests += [
        (f"Last origin, {name}", {"stage": PROBABILITY, "slice": of, "split": LAST}) for of, name in UNSEEN.items()
    ]
    tests += [("Still running at the landmark, last origin", {"stage": LANDMARK, "split": LAST})]
    tests += [(f"{SPLITS[RANDOM]}, which sees the future", {"stage": PROBABILITY, "slice": "all", "split": RANDOM})]
    known = evaluation.filter(pl.col("estimate").is_not_null())
    return pl.concat([_wide(known.filter(**of), ("model",)).with_columns(test=pl.lit(name)) for name, of in tests])


def _wide(rows: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """A row for each of `by`, a column for each measure and the ends of its interval."""
    ends = {"": "estimate", "_low": "ci_low_clustered", "_high": "ci_high_clustered"}
    wide = rows.group_by(*by, maintain_order=True).agg(
        pl.col("n", "failures").max(),
        **{
            f"{measure}{end}": pl.col(column).filter(pl.col("metric") == measure).first()
            for measure in _MEASURES
            for end, column in ends.items()
        },
    )
    return wide.with_columns(pl.col("model").replace(MODELS)) if "model" in by else wide


_HELD_OUT: Mapping[str, str] = {"largest_jobs": "More than {} GPUs", "newest_gpu_type": "GPU type {}"}
_TRAINED = {"without": "without them", "with": "with them", "difference": "difference"}


def _extrapolation(table: pl.DataFrame) -> Shown:
    rows = _wide(table.filter(pl.col("estimate").is_not_null()), ("held_out", "value", "trained"))
    names = [_HELD_OUT[of].format(value) for of, value in rows.select("held_out", "value").iter_rows()]
    rows = rows.with_columns(pl.col("trained").replace(_TRAINED), of=pl.Series(names, dtype=pl.String))
    columns = {
        "trained": None,
        "n": None,
        "failures": None,
        "pr_auc": _measured("pr_auc", "PR-AUC"),
        "log_loss": ("Log loss", words.number),
        "calibration_slope": _measured("calibration_slope", "Calibration slope"),
    }
    return Shown(rows, columns, EXTRAPOLATION, "of")

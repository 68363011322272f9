"""The head of the section on failure risk, and its tables."""

import polars as pl

from ttf.analyses.risk.predict_failure import COEFFICIENTS, EVALUATION, EXTRAPOLATION, FEATURES, LANDMARK, PROBABILITY
from ttf.analyses.risk.predict_failure.risk_labels import (
    CANNOT_SAY,
    MODELS,
    NONE,
    ORIGINS,
    RANDOM,
    SPLITS,
    UNSEEN,
    VERDICT_TEXTS,
    WEAK,
    feature_name,
)
from ttf.analyses.risk.predict_failure.verdict import last_tested, read_origins
from ttf.analyses.shared.risk import KINDS, NESTED
from ttf.display.phrases import join_parts, quote_trace_text
from ttf.display.report_tables import CLUSTERED, Interval, PageTable, format_boolean, format_rows
from ttf.display.report_trace import Trace
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_TERMS = 20
SERVES_SUFFIX = " (serves)"
_MEASURES = ("pr_auc", "roc_auc", "brier", "log_loss", "calibration_slope")
NO_BREAK_HYPHEN = "\u2011"  # in a finding, whose lines are short on a phone
# From this share of unrecorded outcomes on, explain what is predicted.
LEAST_UNKNOWN_SHARE = 0.1
# A share of the gain below this whose interval includes 0 counts as not measurable.
LEAST_SHARE = 0.05
# Subject of the verdict, omitted from a long claim.
VERDICT_SUBJECT = " whether failure can be predicted"


def context(trace: Trace, m: Numbers) -> dict:
    """Return what the section's template uses besides numbers: a lookup of model names."""
    return {"name_of_model": MODELS.get}


def head(trace: Trace, m: Numbers) -> Head | Line:
    """Return the finding in figures, or a line if nothing could be tested."""
    unit, units = trace.info["unit"], words.plural_noun(trace.info["unit"])
    if "risk.verdict" not in m:
        reason = m.value(f"risk.{ORIGINS[-1]}.reason", f"no {unit} has ended")
        return Line("Failure risk", f"failure prediction cannot be tested: {reason}", "risk_evaluation", checked=False)
    return Head(
        claim=_format_claim(m),
        keys=tuple(_list_key_figures(m, units)),
        text=tuple(_body(m)),
        callout=_warn_of_unrecorded_ends(m, units),
        details="calibration, importance of features, trials on one GPU, limits, models",
    )


def lines(trace: Trace, m: Numbers) -> list[Line]:
    """Return a line on the trials if no saving was computed."""
    if "risk.verdict" not in m or "risk.savings.gpu_hours" in m:
        return []
    reason = m.value("risk.savings.gpu_hours_reason", "no trial can be judged")
    return [Line("Trials of jobs at risk", reason, "risk_evaluation", checked=False)]


def _serving_key(m: Numbers) -> str:
    """Return the key of the serving model at the reported origin."""
    return f"risk.{m['risk.origin']}.served"


def _format_claim(m: Numbers) -> str:
    serving, text = _serving_key(m), VERDICT_TEXTS[m["risk.verdict"]]
    pr_auc, base_rate = f"[{serving}.pr_auc]", f"[risk.{m['risk.origin']}.base_rate.pr_auc]"
    low = m.value(f"{serving}.pr_auc_above_base_rate_ci_low_clustered")
    if "risk.without_most.pr_auc" in m and f"{serving}.cluster_by" in m:
        total = f"[risk.{m['risk.origin']}.failures]"
        held_by_one = f"[risk.without_most.held] of {total} failures are of one {m[f'{serving}.cluster_by']}"
        remaining_pr_auc, short = ("[risk.without_most.pr_auc]", text.partition(",")[0].removesuffix(VERDICT_SUBJECT))
        return f"{short}: {held_by_one}; PR{NO_BREAK_HYPHEN}AUC {pr_auc}, without {remaining_pr_auc}"
    if m["risk.verdict"] == WEAK:
        return f"{text}: savings exceed costs at {_count_origins(m, 'risk.origins_paying')}"
    if m["risk.verdict"] == CANNOT_SAY:
        if (clusters := f"{serving}.clusters") in m and f"{serving}.pr_auc_ci_low_clustered" not in m:
            return f"{text}: failures are of [{clusters}] effective {words.plural_noun(m[f'{serving}.cluster_by'])}"
    elif low is not None and (low > 0) == (m["risk.verdict"] == NONE):
        # The figures of an origin that the others outvote would contradict the verdict.
        return f"{text}: above the base rate at {_count_origins(m, 'risk.origins_predicted')}"
    return f"{text}: {MODELS[m[serving]]} has PR{NO_BREAK_HYPHEN}AUC {pr_auc}, base rate {base_rate}"


def _list_key_figures(m: Numbers, units: str) -> list[Key]:
    serving, saved_key = _serving_key(m), "risk.savings.gpu_hours"
    origin = m["risk.origin"]
    n = f"n = [risk.{origin}.jobs]"
    label = f"PR-AUC of {MODELS[m[serving]]}, {SPLITS[origin].lower()}"
    ci = format_ci(m, f"{serving}.pr_auc") or _explain_missing_interval(m)
    keys = [Key(label, f"[{serving}.pr_auc]", join_parts(ci, n, by=", "))]
    if m["risk.verdict"] == CANNOT_SAY:
        return keys
    if (above_key := f"{serving}.pr_auc_above_base_rate") in m:
        note = join_parts(format_ci(m, above_key), f"> 0 at {_count_origins(m, 'risk.origins_predicted')}", by=", ")
        keys.append(Key("Above the base rate", f"[{above_key}]", note))
    if (above_nested_key := f"{serving}.pr_auc_above_nested_rate") in m:
        keys.append(Key(f"Above {KINDS[NESTED]}", f"[{above_nested_key}]", format_ci(m, above_nested_key)))
    if saved_key in m:
        label = f"Saved by trying {units} at risk on one GPU first"
        keys.append(
            Key(label, f"[{saved_key}] GPU-h", join_parts(format_ci(m, saved_key), describe_savings(m), by=", "))
        )
    return keys


def _count_origins(m: Numbers, key: str) -> str:
    """Return the number of origins where something holds, of those where it is known: 2 of 3 origins."""
    return f"[{key}] of [{key}:n origin]"


def format_ci(m: Numbers, key: str) -> str:
    """Return the clustered interval of a number in words, or an empty string."""
    return f"[{key}:interval]" if f"{key}_ci_low_clustered" in m else ""


def _explain_missing_interval(m: Numbers) -> str:
    clusters = f"{_serving_key(m)}.clusters"
    if clusters not in m:
        return "no interval"
    return f"no interval: [{clusters}] effective {words.plural_noun(m[f'{_serving_key(m)}.cluster_by'])}"


def describe_savings(m: Numbers) -> str:
    """Say at how many origins acting on the score saves more than it costs, and the share of the best saving."""
    if not m.n("risk.origins_paying"):
        return "the saving is unknown"
    text = f"above its cost at {_count_origins(m, 'risk.origins_paying')}"
    if not m["risk.origins_paying"] or "risk.savings.of_oracle" not in m:
        return text
    return f"{text}, [risk.savings.of_oracle] of what knowing all failures would save"


def _body(m: Numbers) -> list[str]:
    """Return the sentences on importance, on use against people, and on origins that were not tested."""
    splits_by_reason: dict[str, list[str]] = {}
    for split in ORIGINS:
        if f"risk.{split}.reason" in m:
            splits_by_reason.setdefault(m[f"risk.{split}.reason"], []).append(SPLITS[split].lower())
    sentences = [
        f"The {words.join_list(splits)} cannot be tested: {reason}." for reason, splits in splits_by_reason.items()
    ]
    if m["risk.verdict"] != CANNOT_SAY:
        user_warning = "Do not use the score to rank people." if m.value("risk.features_of_user") else ""
        sentences = [describe_importance(m), user_warning, *sentences]
    return [" ".join(filter(None, sentences))] if any(sentences) else []


def describe_importance(m: Numbers) -> str:
    """Return a sentence: the features that predict best, and the loss without history."""
    if m[_serving_key(m)] == NESTED:
        return "On earlier jobs, a regression on all features did not beat history alone."
    names = [_name_feature(m, rank) for rank in (1, 2) if f"risk.importance.{rank}.drop" in m]
    if not names:
        return ""
    sentence = ", then ".join([f"The {names[0]} predicts best", *names[1:]])
    return f"{'; '.join(filter(None, (sentence, _describe_history(m))))}."


def _describe_history(m: Numbers) -> str:
    """Say what history adds; an empty string if that was not measured."""
    if "risk.history.share_of_gain" not in m:
        return ""
    low_key, note = "risk.history.drop_ci_low_clustered", " (no interval)"
    if low_key in m:
        if m[low_key] <= 0 and m["risk.history.share_of_gain"] < LEAST_SHARE:
            return f"the {'user' if m.value('risk.features_of_user', 0) else 'job'}'s history adds nothing measurable"
        note = " (CI includes 0)" if m[low_key] <= 0 else ""
    return f"without history the score loses [risk.history.share_of_gain] of its gain{note}"


_FEATURES_IN_WORDS = {
    "history": "history of failures",
    "tasks": "number of tasks",
    "instances": "number of instances",
}


def _name_feature(m: Numbers, rank: int) -> str:
    name = m[f"risk.importance.{rank}.feature"]
    return _FEATURES_IN_WORDS.get(name) or quote_trace_text(feature_name(name))


def _warn_of_unrecorded_ends(m: Numbers, units: str) -> Callout | None:
    if m.value("outcomes.unknown.jobs_share", 0) < LEAST_UNKNOWN_SHARE:
        return None
    return Callout(
        "care",
        f"[outcomes.unknown.jobs_share] of {units} end unrecorded.",
        "The model predicts recorded failures only; all other ends count as no failure.",
    )


# Tables --------------------------------------------------------------------------------------------------------


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return tables of models, coefficients, extrapolation and features; none if no model could be tested."""
    evaluation = trace.table("risk_evaluation")
    if not (last_origin := last_tested(read_origins(evaluation))):
        return {}
    columns = {
        "model": ("Model", None),
        "n": None,
        "failures": None,
        **{name: _interval_column(name, heading) for name, heading in (("pr_auc", "PR-AUC"), ("roc_auc", "ROC-AUC"))},
        "brier": ("Brier score", words.number),
        "calibration_slope": _interval_column("calibration_slope", "Calibration slope"),
    }
    shown = {"risk-evaluation": PageTable(model_rows(evaluation, last_origin.split), columns, EVALUATION, "test")}
    terms = trace.table("risk_coefficients").with_columns(pl.col("feature").map_elements(feature_name, pl.String))
    if terms.height:
        largest_terms = terms.sort(pl.col("coefficient").abs(), descending=True, maintain_order=True, nulls_last=True)
        term_columns = {"term": None, "coefficient": CLUSTERED, "odds_ratio": None}
        shown["risk-coefficients"] = PageTable(largest_terms.head(MOST_TERMS), term_columns, COEFFICIENTS, "feature")
    shown["risk-extrapolation"] = _extrapolation_table(trace.table("risk_extrapolation"))
    features = trace.table("risk_features").with_columns(
        pl.col("feature").map_elements(feature_name, pl.String), format_boolean("used")
    )
    feature_columns = dict.fromkeys(("feature", "kind", "columns", "jobs_with_value", "used", "reason"))
    shown["risk-features"] = PageTable(features, feature_columns, FEATURES)
    return shown


def _interval_column(name: str, heading: str) -> Interval:
    return Interval(heading, words.number, f"{name}_low", f"{name}_high")


def model_rows(evaluation: pl.DataFrame, last_split: str) -> pl.DataFrame:
    """Return a row per model and test: origins, random split, running jobs, and unseen kinds of the last split."""
    tests = [
        (SPLITS[split], {"stage": PROBABILITY, "slice": "all", "split": split}) for split in SPLITS if split != RANDOM
    ]
    name, split = SPLITS[last_split], {"split": last_split}
    tests += [(f"{name}, {label}", {"stage": PROBABILITY, "slice": key} | split) for key, label in UNSEEN.items()]
    tests += [(f"{name}, still running at the landmark", {"stage": LANDMARK} | split)]
    tests += [(f"{SPLITS[RANDOM]}, which sees the future", {"stage": PROBABILITY, "slice": "all", "split": RANDOM})]
    estimates = evaluation.filter(pl.col("estimate").is_not_null())
    tables = ((label, _pivot_metrics(estimates.filter(**filters), ("model",))) for label, filters in tests)
    return pl.concat([table.with_columns(test=pl.lit(label)) for label, table in tables])


def _pivot_metrics(rows: pl.DataFrame, group_columns: tuple[str, ...]) -> pl.DataFrame:
    """Return a row per group, with columns for each measure and its interval bounds."""
    columns_by_suffix = {"": "estimate", "_low": "ci_low_clustered", "_high": "ci_high_clustered"}
    if "serves" in rows.columns:
        rows = rows.with_columns(
            pl.col("model").replace(MODELS) + pl.when("serves").then(pl.lit(SERVES_SUFFIX)).otherwise(pl.lit(""))
        )
    return rows.group_by(*group_columns, maintain_order=True).agg(
        pl.col("n", "failures").max(),
        **{
            f"{measure}{suffix}": pl.col(column).filter(pl.col("metric") == measure).first()
            for measure in _MEASURES
            for suffix, column in columns_by_suffix.items()
        },
    )


_TRAINING_LABELS = {"without": "without them", "with": "with them", "difference": "difference"}


def _extrapolation_table(table: pl.DataFrame) -> PageTable:
    rows = _pivot_metrics(table.filter(pl.col("estimate").is_not_null()), ("held_out", "value", "trained"))
    kind = format_rows(rows, ("held_out", "value"), _label_held_out)
    rows = rows.with_columns(pl.col("trained").replace(_TRAINING_LABELS), kind=kind)
    columns = {
        "trained": None,
        "n": None,
        "failures": None,
        "pr_auc": _interval_column("pr_auc", "PR-AUC"),
        "log_loss": ("Log loss", words.number),
        "calibration_slope": _interval_column("calibration_slope", "Calibration slope"),
    }
    return PageTable(rows, columns, EXTRAPOLATION, "kind")


def _label_held_out(kind: str, value: str) -> str:
    return f"GPU type {value}" if kind == "newest_gpu_type" else f"More than {value} GPU{'s' * (value != '1')}"

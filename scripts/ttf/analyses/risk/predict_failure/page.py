"""What the section on failure risk says in the open, and its tables."""

import polars as pl

from ttf.analyses.risk.predict_failure import COEFFICIENTS, EVALUATION, EXTRAPOLATION, FEATURES, LANDMARK, PROBABILITY
from ttf.analyses.risk.predict_failure.risk_labels import (
    CANNOT_SAY,
    MODELS,
    NONE,
    ORIGINS,
    RANDOM,
    SAID,
    SPLITS,
    UNSEEN,
    feature_name,
)
from ttf.analyses.risk.predict_failure.verdict import origins, reported
from ttf.analyses.shared.risk import KINDS, NESTED
from ttf.display.phrases import joined, of_trace, with_numbers
from ttf.display.report_tables import CLUSTERED, Interval, Shown, texts, yes_or_no
from ttf.display.report_trace import Trace
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_TERMS = 20
SERVES = " (serves)"
_MEASURES = ("pr_auc", "roc_auc", "brier", "log_loss", "calibration_slope")
NO_BREAK_HYPHEN = "\u2011"  # in a finding, whose lines are short on a phone
# From which share of ends without a result on the target is explained.
MANY_UNKNOWN = 0.1
# A share of the gain below this that cannot be told from 0 is nothing measurable.
LEAST_SHARE = 0.05
# What the verdict is about, left out where the claim is long.
SAID_WHAT = " whether failure can be predicted"


def context(trace: Trace, m: Numbers) -> dict:
    return {"name_of_model": MODELS.get}


@with_numbers
def head(trace: Trace, m: Numbers) -> Head | Line:
    """The finding in figures; its chart, calibration, is for those who open the fold."""
    unit, units = trace.about["unit"], words.many(trace.about["unit"])
    if not m.has("risk.verdict"):
        why = m.value(f"risk.{ORIGINS[-1]}.reason", f"no {unit} has ended")
        return Line("Failure risk", f"failure prediction cannot be tested: {why}", "risk_evaluation", checked=False)
    return Head(
        claim=_claim(m),
        keys=tuple(_keys(m, units)),
        text=tuple(_text(m)),
        callout=_callout(m, units),
        details="calibration, what carries it, trials on one GPU, where it ends, models",
    )


@with_numbers
def lines(trace: Trace, m: Numbers) -> list[Line]:
    """Of a score that is worth no trial: a line, where there is one at all."""
    if not m.has("risk.verdict") or m.has("risk.savings.gpu_hours"):
        return []
    reason = m.value("risk.savings.gpu_hours_reason", "no trial can be judged")
    return [Line("Trials of jobs at risk", reason, "risk_evaluation", checked=False)]


def _served(m: Numbers) -> str:
    """The key of the model that serves, as the reported origin tested it."""
    return f"risk.{m['risk.origin']}.served"


def _claim(m: Numbers) -> str:
    served, said = _served(m), SAID[m["risk.verdict"]]
    pr_auc, base = f"[{served}.pr_auc]", f"[risk.{m['risk.origin']}.base_rate.pr_auc]"
    low = m.value(f"{served}.pr_auc_above_base_rate_ci_low_clustered", None)
    if m.has("risk.without_most.pr_auc") and m.has(f"{served}.cluster_by"):
        held, every = (f"[{key}]" for key in ("risk.without_most.held", _failures(m)))
        of_one = f"{held} of {every} failures are of one {m[f'{served}.cluster_by']}"
        rest, short = "[risk.without_most.pr_auc]", said.partition(",")[0].removesuffix(SAID_WHAT)
        return f"{short}: {of_one}; PR{NO_BREAK_HYPHEN}AUC {pr_auc}, without {rest}"
    if m["risk.verdict"] == CANNOT_SAY:
        if m.has(clusters := f"{served}.clusters") and not m.has(f"{served}.pr_auc_ci_low_clustered"):
            return f"{said}: failures are of [{clusters}] effective {words.many(m[f'{served}.cluster_by'])}"
    elif low is not None and (low > 0) == (m["risk.verdict"] == NONE):
        # The figures of an origin that the others outvote would contradict the verdict.
        return f"{said}: above the base rate at {_of_origins(m, 'risk.origins_predicted')}"
    return f"{said}: {MODELS[m[served]]} has PR{NO_BREAK_HYPHEN}AUC {pr_auc}, base rate {base}"


def _failures(m: Numbers) -> str:
    return f"risk.{m['risk.origin']}.failures"


def _keys(m: Numbers, units: str) -> list[Key]:
    served, saved = _served(m), "risk.savings.gpu_hours"
    origin = m["risk.origin"]
    n = f"n = [risk.{origin}.jobs]"
    label = f"PR-AUC of {MODELS[m[served]]}, {SPLITS[origin].lower()}"
    keys = [Key(label, f"[{served}.pr_auc]", joined(interval(m, f"{served}.pr_auc") or _few(m), n, by=", "))]
    if m["risk.verdict"] == CANNOT_SAY:
        return keys
    if m.has(above := f"{served}.pr_auc_above_base_rate"):
        told = f"> 0 at {_of_origins(m, 'risk.origins_predicted')}"
        keys.append(Key("Above the base rate", f"[{above}]", joined(interval(m, above), told, by=", ")))
    if m.has(over := f"{served}.pr_auc_above_nested_rate"):
        keys.append(Key(f"Above {KINDS[NESTED]}", f"[{over}]", interval(m, over)))
    if m.has(saved):
        label = f"Saved by trying {units} at risk on one GPU first"
        keys.append(Key(label, f"[{saved}] GPU-h", joined(interval(m, saved), worth(m), by=", ")))
    return keys


def _of_origins(m: Numbers, key: str) -> str:
    """At how many origins something holds, of those where it is known: 2 of 3 origins."""
    return f"[{key}] of {words.plural(m.n(key), 'origin')}"


def interval(m: Numbers, key: str) -> str:
    """The clustered interval of a number in words; nothing where it has none."""
    return m.interval(f"{key}_ci_{{}}") if m.has(f"{key}_ci_low_clustered") else ""


def _few(m: Numbers) -> str:
    clusters = f"{_served(m)}.clusters"
    if not m.has(clusters):
        return "no interval"
    return f"no interval: [{clusters}] effective {words.many(m[f'{_served(m)}.cluster_by'])}"


@with_numbers
def worth(m: Numbers) -> str:
    """Whether acting on the score saves more than it costs, at how many origins; an upper bound."""
    if not m.n("risk.origins_paying"):
        return "no saving can be told"
    told = f"above its cost at {_of_origins(m, 'risk.origins_paying')}"
    if not m["risk.origins_paying"] or not m.has("risk.savings.of_oracle"):
        return told
    return f"{told}, [risk.savings.of_oracle] of what knowing all failures would save"


def _text(m: Numbers) -> list[str]:
    """What carries the score, whom it is of, and which origin could not be tested."""
    left_out = [
        f"{SPLITS[split]} left out: {m[f'risk.{split}.reason']}." for split in ORIGINS if m.has(f"risk.{split}.reason")
    ]
    if m["risk.verdict"] != CANNOT_SAY:
        of_users = "Do not use the score to rank people." if m.value("risk.features_of_user", 0) else ""
        left_out = [carried(m), of_users, *left_out]
    return [" ".join(filter(None, left_out))] if any(left_out) else []


@with_numbers
def carried(m: Numbers) -> str:
    """A sentence: the features that predict best, and what is left without any history."""
    if m[_served(m)] == NESTED:
        return "On earlier jobs a regression on all features was not shown to be better than history alone."
    names = [_feature(m, place) for place in (1, 2) if m.has(f"risk.importance.{place}.drop")]
    if not names:
        return ""
    best = ", then ".join([f"The {names[0]} predicts best", *names[1:]])
    return f"{'; '.join(filter(None, (best, _without_history(m))))}."


def _without_history(m: Numbers) -> str:
    """What history adds; nothing where that could not be measured."""
    if not m.has("risk.history.share_of_gain"):
        return ""
    low, noted = "risk.history.drop_ci_low_clustered", " (no interval)"
    if m.has(low):
        if m[low] <= 0 and m["risk.history.share_of_gain"] < LEAST_SHARE:
            return f"the {'user' if m.value('risk.features_of_user', 0) else 'job'}'s history adds nothing measurable"
        noted = " (CI includes 0)" if m[low] <= 0 else ""
    return f"without history it loses [risk.history.share_of_gain] of its gain{noted}"


def _feature(m: Numbers, place: int) -> str:
    name = m[f"risk.importance.{place}.feature"]
    return "history of failures" if name == "history" else of_trace(feature_name(name))


def _callout(m: Numbers, units: str) -> Callout | None:
    if m.value("outcomes.unknown.jobs_share", 0) < MANY_UNKNOWN:
        return None
    return Callout(
        "care",
        f"[outcomes.unknown.jobs_share] of {units} end unrecorded.",
        "Predicted is a recorded failure, against all other ends.",
    )


# Tables --------------------------------------------------------------------------------------------------------


def tables(trace: Trace) -> dict[str, Shown]:
    """Nothing where no model could be tried: a line says why."""
    evaluation = trace.table("risk_evaluation")
    if not (last := reported(origins(evaluation))):
        return {}
    columns = {
        "model": ("Model", None),
        "n": None,
        "failures": None,
        **{name: _measured(name, heading) for name, heading in (("pr_auc", "PR-AUC"), ("roc_auc", "ROC-AUC"))},
        "brier": ("Brier score", words.number),
        "calibration_slope": _measured("calibration_slope", "Calibration slope"),
    }
    found = {"risk-evaluation": Shown(models(evaluation, last.split), columns, EVALUATION, "test")}
    terms = trace.table("risk_coefficients").with_columns(pl.col("feature").map_elements(feature_name, pl.String))
    if terms.height:
        largest = terms.sort(pl.col("coefficient").abs(), descending=True, maintain_order=True, nulls_last=True)
        of_terms = {"term": None, "coefficient": CLUSTERED, "odds_ratio": None}
        found["risk-coefficients"] = Shown(largest.head(MOST_TERMS), of_terms, COEFFICIENTS, "feature")
    found["risk-extrapolation"] = _extrapolation(trace.table("risk_extrapolation"))
    features = trace.table("risk_features").with_columns(
        pl.col("feature").map_elements(feature_name, pl.String), yes_or_no("used")
    )
    of_features = dict.fromkeys(("feature", "kind", "columns", "known", "used", "reason"))
    found["risk-features"] = Shown(features, of_features, FEATURES)
    return found


def _measured(name: str, heading: str) -> Interval:
    return Interval(heading, words.number, f"{name}_low", f"{name}_high")


def models(evaluation: pl.DataFrame, last: str) -> pl.DataFrame:
    """A row for each model and test: the origins, the random split, jobs still running, and kinds never seen.

    last: the last origin that was tested, of which the kinds are told.
    """
    tests = [
        (SPLITS[split], {"stage": PROBABILITY, "slice": "all", "split": split}) for split in SPLITS if split != RANDOM
    ]
    of_last = {"split": last}
    tests += [(f"{SPLITS[last]}, {name}", {"stage": PROBABILITY, "slice": of} | of_last) for of, name in UNSEEN.items()]
    tests += [(f"{SPLITS[last]}, still running at the landmark", {"stage": LANDMARK} | of_last)]
    tests += [(f"{SPLITS[RANDOM]}, which sees the future", {"stage": PROBABILITY, "slice": "all", "split": RANDOM})]
    known = evaluation.filter(pl.col("estimate").is_not_null())
    return pl.concat([_wide(known.filter(**of), ("model",)).with_columns(test=pl.lit(name)) for name, of in tests])


def _wide(rows: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """A row for each of `by`, a column for each measure and the ends of its interval."""
    ends = {"": "estimate", "_low": "ci_low_clustered", "_high": "ci_high_clustered"}
    if "serves" in rows.columns:
        rows = rows.with_columns(
            pl.col("model").replace(MODELS) + pl.when("serves").then(pl.lit(SERVES)).otherwise(pl.lit(""))
        )
    return rows.group_by(*by, maintain_order=True).agg(
        pl.col("n", "failures").max(),
        **{
            f"{measure}{end}": pl.col(column).filter(pl.col("metric") == measure).first()
            for measure in _MEASURES
            for end, column in ends.items()
        },
    )


_TRAINED = {"without": "without them", "with": "with them", "difference": "difference"}


def _extrapolation(table: pl.DataFrame) -> Shown:
    rows = _wide(table.filter(pl.col("estimate").is_not_null()), ("held_out", "value", "trained"))
    rows = rows.with_columns(pl.col("trained").replace(_TRAINED), kind=texts(rows, ("held_out", "value"), _held_out))
    columns = {
        "trained": None,
        "n": None,
        "failures": None,
        "pr_auc": _measured("pr_auc", "PR-AUC"),
        "log_loss": ("Log loss", words.number),
        "calibration_slope": _measured("calibration_slope", "Calibration slope"),
    }
    return Shown(rows, columns, EXTRAPOLATION, "kind")


def _held_out(of: str, value: str) -> str:
    return f"GPU type {value}" if of == "newest_gpu_type" else f"More than {value} GPU{'s' * (value != '1')}"

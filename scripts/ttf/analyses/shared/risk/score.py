"""Jobs scored by a model: how likely each fails, after how long, what GPU time is at stake, why, and how the jobs
differ from those it was trained on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ttf.analyses.shared.risk import KINDS
from ttf.analyses.shared.risk.features import (
    CATEGORY,
    CLOCK,
    HASHED,
    HISTORY,
    NUMERIC,
    STRENGTH,
    Feature,
    Submitted,
    features_of,
)
from ttf.analyses.shared.risk.model import Model
from ttf.engine.contract import REASON, Table, count, number, reason, share, truth, words
from ttf.engine.errors import StudyError
from ttf.stats.differences import compare_distributions, compare_medians, compare_shares

REASONS = 3
# Log-odds that would be written as 0.00 are no reason.
LEAST = 0.005
LONGEST_VALUE = 60
HOURS_OF_DAY = 24
BLANK_SHARE = "blank"
SEVERAL = "several values: no one number"

NO_HOURS = "the model has too few failures of known time to tell hours"
NO_GPUS = "no GPU was requested, or nobody wrote how many"
_FEWER = "fewer features move the score"
_OF_WHOM = "the model does not go by {}"

SCORES = Table(
    "scores",
    "A job and its risk of failure as it was known at submission.",
    "scores/<name>.csv",
    {
        "job_id": words("Job", "As given."),
        "probability": share("Probability", "That the job ends in a recorded failure."),
        "at_risk": truth("At risk", "Whether that is at or above the share that failed of the jobs trained on."),
        "expected_hours_to_failure": number(
            "Hours", "Mean hours of run time until failure, if it fails; learnt from jobs at risk.", REASON, "h"
        ),
        "gpu_hours_at_stake": number(
            "At stake", "probability x GPUs requested x expected hours to failure.", REASON, "GPU-hours"
        ),
        **{
            f"reason_{place}": words(
                f"Reason {place}",
                "Feature = value: what it adds to the log-odds, against the mean in training.",
                _FEWER,
            )
            for place in range(1, REASONS + 1)
        },
        "beyond_range": truth("Beyond", "Whether the job lies beyond what the model was trained on."),
        "beyond_feature": words("By", "The features by which it does.", "it does not"),
        "unseen_user": truth("New user", "Whether no job of the user had ended in training.", _OF_WHOM.format("users")),
        "unseen_group": truth(
            "New group", "The same of the finest keys that the history goes by.", _OF_WHOM.format("history")
        ),
        "reason": reason(),
    },
)
SKEW = Table(
    "scores_skew",
    "A feature, and by how much the scored jobs differ in it from the jobs trained on; the largest effect first.",
    "scores/<name>.skew.csv",
    {
        "feature": words("Feature", "As the configuration names it; of a history its level too."),
        "statistic": words(
            "Statistic", "median, distribution (of categories and hours) or blank (share of blank jobs)."
        ),
        "n_training": count("n, training", "Jobs trained on that have a value."),
        "n_scored": count("n, scored", "Scored jobs that have one."),
        "training": number("Training", "Median, or share; of a history the share that failed.", REASON),
        "scored": number("Scored", "The same.", REASON),
        "effect_name": words("Effect size", "cliff_delta, cramer_v or cohen_h, as drift is told by."),
        "effect": number("Effect", "0: no difference; positive where the scored jobs have more.", REASON),
        "reason": reason(),
    },
)


# The model -----------------------------------------------------------------------------------------------------


def model_of(said: Mapping[str, Any]) -> Model:
    """The model as its file says it. Raises StudyError where that was edited."""
    try:
        terms = list(said["terms"])
        model = Model.from_json(said, features_of(said["features"]))
        same = [f"{term.feature}: {term.name}" for term in model.encoder.terms] == terms
        same = same and model.encoder.digest == said["digest"] and model.kind in KINDS
        of_terms = [model.fit.coefficients, model.weights, model.centre]
        of_terms += [model.hours.coefficients] if model.hours else []
        numbers = [model.shift, model.slope, *([model.hours.sigma, model.hours.horizon_h] if model.hours else [])]
        same = same and all(len(of) == 1 + len(terms) for of in of_terms)
        same = same and bool(np.isfinite(np.concatenate([*of_terms, numbers])).all())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(f"no model as it was written ({type(error).__name__})") from None
    if not same:
        raise StudyError("no model as it was written: features, terms and coefficients do not go together")
    return model


def needed(model: Model) -> dict[str, list[str]]:
    """Column of the job record -> the features of the model that go by it, without the submission."""
    found: dict[str, list[str]] = {}
    for feature in _used(model):
        for column in feature.columns:
            found.setdefault(column, []).append(feature.name)
    return {column: of for column, of in found.items() if column != "submit_s"}


def known_besides(model: Model) -> list[str]:
    """Columns of features that were the same in all training jobs: they tell whether a job lies beyond these."""
    columns = dict.fromkeys(column for feature in model.encoder.features for column in feature.columns)
    return [column for column in columns if column != "submit_s" and column not in needed(model)]


def gpu_columns(at_submission: Sequence[str]) -> tuple[str, ...]:
    """The columns that say how many GPUs a job requests, in thousandths, and of how many instances; of a format."""
    if "gpu_requested_milli" in at_submission:
        return ("gpu_requested_milli",)
    if "gpu_milli" not in at_submission:
        return ()
    return ("gpu_milli", *[name for name in ("size", "inst_num") if name in at_submission][:1])


def gpus_of(jobs: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """GPUs of all instances of each job; NaN where nobody wrote them. columns: of `gpu_columns`."""
    if not columns or columns[0] not in jobs.columns:
        return np.full(jobs.height, np.nan)
    gpus = jobs[columns[0]].cast(pl.Float64).to_numpy() / 1000
    for name in columns[1:]:
        # As the common record has it: one instance where nobody wrote how many.
        gpus = gpus * (jobs[name].cast(pl.Float64).fill_null(1).to_numpy() if name in jobs.columns else 1)
    return gpus


# The scores ----------------------------------------------------------------------------------------------------


def scored(
    model: Model, jobs: pl.DataFrame, known: Submitted, trained: pl.DataFrame, gpu_columns: Sequence[str]
) -> pl.DataFrame:
    """SCORES of jobs, in their order. known: the same jobs; trained: those that the model was trained on."""
    design = model.encoder.design(known)
    probability = model.probability(design)
    gpus = gpus_of(jobs, gpu_columns)
    hours = np.full(known.n, np.nan) if model.hours is None else model.hours.expected(design)
    why = ["; ".join(said) or None for said in _why((np.isnan(hours), NO_HOURS), (np.isnan(gpus), NO_GPUS))]
    beyond = beyond_features(model, known)
    group = next((list(feature.columns) for feature in _used(model) if feature.kind == HISTORY), [])
    return SCORES.typed(
        pl.DataFrame(
            {
                "job_id": jobs["job_id"].cast(pl.String),
                "probability": probability,
                "at_risk": probability >= model.base_rate,
                "expected_hours_to_failure": _or_blank(hours),
                "gpu_hours_at_stake": _or_blank(probability * gpus * hours),
                **reasons(model, jobs, known),
                "beyond_range": [bool(names) for names in beyond],
                "beyond_feature": pl.Series([", ".join(names) or None for names in beyond], dtype=pl.String),
                "unseen_user": unseen(jobs, trained, ["user"] if "user" in needed(model) else []),
                "unseen_group": unseen(jobs, trained, group),
                "reason": pl.Series(why, dtype=pl.String),
            }
        )
    )


def _why(*of: tuple[np.ndarray, str]) -> Iterator[list[str]]:
    """Of each job the reasons that hold for it; of: truth values and a reason."""
    for row in zip(*(holds for holds, _ in of), strict=True):
        yield [why for holds, (_, why) in zip(row, of, strict=True) if holds]


def _or_blank(values: np.ndarray) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)


def beyond_features(model: Model, known: Submitted) -> list[list[str]]:
    """Of each job the features by which it lies beyond the training data."""
    found: list[list[str]] = [[] for _ in range(known.n)]
    for feature in model.encoder.features:
        for row in np.flatnonzero(replace(model.encoder, features=(feature,)).beyond(known)):
            found[row].append(feature.name)
    return found


def unseen(jobs: pl.DataFrame, trained: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Whether no job trained on has the same values in these columns; blank where there are no columns.

    Who is blank is nobody, and so is not new.
    """
    if not columns:
        return pl.Series([None] * jobs.height, dtype=pl.Boolean)
    texts = pl.col(columns).cast(pl.String)
    before = trained.select(texts).unique().with_columns(seen=pl.lit(True))
    found = jobs.select(texts).join(before, on=list(columns), how="left", nulls_equal=True, maintain_order="left")
    return found.select(pl.col("seen").is_null() & pl.col(columns[0]).is_not_null()).to_series()


def _used(model: Model) -> list[Feature]:
    names = {term.feature for term in model.encoder.terms}
    return [feature for feature in model.encoder.features if feature.name in names]


# Why -----------------------------------------------------------------------------------------------------------


def reasons(model: Model, jobs: pl.DataFrame, known: Submitted) -> dict[str, pl.Series]:
    """reason_1 ...: of each job what adds most to its log-odds or takes most away, against the mean of the training.

    What is told together is one feature, of a history each of its levels.
    """
    by_name = {feature.name: feature for feature in model.encoder.features}
    parts, adds = model.contributions(
        model.encoder.design(known),
        lambda term: (term.feature, term.name if by_name[term.feature].kind == HISTORY else ""),
    )
    order = np.argsort(-np.abs(adds), axis=1, kind="stable")[:, :REASONS]
    values = [_values(by_name[feature], level, model, jobs, known) for feature, level in parts]
    names = [level or feature for feature, level in parts]

    def said(row: int, place: int) -> str | None:
        if place >= len(parts) or abs(adds[row, order[row, place]]) < LEAST:
            return None
        part = int(order[row, place])
        return f"{names[part]} = {values[part](row)}: {adds[row, part]:+.2f}"

    return {
        f"reason_{place + 1}": pl.Series([said(row, place) for row in range(known.n)], dtype=pl.String)
        for place in range(REASONS)
    }


def _values(feature: Feature, level: str, model: Model, jobs: pl.DataFrame, known: Submitted) -> Callable[[int], str]:
    """The value of a feature in each job, as a person reads it."""
    if feature.kind == HISTORY:
        place = 1 + list(model.encoder.learnt[feature.name]["numbers"]).index(level)
        rates, ended = known.rates[feature.name], known.ended[feature.name][:, place]
        # The share is drawn to that of the level above: turned back, these are whole jobs.
        failed = np.rint(rates[:, place] * (ended + STRENGTH) - STRENGTH * rates[:, place - 1]).astype(np.int64)
        return lambda row: f"{failed[row]:,} of {ended[row]:,} failed" if ended[row] else "none ended yet"
    if feature.kind == CLOCK:
        hour, weekend = known.numbers[feature.name], known.weekend[feature.name]
        return lambda row: (
            f"{int(hour[row]):02d}:{round(hour[row] % 1 * 60):02d}{', Saturday or Sunday' if weekend[row] else ''}"
        )
    if feature.kind in (CATEGORY, HASHED):
        labels, codes = known.labels[feature.name], known.codes[feature.name]
        return lambda row: _short(labels[codes[row]]) if codes[row] >= 0 else "blank"
    column = jobs[feature.column] if feature.column in jobs.columns else pl.Series([None] * jobs.height)
    return lambda row: in_unit(feature.column, column[row])


def _short(value: str) -> str:
    return value if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…"


def in_unit(column: str, value: float | None) -> str:
    """A number of the job record with the unit that its column ends in."""
    if value is None:
        return "blank"
    if column.endswith("_milli"):
        return f"{value / 1000:,.10g}"
    unit = " s" if column.endswith("_s") else " MiB" if column.endswith("_mib") else ""
    return f"{value:,.10g}{unit}"


# Skew ----------------------------------------------------------------------------------------------------------


def skew(model: Model, jobs: pl.DataFrame, known: Submitted, past: pl.DataFrame, past_known: Submitted) -> pl.DataFrame:
    """SKEW of jobs against those trained on (past), by feature of the model."""
    rows = []
    for feature in _used(model):
        rows += _compared(feature, jobs, known, past, past_known)
    found = SKEW.frame(rows)
    return found.sort(pl.col("effect").abs(), descending=True, nulls_last=True, maintain_order=True)


def _compared(
    feature: Feature, jobs: pl.DataFrame, known: Submitted, past: pl.DataFrame, past_known: Submitted
) -> Iterator[dict[str, Any]]:
    """Rows of SKEW. The job record's own numbers, as medians are told in their unit."""
    both = ((past, past_known), (jobs, known))
    name = feature.name
    if feature.kind == NUMERIC:
        before, after = (
            frame[feature.column].cast(pl.Float64).to_numpy()
            if feature.column in frame.columns
            else np.full(frame.height, np.nan)
            for frame, _ in both
        )
        yield _of_numbers(name, before[~np.isnan(before)], after[~np.isnan(after)])
        yield from _of_blanks(name, np.isnan(before), np.isnan(after))
    elif feature.kind == HISTORY:
        for place, level in enumerate(feature.keys, start=1):
            rates = (of.rates[name][:, place] for _, of in both)
            yield _of_numbers(f"{name} by {', '.join(level)}", *rates)
    elif feature.kind == CLOCK:
        counts = (
            np.bincount(np.floor(hours[~np.isnan(hours)]).astype(np.int64), minlength=HOURS_OF_DAY)
            for hours in (of.numbers[name] for _, of in both)
        )
        yield _of_counts(name, *counts)
    else:
        labels = sorted(set(past_known.labels[name]) | set(known.labels[name]))
        place_of = {label: place for place, label in enumerate(labels)}
        counts = []
        for _, of in both:
            places = np.array([place_of[label] for label in of.labels[name]], dtype=np.int64)
            codes = of.codes[name]
            counts.append(np.bincount(places[codes[codes >= 0]], minlength=len(labels)))
        yield _of_counts(name, *counts)
        yield from _of_blanks(name, *(of.codes[name] < 0 for _, of in both))


def _of_numbers(name: str, before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    values, places = np.unique(np.concatenate([before, after]), return_inverse=True)
    counts = (np.bincount(part, minlength=len(values)) for part in np.split(places, [len(before)]))
    return _row(name, "median", compare_medians(values, *counts))


def _of_counts(name: str, before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    return _row(name, "distribution", compare_distributions(before, after)[0])


def _of_blanks(name: str, before: np.ndarray, after: np.ndarray) -> Iterator[dict[str, Any]]:
    """The share of blank jobs, where there are any: what went missing on the way is the commonest skew."""
    if before.any() or after.any():
        compared = compare_shares(int(before.sum()), len(before), int(after.sum()), len(after))
        yield _row(name, BLANK_SHARE, compared)


def _row(name: str, statistic: str, compared: Mapping[str, Any]) -> dict[str, Any]:
    why = compared["reason"] if compared["effect"] is None else SEVERAL if compared["before"] is None else None
    return {
        "feature": name,
        "statistic": statistic,
        "n_training": compared["n_before"],
        "n_scored": compared["n_after"],
        "training": compared["before"],
        "scored": compared["after"],
        "effect_name": compared["effect_name"],
        "effect": compared["effect"],
        "reason": why,
    }

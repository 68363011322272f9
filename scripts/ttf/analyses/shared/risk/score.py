"""Score jobs: probability of failure, hours until it, GPU time at stake, reasons, and skew from the training data."""

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
    PRIOR_JOBS,
    Feature,
    JobFeatures,
    parse_features,
)
from ttf.analyses.shared.risk.model import Model
from ttf.engine.contract import REASON, Table, count, number, reason, share, truth, words
from ttf.engine.errors import StudyError
from ttf.engine.words import shorten
from ttf.records.jobs import join_reasons
from ttf.stats.differences import compare_distributions, compare_medians, compare_shares

MAX_REASONS = 3
# Smaller contributions would be written as 0.00.
LEAST_LOG_ODDS = 0.005
MAX_VALUE_LENGTH = 60
HOURS_OF_DAY = 24
BLANK_SHARE = "blank"
SEVERAL_VALUES = "several values: no one number"

NO_HOURS = "the model has too few failures of known time to tell hours"
NO_GPUS = "no GPU was requested, or nobody wrote how many"
_FEWER_FEATURES = "fewer features move the score"
_NOT_USED = "the model does not go by {}"

_NO_SUGGESTION = "no earlier job of the user and request ended at its limit, or later jobs do not support one"
_NEED = "Request within which 90% of the next jobs of the user and request succeed, by a test on later jobs."
# `ttf.analyses.queue.suggest_requests` fills them.
SUGGESTIONS = {
    f"suggested_{resource}_{unit.lower()}": count(heading, _NEED, _NO_SUGGESTION, unit)
    for resource, heading, unit in (("time_limit", "Time limit", "s"), ("memory", "Memory", "MiB"))
}

SCORES = Table(
    "scores",
    "One row per job: its risk of failure, from what was known at submission.",
    "scores/<name>.csv",
    {
        "job_id": words("Job", "As given."),
        "submit": words("Submitted", "ISO 8601 in the trace's time zone; seconds if the origin is unknown."),
        "probability": share("Probability", "Probability that the job ends in a recorded failure."),
        "at_risk": truth("At risk", "Whether it is at least the share of training jobs that failed."),
        "expected_hours_to_failure": number("Hours", "Mean run time until failure, if the job fails.", REASON, "h"),
        "gpu_hours_at_stake": number("At stake", "probability x GPUs requested x expected hours.", REASON, "GPU-hours"),
        **{
            f"reason_{rank}": words(
                f"Reason {rank}", "Feature = value: contribution to log-odds over the training mean.", _FEWER_FEATURES
            )
            for rank in range(1, MAX_REASONS + 1)
        },
        "beyond_range": truth("Beyond", "Whether the job lies outside the range of the training data."),
        "beyond_feature": words("By", "Features outside that range.", "it does not"),
        "unseen_user": truth("New user", "Whether the user has no training job.", _NOT_USED.format("users")),
        "unseen_group": truth("New group", "Whether the finest history key is new.", _NOT_USED.format("history")),
        **SUGGESTIONS,
        "reason": reason(),
    },
)
SKEW = Table(
    "scores_skew",
    "One row per feature: how much the scored jobs differ from the training jobs; the largest effect first.",
    "scores/<name>.skew.csv",
    {
        "feature": words("Feature", "Its name in the configuration; for a history, also its level."),
        "statistic": words("Statistic", "median, distribution (categories and hours) or blank (share of blank jobs)."),
        "n_training": count("n, training", "Training jobs with a value."),
        "n_scored": count("n, scored", "Scored jobs with a value."),
        "training": number("Training", "Median or share; for a history, the share that failed.", REASON),
        "scored": number("Scored", "The same for the scored jobs.", REASON),
        "effect_name": words("Effect size", "cliff_delta, cramer_v or cohen_h, as for drift."),
        "effect": number("Effect", "0: no difference; positive if the scored jobs have more.", REASON),
        "reason": reason(),
    },
)


# The model -----------------------------------------------------------------------------------------------------


def read_model(document: Mapping[str, Any]) -> Model:
    """Return the model of a file's JSON. Raise StudyError if the file was edited."""
    try:
        terms = list(document["terms"])
        model = Model.from_json(document, parse_features(document["features"]))
        is_consistent = [f"{term.feature}: {term.name}" for term in model.encoder.terms] == terms
        is_consistent = is_consistent and model.encoder.digest == document["digest"] and model.kind in KINDS
        term_arrays = [model.fit.coefficients, model.weights, model.centre]
        term_arrays += [model.hours.coefficients] if model.hours else []
        scalars = [model.shift, model.slope, *([model.hours.sigma, model.hours.horizon_h] if model.hours else [])]
        is_consistent = is_consistent and all(len(values) == 1 + len(terms) for values in term_arrays)
        is_consistent = is_consistent and bool(np.isfinite(np.concatenate([*term_arrays, scalars])).all())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(f"not a model as it was written ({type(error).__name__})") from None
    if not is_consistent:
        raise StudyError("not a model as it was written: features, terms and coefficients do not match")
    return model


def map_needed_features(model: Model) -> dict[str, list[str]]:
    """Return column of the job record -> names of the model's features that use it, except `submit_s`."""
    features_by_column: dict[str, list[str]] = {}
    for feature in _list_used_features(model):
        for column in feature.columns:
            features_by_column.setdefault(column, []).append(feature.name)
    return {column: names for column, names in features_by_column.items() if column != "submit_s"}


def list_constant_columns(model: Model) -> list[str]:
    """Return columns of features that were constant in training: they only show whether a job is out of range."""
    columns = dict.fromkeys(column for feature in model.encoder.features for column in feature.columns)
    return [column for column in columns if column != "submit_s" and column not in map_needed_features(model)]


def list_gpu_columns(at_submission: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with the GPUs a job requests, in thousandths, and its number of instances."""
    if "gpu_requested_milli" in at_submission:
        return ("gpu_requested_milli",)
    if "gpu_milli" not in at_submission:
        return ()
    return ("gpu_milli", *[name for name in ("size", "inst_num") if name in at_submission][:1])


def count_requested_gpus(jobs: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Return the GPUs of all instances of each job, NaN if not recorded. columns: from `list_gpu_columns`."""
    if not columns or columns[0] not in jobs.columns:
        return np.full(jobs.height, np.nan)
    gpus = jobs[columns[0]].cast(pl.Float64).to_numpy() / 1000
    for name in columns[1:]:
        # As in the common job record, a blank number of instances means one.
        gpus = gpus * (jobs[name].cast(pl.Float64).fill_null(1).to_numpy() if name in jobs.columns else 1)
    return gpus


# The scores ----------------------------------------------------------------------------------------------------


def score_jobs(
    model: Model,
    jobs: pl.DataFrame,
    features: JobFeatures,
    training_jobs: pl.DataFrame,
    gpu_columns: Sequence[str],
    clock: str | None = None,
) -> pl.DataFrame:
    """Return SCORES of jobs, in their order; training_jobs: those of the model; clock: the time zone, if known."""
    design = model.encoder.design(features)
    probability = model.probability(design)
    gpus = count_requested_gpus(jobs, gpu_columns)
    hours = np.full(features.n, np.nan) if model.hours is None else model.hours.mean(design)
    reasons = {NO_HOURS: pl.lit(pl.Series(np.isnan(hours))), NO_GPUS: pl.lit(pl.Series(np.isnan(gpus)))}
    outside = out_of_range_features(model, features)
    group_keys = next((list(feature.columns) for feature in _list_used_features(model) if feature.kind == HISTORY), [])
    return SCORES.conform(
        pl.DataFrame(
            {
                "job_id": jobs["job_id"].cast(pl.String),
                "submit": _format_times(jobs["submit_s"], clock),
                "probability": probability,
                "at_risk": probability >= model.base_rate,
                "expected_hours_to_failure": _nan_to_null(hours),
                "gpu_hours_at_stake": _nan_to_null(probability * gpus * hours),
                **explain_scores(model, jobs, features),
                "beyond_range": [bool(names) for names in outside],
                "beyond_feature": pl.Series([", ".join(names) or None for names in outside], dtype=pl.String),
                "unseen_user": flag_unseen(
                    jobs, training_jobs, ["user"] if "user" in map_needed_features(model) else []
                ),
                "unseen_group": flag_unseen(jobs, training_jobs, group_keys),
            }
        )
        .with_columns(pl.lit(None).alias(name) for name in SUGGESTIONS)
        .with_columns(reason=join_reasons(reasons))
    )


def _format_times(submit_s: pl.Series, clock: str | None) -> pl.Series:
    if clock is None:
        return submit_s.cast(pl.String)
    times = pl.from_epoch(submit_s).dt.replace_time_zone("UTC").dt.convert_time_zone(clock)
    return times.dt.strftime("%Y-%m-%dT%H:%M:%S%:z")


def _nan_to_null(values: np.ndarray) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)


def out_of_range_features(model: Model, features: JobFeatures) -> list[list[str]]:
    """Return for each job the names of the features that lie outside the training data."""
    features_by_job: list[list[str]] = [[] for _ in range(features.n)]
    for feature in model.encoder.features:
        for row in np.flatnonzero(replace(model.encoder, features=(feature,)).is_out_of_range(features)):
            features_by_job[row].append(feature.name)
    return features_by_job


def flag_unseen(jobs: pl.DataFrame, past: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
    """Flag jobs whose values in `columns` no training job has; null without columns. A blank value is not new."""
    if not columns:
        return pl.Series([None] * jobs.height, dtype=pl.Boolean)
    keys = pl.col(columns).cast(pl.String)
    past_keys = past.select(keys).unique().with_columns(seen=pl.lit(True))
    matches = jobs.select(keys).join(past_keys, on=list(columns), how="left", nulls_equal=True, maintain_order="left")
    return matches.select(pl.col("seen").is_null() & pl.col(columns[0]).is_not_null()).to_series()


def _list_used_features(model: Model) -> list[Feature]:
    names = {term.feature for term in model.encoder.terms}
    return [feature for feature in model.encoder.features if feature.name in names]


# Reasons -------------------------------------------------------------------------------------------------------


def explain_scores(model: Model, jobs: pl.DataFrame, features: JobFeatures) -> dict[str, pl.Series]:
    """Return columns reason_1 ...: the largest contributions to each job's log-odds, relative to the training mean.

    Terms are grouped by feature; each level of a history is a group of its own.
    """
    features_by_name = {feature.name: feature for feature in model.encoder.features}
    groups, contributions = model.contributions(
        model.encoder.design(features),
        lambda term: (term.feature, term.name if features_by_name[term.feature].kind == HISTORY else ""),
    )
    order = np.argsort(-np.abs(contributions), axis=1, kind="stable")[:, :MAX_REASONS]
    values = [_value_formatter(features_by_name[feature], level, model, jobs, features) for feature, level in groups]
    names = [level or feature for feature, level in groups]

    def format_reason(row: int, rank: int) -> str | None:
        """Return the job's contribution of this rank as text; None if it is negligible."""
        if rank >= len(groups) or abs(contributions[row, order[row, rank]]) < LEAST_LOG_ODDS:
            return None
        group = int(order[row, rank])
        return f"{names[group]} = {values[group](row)}: {contributions[row, group]:+.2f}"

    return {
        f"reason_{rank + 1}": pl.Series([format_reason(row, rank) for row in range(features.n)], dtype=pl.String)
        for rank in range(MAX_REASONS)
    }


def _value_formatter(
    feature: Feature, level: str, model: Model, jobs: pl.DataFrame, features: JobFeatures
) -> Callable[[int], str]:
    """Return a function that formats the feature's value of a row for a reader."""
    if feature.kind == HISTORY:
        index = 1 + list(model.encoder.params[feature.name]["numbers"]).index(level)
        rates, ended = features.rates[feature.name], features.ended_counts[feature.name][:, index]
        # Undo the shrinkage towards the level above to recover whole jobs.
        failures = np.rint(rates[:, index] * (ended + PRIOR_JOBS) - PRIOR_JOBS * rates[:, index - 1]).astype(np.int64)
        return lambda row: f"{failures[row]:,} of {ended[row]:,} failed" if ended[row] else "none ended yet"
    if feature.kind == CLOCK:
        hour, weekend = features.numbers[feature.name], features.weekend[feature.name]
        return lambda row: (
            f"{int(hour[row]):02d}:{round(hour[row] % 1 * 60):02d}{', Saturday or Sunday' if weekend[row] else ''}"
        )
    if feature.kind in (CATEGORY, HASHED):
        labels, codes = features.labels[feature.name], features.codes[feature.name]
        return lambda row: shorten(labels[codes[row]], MAX_VALUE_LENGTH) if codes[row] >= 0 else "blank"
    column = jobs[feature.column] if feature.column in jobs.columns else pl.Series([None] * jobs.height)
    return lambda row: format_value(feature.column, column[row])


def format_value(column: str, value: float | None) -> str:
    """Format a number of the job record with the unit that its column name ends in."""
    if value is None:
        return "blank"
    if column.endswith("_milli"):
        return f"{value / 1000:,.10g}"
    unit = " s" if column.endswith("_s") else " MiB" if column.endswith("_mib") else ""
    return f"{value:,.10g}{unit}"


# Skew ----------------------------------------------------------------------------------------------------------


def compute_skew(
    model: Model, jobs: pl.DataFrame, features: JobFeatures, past: pl.DataFrame, past_features: JobFeatures
) -> pl.DataFrame:
    """Return SKEW: the scored jobs compared with the training jobs, by feature of the model."""
    rows: list[dict[str, Any]] = []
    for feature in _list_used_features(model):
        rows += _compare_feature(feature, jobs, features, past, past_features)
    return SKEW.frame(rows).sort(pl.col("effect").abs(), descending=True, nulls_last=True, maintain_order=True)


def _compare_feature(
    feature: Feature, jobs: pl.DataFrame, features: JobFeatures, past: pl.DataFrame, past_features: JobFeatures
) -> Iterator[dict[str, Any]]:
    """Yield rows of SKEW. Numbers come from the job record, so that medians are in its units."""
    pairs = ((past, past_features), (jobs, features))
    name = feature.name
    if feature.kind == NUMERIC:
        training, scored = (
            frame[feature.column].cast(pl.Float64).to_numpy()
            if feature.column in frame.columns
            else np.full(frame.height, np.nan)
            for frame, _ in pairs
        )
        yield _compare_numbers(name, training[~np.isnan(training)], scored[~np.isnan(scored)])
        yield from _compare_blanks(name, np.isnan(training), np.isnan(scored))
    elif feature.kind == HISTORY:
        for index, level in enumerate(feature.keys, start=1):
            rates = (side.rates[name][:, index] for _, side in pairs)
            yield _compare_numbers(f"{name} by {', '.join(level)}", *rates)
    elif feature.kind == CLOCK:
        counts = (
            np.bincount(np.floor(hours[~np.isnan(hours)]).astype(np.int64), minlength=HOURS_OF_DAY)
            for hours in (side.numbers[name] for _, side in pairs)
        )
        yield _compare_counts(name, *counts)
    else:
        labels = sorted(set(past_features.labels[name]) | set(features.labels[name]))
        code_by_label = {label: code for code, label in enumerate(labels)}
        label_counts = []
        for _, side in pairs:
            codes_of_labels = np.array([code_by_label[label] for label in side.labels[name]], dtype=np.int64)
            codes = side.codes[name]
            label_counts.append(np.bincount(codes_of_labels[codes[codes >= 0]], minlength=len(labels)))
        yield _compare_counts(name, *label_counts)
        yield from _compare_blanks(name, *(side.codes[name] < 0 for _, side in pairs))


def _compare_numbers(name: str, training: np.ndarray, scored: np.ndarray) -> dict[str, Any]:
    """Return the row of SKEW that compares medians."""
    values, codes = np.unique(np.concatenate([training, scored]), return_inverse=True)
    counts = (np.bincount(codes_part, minlength=len(values)) for codes_part in np.split(codes, [len(training)]))
    return _skew_row(name, "median", compare_medians(values, *counts))


def _compare_counts(name: str, training: np.ndarray, scored: np.ndarray) -> dict[str, Any]:
    """Return the row of SKEW that compares distributions; training, scored: jobs by value."""
    return _skew_row(name, "distribution", compare_distributions(training, scored)[0])


def _compare_blanks(name: str, training: np.ndarray, scored: np.ndarray) -> Iterator[dict[str, Any]]:
    """Compare the shares of blank jobs, if there are any: a missing column is the most common skew."""
    if training.any() or scored.any():
        change = compare_shares(int(training.sum()), len(training), int(scored.sum()), len(scored))
        yield _skew_row(name, BLANK_SHARE, change)


def _skew_row(name: str, statistic: str, change: Mapping[str, Any]) -> dict[str, Any]:
    reason = change["reason"] if change["effect"] is None else SEVERAL_VALUES if change["before"] is None else None
    return {
        "feature": name,
        "statistic": statistic,
        "n_training": change["n_before"],
        "n_scored": change["n_after"],
        "training": change["before"],
        "scored": change["after"],
        "effect_name": change["effect_name"],
        "effect": change["effect"],
        "reason": reason,
    }

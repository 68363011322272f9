"""Explain the score: coefficients, permutation importance, partial dependence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import stdtrit

from ttf.analyses.risk.predict_failure.estimate_cells import Row, cells
from ttf.analyses.risk.predict_failure.evaluate import TOO_FEW
from ttf.analyses.risk.predict_failure.model_trials import BASE, FEWEST, Trial
from ttf.analyses.shared.risk import LOGISTIC
from ttf.analyses.shared.risk.features import CATEGORY, CLOCK, HASHED, HISTORY, Data, Feature, JobFeatures
from ttf.analyses.shared.risk.model import Model, TrainingData, train_model
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.stats.clustered import UNCLUSTERED, too_few_reason
from ttf.stats.predictions import Estimate, difference
from ttf.stats.regression.logistic import clustered_covariance

PERMUTED, LEFT_OUT = "permuted", "left_out"
# Importance is the mean over this many permutations; with MANY_JOBS one is enough.
N_PERMUTATIONS, MANY_JOBS = 5, 50_000
N_FEATURES_SHOWN = 4
# Partial dependence is the mean over at most this many test jobs, evenly spaced.
MAX_JOBS = 10_000
GRID_STEPS = 10
NO_GAIN = "the PR-AUC is not above that of the base rate"


def coefficient_rows(data: Data, trial: Trial) -> Iterator[Row]:
    """Yield rows of risk_coefficients; none without a regression, as history alone has no coefficients."""
    model, jobs = trial.model, data.jobs
    if isinstance(model, str) or model.kind != LOGISTIC:
        return
    training_rows = np.flatnonzero(trial.split.learn)
    cluster, cluster_by = jobs.cluster[training_rows], jobs.cluster_by
    margin, labels = None, {}
    reason: str | None = UNCLUSTERED
    if cluster_by is not None:
        _, members = np.unique(cluster, return_counts=True)
        effective = float(members.sum() ** 2 / (members.astype(float) ** 2).sum())
        labels, reason = {"cluster_by": cluster_by, "clusters": effective}, too_few_reason(effective, cluster_by)
        if effective >= FEWEST_CLUSTERS:
            design = model.encoder.design(data.job_features, training_rows)
            covariance = clustered_covariance(design, jobs.failed[training_rows], model.fit, cluster - cluster.min())
            margin, reason = np.sqrt(np.diag(covariance)) * stdtrit(effective - 1, 0.975), None
    for index, term in enumerate(model.encoder.terms, start=1):
        value = float(model.fit.coefficients[index])
        row = {"feature": term.feature, "term": term.name, "coefficient": value, "odds_ratio": float(np.exp(value))}
        if margin is not None:
            row |= {"ci_low_clustered": value - margin[index], "ci_high_clustered": value + margin[index]}
        yield row | labels | {"n": len(training_rows), "reason": reason}


def importance_rows(data: Data, trial: Trial, seed: int) -> list[Row]:
    """Return rows of risk_importance, the largest drop first."""
    model, jobs, rows = trial.model, data.jobs, trial.rows
    if isinstance(model, str):
        return []
    failed, cluster, cluster_by = jobs.failed[rows], jobs.cluster[rows], jobs.cluster_by
    labels: Row = {"n": len(rows), "failures": int(failed.sum()), "how": PERMUTED}
    features = model.scoring_features
    if len(rows) < FEWEST:
        return [labels | {"feature": feature.name, "reason": TOO_FEW} for feature in features]
    p = trial.probability[model.kind]
    gain = difference("average_precision", failed, p, [trial.probability[BASE]], cluster, cluster_by).estimate
    values, rng = data.job_features.take(rows), np.random.default_rng([seed, 1])
    rows_by_drop = []
    for feature in features:
        scores = []
        for _ in range(N_PERMUTATIONS if len(rows) <= MANY_JOBS else 1):
            order = rng.permutation(len(rows))
            scores.append(model.probability(model.encoder.design(replace_feature(values, feature, values, order))))
        drop = difference("average_precision", failed, p, scores, cluster, cluster_by)
        rows_by_drop.append(labels | {"feature": feature.name} | _drop_cells(drop, gain))
    rows_by_drop.sort(key=lambda row: (-(row["drop"] or 0), row["feature"]))
    return rows_by_drop + list(_history_drop_rows(data, trial, model, labels, gain))


def _history_drop_rows(data: Data, trial: Trial, model: Model, labels: Row, gain: float | None) -> Iterator[Row]:
    """Yield the risk_importance row of all history features together: the PR-AUC lost without them."""
    other_features = [feature for feature in data.features if feature.kind != HISTORY]
    if len(other_features) == len(data.features):
        return
    row = labels | {"feature": "history", "how": LEFT_OUT}
    jobs, split, rows = data.jobs, trial.split, trial.rows
    training = TrainingData.select(
        jobs, data.job_features, split.learn, split.recalibrate, split.until_s, with_hours=False
    )
    other_model = train_model(training, other_features)
    if isinstance(other_model, str):
        yield row | {"reason": other_model}
        return
    p = other_model.probability(other_model.encoder.design(data.job_features, rows))
    drop = difference(
        "average_precision", jobs.failed[rows], trial.probability[model.kind], [p], jobs.cluster[rows], jobs.cluster_by
    )
    yield row | _drop_cells(drop, gain)


def _drop_cells(estimate: Estimate, gain: float | None) -> Row:
    """Return cells of a drop of PR-AUC; gain: the PR-AUC above the base rate, of which the drop is a share."""
    row = cells(estimate)
    drop = row.pop("estimate")
    if drop is None or not gain or gain < 0:
        return row | {"drop": drop, "reason": row["reason"] or NO_GAIN}
    return row | {"drop": drop, "share_of_gain": drop / gain}


def replace_feature(features: JobFeatures, feature: Feature, source: JobFeatures, rows: np.ndarray) -> JobFeatures:
    """Return `features` with one feature taken from `source` at `rows`."""
    name = feature.name
    if feature.kind in (CATEGORY, HASHED):
        return replace(features, codes=features.codes | {name: source.codes[name][rows]})
    if feature.kind == HISTORY:
        return replace(features, rates=features.rates | {name: source.rates[name][rows]})
    numbers = features.numbers | {name: source.numbers[name][rows]}
    if feature.kind == CLOCK:
        return replace(features, numbers=numbers, weekend=features.weekend | {name: source.weekend[name][rows]})
    return replace(features, numbers=numbers)


def dependence_rows(data: Data, trial: Trial, order: Sequence[str]) -> Iterator[Row]:
    """Yield rows of risk_dependence for the most important features; order: feature names, by importance."""
    model = trial.model
    if isinstance(model, str) or not len(trial.rows):
        return
    features_by_name = {feature.name: feature for feature in data.features}
    values = data.job_features.take(trial.rows)
    sample = values.take(np.unique(np.linspace(0, values.n - 1, min(values.n, MAX_JOBS)).astype(np.int64)))
    for name in order[:N_FEATURES_SHOWN]:
        feature = features_by_name[name]
        for index, (value, jobs, row) in enumerate(_grid_points(model, feature, values)):
            constant = replace_feature(sample, feature, values, np.full(sample.n, row))
            p = float(model.probability(model.encoder.design(constant)).mean())
            yield {"feature": name, "position": index, "value": value, "jobs": jobs, "probability": p}


def _grid_points(model: Model, feature: Feature, features: JobFeatures) -> Iterator[tuple[str, int, int]]:
    """Yield (value, number of test jobs near it, row of a job with it) over the grid of a feature."""
    if feature.kind == HASHED:
        return
    if feature.kind == CATEGORY:
        levels = model.encoder.params[feature.name]["levels"]
        level_codes = model.encoder.level_codes(feature, features)
        for index, level in enumerate(levels):
            members = np.flatnonzero(level_codes == index)
            if len(members):
                yield level, len(members), int(members[0])
        return
    numbers = features.rates[feature.name][:, -1] if feature.kind == HISTORY else features.numbers[feature.name]
    rows = np.flatnonzero(~np.isnan(numbers))
    rows = rows[np.argsort(numbers[rows], kind="stable")]
    grid = np.linspace(0, len(rows) - 1, GRID_STEPS + 1) if len(rows) else np.empty(0)
    positions = np.unique(grid.astype(np.int64))
    values, first_positions = np.unique(numbers[rows[positions]], return_index=True)
    edges = np.searchsorted(numbers[rows], values, side="right")
    for index, (value, start) in enumerate(zip(values, first_positions, strict=True)):
        jobs = int(edges[index] - (edges[index - 1] if index else 0))
        yield _format_value(feature, float(value)), jobs, int(rows[positions[start]])


def _format_value(feature: Feature, value: float) -> str:
    """Format a value that a feature holds: numbers are log2(1 + request), clocks are hours, histories are rates."""
    if feature.kind == HISTORY:
        return f"{value:.3g}"
    return f"{value:.2f} h" if feature.kind == CLOCK else f"{round(2**value - 1):d}"

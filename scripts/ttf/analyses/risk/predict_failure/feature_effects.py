"""What carries the score: coefficients, permutation importance, partial dependence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ttf.analyses.risk.predict_failure.estimate_cells import Row, cells
from ttf.analyses.risk.predict_failure.evaluate import TOO_FEW
from ttf.analyses.risk.predict_failure.model_trials import BASE, FEWEST, Tried
from ttf.analyses.shared.risk import LOGISTIC
from ttf.analyses.shared.risk.features import CATEGORY, CLOCK, HASHED, HISTORY, Data, Feature, Submitted
from ttf.analyses.shared.risk.logistic import clustered_covariance
from ttf.analyses.shared.risk.model import Lesson, Model, trained
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.stats.clustered import UNCLUSTERED, too_few
from ttf.stats.predictions import difference, mean_difference

PERMUTED, LEFT_OUT = "permuted", "left_out"
# The mean over so many permutations; of many jobs one says it.
PERMUTATIONS, MANY = 5, 50_000
MATTER_MOST = 4
# Partial dependence is the mean over at most so many test jobs, evenly taken.
AVERAGED = 10_000
GRID = 10
NO_GAIN = "the PR-AUC is not above that of the base rate"


def coefficients(data: Data, trial: Tried) -> Iterator[Row]:
    """Rows of risk_coefficients; none where history alone serves, which has nothing to fit."""
    model, jobs = trial.model, data.jobs
    if isinstance(model, str) or model.kind != LOGISTIC:
        return
    learn = np.flatnonzero(trial.split.learn)
    cluster, by = jobs.cluster[learn], jobs.by
    se, why, about = None, UNCLUSTERED, {}
    if by is not None:
        _, members = np.unique(cluster, return_counts=True)
        effective = float(members.sum() ** 2 / (members.astype(float) ** 2).sum())
        about, why = {"cluster_by": by, "clusters": effective}, too_few(effective, by)
        if effective >= FEWEST_CLUSTERS:
            design = model.encoder.design(data.known.take(learn))
            covariance = clustered_covariance(design, jobs.failed[learn], model.fit, cluster - cluster.min())
            se, why = np.sqrt(np.diag(covariance)) * stdtrit(effective - 1, 0.975), None
    for place, term in enumerate(model.encoder.terms, start=1):
        value = float(model.fit.coefficients[place])
        row = {"feature": term.feature, "term": term.name, "coefficient": value, "odds_ratio": float(np.exp(value))}
        ends = {} if se is None else {"ci_low_clustered": value - se[place], "ci_high_clustered": value + se[place]}
        yield row | about | ends | {"n": len(learn), "reason": why}


def importance(data: Data, trial: Tried, seed: int) -> list[Row]:
    """Rows of risk_importance, the largest drop first."""
    model, jobs, rows = trial.model, data.jobs, trial.rows
    if isinstance(model, str):
        return []
    failed, cluster, by = jobs.failed[rows], jobs.cluster[rows], jobs.by
    about = {"n": len(rows), "failures": int(failed.sum())}
    used = model.scoring_features
    if len(rows) < FEWEST:
        return [about | {"feature": feature.name, "how": PERMUTED, "reason": TOO_FEW} for feature in used]
    p = trial.probability[model.kind]
    gain = difference("average_precision", failed, p, trial.probability[BASE], cluster, by).estimate
    known, rng = data.known.take(rows), np.random.default_rng([seed, 1])
    found = []
    for feature in used:
        others = []
        for _ in range(PERMUTATIONS if len(rows) <= MANY else 1):
            order = rng.permutation(len(rows))
            others.append(model.probability(model.encoder.design(with_feature(known, feature, known, order))))
        drop = mean_difference("average_precision", failed, p, others, cluster, by)
        found.append(about | {"feature": feature.name, "how": PERMUTED} | _drop(drop, gain))
    found.sort(key=lambda row: (-(row["drop"] or 0), row["feature"]))
    return found + list(_without_history(data, trial, model, about, gain))


def _without_history(data: Data, trial: Tried, model: Model, about: Row, gain: float | None) -> Iterator[Row]:
    """Trained without any history: how much of the score is recognising repeated work."""
    rest = [feature for feature in data.features if feature.kind != HISTORY]
    if len(rest) == len(data.features):
        return
    row = about | {"feature": "history", "how": LEFT_OUT}
    split, rows = trial.split, trial.rows
    lesson = Lesson.of(data.jobs, data.known, split.learn, split.recalibrate, split.until_s, with_hours=False)
    other = trained(lesson, rest)
    if isinstance(other, str):
        yield row | {"reason": other}
        return
    p = other.probability(other.encoder.design(data.known.take(rows)))
    jobs = data.jobs
    drop = difference(
        "average_precision", jobs.failed[rows], trial.probability[model.kind], p, jobs.cluster[rows], jobs.by
    )
    yield row | _drop(drop, gain)


def _drop(estimate: Any, gain: float | None) -> Row:
    found = cells(estimate)
    drop = found.pop("estimate")
    if drop is None or not gain or gain < 0:
        return found | {"drop": drop, "reason": found["reason"] or NO_GAIN}
    return found | {"drop": drop, "share_of_gain": drop / gain}


def with_feature(known: Submitted, feature: Feature, other: Submitted, rows: np.ndarray) -> Submitted:
    """The jobs with this feature as the other jobs at the places `rows` have it."""
    name = feature.name
    if feature.kind in (CATEGORY, HASHED):
        return replace(known, codes=known.codes | {name: other.codes[name][rows]})
    if feature.kind == HISTORY:
        return replace(known, rates=known.rates | {name: other.rates[name].take(rows, axis=0)})
    numbers = known.numbers | {name: other.numbers[name][rows]}
    if feature.kind == CLOCK:
        return replace(known, numbers=numbers, weekend=known.weekend | {name: other.weekend[name][rows]})
    return replace(known, numbers=numbers)


def dependence(data: Data, trial: Tried, order: Sequence[str]) -> Iterator[Row]:
    """Rows of risk_dependence, of the features that matter most in this order."""
    model = trial.model
    if isinstance(model, str) or not len(trial.rows):
        return
    by_name = {feature.name: feature for feature in data.features}
    known = data.known.take(trial.rows)
    few = known.take(np.unique(np.linspace(0, known.n - 1, min(known.n, AVERAGED)).astype(np.int64)))
    for name in order[:MATTER_MOST]:
        feature = by_name[name]
        for place, (value, jobs, like) in enumerate(_grid(model, feature, known)):
            same = with_feature(few, feature, known, np.full(few.n, like))
            p = float(model.probability(model.encoder.design(same)).mean())
            yield {"feature": name, "place": place, "value": value, "jobs": jobs, "probability": p}


def _grid(model: Model, feature: Feature, known: Submitted) -> Iterator[tuple[str, int, int]]:
    """(value, test jobs of about it, a job that has it), of the values at which a feature is looked at."""
    if feature.kind == HASHED:
        return
    if feature.kind == CATEGORY:
        levels = model.encoder.learnt[feature.name]["levels"]
        places = model.encoder.level(feature, known)
        for place, level in enumerate(levels):
            jobs = np.flatnonzero(places == place)
            if len(jobs):
                yield level, len(jobs), int(jobs[0])
        return
    numbers = known.rates[feature.name][:, -1] if feature.kind == HISTORY else known.numbers[feature.name]
    rows = np.flatnonzero(~np.isnan(numbers))
    rows = rows[np.argsort(numbers[rows], kind="stable")]
    at = np.unique(np.linspace(0, len(rows) - 1, GRID + 1).astype(np.int64)) if len(rows) else np.empty(0, np.int64)
    values, first = np.unique(numbers[rows[at]], return_index=True)
    edges = np.searchsorted(numbers[rows], values, side="right")
    for place, (value, start) in enumerate(zip(values, first, strict=True)):
        jobs = int(edges[place] - (edges[place - 1] if place else 0))
        yield _shown(feature, float(value)), jobs, int(rows[at[start]])


def _shown(feature: Feature, value: float) -> str:
    if feature.kind == HISTORY:
        return f"{value:.3g}"
    return f"{value:.2f} h" if feature.kind == CLOCK else f"{round(2**value - 1):d}"

"""A model of the risk of failure: trained, recalibrated on later jobs, written as JSON, read again, and used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from ttf.analyses.shared.risk import LOGISTIC, NESTED
from ttf.analyses.shared.risk.encoder import Design, Encoder, Term
from ttf.analyses.shared.risk.features import HISTORY, Feature, Submitted
from ttf.analyses.shared.risk.hours import Hours, fit_hours
from ttf.analyses.shared.risk.logistic import Fit, Prior, fit
from ttf.analyses.shared.risk.training_jobs import NEVER, Population
from ttf.stats.basics.newton import ascend, softplus
from ttf.stats.predictions import SCORED

# With fewer jobs that ended, or fewer of either kind, a score would have no meaning.
FEWEST_JOBS, FEWEST_OF_A_KIND = 200, 20
TOO_FEW = f"fewer than {FEWEST_JOBS} jobs had ended to learn from"
ONE_KIND = f"fewer than {FEWEST_OF_A_KIND} of the jobs to learn from failed, or fewer did not"
# Of the slope of a recalibration.
SLOPE_SD = 0.1
NO_FEATURES = "nothing that is known at submission differs between the jobs to learn from"
NO_HISTORY = "no history of earlier failures orders the jobs to learn from"
# Which kind of model serves is decided on the latest jobs to learn from, after training on this share of them. Over 525
# simulated origins this share gave the largest mean PR-AUC of 0.5, 0.6, 0.7 and 0.8.
EARLY = 0.6


@dataclass(frozen=True)
class Model:
    """encoder and fit: the logistic regression, from which a later one is warm-started; kind: NESTED or LOGISTIC;
    weights (p,): the coefficients of the score, those of `fit` or of the history alone; shift, slope: of its
    recalibration, in log-odds; hours: stage 2.

    centre (p,): the mean of the design's columns in training, from which contributions are told; n, failures: of the
    jobs it was trained on; until_s: the last moment it knows of.
    """

    encoder: Encoder
    fit: Fit
    kind: str
    weights: np.ndarray
    shift: float
    slope: float
    hours: Hours | None
    centre: np.ndarray
    n: int
    failures: int
    until_s: int

    @property
    def base_rate(self) -> float:
        return self.failures / self.n

    def probability(self, design: Design) -> np.ndarray:
        """That a job fails, recalibrated."""
        return expit(self.shift + self.slope * design.dot(self.weights))

    @property
    def scoring_features(self) -> list[Feature]:
        """The features that move the score; the others serve stage 2 alone."""
        names = {term.feature for term, weight in zip(self.encoder.terms, self.weights[1:], strict=True) if weight}
        return [feature for feature in self.encoder.features if feature.name in names]

    def contributions(self, design: Design, part_of: Callable[[Term], Any]) -> tuple[list[Any], np.ndarray]:
        """(parts, (n, parts)): what each adds to the log-odds of a job, against the mean of the training data.

        part_of: of what a term is a part.
        """
        of_terms = [part_of(term) for term in self.encoder.terms]
        parts = list(dict.fromkeys(of_terms))
        weights = np.zeros((design.width, len(parts)))
        for place, part in enumerate(of_terms, start=1):
            weights[place, parts.index(part)] = self.slope * self.weights[place]
        return parts, design.dot(weights) - self.centre @ weights

    def to_json(self) -> dict[str, Any]:
        return {
            "digest": self.encoder.digest,
            "features": self.encoder.to_json(),
            "terms": [f"{term.feature}: {term.name}" for term in self.encoder.terms],
            "coefficients": self.fit.coefficients.tolist(),
            "information": self.fit.information.tolist(),
            "converged": self.fit.converged,
            "kind": self.kind,
            "weights": self.weights.tolist(),
            "recalibration": {"shift": self.shift, "slope": self.slope},
            "centre": self.centre.tolist(),
            "trained_on": {"jobs": self.n, "failures": self.failures, "until_s": self.until_s},
            "hours": self.hours and asdict(self.hours) | {"coefficients": self.hours.coefficients.tolist()},
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any], features: Sequence[Feature]) -> Model:
        hours, on, again = said["hours"], said["trained_on"], said["recalibration"]
        return cls(
            encoder=Encoder.from_json(said["features"], features),
            fit=Fit(np.array(said["coefficients"]), np.array(said["information"]), said["converged"]),
            kind=said["kind"],
            weights=np.array(said["weights"]),
            shift=again["shift"],
            slope=again["slope"],
            hours=hours and Hours(**hours | {"coefficients": np.array(hours["coefficients"])}),
            centre=np.array(said["centre"]),
            n=on["jobs"],
            failures=on["failures"],
            until_s=on["until_s"],
        )


def why_not(failed: np.ndarray) -> str | None:
    """Why nothing can be learnt from jobs that ended so; None where it can."""
    if len(failed) < FEWEST_JOBS:
        return TOO_FEW
    fails = int(failed.sum())
    return ONE_KIND if min(fails, len(failed) - fails) < FEWEST_OF_A_KIND else None


@dataclass(frozen=True)
class Lesson:
    """The jobs that a model is trained on, and all that training reads of them.

    known: of all jobs what was known at submission, of which that of `rows` is read. learn, again: truth values, a job
    each, of those that it learns from and is recalibrated on; failed: those of both that failed; running: jobs that
    still ran at `until_s`, from which stage 2 learns besides. hours: of `rows`, of the run as far as it was seen by
    then, None where there is to be no stage 2.
    """

    known: Submitted
    learn: np.ndarray
    again: np.ndarray
    failed: np.ndarray
    running: np.ndarray
    hours: np.ndarray | None
    until_s: int

    @classmethod
    def of(
        cls,
        jobs: Population,
        known: Submitted,
        learn: np.ndarray,
        again: np.ndarray,
        until_s: int,
        with_hours: bool = True,
    ) -> Lesson:
        """jobs, known: the same jobs in the same order; learn, again: of jobs that had ended before `until_s`."""
        told, hours = learn | again, None
        running = np.zeros(len(jobs), dtype=bool)
        if with_hours:
            # Of a job that ended nobody wrote when, nobody knows whether it still ran.
            runs_on = jobs.running | ((jobs.ended_s >= until_s) & (jobs.ended_s < NEVER))
            running = runs_on & (jobs.started_s < until_s) & ~told
            rows = np.flatnonzero(told | running)
            # Of those that ran then, the hours that could be seen then.
            hours = np.where(running[rows], (until_s - jobs.started_s[rows]) / 3600, jobs.hours[rows])
        return cls(known, learn, again, jobs.failed & told, running, hours, int(until_s))

    @property
    def rows(self) -> np.ndarray:
        """The places of its jobs, ascending."""
        return np.flatnonzero(self.learn | self.again | self.running)


def trained(
    lesson: Lesson,
    features: Sequence[Feature],
    prior: Prior | None = None,
    encoder: Encoder | None = None,
    kind: str | None = None,
) -> Model | str:
    """The model of a lesson that serves, with stage 2; a reason where there can be none.

    prior, encoder: of a warm start; kind: of the model, if that is not to be chosen.
    """
    models = simple_models(lesson, features, prior, encoder)
    if isinstance(models, str):
        return models
    kind = kind or choose_kind(lesson, models, prior)
    return add_hours(models[kind], lesson) if kind in models else NO_HISTORY


def simple_models(
    lesson: Lesson, features: Sequence[Feature], prior: Prior | None = None, encoder: Encoder | None = None
) -> dict[str, Model] | str:
    """The models of a lesson by kind, recalibrated, without stage 2; a reason where there can be none."""
    failed = lesson.failed[lesson.learn]
    if reason := why_not(failed):
        return reason
    part = lesson.known.take(lesson.learn)
    # Of a warm start the encoder is given.
    encoder = encoder or Encoder.fit(features, part)
    design = encoder.design(part)
    if design.width == 1:
        return NO_FEATURES
    regression = fit(design, failed, prior)
    model = Model(
        encoder=encoder,
        fit=regression,
        kind=LOGISTIC,
        weights=regression.coefficients,
        shift=0.0,
        slope=1.0,
        hours=None,
        centre=_mean_row(design),
        n=len(failed),
        failures=int(failed.sum()),
        until_s=lesson.until_s,
    )
    again = encoder.design(lesson.known.take(lesson.again))
    models = [model]
    if (weights := history_weights(encoder, design, failed)) is not None:
        models.insert(0, replace(model, kind=NESTED, weights=weights))
    return {model.kind: recalibrated(model, again, lesson.failed[lesson.again]) for model in models}


def history_weights(encoder: Encoder, design: Design, failed: np.ndarray) -> np.ndarray | None:
    """The weights (p,) of history alone: a common one for each level of the first history, and the intercept.

    The levels add up to the log-odds of the share of failures at the finest one, against the share of all jobs. None
    without a history, and where a higher share does not go with failure.
    """
    history = next((feature.name for feature in encoder.features if feature.kind == HISTORY), None)
    weights = np.array([0.0, *(float(term.feature == history) for term in encoder.terms)])
    if not weights.any():
        return None
    shift, slope = platt(design.dot(weights), failed)
    return None if (shift, slope) == (0, 1) else np.array([shift, *(slope * weights[1:])])


def choose_kind(lesson: Lesson, models: Mapping[str, Model], prior: Prior | None = None) -> str:
    """Which of the models serves: the regression, if it is better than history alone by both PR-AUC and log-loss.

    Both are trained on the first of the lesson's jobs and compared on the others. Where there are too few to compare,
    history alone serves.
    """
    if NESTED not in models:
        return LOGISTIC
    rows = np.flatnonzero(lesson.learn | lesson.again)
    early, late = np.split(rows, [int(EARLY * len(rows))])
    failed = lesson.failed[early]
    if why_not(failed) or why_not(lesson.failed[late]):
        return NESTED
    encoder = models[LOGISTIC].encoder
    design, of_late = (encoder.design(lesson.known.take(part)) for part in (early, late))
    weights = history_weights(encoder, design, failed)
    if weights is None:
        return LOGISTIC
    both = (expit(of_late.dot(part)) for part in (weights, fit(design, failed, prior).coefficients))
    history, regression = (
        [SCORED[name](lesson.failed[late], p).score for name in ("average_precision", "log_loss")] for p in both
    )
    return LOGISTIC if regression[0] > history[0] and regression[1] < history[1] else NESTED


def recalibrated(model: Model, design: Design, failed: np.ndarray) -> Model:
    """The model with its log-odds shifted and stretched to what became of later jobs."""
    shift, slope = platt(design.dot(model.weights), failed)
    return replace(model, shift=shift, slope=slope)


def platt(eta: np.ndarray, failed: np.ndarray) -> tuple[float, float]:
    """(shift, slope) by which log-odds become those of what was seen: logistic regression on them (Platt 1999).

    The slope has a normal prior about 1, standard deviation SLOPE_SD: a few hundred jobs of a few users would stretch
    the log-odds more by chance than the model is off. (0, 1), which changes nothing, where the jobs are too few to
    tell, or do not bear the order of the log-odds out.
    """
    if why_not(failed):
        return 0.0, 1.0
    y, precision = failed.astype(float), SLOPE_SD**-2

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        line, away = point[0] + point[1] * eta, point[1] - 1
        p = expit(line)
        w = p * (1 - p)
        residual, cross = y - p, -float(w @ eta)
        level = float(y @ line - softplus(line).sum()) - precision * away**2 / 2
        curvature = np.array([[-float(w.sum()), cross], [cross, -float(w @ eta**2) - precision]])
        return level, np.array([residual.sum(), residual @ eta - precision * away]), curvature

    (shift, slope), converged = ascend(likelihood, np.array([0.0, 1.0]))
    return (float(shift), float(slope)) if converged and slope > 0 else (0.0, 1.0)


def add_hours(model: Model, lesson: Lesson) -> Model:
    """The model with stage 2, if the lesson tells hours.

    It learns from those of the told jobs whose probability is at or above the share that failed, and from those that
    still ran.
    """
    if lesson.hours is None:
        return model
    rows, hours = lesson.rows, lesson.hours
    design = model.encoder.design(lesson.known.take(rows))
    probability = model.probability(design)
    at_risk = probability >= model.base_rate
    rows, design, probability, hours = rows[at_risk], design.take(at_risk), probability[at_risk], hours[at_risk]
    still, failed = lesson.running[rows], lesson.failed[rows]
    return replace(model, hours=fit_hours(design, hours, failed, still, probability, hours[~failed & ~still]))


def _mean_row(design: Design) -> np.ndarray:
    total = np.zeros(design.width)
    for _, block in design.blocks():
        total += block.sum(axis=0)
    return total / len(design)


def log_odds(rate: np.ndarray) -> np.ndarray:
    return logit(np.clip(rate, 1e-12, 1 - 1e-12))

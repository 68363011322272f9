"""A model of the risk of failure: trained, recalibrated on later jobs, written as JSON, read again, and used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from ttf.risk.encoder import Design, Encoder, Term
from ttf.risk.features import Feature, Submitted
from ttf.risk.hours import Hours, fit_hours
from ttf.risk.logistic import Fit, Prior, fit
from ttf.risk.population import NEVER, Population
from ttf.stats.newton import ascend

# With fewer jobs that ended, or fewer of either kind, a score would have no meaning.
FEWEST_JOBS, FEWEST_OF_A_KIND = 200, 20
TOO_FEW = f"fewer than {FEWEST_JOBS} jobs had ended to learn from"
ONE_KIND = f"fewer than {FEWEST_OF_A_KIND} of the jobs to learn from failed, or fewer did not"
# Of the slope of a recalibration.
SLOPE_SD = 0.1
NO_FEATURES = "nothing that is known at submission differs between the jobs to learn from"


@dataclass(frozen=True)
class Model:
    """encoder and fit: the logistic regression; shift, slope: of its recalibration, in log-odds; hours: stage 2.

    centre (p,): the mean of the design's columns in training, from which contributions are told; n, failures: of the
    jobs it was trained on; until_s: the last moment it knows of.
    """

    encoder: Encoder
    fit: Fit
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
        return expit(self.shift + self.slope * design.dot(self.fit.coefficients))

    def contributions(self, design: Design, part_of: Callable[[Term], Any]) -> tuple[list[Any], np.ndarray]:
        """(parts, (n, parts)): what each adds to the log-odds of a job, against the mean of the training data.

        part_of: of what a term is a part.
        """
        of_terms = [part_of(term) for term in self.encoder.terms]
        parts = list(dict.fromkeys(of_terms))
        weights = np.zeros((design.width, len(parts)))
        for place, part in enumerate(of_terms, start=1):
            weights[place, parts.index(part)] = self.slope * self.fit.coefficients[place]
        return parts, design.dot(weights) - self.centre @ weights

    def to_json(self) -> dict[str, Any]:
        about = {
            "digest": self.encoder.digest,
            "features": self.encoder.to_json(),
            "terms": [f"{term.feature}: {term.name}" for term in self.encoder.terms],
            "coefficients": self.fit.coefficients.tolist(),
            "information": self.fit.information.tolist(),
            "converged": self.fit.converged,
            "recalibration": {"shift": self.shift, "slope": self.slope},
            "centre": self.centre.tolist(),
            "trained_on": {"jobs": self.n, "failures": self.failures, "until_s": self.until_s},
            "hours": None,
        }
        if self.hours is not None:
            about["hours"] = {
                "coefficients": self.hours.coefficients.tolist(),
                "sigma": self.hours.sigma,
                "horizon_h": self.hours.horizon,
                "failures": self.hours.failures,
                "censored": self.hours.censored,
                "converged": self.hours.converged,
            }
        return about

    @classmethod
    def from_json(cls, said: Mapping[str, Any], features: Sequence[Feature]) -> Model:
        hours, on, again = said["hours"], said["trained_on"], said["recalibration"]
        return cls(
            encoder=Encoder.from_json(said["features"], features),
            fit=Fit(np.array(said["coefficients"]), np.array(said["information"]), said["converged"]),
            shift=again["shift"],
            slope=again["slope"],
            hours=hours
            and Hours(
                np.array(hours["coefficients"]),
                hours["sigma"],
                hours["horizon_h"],
                hours["failures"],
                hours["censored"],
                hours["converged"],
            ),
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


def train(
    jobs: Population,
    known: Submitted,
    features: Sequence[Feature],
    learn: np.ndarray,
    recalibrate: np.ndarray,
    until_s: int,
    prior: Prior | None = None,
    encoder: Encoder | None = None,
    with_hours: bool = True,
) -> Model | str:
    """The model of the jobs in `learn`, recalibrated on those in `recalibrate`: see `Lesson.of` and `trained`."""
    return trained(Lesson.of(jobs, known, learn, recalibrate, until_s, with_hours), features, prior, encoder)


def trained(
    lesson: Lesson, features: Sequence[Feature], prior: Prior | None = None, encoder: Encoder | None = None
) -> Model | str:
    """The model of a lesson; a reason where there can be none. prior, encoder: of a warm start.

    Stage 2 learns from those of the told jobs whose probability is at or above the share that failed, and from those
    that still ran.
    """
    failed = lesson.failed[lesson.learn]
    if reason := why_not(failed):
        return reason
    encoder, design = _learnt(lesson, features, encoder)
    if design.width == 1:
        return NO_FEATURES
    found = fit(design, failed, prior)
    model = Model(
        encoder=encoder,
        fit=found,
        shift=0.0,
        slope=1.0,
        hours=None,
        centre=_mean_row(design),
        n=len(failed),
        failures=int(failed.sum()),
        until_s=lesson.until_s,
    )
    again = lesson.again
    model = recalibrated(model, encoder.design(lesson.known.take(again)), lesson.failed[again])
    return model if lesson.hours is None else _with_hours(model, lesson, lesson.hours)


def _learnt(lesson: Lesson, features: Sequence[Feature], encoder: Encoder | None) -> tuple[Encoder, Design]:
    """The encoder, made of the jobs that are learnt from where it is not given, and their design."""
    part = lesson.known.take(lesson.learn)
    encoder = encoder or Encoder.fit(features, part)
    return encoder, encoder.design(part)


def recalibrated(model: Model, design: Design, failed: np.ndarray) -> Model:
    """The model with its log-odds shifted and stretched to what became of later jobs."""
    shift, slope = platt(design.dot(model.fit.coefficients), failed)
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
        level = float(y @ line - np.logaddexp(0, line).sum()) - precision * away**2 / 2
        curvature = np.array([[-float(w.sum()), cross], [cross, -float(w @ eta**2) - precision]])
        return level, np.array([residual.sum(), residual @ eta - precision * away]), curvature

    (shift, slope), converged = ascend(likelihood, np.array([0.0, 1.0]))
    return (float(shift), float(slope)) if converged and slope > 0 else (0.0, 1.0)


def _with_hours(model: Model, lesson: Lesson, hours: np.ndarray) -> Model:
    rows = lesson.rows
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

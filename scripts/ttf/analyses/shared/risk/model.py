"""Train a failure-risk model, recalibrate it on later jobs, write and read it as JSON, and score jobs with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from ttf.analyses.shared.risk import LOGISTIC, NESTED
from ttf.analyses.shared.risk.encoder import Encoder, Term
from ttf.analyses.shared.risk.features import HISTORY, Feature, JobFeatures
from ttf.analyses.shared.risk.training_jobs import NEVER, Population
from ttf.stats.predictions import SCORED
from ttf.stats.regression.censored_lognormal import Hours, fit_hours
from ttf.stats.regression.design import Design
from ttf.stats.regression.logistic import Fit, Prior, fit, fit_coefficients

# Fewest jobs that ended, and fewest failures and non-failures, for a meaningful score.
FEWEST_JOBS, FEWEST_PER_OUTCOME = 200, 20
TOO_FEW = f"fewer than {FEWEST_JOBS} jobs had ended to learn from"
ONE_KIND = f"fewer than {FEWEST_PER_OUTCOME} of the jobs to learn from failed, or fewer did not"
# Prior standard deviation of the recalibration slope.
SLOPE_SD = 0.1
NO_FEATURES = "nothing that is known at submission differs between the jobs to learn from"
NO_HISTORY = "no history of earlier failures orders the jobs to learn from"
# Candidates are trained on this share of the training jobs and compared on the rest, the latest. Over 525 simulated
# origins this share gave the largest mean PR-AUC of 0.5, 0.6, 0.7 and 0.8.
EARLY_SHARE = 0.6


@dataclass(frozen=True)
class Model:
    """encoder, fit: the logistic regression, from which a later model is warm-started; kind: NESTED or LOGISTIC.

    weights (p,): coefficients of the score, either those of `fit` or of history alone; shift, slope: recalibration in
    log-odds; hours: stage 2; centre (p,): column means of the training design, the baseline of contributions;
    n, failures: training jobs and failures among them; until_s: end of the data the model knows.
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
        """Share of the training jobs that failed."""
        return self.failures / self.n

    def probability(self, design: Design) -> np.ndarray:
        """Return the recalibrated probability of failure (n,)."""
        return expit(self.shift + self.slope * design.dot(self.weights))

    @property
    def scoring_features(self) -> list[Feature]:
        """Features with a non-zero weight in the score; the others serve only stage 2."""
        names = {term.feature for term, weight in zip(self.encoder.terms, self.weights[1:], strict=True) if weight}
        return [feature for feature in self.encoder.features if feature.name in names]

    def contributions(self, design: Design, group_of_term: Callable[[Term], Any]) -> tuple[list[Any], np.ndarray]:
        """Return (groups of terms, what each adds to a job's log-odds (n, groups), relative to the training mean)."""
        group_by_column = [group_of_term(term) for term in self.encoder.terms]
        groups = list(dict.fromkeys(group_by_column))
        weights = np.zeros((design.width, len(groups)))
        for column, group in enumerate(group_by_column, start=1):
            weights[column, groups.index(group)] = self.slope * self.weights[column]
        return groups, design.dot(weights) - self.centre @ weights

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of a model, for `from_json`."""
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
    def from_json(cls, document: Mapping[str, Any], features: Sequence[Feature]) -> Model:
        """Return the model that `to_json` wrote; features: those in the document."""
        hours, trained_on, recalibration = document["hours"], document["trained_on"], document["recalibration"]
        return cls(
            encoder=Encoder.from_json(document["features"], features),
            fit=Fit(np.array(document["coefficients"]), np.array(document["information"]), document["converged"]),
            kind=document["kind"],
            weights=np.array(document["weights"]),
            shift=recalibration["shift"],
            slope=recalibration["slope"],
            hours=hours and Hours(**hours | {"coefficients": np.array(hours["coefficients"])}),
            centre=np.array(document["centre"]),
            n=trained_on["jobs"],
            failures=trained_on["failures"],
            until_s=trained_on["until_s"],
        )


def reason_untrainable(failed: np.ndarray) -> str | None:
    """Return why no model can be trained on jobs with these outcomes; None if one can."""
    if len(failed) < FEWEST_JOBS:
        return TOO_FEW
    failures = int(failed.sum())
    return ONE_KIND if min(failures, len(failed) - failures) < FEWEST_PER_OUTCOME else None


@dataclass(frozen=True)
class TrainingData:
    """All that training reads.

    job_features: of all n jobs; is_training, is_calibration: (n,) boolean masks; failed: failures among these jobs;
    running: jobs that still ran at `until_s`, used in stage 2; rows: row indices of the jobs used, ascending, running
    jobs last; hours: run time of `rows` as observed by then, None for a model without stage 2.
    """

    job_features: JobFeatures
    is_training: np.ndarray
    is_calibration: np.ndarray
    failed: np.ndarray
    running: np.ndarray
    rows: np.ndarray
    hours: np.ndarray | None
    until_s: int

    @classmethod
    def select(
        cls,
        jobs: Population,
        job_features: JobFeatures,
        is_training: np.ndarray,
        is_calibration: np.ndarray,
        until_s: int,
        with_hours: bool = True,
    ) -> TrainingData:
        """Select from `jobs` and their features, in the same order; both masks hold only jobs ended by `until_s`."""
        is_used, hours = is_training | is_calibration, None
        running = np.zeros(len(jobs), dtype=bool)
        if with_hours:
            # A job whose end time is unrecorded may or may not have run on: exclude it.
            runs_later = jobs.running | ((jobs.ended_s >= until_s) & (jobs.ended_s < NEVER))
            running = runs_later & (jobs.started_s < until_s) & ~is_used
        rows = np.concatenate([np.flatnonzero(is_used), np.flatnonzero(running)])
        if with_hours:
            # For jobs that ran at until_s, only the hours observed by then.
            hours = np.where(running[rows], (until_s - jobs.started_s[rows]) / 3600, jobs.hours[rows])
        return cls(job_features, is_training, is_calibration, jobs.failed & is_used, running, rows, hours, int(until_s))


def train_model(
    data: TrainingData,
    features: Sequence[Feature],
    prior: Prior | None = None,
    encoder: Encoder | None = None,
    kind: str | None = None,
) -> Model | str:
    """Train the model that serves, including stage 2; return a reason if none can be trained.

    prior, encoder: for a warm start; kind: the kind of model; default: choose it by `choose_kind`.
    """
    trained = train_candidates(data, features, prior, encoder, kind)
    if isinstance(trained, str):
        return trained
    models, design = trained
    kind = kind or choose_kind(data, models, design, prior)
    return add_hours(models[kind], data, design) if kind in models else NO_HISTORY


def train_candidates(
    data: TrainingData,
    features: Sequence[Feature],
    prior: Prior | None = None,
    encoder: Encoder | None = None,
    kind: str | None = None,
) -> tuple[dict[str, Model], Design] | str:
    """Train the candidates by kind, recalibrated and without stage 2; return a reason if none can be trained.

    prior, encoder: for a warm start; kind: the only kind of interest, if any.

    Returns
    -------
    (models by kind, the design of `data.rows`), or the reason
    """
    failed = data.failed[data.is_training]
    if reason := reason_untrainable(failed):
        return reason
    encoder = encoder or Encoder.fit(features, data.job_features.take(data.is_training))
    all_rows = encoder.design(data.job_features, data.rows)
    if all_rows.width == 1:
        return NO_FEATURES
    design, calibration_design = (all_rows.take(mask[data.rows]) for mask in (data.is_training, data.is_calibration))
    regression = fit(design, failed, prior)
    model = Model(
        encoder=encoder,
        fit=regression,
        kind=LOGISTIC,
        weights=regression.coefficients,
        shift=0.0,
        slope=1.0,
        hours=None,
        centre=design.sums(np.ones(len(design))) / len(design),
        n=len(failed),
        failures=int(failed.sum()),
        until_s=data.until_s,
    )
    candidates = [model]
    if kind != LOGISTIC and (weights := fit_history_weights(encoder, design, failed)) is not None:
        candidates.insert(0, replace(model, kind=NESTED, weights=weights))
    failed = data.failed[data.is_calibration]
    return {model.kind: recalibrate(model, calibration_design, failed) for model in candidates}, all_rows


def fit_history_weights(encoder: Encoder, design: Design, failed: np.ndarray) -> np.ndarray | None:
    """Fit the weights (p,) of history alone: an intercept, and one weight shared by all levels of the first history.

    The levels sum to the log-odds of the failure rate at the finest level relative to that of all jobs. None without a
    history, or if a higher rate is not associated with failure.
    """
    history = next((feature.name for feature in encoder.features if feature.kind == HISTORY), None)
    weights = np.array([0.0, *(float(term.feature == history) for term in encoder.terms)])
    if not weights.any():
        return None
    shift, slope = fit_platt(design.dot(weights), failed)
    return None if (shift, slope) == (0, 1) else np.array([shift, *(slope * weights[1:])])


def choose_kind(data: TrainingData, models: Mapping[str, Model], design: Design, prior: Prior | None = None) -> str:
    """Choose the regression if it beats history alone in both PR-AUC and log-loss, else history.

    Both are trained on the earlier training jobs and compared on the later ones. With too few jobs, history serves.
    design: of `data.rows`.
    """
    if NESTED not in models:
        return LOGISTIC
    rows = data.rows[~data.running[data.rows]]
    n_early = int(EARLY_SHARE * len(rows))
    failed, late_failed = np.split(data.failed[rows], [n_early])
    if reason_untrainable(failed) or reason_untrainable(late_failed):
        return NESTED
    design, late_design = design.take(slice(n_early)), design.take(slice(n_early, len(rows)))
    weights = fit_history_weights(models[LOGISTIC].encoder, design, failed)
    if weights is None:
        return LOGISTIC
    coefficients, _ = fit_coefficients(design, failed, prior or Prior.vague(design.width))
    probabilities = (expit(late_design.dot(values)) for values in (weights, coefficients))
    history, regression = (
        [SCORED[name](late_failed, p).score for name in ("average_precision", "log_loss")] for p in probabilities
    )
    return LOGISTIC if regression[0] > history[0] and regression[1] < history[1] else NESTED


def recalibrate(model: Model, design: Design, failed: np.ndarray) -> Model:
    """Return the model with shift and slope fitted to the outcomes of later jobs."""
    shift, slope = fit_platt(design.dot(model.weights), failed)
    return replace(model, shift=shift, slope=slope)


def fit_platt(eta: np.ndarray, failed: np.ndarray) -> tuple[float, float]:
    """Fit (shift, slope) that recalibrate log-odds `eta` (n,) to the outcomes `failed` (n,), by Platt scaling (1999).

    The slope has a normal prior about 1 with standard deviation SLOPE_SD: with a few hundred jobs of a few users,
    random variation in the slope exceeds the model's error. Return (0, 1), which changes nothing, if there are too few
    jobs or failures do not increase with the log-odds.
    """
    if reason_untrainable(failed):
        return 0.0, 1.0
    prior = Prior(np.array([0.0, 1.0]), np.diag([0, SLOPE_SD**-2]))
    (shift, slope), converged = fit_coefficients(Design(eta[:, None], ()), failed, prior)
    return (float(shift), float(slope)) if converged and slope > 0 else (0.0, 1.0)


def add_hours(model: Model, data: TrainingData, design: Design) -> Model:
    """Return the model with stage 2 fitted, if the training data have hours. design: of `data.rows`.

    Stage 2 uses jobs at risk: those whose probability of failure is at least the base rate, including running jobs.
    """
    if data.hours is None:
        return model
    probability = model.probability(design)
    failed, running = data.failed[data.rows], data.running[data.rows]
    is_at_risk = probability >= model.base_rate
    mask = is_at_risk & (failed | running)
    other_hours = data.hours[is_at_risk & ~mask]
    at_risk = data.hours[mask], failed[mask], running[mask], probability[mask]
    return replace(model, hours=fit_hours(design.take(mask), *at_risk, other_hours))


def log_odds(rate: np.ndarray) -> np.ndarray:
    return logit(np.clip(rate, 1e-12, 1 - 1e-12))

"""Parametric lifetimes under right-censoring, by maximum likelihood: exponential and Weibull."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.optimize import brentq

from ttf.stats.strata import NO_LIFE, Times, times_by_stratum

# A life of 0 whole seconds lasted some part of one; a density at exactly 0 s is 0 or infinite for every shape
# but 1, so such lives stand at the middle of their second.
ZERO_STANDS_FOR_S = 0.5

MODEL_SCHEMA = {
    "event": pl.String,
    "stratum_by": pl.String,
    "stratum": pl.String,
    "model": pl.String,
    "n": pl.Int64,
    "events": pl.Int64,
    "exposure_s": pl.Int64,
    "shape": pl.Float64,
    "shape_se": pl.Float64,
    "scale_s": pl.Float64,
    "scale_se_s": pl.Float64,
    "mu_log_s": pl.Float64,
    "mu_log_se": pl.Float64,
    "sigma": pl.Float64,
    "sigma_se": pl.Float64,
    "mean_s": pl.Float64,
    "median_s": pl.Float64,
    "loglik": pl.Float64,
    "aic": pl.Float64,
    "bic": pl.Float64,
    "converged": pl.Boolean,
    "best": pl.Boolean,
    "reason": pl.String,
}


@dataclass(frozen=True)
class Sample:
    """One stratum's lives by distinct duration, ascending, as float arrays of one length.

    seconds: the durations, zeros moved; ended: lives that lasted as long; events: those of them ended by the
    event.
    """

    seconds: np.ndarray
    ended: np.ndarray
    events: np.ndarray

    @classmethod
    def of(cls, times: Times) -> "Sample":
        seconds = np.where(times.seconds == 0, ZERO_STANDS_FOR_S, times.seconds.astype(np.float64))
        return cls(seconds, times.ended.astype(np.float64), times.events.astype(np.float64))

    @property
    def total_events(self) -> float:
        return float(self.events.sum())


class CannotFit(Exception):
    """A model has no estimate on these lives; the message is the table's reason."""


def lifetime_models(lives: pl.DataFrame, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """Every model of `MODELS` fitted to every stratum, a row each.

    lives: duration_s (Int64 s; null is left out), event (any other, or null, censors), a column per
    stratification (`all` needs none).

    Estimates are of maximum likelihood under right-censoring, standard errors from the observed information.
    exponential: scale_s = exposure / events. weibull: survival exp(-(t / scale_s)^shape), so shape < 1 is a
    falling hazard (Kalbfleisch & Prentice 1980, chapter 3). A parameter the model does not have is blank.
    loglik is of the continuous density in seconds; aic = 2p - 2 loglik, bic = p ln(n) - 2 loglik with n
    lives. Durations of 0 s stand at 0.5 s in the fits; exposure_s is the exact sum of the durations.
    best: the lowest aic among the converged models of the stratum (the simpler on a tie). A model that
    cannot be fitted is blank and not converged, with a reason.
    Raises ValueError when a stratification has no column or a duration is negative.
    """
    rows = []
    for stratum_by in strata:
        for stratum, times in times_by_stratum(lives, event, stratum_by):
            names = {"event": event, "stratum_by": stratum_by, "stratum": stratum}
            rows.extend(names | fit for fit in _fits(times))
    return pl.DataFrame([{name: row.get(name) for name in MODEL_SCHEMA} for row in rows], schema=MODEL_SCHEMA)


def _fits(times: Times) -> list[dict]:
    counts = {"n": times.lives, "events": times.failures, "exposure_s": times.exposure_s}
    sample = Sample.of(times)
    fits = []
    for name, (parameters, fit_model) in MODELS.items():
        fit = {"model": name, "converged": False, "best": False} | counts
        try:
            if times.lives == 0:
                raise CannotFit(NO_LIFE)
            if times.failures == 0:
                raise CannotFit("no events: every life is censored")
            fit |= fit_model(sample)
        except CannotFit as reason:
            fit["reason"] = str(reason)
        else:
            fit["aic"] = 2 * parameters - 2 * fit["loglik"]
            fit["bic"] = parameters * math.log(times.lives) - 2 * fit["loglik"]
        fits.append(fit)
    if converged := [fit for fit in fits if fit["converged"]]:
        min(converged, key=lambda fit: fit["aic"])["best"] = True
    return fits


def _exponential(sample: Sample) -> dict:
    events = sample.total_events
    scale = float((sample.seconds * sample.ended).sum()) / events
    return {
        "scale_s": scale,
        "scale_se_s": scale / math.sqrt(events),
        "mean_s": scale,
        "median_s": scale * math.log(2),
        "loglik": -events * (math.log(scale) + 1),
        "converged": True,
    }


def _weibull(sample: Sample) -> dict:
    if np.count_nonzero(sample.events) < 2:
        raise CannotFit("the events are not at two distinct times at least: no shape")
    events = sample.total_events
    # In logarithms relative to the longest life every power is at most 1: nothing overflows.
    longest = float(sample.seconds[-1])
    logs = np.log(sample.seconds / longest)
    event_logs = float((sample.events * logs).sum())

    def profile_score(shape: float) -> float:
        # The derivative of the profile likelihood in the shape, over -events: it rises with the shape, from
        # minus infinity to minus the events' mean log, which is positive as not all events are at the end.
        powers = sample.ended * np.exp(shape * logs)
        return float((powers * logs).sum()) / float(powers.sum()) - 1 / shape - event_logs / events

    shape, converged = _root(profile_score)
    powers = sample.ended * np.exp(shape * logs)
    log_ratio = math.log(float(powers.sum()) / events) / shape  # of the scale to the longest life
    if log_ratio > 600:
        raise CannotFit("the scale is too large for a number")
    scale = longest * math.exp(log_ratio)

    # The observed information of (shape, scale). At the maximum the cumulative hazard sums to the events.
    relative = logs - log_ratio
    hazards = powers * math.exp(-shape * log_ratio)
    first = float((hazards * relative).sum())
    second = float((hazards * relative * relative).sum())
    info_shape = events / shape**2 + second
    info_scale = events * shape**2  # times scale^-2
    info_both = -shape * first  # times scale^-1
    determinant = info_shape * info_scale - info_both**2

    loglik = (
        events * (math.log(shape) - math.log(scale))
        + (shape - 1) * (event_logs - events * log_ratio)
        - float(hazards.sum())
    )
    fit = {
        "shape": shape,
        "shape_se": math.sqrt(info_scale / determinant),
        "scale_s": scale,
        "scale_se_s": scale * math.sqrt(info_shape / determinant),
        "median_s": scale * math.log(2) ** (1 / shape),
        "loglik": loglik,
        "converged": converged,
    }
    # The mean grows without bound as the shape falls; a double ends at e^709.
    log_mean = math.log(scale) + math.lgamma(1 + 1 / shape)
    if log_mean < 700:
        fit["mean_s"] = scale * math.gamma(1 + 1 / shape)
    else:
        fit["reason"] = "the mean of so flat a Weibull is too large for a number"
    if not converged:
        fit["reason"] = "the shape's equation did not converge"
    return fit


def _root(rising: Callable[[float], float]) -> tuple[float, bool]:
    """The zero of a function that rises from below 0 to above it on the positive numbers, to rounding."""
    low = high = 1.0
    while rising(low) > 0:
        low /= 2
    while rising(high) < 0:
        high *= 2
    if low == high:
        return low, True
    root, outcome = brentq(rising, low, high, xtol=1e-15, rtol=1e-14, maxiter=200, full_output=True, disp=False)
    return root, bool(outcome.converged)


# Name -> (number of parameters, fit), simplest first. A model takes a sample with at least one event and
# returns its columns of the table, `loglik` and `converged` among them, or raises CannotFit.
MODELS: dict[str, tuple[int, Callable[[Sample], dict]]] = {
    "exponential": (1, _exponential),
    "weibull": (2, _weibull),
}

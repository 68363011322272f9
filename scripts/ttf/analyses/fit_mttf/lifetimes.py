"""Parametric lifetimes under right-censoring by maximum likelihood: exponential, Weibull, lognormal, gamma."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from scipy.special import erfcx, gammainc, gammaincc, gammaincinv, log_ndtr, ndtri

from ttf.analyses.fit_mttf import LIFETIME_MODELS
from ttf.analyses.fit_mttf.lifetime_sample import CannotFit, Points, Sample
from ttf.stats.newton import ascend
from ttf.stats.strata import NO_LIFE, Lives, Times, times_by_stratum

# A mean or a median beyond so many times the longest duration is the model's tail alone: nobody has seen its like.
FARTHEST = 1_000
# A double ends at e^709.
LARGEST_LOG = 600
NO_SCALE = "the scale is too large for a number"
TOO_ALIKE = "the events are too alike for a gamma: it would be a normal distribution"

HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
# Of the panels that sums over many censored lives are interpolated on, on the log scale: the first to be tried.
PANEL_WIDTH = 0.5
# A condensed log-likelihood may be off by this share of itself.
CONDENSED_ERROR = 1e-12

# Above, a gamma is a normal distribution to 1 in 10,000 and its tail cannot be had in full precision.
LARGEST_GAMMA_SHAPE = 1e8
_STEP = 3e-3  # of the differences in the log of the shape
_FIRST = np.array([1, -8, 0, 8, -1]) / (12 * _STEP)
_SECOND = np.array([-1, 16, -30, 16, -1]) / (12 * _STEP**2)

# (parameters) -> log-likelihood, its gradient, its matrix of second derivatives, and the error of a condensed sum.
Likelihood = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray, float]]


def lifetime_models(lives: Lives, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """Every model of `MODELS` fitted to every stratum, a row each. lives, errors: see `CountedLives`.

    Estimates are of maximum likelihood under right-censoring, standard errors from the observed information.
    exponential: scale_s = exposure / events. weibull: survival exp(-(t / scale_s)^shape), so shape < 1 is a
    falling hazard (Kalbfleisch & Prentice 1980, chapter 3). lognormal: log seconds are normal with mean
    mu_log_s and standard deviation sigma. gamma: density t^(shape - 1) e^(-t / scale_s) up to a factor. A
    parameter the model does not have is blank.
    loglik is of the continuous density in seconds; aic = 2p - 2 loglik, bic = p ln(n) - 2 loglik with n
    lives. Durations of 0 s stand at 0.5 s in the fits; exposure_s is the exact sum of the durations.
    mean_s, median_s: blank, with a reason, beyond FARTHEST times the longest duration; not so the exponential's, whose
    mean is exposure / events whatever the tail. best: the lowest aic among the converged models of the stratum (the
    simpler on a tie). A model that cannot be fitted is blank and not converged, with a reason.
    """
    rows = []
    for stratum_by in strata:
        for stratum, times in times_by_stratum(lives, event, stratum_by):
            names = {"event": event, "stratum_by": stratum_by, "stratum": stratum}
            rows.extend(names | fit for fit in _fits(times))
    return LIFETIME_MODELS.frame(rows)


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
            if name != "exponential":
                fit |= _out_of_sight(fit, FARTHEST * float(sample.seconds[-1]))
        except CannotFit as reason:
            fit["reason"] = str(reason)
        else:
            fit["aic"] = 2 * parameters - 2 * fit["loglik"]
            fit["bic"] = parameters * math.log(times.lives) - 2 * fit["loglik"]
        fits.append(fit)
    if converged := [fit for fit in fits if fit["converged"]]:
        min(converged, key=lambda fit: fit["aic"])["best"] = True
    return fits


def _out_of_sight(fit: dict, farthest_s: float) -> dict:
    """The mean and the median as blanks where they lie farther, with the reason."""
    far = [name for name in ("mean_s", "median_s") if (fit.get(name) or 0) > farthest_s]
    if not far:
        return {}
    named = " and ".join(name.removesuffix("_s") for name in far)
    reason = f"the {named} would be beyond {FARTHEST:,} times the longest duration"
    return dict.fromkeys(far) | {"reason": "; ".join(filter(None, [fit.get("reason"), reason]))}


def exponential(sample: Sample) -> dict:
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


def weibull(sample: Sample) -> dict:
    shape, log_ratio, converged = sample.weibull
    if log_ratio > LARGEST_LOG:
        raise CannotFit(NO_SCALE)
    events = sample.total_events
    longest = float(sample.seconds[-1])
    scale = longest * math.exp(log_ratio)
    logs = np.log(sample.seconds / longest)
    event_logs = float((sample.events * logs).sum())

    # The observed information of (shape, scale). At the maximum the cumulative hazard sums to the events.
    relative = logs - log_ratio
    hazards = sample.ended * np.exp(shape * relative)
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
    if not converged:
        fit["reason"] = "the shape's equation did not converge"
    # The mean grows without bound as the shape falls.
    return _with_mean(fit, math.log(scale) + math.lgamma(1 + 1 / shape), "Weibull")


def lognormal(sample: Sample) -> dict:
    """The search is in a and log(1 / sigma), with a how many sigma the events' mean log time lies above mu."""
    _, shape, hazard = _near_the_events(sample)
    start_a = float(ndtri(-math.expm1(-hazard)))
    density = math.exp(-(start_a**2) / 2 - HALF_LOG_2_PI)
    start = np.array([start_a, math.log(shape * hazard * math.exp(-hazard) / density)])
    (a, log_inverse), loglik, information, converged = _maximum(sample, start, _lognormal_likelihood)
    sigma = math.exp(-log_inverse)
    mu = sample.centre - a * sigma
    if mu > LARGEST_LOG:
        raise CannotFit(NO_SCALE)
    covariance = np.linalg.inv(information)
    to_mu = np.array([-sigma, a * sigma])
    fit = {
        "mu_log_s": mu,
        "mu_log_se": math.sqrt(to_mu @ covariance @ to_mu),
        "sigma": sigma,
        "sigma_se": sigma * math.sqrt(covariance[1, 1]),
        "median_s": math.exp(mu),
        "loglik": loglik,
        "converged": converged,
    }
    return _with_mean(fit, mu + sigma**2 / 2, "lognormal")


def gamma(sample: Sample) -> dict:
    """The search is in the logs of the shape and of the mean, which are nearly independent (Cox & Reid 1987)."""
    scale, shape, _ = _near_the_events(sample)
    # With the Weibull's hazard at short times; or with its mean, and the variance of the logs.
    start_shape = max(shape, 6 * (shape / math.pi) ** 2)
    log_mean = scale + (math.log(shape) - math.lgamma(shape + 1) / shape if shape < 1 else math.lgamma(1 + 1 / shape))
    if start_shape > LARGEST_GAMMA_SHAPE:
        raise CannotFit(TOO_ALIKE)
    start = np.array([math.log(start_shape), log_mean - sample.centre])
    (log_shape, log_mean), loglik, information, converged = _maximum(sample, start, _gamma_likelihood)
    log_mean += sample.centre
    log_scale = log_mean - log_shape
    if log_scale > LARGEST_LOG:
        raise CannotFit(NO_SCALE)
    shape, scale = math.exp(log_shape), math.exp(log_scale)
    covariance = np.linalg.inv(information)
    return {
        "shape": shape,
        "shape_se": shape * math.sqrt(covariance[0, 0]),
        "scale_s": scale,
        "scale_se_s": scale * math.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]),
        "mean_s": shape * scale,
        "median_s": scale * float(gammaincinv(shape, 0.5)),
        "loglik": loglik,
        "converged": converged,
    }


def _with_mean(fit: dict, log_mean: float, model: str) -> dict:
    if log_mean < LARGEST_LOG:
        return fit | {"mean_s": math.exp(log_mean)}
    return {"reason": f"the mean of so wide a {model} is too large for a number"} | fit


def _near_the_events(sample: Sample) -> tuple[float, float, float]:
    """The likeliest Weibull: log scale (s), shape, and its cumulative hazard at the events' mean log time."""
    shape, log_ratio, _ = sample.weibull
    log_scale = math.log(sample.seconds[-1]) + log_ratio
    return log_scale, shape, math.exp(shape * (sample.centre - log_scale))


def _maximum(
    sample: Sample, start: np.ndarray, likelihood_of: Callable[[Sample, Points], Likelihood]
) -> tuple[np.ndarray, float, np.ndarray, bool]:
    """(parameters, log-likelihood, observed information, converged) at the maximum.

    The sums over the censored lives are condensed, on narrower panels where they are not exact enough at the maximum.
    Raises CannotFit where the likelihood has no maximum in numbers.
    """
    width = PANEL_WIDTH
    while True:
        likelihood = likelihood_of(sample, sample.censored(width))
        with np.errstate(all="ignore"):  # a step that leads out of the numbers is taken back
            start, converged = ascend(likelihood, start)
            level, _, curvature, error = likelihood(start)
        information = -curvature
        if not (np.isfinite(information).all() and (np.linalg.eigvalsh(information) > 0).all()):
            raise CannotFit("the search found no maximum of the likelihood")
        # The models' densities are those of log times about the centre.
        loglik = level - sample.total_events * sample.centre
        if error <= CONDENSED_ERROR * max(abs(loglik), sample.total_events):
            return start, loglik, information, converged
        width /= 4


def _lognormal_likelihood(sample: Sample, points: Points) -> Likelihood:
    events, squares = sample.total_events, float((sample.events * sample.log_times**2).sum())

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
        a, log_inverse = point
        inverse = math.exp(log_inverse)
        stretched = inverse * points.log_times
        z = a + stretched
        survival = log_ndtr(-z)
        # The normal hazard, and its product with its excess over z: minus the second derivative of the log survival.
        hazard = math.sqrt(2 / math.pi) / erfcx(z / math.sqrt(2))
        bend = points.weights * hazard * (hazard - z)
        hazard *= points.weights
        level = events * (log_inverse - HALF_LOG_2_PI) - 0.5 * (events * a**2 + inverse**2 * squares)
        slope = [-events * a, events - inverse**2 * squares - float((hazard * stretched).sum())]
        slope[0] -= float(hazard.sum())
        both = -float((bend * stretched).sum())
        curvature = [
            [-events - float(bend.sum()), both],
            [both, -2 * inverse**2 * squares - float((bend * stretched**2 + hazard * stretched).sum())],
        ]
        level += float((points.weights * survival).sum())
        return level, np.array(slope), np.array(curvature), points.error(survival)

    return likelihood


def _gamma_likelihood(sample: Sample, points: Points) -> Likelihood:
    hit = sample.events > 0  # a life far beyond every event is none of the events' sums
    events = sample.total_events
    spread = float((sample.events[hit] * _excess(sample.log_times[hit])).sum())

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
        log_shape, log_mean = point
        if log_shape > math.log(LARGEST_GAMMA_SHAPE):
            return -math.inf, np.full(2, math.nan), np.full((2, 2), math.nan), 0.0
        shrunk = math.exp(-log_mean)
        # The sum over the events of e^v - 1 - v, with v the log of time over mean, and its derivatives.
        excess = shrunk * spread + events * float(_excess(np.array(-log_mean)))
        excess_slope = -shrunk * spread - events * math.expm1(-log_mean)
        over_mean = points.log_times - log_mean
        # Of the derivatives in the shape there is no closed form.
        levels, slopes = [], []
        for number in range(5):
            shape = math.exp(log_shape + (number - 2) * _STEP)
            survival = log_survival_of_gamma(shape, over_mean)
            hazard = np.exp(_log_peak(shape) - shape * _excess(over_mean) - survival)
            levels.append(events * _log_peak(shape) - shape * excess + float((points.weights * survival).sum()))
            slopes.append(-shape * excess_slope + float((points.weights * hazard).sum()))
            if number == 2:
                bend = hazard * (hazard - shape * np.expm1(over_mean))
                error = points.error(survival)
                bend_sum = -shape * shrunk * (spread + events) - float((points.weights * bend).sum())
        both = float(_FIRST @ slopes)
        slope = np.array([float(_FIRST @ levels), slopes[2]])
        return levels[2], slope, np.array([[float(_SECOND @ levels), both], [both, bend_sum]]), error

    return likelihood


def log_survival_of_gamma(shape: float, over_mean: np.ndarray) -> np.ndarray:
    """log Q(shape, shape * e^over_mean): the log survival of a gamma at times given as logs over its mean.

    Also far out, where Q itself is no number any more: there by its continued fraction (DLMF 8.9.2).
    """
    x = shape * np.exp(over_mean)
    early = over_mean < 0
    survival = np.empty(over_mean.shape)
    survival[early] = np.log1p(-gammainc(shape, x[early]))
    with np.errstate(divide="ignore"):
        survival[~early] = np.log(gammaincc(shape, x[~early]))
    far = ~early & (survival < -500)
    if far.any():
        density = _log_peak(shape) - shape * _excess(over_mean[far])
        survival[far] = density - np.log(_fraction(shape, x[far]))
    return survival


def _fraction(shape: float, x: np.ndarray) -> np.ndarray:
    """x + 1 - k - (1 - k) / (x + 3 - k - ...), with k the shape, by Lentz's method."""
    base = x + 1 - shape
    value, upper, lower = base, base, np.zeros_like(x)
    for number in range(1, 2_000):
        term, base = number * (shape - number), base + 2
        lower = 1 / (base + term * lower)
        upper = base + term / upper
        value = value * upper * lower
        if (np.abs(upper * lower - 1) < 1e-15).all():
            break
    return value


def _log_peak(shape: float) -> float:
    """k log k - k - log Gamma(k): the log of time * density of a gamma at its mean."""
    if shape < 30:
        return shape * math.log(shape) - shape - math.lgamma(shape)
    # By Stirling's series, since the terms above cancel.
    square = shape**-2
    correction = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / shape
    return 0.5 * math.log(shape) - HALF_LOG_2_PI - correction


def _excess(v: np.ndarray) -> np.ndarray:
    """e^v - 1 - v, also of small v."""
    series = v * v / 2 * (1 + v / 3 * (1 + v / 4 * (1 + v / 5 * (1 + v / 6))))
    return np.where(np.abs(v) < 0.01, series, np.expm1(v) - v)


# Name -> (number of parameters, fit), simplest first. A model takes a sample with at least one event and
# returns its columns of the table, `loglik` and `converged` among them, or raises CannotFit.
MODELS: dict[str, tuple[int, Callable[[Sample], dict]]] = {
    "exponential": (1, exponential),
    "weibull": (2, weibull),
    "lognormal": (2, lognormal),
    "gamma": (2, gamma),
}

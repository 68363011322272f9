"""Parametric lifetimes under right-censoring by maximum likelihood: exponential, Weibull, lognormal, gamma."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
import polars as pl
from scipy.special import erfcx, gammainc, gammaincc, gammaincinv, log_ndtr, ndtri

from ttf.analyses.time_to_failure.fit_mttf import LIFETIME_MODELS
from ttf.analyses.time_to_failure.fit_mttf.lifetime_sample import CannotFit, Points, Sample
from ttf.stats.basics.newton import ascend
from ttf.stats.durations.strata import NO_LIFE, Lives, Times, times_by_stratum

# A mean or a median beyond so many times the longest duration is the model's tail alone: nobody has seen its like.
FARTHEST = 1_000
# A double ends at e^709.
LARGEST_LOG = 600
NO_SCALE = "the scale is too large for a number"
NO_END = "the search for the maximum of the likelihood did not converge"
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

# The log density and the log survival at z, each with its first and second derivative.
Laws = tuple[tuple[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
Law = Callable[[np.ndarray], Laws]
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
    mu, sigma, mu_se, log_sigma_se, fit = _location_and_scale(sample, *_likeliest_weibull(sample))
    scale = math.exp(mu)
    fit |= {"shape": 1 / sigma, "shape_se": log_sigma_se / sigma, "scale_s": scale, "scale_se_s": scale * mu_se}
    # The mean grows without bound as the shape falls.
    return _with_mean(fit | {"median_s": scale * math.log(2) ** sigma}, mu + math.lgamma(1 + sigma), "Weibull")


def lognormal(sample: Sample) -> dict:
    _, shape, hazard = _near_the_events(sample)
    start_a = float(ndtri(-math.expm1(-hazard)))
    density = math.exp(-(start_a**2) / 2 - HALF_LOG_2_PI)
    start = np.array([start_a, math.log(shape * hazard * math.exp(-hazard) / density)])
    maximum = _maximum(sample, start, partial(_log_time_likelihood, _normal))
    mu, sigma, mu_se, log_sigma_se, fit = _location_and_scale(sample, *maximum)
    fit |= {"mu_log_s": mu, "mu_log_se": mu_se, "sigma": sigma, "sigma_se": sigma * log_sigma_se}
    return _with_mean(fit | {"median_s": math.exp(mu)}, mu + sigma**2 / 2, "lognormal")


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


@lru_cache(maxsize=1)
def _likeliest_weibull(sample: Sample) -> tuple[np.ndarray, float, np.ndarray, bool]:
    """`_maximum` of the Weibull, from the exponential; the searches of other models start there.

    Raises CannotFit where no life outlasts an event: the likelihood rises with the shape without end. Events at one
    time do have a shape, if lives outlast them.
    """
    if sample.events[-1] == sample.total_events:
        raise CannotFit("every event is at the longest duration: the shape has no finite estimate")
    start = np.array([sample.centre - math.log((sample.seconds * sample.ended).sum() / sample.total_events), 0.0])
    return _maximum(sample, start, partial(_log_time_likelihood, _smallest))


def _near_the_events(sample: Sample) -> tuple[float, float, float]:
    """The likeliest Weibull: log scale (s), shape, and its cumulative hazard at the events' mean log time."""
    (a, log_shape), *_ = _likeliest_weibull(sample)
    shape = math.exp(log_shape)
    return sample.centre - a / shape, shape, math.exp(a)


def _location_and_scale(
    sample: Sample, point: np.ndarray, loglik: float, information: np.ndarray, converged: bool
) -> tuple[float, float, float, float, dict]:
    """mu and sigma of log seconds, the errors of mu and of log sigma, and the cells that models share.

    point: a, how many sigma the events' mean log time lies above mu, and log(1 / sigma). Raises CannotFit where e^mu
    is no number.
    """
    a, sigma = point[0], math.exp(-point[1])
    mu = sample.centre - a * sigma
    if mu > LARGEST_LOG:
        raise CannotFit(NO_SCALE)
    covariance, to_mu = np.linalg.inv(information), np.array([-sigma, a * sigma])
    fit = {"loglik": loglik, "converged": converged} | ({} if converged else {"reason": NO_END})
    return mu, sigma, math.sqrt(to_mu @ covariance @ to_mu), math.sqrt(covariance[1, 1]), fit


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


def _log_time_likelihood(law: Law, sample: Sample, points: Points) -> Likelihood:
    """Of a law of z = a + log time / sigma, at the point of `_location_and_scale`."""
    has_events = sample.events > 0
    times = np.concatenate([sample.log_times[has_events], points.log_times])
    weights = np.concatenate([sample.events[has_events], points.weights])
    event_times = np.count_nonzero(has_events)

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
        stretched = math.exp(point[1]) * times
        z = point[0] + stretched
        density, survival = law(z[:event_times])[0], law(z[event_times:])[1]
        level, slope, bend = (np.concatenate(parts) * weights for parts in zip(density, survival, strict=True))
        both = float((bend * stretched).sum())
        gradient = np.array([slope.sum(), (slope * stretched).sum() + sample.total_events])
        curvature = np.array([[bend.sum(), both], [both, (bend * stretched**2 + slope * stretched).sum()]])
        return float(level.sum()) + sample.total_events * point[1], gradient, curvature, points.error(survival[0])

    return likelihood


def _smallest(z: np.ndarray) -> Laws:
    """Of the log of a Weibull: the smallest extreme value."""
    power = np.exp(z)
    return (z - power, 1 - power, -power), (-power, -power, -power)


def _normal(z: np.ndarray) -> Laws:
    # The hazard, and its product with its excess over z: minus the second derivative of the log survival.
    hazard = math.sqrt(2 / math.pi) / erfcx(z / math.sqrt(2))
    density = -0.5 * z**2 - HALF_LOG_2_PI, -z, np.full(z.shape, -1.0)
    return density, (log_ndtr(-z), -hazard, -hazard * (hazard - z))


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

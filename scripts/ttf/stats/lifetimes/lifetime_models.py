"""Maximum-likelihood fits of lifetime models with right-censoring: exponential, Weibull, lognormal, gamma."""

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy.special import erfcx, gammainc, gammaincc, gammaincinv, log_ndtr, ndtri

from ttf.stats.basics.newton import maximise
from ttf.stats.durations.strata import NO_DURATION, Times
from ttf.stats.lifetimes.lifetime_sample import CannotFit, Points, Sample

# A mean or median beyond this multiple of the longest duration is extrapolation of the model's tail.
FARTHEST = 1_000
# The largest double is about e^709.
LARGEST_LOG = 600
NO_SCALE = "the scale is too large for a number"
NO_END = "the search for the maximum of the likelihood did not converge"
TOO_ALIKE = "the events are too alike for a gamma: it would be a normal distribution"

HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
# Initial width, on the log scale, of the panels for sums over many censored durations.
PANEL_WIDTH = 0.5
# Largest relative error of a condensed log-likelihood.
CONDENSED_ERROR = 1e-12

# Above this shape a gamma is normal to 1 in 10,000, and its tail cannot be computed in full precision.
LARGEST_GAMMA_SHAPE = 1e8
_STEP = 3e-3  # of finite differences in the log of the shape
_FIRST = np.array([1, -8, 0, 8, -1]) / (12 * _STEP)
_SECOND = np.array([-1, 16, -30, 16, -1]) / (12 * _STEP**2)

# The log density and the log survival at z, each with its first and second derivative.
Laws = tuple[tuple[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
Law = Callable[[np.ndarray], Laws]
# (parameters) -> log-likelihood, gradient, matrix of second derivatives, and error of the condensed sum.
Likelihood = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray, float]]


def fit_models(times: Times) -> list[dict]:
    """Return columns of LIFETIME_MODELS for each model."""
    counts = {"n": times.durations, "events": times.failures, "exposure_s": times.exposure_s}
    sample = Sample.from_times(times)
    fits = []
    for name, (parameters, fit_model) in MODELS.items():
        fit: dict = {"model": name, "converged": False, "best": False} | counts
        try:
            if times.durations == 0:
                raise CannotFit(NO_DURATION)
            if times.failures == 0:
                raise CannotFit("no events: every duration is censored")
            fit |= fit_model(sample)
            if name != "exponential":
                fit |= _blank_extrapolated(fit, FARTHEST * float(sample.seconds[-1]))
        except CannotFit as reason:
            fit["reason"] = str(reason)
        else:
            fit["aic"] = 2 * parameters - 2 * fit["loglik"]
            fit["bic"] = parameters * math.log(times.durations) - 2 * fit["loglik"]
        fits.append(fit)
    if converged := [fit for fit in fits if fit["converged"]]:
        min(converged, key=lambda fit: fit["aic"])["best"] = True
    return fits


def _blank_extrapolated(fit: dict, limit_s: float) -> dict:
    """Return the mean and the median as blanks if they exceed the limit, with the reason."""
    names = [name for name in ("mean_s", "median_s") if (fit.get(name) or 0) > limit_s]
    if not names:
        return {}
    words = " and ".join(name.removesuffix("_s") for name in names)
    reason = f"the {words} would be beyond {FARTHEST:,} times the longest duration"
    return dict.fromkeys(names) | {"reason": "; ".join(filter(None, [fit.get("reason"), reason]))}


def fit_exponential(sample: Sample) -> dict:
    """Fit an exponential by maximum likelihood with right-censoring.

    Parameters
    ----------
    sample : durations in s, with at least one event

    Returns
    -------
    parameters with standard errors, mean_s, median_s, loglik and converged

    Raises
    ------
    CannotFit
        With the reason, if the likelihood has no finite maximum.

    Examples
    --------
    >>> sample = Sample(np.array([10.0, 20.0, 30.0]), np.ones(3), np.array([1.0, 1.0, 0.0]))
    >>> round(fit_exponential(sample)["scale_s"], 3)
    30.0
    """
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


def fit_weibull(sample: Sample) -> dict:
    """Fit a Weibull by maximum likelihood with right-censoring.

    Parameters
    ----------
    sample : durations in s, with at least one event

    Returns
    -------
    parameters with standard errors, mean_s, median_s, loglik and converged

    Raises
    ------
    CannotFit
        With the reason, if the likelihood has no finite maximum.

    Examples
    --------
    >>> sample = Sample(np.array([10.0, 20.0, 30.0]), np.ones(3), np.array([1.0, 1.0, 0.0]))
    >>> round(fit_weibull(sample)["shape"], 3)
    1.844
    """
    mu, sigma, mu_se, log_sigma_se, fit = _location_scale_cells(sample, *_maximise_weibull(sample))
    scale = math.exp(mu)
    fit |= {"shape": 1 / sigma, "shape_se": log_sigma_se / sigma, "scale_s": scale, "scale_se_s": scale * mu_se}
    # The mean is unbounded as the shape decreases.
    return _add_mean(fit | {"median_s": scale * math.log(2) ** sigma}, mu + math.lgamma(1 + sigma), "Weibull")


def fit_lognormal(sample: Sample) -> dict:
    """Fit a lognormal by maximum likelihood with right-censoring.

    Parameters
    ----------
    sample : durations in s, with at least one event

    Returns
    -------
    parameters with standard errors, mean_s, median_s, loglik and converged

    Raises
    ------
    CannotFit
        With the reason, if the likelihood has no finite maximum.

    Examples
    --------
    >>> sample = Sample(np.array([10.0, 20.0, 30.0]), np.ones(3), np.array([1.0, 1.0, 0.0]))
    >>> round(fit_lognormal(sample)["sigma"], 3)
    0.639
    """
    _, shape, hazard = _weibull_at_events(sample)
    start_a = float(ndtri(-math.expm1(-hazard)))
    density = math.exp(-(start_a**2) / 2 - HALF_LOG_2_PI)
    start = np.array([start_a, math.log(shape * hazard * math.exp(-hazard) / density)])
    maximum = _maximise(sample, start, partial(_log_time_likelihood, _standard_normal))
    mu, sigma, mu_se, log_sigma_se, fit = _location_scale_cells(sample, *maximum)
    fit |= {"mu_log_s": mu, "mu_log_se": mu_se, "sigma": sigma, "sigma_se": sigma * log_sigma_se}
    return _add_mean(fit | {"median_s": math.exp(mu)}, mu + sigma**2 / 2, "lognormal")


def fit_gamma(sample: Sample) -> dict:
    """Fit a gamma by maximum likelihood with right-censoring, in log shape and log mean, which are orthogonal.

    Parameters
    ----------
    sample : durations in s, with at least one event

    Returns
    -------
    shape, scale_s and their standard errors, mean_s, median_s, loglik and converged

    Raises
    ------
    CannotFit
        With the reason, if the likelihood has no finite maximum.

    References
    ----------
    Cox & Reid (1987), J. R. Stat. Soc. B 49

    Examples
    --------
    >>> sample = Sample(np.array([10.0, 20.0, 30.0]), np.ones(3), np.array([1.0, 1.0, 0.0]))
    >>> gamma_fit = fit_gamma(sample)
    >>> round(gamma_fit["shape"], 3), round(gamma_fit["mean_s"], 2)
    (3.02, 23.94)
    """
    scale, shape, _ = _weibull_at_events(sample)
    # Start at the Weibull's hazard at short times, or at its mean and the variance of the logs.
    start_shape = max(shape, 6 * (shape / math.pi) ** 2)
    log_mean = scale + (math.log(shape) - math.lgamma(shape + 1) / shape if shape < 1 else math.lgamma(1 + 1 / shape))
    if start_shape > LARGEST_GAMMA_SHAPE:
        raise CannotFit(TOO_ALIKE)
    start = np.array([math.log(start_shape), log_mean - sample.centre])
    (log_shape, log_mean), loglik, information, converged = _maximise(sample, start, _gamma_likelihood)
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


def _add_mean(fit: dict, log_mean: float, model: str) -> dict:
    """Return the fit with mean_s, or with a reason if the mean is too large for a number."""
    if log_mean < LARGEST_LOG:
        return fit | {"mean_s": math.exp(log_mean)}
    return {"reason": f"the mean of so wide a {model} is too large for a number"} | fit


@lru_cache(maxsize=1)
def _maximise_weibull(sample: Sample) -> tuple[np.ndarray, float, np.ndarray, bool]:
    """Return `_maximise` of the Weibull; searches of the other models start from it, and its own from the exponential.

    Raises CannotFit if no duration exceeds an event's: the likelihood then increases with the shape without bound.
    """
    if sample.events[-1] == sample.total_events:
        raise CannotFit("every event is at the longest duration: the shape has no finite estimate")
    start = np.array([sample.centre - math.log((sample.seconds * sample.ended).sum() / sample.total_events), 0.0])
    return _maximise(sample, start, partial(_log_time_likelihood, _smallest_extreme_value))


def _weibull_at_events(sample: Sample) -> tuple[float, float, float]:
    """Return log scale (s), shape and cumulative hazard at the events' mean log time of the fitted Weibull."""
    (a, log_shape), *_ = _maximise_weibull(sample)
    shape = math.exp(log_shape)
    return sample.centre - a / shape, shape, math.exp(a)


def _location_scale_cells(
    sample: Sample, point: np.ndarray, loglik: float, information: np.ndarray, converged: bool
) -> tuple[float, float, float, float, dict]:
    """Return mu and sigma of log seconds, the standard errors of mu and of log sigma, and cells shared by models.

    point: (a, log(1 / sigma)), where the events' mean log time is mu + a sigma. Raises CannotFit if e^mu overflows.
    """
    a, sigma = point[0], math.exp(-point[1])
    mu = sample.centre - a * sigma
    if mu > LARGEST_LOG:
        raise CannotFit(NO_SCALE)
    covariance, mu_gradient = np.linalg.inv(information), np.array([-sigma, a * sigma])
    fit = {"loglik": loglik, "converged": converged} | ({} if converged else {"reason": NO_END})
    return mu, sigma, math.sqrt(mu_gradient @ covariance @ mu_gradient), math.sqrt(covariance[1, 1]), fit


def _maximise(
    sample: Sample, start: np.ndarray, make_likelihood: Callable[[Sample, Points], Likelihood]
) -> tuple[np.ndarray, float, np.ndarray, bool]:
    """Return parameters, log-likelihood, observed information and convergence at the maximum.

    Sums over censored durations are condensed, on narrower panels if they are not exact enough at the maximum. Raises
    CannotFit if the likelihood has no finite maximum.
    """
    width = PANEL_WIDTH
    while True:
        likelihood = make_likelihood(sample, sample.censored_points(width))
        with np.errstate(all="ignore"):  # a step that overflows is rejected
            start, converged = maximise(likelihood, start)
            centred_loglik, _, curvature, error = likelihood(start)
        information = -curvature
        if not (np.isfinite(information).all() and (np.linalg.eigvalsh(information) > 0).all()):
            raise CannotFit("the search found no maximum of the likelihood")
        # The models' densities are of log times about the centre.
        loglik = centred_loglik - sample.total_events * sample.centre
        if error <= CONDENSED_ERROR * max(abs(loglik), sample.total_events):
            return start, loglik, information, converged
        width /= 4


def _log_time_likelihood(law: Law, sample: Sample, points: Points) -> Likelihood:
    """Return the likelihood of a law of z = a + log time / sigma, at the point of `_location_scale_cells`."""
    has_events = sample.events > 0
    times = np.concatenate([sample.log_times[has_events], points.log_times])
    weights = np.concatenate([sample.events[has_events], points.weights])
    n_event_times = np.count_nonzero(has_events)

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
        """Return log-likelihood, gradient, second derivatives and the error of the sum at a point."""
        scaled = math.exp(point[1]) * times
        z = point[0] + scaled
        density, survival = law(z[:n_event_times])[0], law(z[n_event_times:])[1]
        values, slopes, curvatures = (np.concatenate(parts) * weights for parts in zip(density, survival, strict=True))
        cross = float((curvatures * scaled).sum())
        gradient = np.array([slopes.sum(), (slopes * scaled).sum() + sample.total_events])
        curvature = np.array([[curvatures.sum(), cross], [cross, (curvatures * scaled**2 + slopes * scaled).sum()]])
        return float(values.sum()) + sample.total_events * point[1], gradient, curvature, points.error(survival[0])

    return likelihood


def _smallest_extreme_value(z: np.ndarray) -> Laws:
    """Return log density and log survival of the log of a Weibull variable, each with two derivatives."""
    power = np.exp(z)
    return (z - power, 1 - power, -power), (-power, -power, -power)


def _standard_normal(z: np.ndarray) -> Laws:
    """Return log density and log survival of a standard normal variable, each with two derivatives."""
    # hazard * (hazard - z) is minus the second derivative of the log survival.
    hazard = math.sqrt(2 / math.pi) / erfcx(z / math.sqrt(2))
    density = -0.5 * z**2 - HALF_LOG_2_PI, -z, np.full(z.shape, -1.0)
    return density, (log_ndtr(-z), -hazard, -hazard * (hazard - z))


def _gamma_likelihood(sample: Sample, points: Points) -> Likelihood:
    has_events = sample.events > 0  # a duration far beyond every event would overflow in their sums
    events = sample.total_events
    excess_sum = float((sample.events[has_events] * _exp_excess(sample.log_times[has_events])).sum())

    def likelihood(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
        """Return log-likelihood, gradient, second derivatives and the error of the sum at a point."""
        log_shape, log_mean = point
        if log_shape > math.log(LARGEST_GAMMA_SHAPE):
            return -math.inf, np.full(2, math.nan), np.full((2, 2), math.nan), 0.0
        inverse_mean = math.exp(-log_mean)
        # Sum over the events of e^v - 1 - v, with v the log of time over mean, and its derivatives.
        excess = inverse_mean * excess_sum + events * float(_exp_excess(np.array(-log_mean)))
        excess_slope = -inverse_mean * excess_sum - events * math.expm1(-log_mean)
        log_ratio = points.log_times - log_mean
        # The derivatives in the shape have no closed form: finite differences.
        levels, slopes = [], []
        for index in range(5):
            shape = math.exp(log_shape + (index - 2) * _STEP)
            survival = gamma_log_survival(shape, log_ratio)
            hazard = np.exp(_log_gamma_peak(shape) - shape * _exp_excess(log_ratio) - survival)
            levels.append(events * _log_gamma_peak(shape) - shape * excess + float((points.weights * survival).sum()))
            slopes.append(-shape * excess_slope + float((points.weights * hazard).sum()))
            if index == 2:
                curvature = hazard * (hazard - shape * np.expm1(log_ratio))
                error = points.error(survival)
                mean_term = -shape * inverse_mean * (excess_sum + events) - float((points.weights * curvature).sum())
        cross_term = float(_FIRST @ slopes)
        slope = np.array([float(_FIRST @ levels), slopes[2]])
        return levels[2], slope, np.array([[float(_SECOND @ levels), cross_term], [cross_term, mean_term]]), error

    return likelihood


def gamma_log_survival(shape: float, log_ratio: np.ndarray) -> np.ndarray:
    """Return log Q(shape, shape * e^log_ratio): the log survival of a gamma at logs of time over its mean.

    Where Q itself underflows, by its continued fraction (DLMF 8.9.2).

    Parameters
    ----------
    shape : of the gamma
    log_ratio : (n,) floats, logs of time over the mean

    Returns
    -------
    (n,) floats

    Examples
    --------
    >>> gamma_log_survival(1.0, np.log([1.0, 2000.0])).round(6)  # shape 1 is exponential
    array([-1.e+00, -2.e+03])
    """
    x = shape * np.exp(log_ratio)
    is_below_mean = log_ratio < 0
    survival = np.empty(log_ratio.shape)
    survival[is_below_mean] = np.log1p(-gammainc(shape, x[is_below_mean]))
    with np.errstate(divide="ignore"):
        survival[~is_below_mean] = np.log(gammaincc(shape, x[~is_below_mean]))
    is_far = ~is_below_mean & (survival < -500)
    if is_far.any():
        density = _log_gamma_peak(shape) - shape * _exp_excess(log_ratio[is_far])
        survival[is_far] = density - np.log(_continued_fraction(shape, x[is_far]))
    return survival


def _continued_fraction(shape: float, x: np.ndarray) -> np.ndarray:
    """Return x + 1 - k - (1 - k) / (x + 3 - k - ...), with k the shape, by Lentz's method."""
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


def _log_gamma_peak(shape: float) -> float:
    """Return k log k - k - log Gamma(k): the log of time * density of a gamma at its mean, with k the shape."""
    if shape < 30:
        return shape * math.log(shape) - shape - math.lgamma(shape)
    # Stirling's series, since the terms above cancel.
    square = shape**-2
    correction = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / shape
    return 0.5 * math.log(shape) - HALF_LOG_2_PI - correction


def _exp_excess(v: np.ndarray) -> np.ndarray:
    """Return e^v - 1 - v, accurate for small v too."""
    series = v * v / 2 * (1 + v / 3 * (1 + v / 4 * (1 + v / 5 * (1 + v / 6))))
    return np.where(np.abs(v) < 0.01, series, np.expm1(v) - v)


# Name -> (number of parameters, fit), simplest first. A fit takes a sample with at least one event and returns columns
# of the table, including `loglik` and `converged`, or raises CannotFit.
MODELS: dict[str, tuple[int, Callable[[Sample], dict]]] = {
    "exponential": (1, fit_exponential),
    "weibull": (2, fit_weibull),
    "lognormal": (2, fit_lognormal),
    "gamma": (2, fit_gamma),
}

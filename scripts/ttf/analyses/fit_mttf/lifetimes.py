"""Parametric lifetimes under right-censoring by maximum likelihood: exponential, Weibull, lognormal, gamma."""

import math
from collections.abc import Sequence

import polars as pl

from ttf.analyses.fit_mttf import LIFETIME_MODELS
from ttf.analyses.fit_mttf.lifetime_fits import MODELS
from ttf.analyses.fit_mttf.lifetime_sample import CannotFit, Sample
from ttf.stats.strata import NO_LIFE, Lives, Times, times_by_stratum

# A mean or a median beyond so many times the longest duration is the model's tail alone: nobody has seen its like.
FARTHEST = 1_000


def lifetime_models(lives: Lives, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """Every model of `MODELS` fitted to every stratum, a row each.

    lives: duration_s (Int64 s; null is excluded), event (any other, or null, censors), a column per
    stratification (`all` needs none).

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
    Raises ValueError when a stratification has no column or a duration is negative.
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

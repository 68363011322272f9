"""Time Kaplan-Meier and four lifetime models on a million right-censored durations, and their peers.

Peers: lifelines (Kaplan-Meier, exponential, Weibull, lognormal) and SciPy (gamma), with their defaults, on the same
durations in one process. They are slow, so they run once; the study runs several times. The run ends if a fit of the
study is less likely than the peer's.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl
from clock import machine, report

NAMES = {"km": "Kaplan-Meier", "weibull": "Weibull"} | {name: name for name in ("exponential", "lognormal", "gamma")}


def draw_durations(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw Weibull durations with a decreasing hazard, observed for up to four days: (whole seconds, failed)."""
    rng = np.random.default_rng(20261121)
    times, watch_s = 50_000 * rng.weibull(0.7, count), rng.uniform(0, 345_600, count)
    return np.minimum(times, watch_s).astype(np.int64) + 1, times <= watch_s


def time_call(call: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def measure_study(seconds: np.ndarray, failed: np.ndarray, rounds: int) -> tuple[float, float, dict[str, float]]:
    """Return the median seconds of the survival tables and of the four models, and each model's log-likelihood."""
    from ttf.analyses.time_to_failure.fit_mttf.compute import lifetime_models
    from ttf.stats.durations.survival import survival_tables

    durations = pl.DataFrame({"duration_s": seconds, "event": np.where(failed, "failure", "success")})
    survival_s, models_s = [], []
    for _ in range(rounds + 1):  # the first is a warm-up
        survival_s.append(time_call(lambda: survival_tables(durations, "failure", ["all"]))[0])
        elapsed_s, table = time_call(lambda: lifetime_models(durations, "failure", ["all"]))
        models_s.append(elapsed_s)
    logliks = dict(table.select("model", "loglik").iter_rows())
    return statistics.median(survival_s[1:]), statistics.median(models_s[1:]), logliks


def peers(seconds: np.ndarray, failed: np.ndarray) -> dict[str, tuple[float, float | None]]:
    """Map each estimate to (seconds, log-likelihood of the model)."""
    import lifelines
    from scipy.stats import CensoredData, gamma

    durations = seconds.astype(float)
    fitters = {
        "km": lifelines.KaplanMeierFitter,
        "exponential": lifelines.ExponentialFitter,
        "weibull": lifelines.WeibullFitter,
        "lognormal": lifelines.LogNormalFitter,
    }
    results = {}
    for name, fitter in fitters.items():
        elapsed_s, fit = time_call(lambda fitter=fitter: fitter().fit(durations, failed))
        results[name] = elapsed_s, None if name == "km" else float(fit.log_likelihood_)
        report(f"lifelines, {NAMES[name]}: {elapsed_s:.1f} s")
    data = CensoredData(uncensored=durations[failed], right=durations[~failed])
    elapsed_s, (shape, _, scale) = time_call(lambda: gamma.fit(data, floc=0))
    fitted = gamma(shape, scale=scale)
    results["gamma"] = elapsed_s, float(fitted.logpdf(durations[failed]).sum() + fitted.logsf(durations[~failed]).sum())
    report(f"SciPy, gamma: {elapsed_s:.1f} s")
    return results


def compare(rounds: int, durations: int = 1_000_000) -> dict:
    """Compare the seconds of survival tables and models with the peers; exit if a model of the study fits worse."""
    seconds, failed = draw_durations(durations)
    survival_s, models_s, logliks = measure_study(seconds, failed, rounds)
    report(f"study: Kaplan-Meier {survival_s:.2f} s, four models {models_s:.2f} s")
    peer_results = peers(seconds, failed)
    for name, loglik in logliks.items():
        if loglik < peer_results[name][1] - 1e-9 * abs(loglik):
            sys.exit(f"our {NAMES[name]} is less likely than the peer's: {loglik!r} < {peer_results[name][1]!r}")
    return {
        "durations": durations,
        "study": {"survival": survival_s, "models": models_s},
        "peers": {NAMES[name]: elapsed_s for name, (elapsed_s, _) in peer_results.items()},
        "machine": machine("lifelines", "scipy"),
    }

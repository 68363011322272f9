"""Time of Kaplan-Meier and the four lifetime models on a million right-censored lives, against their peers.

Peers: lifelines (Kaplan-Meier, exponential, Weibull, lognormal) and SciPy (gamma), each with its defaults, on the same
lives in one process; they are slow, so they run once, ours several times. A fit of ours that is less likely than the
peer's ends the run.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl
from clock import ROOT, machine, tell

sys.path.insert(0, str(ROOT / "scripts"))
NAMES = {"km": "Kaplan-Meier", "weibull": "Weibull"} | {name: name for name in ("exponential", "lognormal", "gamma")}


def made_up(count: int) -> tuple[np.ndarray, np.ndarray]:
    """(whole seconds, whether failed): Weibull lives that fail ever less often, each watched for up to four days."""
    rng = np.random.default_rng(20261121)
    times, ends = 50_000 * rng.weibull(0.7, count), rng.uniform(0, 345_600, count)
    return np.minimum(times, ends).astype(np.int64) + 1, times <= ends


def timed(call: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def ours(seconds: np.ndarray, failed: np.ndarray, rounds: int) -> tuple[float, float, dict[str, float]]:
    """Medians (s) of the survival tables and of the four models; the log-likelihood of each model."""
    from ttf.analyses.time_to_failure.fit_mttf.lifetimes import lifetime_models
    from ttf.stats.durations.survival import survival_tables

    lives = pl.DataFrame({"duration_s": seconds, "event": np.where(failed, "failure", "success")})
    survival, models = [], []
    for _ in range(rounds + 1):  # the first is a warm-up
        survival.append(timed(lambda: survival_tables(lives, "failure", ["all"]))[0])
        took, table = timed(lambda: lifetime_models(lives, "failure", ["all"]))
        models.append(took)
    logliks = dict(table.select("model", "loglik").iter_rows())
    return statistics.median(survival[1:]), statistics.median(models[1:]), logliks


def peers(seconds: np.ndarray, failed: np.ndarray) -> dict[str, tuple[float, float | None]]:
    """What is estimated -> (seconds it took, log-likelihood of a model)."""
    import lifelines
    from scipy.stats import CensoredData, gamma

    durations = seconds.astype(float)
    fitters = {
        "km": lifelines.KaplanMeierFitter,
        "exponential": lifelines.ExponentialFitter,
        "weibull": lifelines.WeibullFitter,
        "lognormal": lifelines.LogNormalFitter,
    }
    found = {}
    for name, fitter in fitters.items():
        took, fit = timed(lambda fitter=fitter: fitter().fit(durations, failed))
        found[name] = took, None if name == "km" else float(fit.log_likelihood_)
        tell(f"lifelines, {NAMES[name]}: {took:.1f} s")
    data = CensoredData(uncensored=durations[failed], right=durations[~failed])
    took, (shape, _, scale) = timed(lambda: gamma.fit(data, floc=0))
    at = gamma(shape, scale=scale)
    found["gamma"] = took, float(at.logpdf(durations[failed]).sum() + at.logsf(durations[~failed]).sum())
    tell(f"SciPy, gamma: {took:.1f} s")
    return found


def compare(rounds: int, lives: int = 1_000_000) -> dict:
    """Seconds of survival tables and of the four models, ours and of each peer. Ends where ours fits worse."""
    seconds, failed = made_up(lives)
    survival, models, logliks = ours(seconds, failed, rounds)
    tell(f"ours: Kaplan-Meier {survival:.2f} s, four models {models:.2f} s")
    found = peers(seconds, failed)
    for name, loglik in logliks.items():
        if loglik < found[name][1] - 1e-9 * abs(loglik):
            sys.exit(f"our {NAMES[name]} is less likely than the peer's: {loglik!r} < {found[name][1]!r}")
    return {
        "lives": lives,
        "study": {"survival": survival, "models": models},
        "peers": {NAMES[name]: took for name, (took, _) in found.items()},
        "machine": machine("lifelines", "scipy"),
    }

"""Time of Kaplan-Meier and the four lifetime models on a million right-censored lives, against their peers.

Peers: lifelines (Kaplan-Meier, exponential, Weibull, lognormal) and SciPy (gamma), each with its defaults, on the same
lives in one process; they are slow, so they run once, ours three times. A fit of ours that is less likely than the
peer's ends the run. The measured table goes into README.md.
usage: lifetimes.py [--lives N]
"""

import argparse
import importlib.metadata
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from run import write_down

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
NAMES = {
    "km": "Kaplan-Meier",
    "exponential": "exponential",
    "weibull": "Weibull",
    "lognormal": "lognormal",
    "gamma": "gamma",
}
ROUNDS = 3
MARKS = ("<!-- bench of lifetimes: begin -->", "<!-- bench of lifetimes: end -->")


def made_up(count: int) -> tuple[np.ndarray, np.ndarray]:
    """(whole seconds, whether failed): Weibull lives that fail ever less often, each watched for up to four days."""
    rng = np.random.default_rng(20261121)
    times, ends = 50_000 * rng.weibull(0.7, count), rng.uniform(0, 345_600, count)
    return np.minimum(times, ends).astype(np.int64) + 1, times <= ends


def timed(call: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def ours(seconds: np.ndarray, failed: np.ndarray) -> tuple[float, float, dict[str, float]]:
    """Medians (s) of the survival tables and of the four models; the log-likelihood of each model."""
    from ttf.stats.lifetimes import lifetime_models
    from ttf.stats.survival import survival_tables

    lives = pl.DataFrame({"duration_s": seconds, "event": np.where(failed, "failure", "success")})
    survival, models = [], []
    for _ in range(ROUNDS + 1):  # the first is a warm-up
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
        print(f"lifelines, {NAMES[name]}: {took:.1f} s", file=sys.stderr)
    data = CensoredData(uncensored=durations[failed], right=durations[~failed])
    took, (shape, _, scale) = timed(lambda: gamma.fit(data, floc=0))
    at = gamma(shape, scale=scale)
    found["gamma"] = took, float(at.logpdf(durations[failed]).sum() + at.logsf(durations[~failed]).sum())
    print(f"SciPy, gamma: {took:.1f} s", file=sys.stderr)
    return found


def as_markdown(count: int, survival: float, models: float, found: dict[str, tuple[float, float | None]]) -> str:
    theirs = {name: took for name, (took, _) in found.items()}
    four = sum(theirs.values()) - theirs["km"]
    lines = ["| lives | what | study, s | peers, s | ratio |", "|--:|---|--:|--:|--:|"]
    for what, mine, other in (
        ("Kaplan-Meier with intervals", survival, theirs["km"]),
        ("four lifetime models", models, four),
        ("together", survival + models, theirs["km"] + four),
    ):
        lines.append(f"| {count:,} | {what} | {mine:.2f} | {other:.1f} | {mine / other:.3f} |")
    each = ", ".join(f"{NAMES[name]} {took:.1f} s" for name, took in theirs.items())
    versions = {name: importlib.metadata.version(name) for name in ("lifelines", "scipy")}
    lines.append(
        f"\nOurs: medians of {ROUNDS} runs after a warm-up. Peers, once: {each}; lifelines {versions['lifelines']}, "
        f"gamma by SciPy {versions['scipy']}. {os.cpu_count()} cores, Python {platform.python_version()}. No fit of "
        "ours is less likely than the peer's."
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=1_000_000)
    arguments = parser.parse_args()
    seconds, failed = made_up(arguments.lives)
    survival, models, logliks = ours(seconds, failed)
    print(f"ours: Kaplan-Meier {survival:.2f} s, four models {models:.2f} s", file=sys.stderr)
    found = peers(seconds, failed)
    for name, loglik in logliks.items():
        if loglik < found[name][1] - 1e-9 * abs(loglik):
            sys.exit(f"our {NAMES[name]} is less likely than the peer's: {loglik!r} < {found[name][1]!r}")
    table = as_markdown(arguments.lives, survival, models, found)
    write_down(table, MARKS)


if __name__ == "__main__":
    main()

"""Estimates of the variation between users, groups or nodes from the outcomes of their jobs."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm, rankdata

# Values of the cluster effect in standard deviations: fine enough for clusters of a thousand jobs.
GRID = np.linspace(-4.5, 4.5, 91)
ROUGHLY = {"xatol": 0.005, "fatol": 0.05}


def log_sd(failed, cluster, known_log_odds=0.0) -> float:
    """Estimate the standard deviation of the log odds of failure between clusters by maximum likelihood.

    The logistic model has a normal intercept per cluster, integrated on GRID. known_log_odds: offset of each job.
    """
    keys = np.column_stack([_codes(cluster), np.broadcast_to(known_log_odds, len(failed))])
    cells, cell = np.unique(keys, axis=0, return_inverse=True)
    fails = np.bincount(cell, weights=failed)
    successes = np.bincount(cell) - fails
    # Evaluate rows that differ only in their cluster once.
    kinds, kind = np.unique(np.column_stack([cells[:, 1], fails, successes]), axis=0, return_inverse=True)
    cluster_starts = np.flatnonzero(np.diff(cells[:, 0], prepend=-1))

    def minus_log_likelihood(parameters):
        logit = parameters[0] + kinds[:, :1] + np.exp(parameters[1]) * GRID
        log_likelihoods = kinds[:, 1:2] * logit - kinds[:, 1:].sum(axis=1, keepdims=True) * np.log1p(np.exp(logit))
        return -logsumexp(np.add.reduceat(log_likelihoods[kind], cluster_starts) + norm.logpdf(GRID), axis=1).sum()

    return float(np.exp(minimize(minus_log_likelihood, [-1.0, -0.5], method="Nelder-Mead", options=ROUGHLY).x[1]))


def intraclass_correlation(times, cluster) -> float:
    """Return the intraclass correlation of the normal scores of times, by the analysis of variance."""
    scores = norm.ppf((rankdata(times) - 0.5) / len(times))
    code = _codes(cluster)
    jobs = np.bincount(code)
    mean = np.bincount(code, weights=scores) / jobs
    between_variance = (jobs * (mean - scores.mean()) ** 2).sum() / (len(jobs) - 1)
    within_variance = ((scores - mean[code]) ** 2).sum() / (len(scores) - len(jobs))
    mean_size = (len(scores) - (jobs**2).sum() / len(scores)) / (len(jobs) - 1)
    return float((between_variance - within_variance) / (between_variance + (mean_size - 1) * within_variance))


def _codes(cluster) -> np.ndarray:
    return np.unique(cluster, return_inverse=True)[1]

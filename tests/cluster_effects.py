"""How unlike users, groups or nodes are, as estimated from what became of their jobs."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import norm, rankdata

# Of the effect, in its standard deviations: a grid fine enough for clusters of a thousand jobs.
GRID = np.linspace(-4.5, 4.5, 181)
ROUGHLY = {"xatol": 0.005, "fatol": 0.05}


def log_sd(failed, cluster, known=0.0) -> float:
    """The standard deviation of the log odds of failure between clusters, by maximum likelihood.

    A logistic model with a normal intercept per cluster, integrated on GRID. known: log odds that are known of a job.
    """
    keys = np.column_stack([_codes(cluster), np.broadcast_to(known, len(failed))])
    cells, cell = np.unique(keys, axis=0, return_inverse=True)
    fails = np.bincount(cell, weights=failed)
    rest = np.bincount(cell) - fails
    # Rows that differ in nothing but their cluster are reckoned once.
    kinds, kind = np.unique(np.column_stack([cells[:, 1], fails, rest]), axis=0, return_inverse=True)
    first = np.flatnonzero(np.diff(cells[:, 0], prepend=-1))

    def minus_log_likelihood(at):
        logit = at[0] + kinds[:, :1] + np.exp(at[1]) * GRID
        each = kinds[:, 1:2] * np.log(expit(logit)) + kinds[:, 2:] * np.log(expit(-logit))
        return -logsumexp(np.add.reduceat(each[kind], first) + norm.logpdf(GRID), axis=1).sum()

    return float(np.exp(minimize(minus_log_likelihood, [-1.0, -0.5], method="Nelder-Mead", options=ROUGHLY).x[1]))


def design_effect(failed, cluster) -> float:
    """Variance of the share of failures with its clusters, over the binomial one of as many independent jobs."""
    failed = np.asarray(failed, dtype=float)
    share = failed.mean()
    sums = np.bincount(_codes(cluster), weights=failed - share)
    return float((sums**2).sum() * len(sums) / (len(sums) - 1) / (share * (1 - share) * len(failed)))


def alike(times, cluster) -> float:
    """Correlation between the normal scores of two times in one cluster, by the analysis of variance."""
    scores = norm.ppf((rankdata(times) - 0.5) / len(times))
    code = _codes(cluster)
    jobs = np.bincount(code)
    mean = np.bincount(code, weights=scores) / jobs
    between = (jobs * (mean - scores.mean()) ** 2).sum() / (len(jobs) - 1)
    within = ((scores - mean[code]) ** 2).sum() / (len(scores) - len(jobs))
    usual = (len(scores) - (jobs**2).sum() / len(scores)) / (len(jobs) - 1)
    return float((between - within) / (between + (usual - 1) * within))


def _codes(cluster) -> np.ndarray:
    return np.unique(cluster, return_inverse=True)[1]

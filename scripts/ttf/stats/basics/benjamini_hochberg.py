"""Benjamini and Hochberg's adjustment of p-values for the false-discovery rate."""

import numpy as np


def benjamini_hochberg(p_values: np.ndarray) -> np.ndarray:
    """Adjust p-values for the false-discovery rate; NaN (no test) stays NaN.

    Parameters
    ----------
    p_values : float array (n,)

    Returns
    -------
    float array (n,)

    References
    ----------
    Benjamini & Hochberg (1995), J. R. Stat. Soc. B 57

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, np.nan])).tolist()
    [0.02, 0.04, nan]
    """
    # Imported here: see `ttf.stats.shares.wilson_interval`.
    from statsmodels.stats.multitest import multipletests

    adjusted, is_tested = np.full(p_values.size, np.nan), ~np.isnan(p_values)
    if is_tested.any():
        adjusted[is_tested] = multipletests(p_values[is_tested], method="fdr_bh")[1]
    return adjusted

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
    # Imported here, because the import takes 0.4 s of processor time; the process that forks jobs imports it once.
    from scipy.stats import false_discovery_control

    adjusted, is_tested = np.full(p_values.size, np.nan), ~np.isnan(p_values)
    adjusted[is_tested] = false_discovery_control(p_values[is_tested])
    return adjusted

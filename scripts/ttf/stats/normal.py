"""Quantiles of the standard normal distribution, by which intervals are drawn."""

# scipy.special.ndtri(0.975), to the last digit: importing it takes longer than what many rules do with it.
Z_95 = 1.959963984540054


def two_sided_z(confidence: float) -> float:
    """How many standard errors an interval goes to either side; confidence: between 0 and 1, both excluded."""
    if confidence == 0.95:
        return Z_95
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))

"""Quantiles of the standard normal distribution for intervals."""

# scipy.special.ndtri(0.975) to the last digit: the import takes longer than many rules need for their work.
Z_95 = 1.959963984540054

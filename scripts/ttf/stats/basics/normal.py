"""Quantiles of the standard normal distribution, by which intervals are drawn."""

# scipy.special.ndtri(0.975), to the last digit: importing it takes longer than what many rules do with it.
Z_95 = 1.959963984540054

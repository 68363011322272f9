"""What estimators are made of: sorting, quantiles, maxima of likelihoods, p-values."""

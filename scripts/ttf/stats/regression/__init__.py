"""Regressions by likelihood: the odds of failure, and the time to it."""

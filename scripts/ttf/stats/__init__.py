"""Estimators: pure functions on frames and arrays."""

"""Logs of training runs: steps, saves, loads, evaluations, errors and ends, by named patterns."""

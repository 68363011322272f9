"""Failure risk: which newly submitted jobs will fail, after how long, and how much GPU time is at stake.

population  jobs of a trace, their outcomes, and when each outcome became known
features    features of a job at submission, including the history of jobs that had ended by then
encoder     features as columns of a design matrix: vocabularies, scalings and the range of the training data
model       both together: train, recalibrate, write as JSON, read and score

The regressions are in `ttf.stats.regression`.
"""

# Kinds of models: the share of earlier failures of the same user, and a logistic regression on all features.
NESTED, LOGISTIC = "nested_rate", "logistic"
KINDS = {NESTED: "history alone", LOGISTIC: "logistic regression"}

"""Failure risk: which jobs submitted now will fail, after how long, and what GPU time that puts at stake.

population  the jobs of a trace with what became of them, and when that was known
features    what is known of a job at submission, history of what had ended by then included
encoder     features as the columns of a design: vocabularies, scalings and the range of the training data
logistic    the probability of failure, by Newton's method
hours       the time until failure of those that fail, lognormal, right-censored
model       both together: trained, recalibrated, written as JSON, read again, and used
"""

# The kinds of models: the share of earlier failures of the same user, and a logistic regression on all features.
NESTED, LOGISTIC = "nested_rate", "logistic"
KINDS = {NESTED: "history alone", LOGISTIC: "logistic regression"}

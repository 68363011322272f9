"""Decide whether a new model replaces the current one, from jobs that neither was trained on."""

from dataclasses import dataclass

from ttf.stats.predictions import Estimate

PROMOTED, WORSE, INCONCLUSIVE = "promoted", "not promoted: worse", "not promoted: too few to tell"
# The new log-loss may be higher by this much, or by this share of the gain of the current model on the base rate.
LEAST_TOLERANCE, SHARE_OF_GAIN = 0.0005, 0.05

GOOD = "the upper bound of the difference is within the tolerance, the lower bound of the gain above 0"
GOOD_FIRST = "the lower bound of the gain is above 0; no model was in use"
NO_GAIN = "no better than the base rate"
ABOVE = "worse than the model in use by more than the tolerance, and the lower bound of the difference is above 0"
WIDE_GAIN = "the lower bound of the gain on the base rate is not above 0"
WIDE = "the upper bound of the difference is beyond the tolerance"


@dataclass(frozen=True)
class Decision:
    """Whether a new model is promoted, and why."""

    name: str
    reason: str
    tolerance: float | None = None


def compute_tolerance(gain_of_current: float) -> float:
    """Return the tolerated rise in log-loss; gain_of_current: log-loss of the base rate minus that of the current."""
    return max(LEAST_TOLERANCE, SHARE_OF_GAIN * gain_of_current)


def decide(difference: Estimate | None, gain: Estimate, gain_of_current: float = 0.0) -> Decision:
    """Decide from log-losses on the next window.

    difference: new minus current, None if no model is in use; gain: base rate minus new. PROMOTED if the one-sided
    upper bound of the difference is within the tolerance and the lower bound of the gain is above 0. WORSE if there is
    no gain, or the difference exceeds the tolerance and its lower bound is above 0. Otherwise INCONCLUSIVE.
    """
    largest_rise = compute_tolerance(gain_of_current)
    tolerance = None if difference is None else largest_rise
    if gain.estimate is None:
        return Decision(INCONCLUSIVE, gain.reason or WIDE_GAIN, tolerance)
    if gain.estimate <= 0:
        return Decision(WORSE, NO_GAIN, tolerance)
    if difference is not None and _exceeds(difference.estimate, largest_rise) and _exceeds(difference.lower, 0):
        return Decision(WORSE, ABOVE, tolerance)
    if not _exceeds(gain.lower, 0):
        return Decision(INCONCLUSIVE, gain.reason or WIDE_GAIN, tolerance)
    if difference is None:
        return Decision(PROMOTED, GOOD_FIRST)
    if difference.upper is None or difference.upper > largest_rise:
        return Decision(INCONCLUSIVE, difference.reason or WIDE, tolerance)
    return Decision(PROMOTED, GOOD, tolerance)


def _exceeds(value: float | None, limit: float) -> bool:
    return value is not None and value > limit

"""Whether a new model is promoted: used in place of the current one. Decided on jobs that neither has learnt from."""

from dataclasses import dataclass

from ttf.stats.predictions import Estimate

PROMOTED, WORSE, UNTOLD = "promoted", "not promoted: worse", "not promoted: too few to tell"
# The new model may be worse by so much in log-loss, or by that share of what the current one gains on the base rate.
LEAST_TOLERANCE, SHARE_OF_GAIN = 0.0005, 0.05

GOOD = "the upper bound of the difference is within the tolerance, the lower bound of the gain above 0"
GOOD_FIRST = "the lower bound of the gain is above 0; no model was in use"
NO_GAIN = "no better than the base rate"
ABOVE = "worse than the model in use by more than the tolerance, and the lower bound of the difference is above 0"
WIDE_GAIN = "the lower bound of the gain on the base rate is not above 0"
WIDE = "the upper bound of the difference is beyond the tolerance"


@dataclass(frozen=True)
class Decision:
    name: str
    reason: str
    tolerance: float | None = None


def tolerance_of(gain_of_current: float) -> float:
    """By how much the log-loss may rise; gain_of_current: log-loss of the base rate less that of the current model."""
    return max(LEAST_TOLERANCE, SHARE_OF_GAIN * gain_of_current)


def decide(difference: Estimate | None, gain: Estimate, gain_of_current: float = 0.0) -> Decision:
    """Log-losses on the next window. difference: new less current, None where no model is in use; gain: base rate less
    new.

    PROMOTED where the one-sided upper bound of the difference is within the tolerance and the lower bound of the gain
    above 0. WORSE where there is no gain at all, or the difference is beyond the tolerance and its lower bound above 0.
    Between them nothing is told, as where there are no bounds.
    """
    tolerance = None if difference is None else tolerance_of(gain_of_current)
    if gain.estimate is None:
        return Decision(UNTOLD, gain.reason or WIDE_GAIN, tolerance)
    if gain.estimate <= 0:
        return Decision(WORSE, NO_GAIN, tolerance)
    if difference is not None and _beyond(difference.estimate, tolerance) and _beyond(difference.lower, 0):
        return Decision(WORSE, ABOVE, tolerance)
    if not _beyond(gain.lower, 0):
        return Decision(UNTOLD, gain.reason or WIDE_GAIN, tolerance)
    if difference is None:
        return Decision(PROMOTED, GOOD_FIRST)
    if difference.upper is None or difference.upper > tolerance:
        return Decision(UNTOLD, difference.reason or WIDE, tolerance)
    return Decision(PROMOTED, GOOD, tolerance)


def _beyond(value: float | None, limit: float) -> bool:
    return value is not None and value > limit

"""Numbers of the correlations of study 1 at job level."""

from ttf.analyses.replication.repeat_study import STUDY1_SUMMARY
from ttf.display.metrics import cells

_VERDICTS = (
    "compared significant still_significant still_significant_if_independent "
    "flips weaker newly_significant newly_significant_if_independent untested"
)
NUMBERS = [
    cells(STUDY1_SUMMARY, "study1", f"{_VERDICTS} rates rates_differ"),
    cells(STUDY1_SUMMARY, "study1.mttf", "lowest_ratio highest_ratio"),
]

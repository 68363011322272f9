"""Numbers of the correlations of study 1 at job level."""

from ttf.analyses.replication.ask_again import STUDY1_SUMMARY
from ttf.display.metrics import cells

_VERDICTS = "compared significant still still_if_independent flips weaker found found_if_independent untold"
NUMBERS = [
    cells(STUDY1_SUMMARY, "study1", f"{_VERDICTS} rates rates_differ"),
    cells(STUDY1_SUMMARY, "study1.mttf", "lowest_ratio highest_ratio"),
]

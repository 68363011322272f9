"""Numbers for the page: how many comparisons changed."""

from ttf.analyses.quality.measure_drift import DRIFT_SUMMARY
from ttf.display.metrics import cells

NUMBERS = [cells(DRIFT_SUMMARY, "drift")]

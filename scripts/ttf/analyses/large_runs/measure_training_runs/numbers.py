"""The numbers of the section on training runs."""

from ttf.analyses.large_runs.measure_training_runs import TRAINING_CAUSES, TRAINING_SUMMARY
from ttf.display.metrics import cells

NUMBERS = [
    cells(TRAINING_SUMMARY, "training"),
    cells(
        TRAINING_CAUSES,
        "training.all",
        "recovery_p50_s recovery_p90_s lost_steps crash_loops",
        n="interruptions",
        cause="all",
    ),
]

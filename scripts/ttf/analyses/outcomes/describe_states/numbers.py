"""Numbers of jobs by state and by size, and of the summary."""

from ttf.analyses.outcomes.describe_states import CLUSTER_SUMMARY, STATES
from ttf.display.metrics import cells

NUMBERS = [
    cells(STATES, "states", "unit timeouts", take=-1),
    cells(STATES, "states.infra", "basis=infra_basis", kind="infra"),
    cells(CLUSTER_SUMMARY, "states.gpu", "gpus_max", n="jobs", population="gpu"),
]

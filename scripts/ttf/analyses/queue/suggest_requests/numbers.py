"""Numbers of jobs that ended at a limit, of the requests with a suggestion, and of the test of suggestions."""

from ttf.analyses.queue.suggest_requests import LIMIT_ENDS
from ttf.display.metrics import CI, cells

NUMBERS = [
    cells(LIMIT_ENDS, "requests.{resource}", f"jobs requests suggested tested fitted_share {CI} reason", n="jobs")
]

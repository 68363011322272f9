"""Numbers of jobs that ended at a limit, and of the requests with a suggestion."""

from ttf.analyses.queue.suggest_requests import LIMIT_ENDS
from ttf.display.metrics import cells

NUMBERS = [cells(LIMIT_ENDS, "requests.{resource}", "jobs requests suggested reason", n="jobs")]

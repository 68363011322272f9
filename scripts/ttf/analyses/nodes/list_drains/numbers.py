"""Numbers of the first node to drain."""

from ttf.analyses.nodes.list_drains import DRAIN_EVIDENCE
from ttf.display.metrics import cells

_EVIDENCE = "node fleet failures failures_expected outages outages_expected"
NUMBERS = [cells(DRAIN_EVIDENCE, "drains.first", _EVIDENCE, take=1)]

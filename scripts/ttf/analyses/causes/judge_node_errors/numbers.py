"""Numbers of the errors in the logs of nodes: totals, codes that precede failures, nodes, alarms."""

import polars as pl

from ttf.analyses.causes.judge_node_errors import (
    ERROR_CODES,
    ERROR_LEAD_TIMES,
    ERROR_NODES,
    ERROR_SUMMARY,
    FAILURES_BY_COMPONENT,
)
from ttf.analyses.causes.judge_node_errors.compute import UNKNOWN
from ttf.analyses.causes.judge_node_errors.evidence import PRECEDES
from ttf.analyses.causes.judge_node_errors.lead_times import ALL
from ttf.display.metrics import cells

_CODE = "code component attempts_hit failed expected"
_ALARM = "outages announced share expected false_alarms_per_week lead_s"

NUMBERS = [
    cells(ERROR_SUMMARY, "node_errors"),
    cells(
        ERROR_CODES,
        "node_errors.code.{rank}",
        f"{_CODE} outages announced false_alarms_per_week alarm",
        verdict=PRECEDES,
        sort="-alarm -failed code",
    ),
    cells(
        FAILURES_BY_COMPONENT,
        "node_errors.unknown",
        "before=failures_before_share share=failures_share",
        component=UNKNOWN,
    ),
    cells(ERROR_NODES, "node_errors.node.{rank}", "node counted expected", excess=True, sort="p_value node", take=1),
    cells(ERROR_LEAD_TIMES, "node_errors.announced", _ALARM, pl.col("lead_s") > 0, code=ALL, n="outages"),
]

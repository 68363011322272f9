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

MOST_NAMED = 3
_CODE = "code component errors attempts_hit failed failed_share expected ratio ci_low ci_high"
_ALARM = "outages announced share expected false_alarms_per_week alarms false_alarms lead_s"

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
    cells(
        ERROR_NODES,
        "node_errors.node.{rank}",
        "node counted expected rate_ratio",
        excess=True,
        sort="p_value node",
        take=MOST_NAMED,
    ),
    cells(ERROR_LEAD_TIMES, "node_errors.announced", _ALARM, pl.col("lead_s") > 0, code=ALL, n="outages"),
]

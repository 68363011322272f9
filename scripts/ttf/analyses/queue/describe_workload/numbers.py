"""Numbers for the page: run times and delays by kind of job, requests and use, submissions, users and machines."""

import polars as pl

from ttf.analyses.queue import describe_workload as workload
from ttf.display.metrics import FEWEST_ENDED, Cells, cells

_ENDED, _ANY = pl.col("n") >= FEWEST_ENDED, pl.col("n") > 0
_SHARES = "requested_more_share used_median_share"


def _select_times(
    key: str, columns: str, *where: pl.Expr, quantity: str = "queue_s", ends: str = "", **equal: str
) -> Cells:
    """Return numbers `workload.<key>` of PERCENTILES over all outcomes; other arguments as of `cells`."""
    key = f"workload.{key}"
    return cells(workload.PERCENTILES, key, columns, *where, ends=ends, outcome_set="all", quantity=quantity, **equal)


def _select_hour(key: str, columns: str, take: int) -> Cells:
    """Return numbers of the hour of the day with the fewest submissions (take=1), or the most (-1)."""
    key = f"workload.submissions{key}"
    return cells(
        workload.SUBMISSIONS, key, columns, not_blank="jobs_per_hour", sort="jobs_per_hour", take=take, by="hour"
    )


def _select_most_active(ranked_by: str) -> Cells:
    """Return numbers of the most active twentieth of the users, ranked by `jobs` or `gpu_hours`."""
    columns = f"owners_in_top share={ranked_by}_share"
    return cells(workload.ACTIVITY, "workload.activity.{ranked_by}", columns, top_share=0.05, ranked_by=ranked_by)


NUMBERS = [
    _select_times("queue.all", "median_s=p50_s p90_s", group_by="all"),
    *(
        _select_times(
            name,
            "gpus=group median_s=p50_s p90_s",
            _ENDED,
            quantity=f"{name}_s",
            ends="smallest largest",
            group_by="gpus",
        )
        for name in ("runtime", "queue")
    ),
    _select_times("queue.{group}", "p90_s", _ENDED, group_by="gpu_request"),
    cells(workload.REQUEST_USE, "workload.{resource}", _SHARES, _ANY),
    cells(workload.RECURRENCE, "workload.recurrence.{group_by}", "share=jobs_share", at_least=5),
    cells(workload.WAIT_SHARE, "workload.wait.{group}", "over_half_share limit_s"),
    cells(workload.MACHINE_LOAD, "workload.machines.{quantity}", "mean p95", _ANY, unit_by="unit"),
    cells(workload.MACHINE_LOAD, "workload.machines", "nodes", _ANY),
    _select_hour("", "zone", 1),
    _select_hour(".fewest", "hour=value jobs_per_hour", 1),
    _select_hour(".most", "hour=value jobs_per_hour", -1),
    cells(workload.ROLES, "workload.roles", "first=role", take=1),
    _select_most_active("jobs"),
    _select_most_active("gpu_hours"),
    cells(workload.ACTIVITY, "workload.activity", "owners", top_share=0.05),
    cells(workload.GANGS, "workload.gangs", "jobs_share instances_share", at_least=2),
]

"""The last part of the records against all before it, and the next week: everything from sums by part and cluster."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.quality.compare_parts import CHANGED, CHANGES, CHANGES_SUMMARY, FORECAST, NEW_SUSPECTS, NEW_WORDS
from ttf.analyses.quality.compare_parts.calendar import ONE_PART, Calendar, calendar_of
from ttf.analyses.quality.compare_parts.forecast import NO_CAUSES, NO_WEEK, WEEK_S, rolling
from ttf.analyses.quality.compare_parts.news import KINDS, new_suspects, new_words, words_of_failures
from ttf.analyses.quality.compare_parts.part_tests import compared, verdict_of
from ttf.analyses.quality.compare_parts.sums import LIVES, ended_jobs, runs_by_time
from ttf.records.clusters import level_names
from ttf.records.infra import EVENT, PROXY
from ttf.records.inputs import Inputs
from ttf.stats.basics.holm import with_holm
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import ettr_renewal
from ttf.stats.large_runs.plans import habits_of, node_rate, rate_row, size_of_the_run

NO_SIZE = "the failure rate of a node is not projected to the run"
NO_CAUSE = "causes are not recorded, so every failure would count as infrastructure"
_UNITS = {
    "failure_share": ("share", "jobs"),
    "infra_rate": ("failures per 1000 node-days", "attempts"),
    "ettr": ("share", "attempts"),
    "lost_time": ("share", "attempts"),
    "suspect_nodes": ("nodes", "nodes"),
    "failure_words": ("words", "failed jobs"),
}


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    settings = given.settings
    jobs = given.scan("jobs")
    calendar = calendar_of(jobs, settings.parts)
    if calendar.why == ONE_PART:
        tables = (CHANGES, CHANGES_SUMMARY, NEW_WORDS, NEW_SUSPECTS, FORECAST)
        return {table.name: table.frame([]) for table in tables}
    cluster_by = level_names(jobs)[0]
    measured = {name: {"reason": calendar.why} for name in _BY_TIME}
    border_s = None
    if calendar.why is None:
        measured, border_s = _measured(given, jobs, calendar), int(calendar.begins_s[-1])
    nodes, measured["suspect_nodes"] = new_suspects(given, border_s, settings.false_discovery)
    words, measured["failure_words"] = _words(given, jobs, calendar.names[-1], cluster_by is not None)
    table = changes(measured, calendar, cluster_by)
    return {
        "changes": table,
        "changes_summary": summarise_changes(table, words, nodes),
        "new_failure_words": words,
        "new_suspect_nodes": nodes,
        "week_forecast": forecasts(given, jobs, calendar),
    }


def summarise_changes(table: pl.DataFrame, words: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """The one row of CHANGES_SUMMARY; of CHANGES, NEW_WORDS and NEW_SUSPECTS."""
    row = {"measures": table.height, "tested": table["p_adjusted"].count()}
    row |= {"changed": (table["verdict"] == CHANGED).sum()}
    return CHANGES_SUMMARY.frame([row | {"new_failure_words": words.height, "new_suspect_nodes": nodes.height}])


_BY_TIME = ("failure_share", "infra_rate", "ettr", "lost_time")


def changes(measured: dict[str, dict], calendar: Calendar, cluster_by: str | None) -> pl.DataFrame:
    """CHANGES of the measures by name. The run of the rate is the rate in other words, and has its p-value and verdict:

    Holm's adjustment is over the others.
    """
    rate = measured["infra_rate"]
    tested = with_holm([{**measured[name], "measure": name} for name in _UNITS if name != "ettr"])
    rows = {row["measure"]: row for row in tested}
    ettr = measured["ettr"] | {"measure": "ettr"}
    if "difference" in ettr:
        ettr["p_adjusted"] = rows["infra_rate"]["p_adjusted"]
        ettr |= {
            name: rate.get(name)
            for name in ("clusters", "p_clustered", "effective_parts", "p_parts", "p_exact", "p_value")
        }
    rows["ettr"] = ettr
    has_times = calendar.why is None
    shared = {
        "part": calendar.names[-1],
        "parts_before": len(calendar.names) - 1,
        "from_s": int(calendar.begins_s[-1]) if has_times else None,
        "to_s": calendar.end_s,
    }
    table = []
    for name, (unit, n_of) in _UNITS.items():
        row = shared | rows[name] | {"unit": unit, "n_of": n_of}
        row["verdict"] = verdict_of(row)
        row["cluster_by"] = cluster_by if row.get("clusters") is not None else None
        row["follow_up_s"] = calendar.follow_up_s if has_times and name == "failure_share" else None
        if not has_times and not row.get("reason"):
            row["reason"] = calendar.why
        table.append(row)
    return CHANGES.frame(table)


def _measured(given: Inputs, jobs: pl.LazyFrame, calendar: Calendar) -> dict[str, dict]:
    rates = rate_row(given["node_failure_rate"])
    failed = _failed(given, jobs)
    rate, lost = runs_by_time(
        given.scan("lives_infra", LIVES),
        failed,
        calendar,
        rates["above_gpus"] or 0,
        rates["node_gpus"] or 1,
        rates["node_gpus_from"],
    )
    lost_row = compared(lost, is_share=False, is_count=False)
    of_sides = {"before": lost.top[:-1].sum(), "after": lost.top[-1].sum()}
    per_day = compared(rate, is_share=False, is_count=True)
    rates_of_row = [name for name in ("before", "after", "difference", "ci_low", "ci_high") if name in per_day]
    return {
        "failure_share": compared(ended_jobs(jobs, calendar), is_share=True, is_count=False),
        "infra_rate": per_day | {name: 1000 * per_day[name] for name in rates_of_row},
        "ettr": _ettr(given, per_day, rates["basis"]),
        "lost_time": lost_row | {f"amount_{side}": float(hours) for side, hours in of_sides.items()},
    }


def _failed(given: Inputs, jobs: pl.LazyFrame) -> pl.LazyFrame:
    """failed, a row for each infra life: an attempt that ended in failure; of jobs without attempts, the job."""
    if "attempts" in given:
        runs = given.scan("attempts", ["start_s", "outcome"]).filter(pl.col("start_s").is_not_null())
    else:
        runs = jobs.filter(pl.col("outcome") != "waiting")
    return runs.select(failed=(pl.col("outcome") == "failure").fill_null(False))


def _ettr(given: Inputs, rate: dict, basis: str) -> dict:
    """The expected share of progress of the run of the target size, at the failure rate of a node on each side.

    Its interval is where that of the rate's difference, added to the rate before, takes it. rate: per node-day.
    """
    counts = {name: rate.get(name) for name in ("events_before", "events_after", "n_before", "n_after")}
    if basis == PROXY:
        return counts | {"reason": NO_CAUSE}
    if "ettr_assumptions" not in given or "mttf_by_gpus" not in given:
        return counts | {"reason": NO_SIZE}
    assumed = given["ettr_assumptions"]
    planned = node_rate(given["node_failure_rate"], given["mttf_by_gpus"])
    ((_, nodes),) = planned.sizes([size_of_the_run(assumed)])
    if planned.why_not(nodes):
        return counts | {"reason": planned.why_not(nodes)}
    if "before" not in rate:
        return counts | {"reason": rate["reason"]}
    habits = habits_of(assumed)

    def at(per_day: float) -> float:
        return float(ettr_renewal(habits.plan(nodes * max(per_day, 0.0) / SECONDS_A_DAY)))

    before, after = at(rate["before"]), at(rate["after"])
    row = counts | {"before": before, "after": after, "difference": after - before, "reason": rate.get("reason")}
    if rate.get("detectable_ratio") and before:
        row["detectable_ratio"] = at(rate["before"] * rate["detectable_ratio"]) / before
    if "ci_low" in rate:
        row |= {"ci_low": at(rate["before"] + rate["ci_high"]) - before}
        row |= {"ci_high": at(rate["before"] + rate["ci_low"]) - before}
    return row


def _words(given: Inputs, jobs: pl.LazyFrame, last: str, has_clusters: bool) -> tuple[pl.DataFrame, dict]:
    there = jobs.collect_schema().names()
    columns = [*("job_id", "task", "part", "outcome", "cluster"), *(name for name in KINDS if name in there)]
    reasons = given.scan("reasons", ["job_id", "task", "reason"]) if "reasons" in given else None
    return new_words(*words_of_failures(jobs.select(columns), reasons, last), has_clusters)


def forecasts(given: Inputs, jobs: pl.LazyFrame, calendar: Calendar) -> pl.DataFrame:
    """FORECAST of failed jobs and of infrastructure failures, by the weeks in which they ended."""
    lives = given.scan("lives_infra", ["start_s", "duration_s", "event", "basis"])
    basis = lives.select(pl.col("basis").first()).collect(engine="streaming").item()
    ends = {
        "failed_jobs": jobs.filter(pl.col("outcome") == "failure").select("end_s"),
        "infra_failures": lives.filter(pl.col("event") == EVENT).select(end_s=pl.col("start_s") + pl.col("duration_s")),
    }
    rows = []
    for what, ended in ends.items():
        why = NO_CAUSES if what == "infra_failures" and basis == PROXY else calendar.why
        weeks = [] if why else _by_week(ended, calendar)
        if not weeks:
            rows.append({"what": what, "week": 1, "weeks_before": 0, "tried": 0, "reason": why or NO_WEEK})
        rows += [row | {"what": what} for row in (rolling(weeks, calendar.end_s) if weeks else [])]
    return FORECAST.frame(rows)


def _by_week(ended: pl.LazyFrame, calendar: Calendar) -> Sequence[int]:
    """How many ended in each whole week, the first of the records first."""
    weeks = int(calendar.end_s - calendar.begins_s[0]) // WEEK_S
    ago = (calendar.end_s - pl.col("end_s")) // WEEK_S
    counts = ended.filter(pl.col("end_s") <= calendar.end_s).group_by(ago=ago).agg(n=pl.len())
    counts = counts.filter(pl.col("ago") < weeks).collect(engine="streaming")
    n = np.bincount(weeks - 1 - counts["ago"].to_numpy(), weights=counts["n"].to_numpy(), minlength=weeks)
    return n.astype(int).tolist()

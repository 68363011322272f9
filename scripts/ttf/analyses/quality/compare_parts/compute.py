"""Compare the last part of the records with all earlier ones, and forecast the next week."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.quality.compare_parts import ANALYSIS, CHANGED, CHANGES, CHANGES_SUMMARY, FORECAST
from ttf.analyses.quality.compare_parts.calendar import ONE_PART, Calendar, estimate_calendar
from ttf.analyses.quality.compare_parts.forecast import NO_CAUSES, NO_WEEK, WEEK_S, rolling_forecasts
from ttf.analyses.quality.compare_parts.news import KINDS, count_failure_words, find_new_suspects, find_new_words
from ttf.analyses.quality.compare_parts.part_tests import compare_sides, decide_verdict
from ttf.analyses.quality.compare_parts.sums import DURATIONS, sum_ended_jobs, sum_runs
from ttf.records.clusters import level_names
from ttf.records.infra import EVENT, PROXY
from ttf.records.inputs import Inputs
from ttf.stats.basics.holm import add_adjusted_p
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.large_runs.ettr import expected_scheduled_s
from ttf.stats.large_runs.plans import habits_from_assumptions, node_rate, planned_size, rate_row

NO_SIZE = "the failure rate of a node is not projected to the run"
NO_CAUSE = "causes are not recorded, so every failure would count as infrastructure"
_UNITS = {
    "failure_share": ("share", "jobs"),
    "infra_rate": ("failures per 1000 node-days", "attempts"),
    "scheduled_ettr": ("share", "attempts"),
    "lost_time": ("share", "attempts"),
    "suspect_nodes": ("nodes", "nodes"),
    "failure_words": ("words", "failed jobs"),
}


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    settings = inputs.settings
    jobs = inputs.scan("jobs")
    calendar = estimate_calendar(jobs, settings.parts)
    if calendar.reason == ONE_PART:
        return {table.name: table.frame([]) for table in ANALYSIS.tables}
    cluster_by = level_names(jobs)[0]
    rows = {name: {"reason": calendar.reason} for name in _DATED_MEASURES}
    last_begins_s = None
    if calendar.reason is None:
        rows, last_begins_s = _compare_measures(inputs, jobs, calendar), int(calendar.begins_s[-1])
    nodes, gone_nodes, rows["suspect_nodes"] = find_new_suspects(inputs, last_begins_s, settings.false_discovery)
    words, rows["failure_words"] = _new_word_rows(inputs, jobs, calendar.names[-1], cluster_by is not None)
    changes = build_changes(rows, calendar, cluster_by)
    return {
        "changes": changes,
        "changes_summary": summarise_changes(changes, words, nodes),
        "new_failure_words": words,
        "new_suspect_nodes": nodes,
        "gone_suspect_nodes": gone_nodes,
        "week_forecast": build_forecasts(inputs, jobs, calendar),
    }


def summarise_changes(changes: pl.DataFrame, words: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """Summarise CHANGES, NEW_WORDS and NEW_SUSPECTS as the one row of CHANGES_SUMMARY."""
    row = {"measures": changes.height, "tested": changes["p_adjusted"].count()}
    row |= {"changed": int((changes["verdict"] == CHANGED).sum())}
    return CHANGES_SUMMARY.frame([row | {"new_failure_words": words.height, "new_suspect_nodes": nodes.height}])


_DATED_MEASURES = ("failure_share", "infra_rate", "scheduled_ettr", "lost_time")


def build_changes(measures: dict[str, dict], calendar: Calendar, cluster_by: str | None) -> pl.DataFrame:
    """Build CHANGES from the measures by name.

    The ETTR restates the failure rate and has its p-value and verdict; Holm's adjustment is over the other measures.
    """
    rate = measures["infra_rate"]
    adjusted = add_adjusted_p([{**measures[name], "measure": name} for name in _UNITS if name != "scheduled_ettr"])
    rows = {row["measure"]: row for row in adjusted}
    ettr = measures["scheduled_ettr"] | {"measure": "scheduled_ettr"}
    if "difference" in ettr:
        ettr["p_adjusted"] = rows["infra_rate"]["p_adjusted"]
        ettr |= {name: rate.get(name) for name in ("clusters", "p_clustered", "p_parts", "p_exact", "p_value")}
    rows["scheduled_ettr"] = ettr
    has_times = calendar.reason is None
    shared = {
        "part": calendar.names[-1],
        "parts_before": len(calendar.names) - 1,
        "from_s": int(calendar.begins_s[-1]) if has_times else None,
        "to_s": calendar.end_s,
    }
    changes = []
    for name, (unit, n_of) in _UNITS.items():
        row = shared | rows[name] | {"unit": unit, "n_of": n_of}
        row["verdict"] = decide_verdict(row)
        row["cluster_by"] = cluster_by if row.get("clusters") is not None else None
        row["follow_up_s"] = calendar.follow_up_s if has_times and name == "failure_share" else None
        if not has_times and not row.get("reason"):
            row["reason"] = calendar.reason
        changes.append(row)
    return CHANGES.frame(changes)


def _compare_measures(inputs: Inputs, jobs: pl.LazyFrame, calendar: Calendar) -> dict[str, dict]:
    """Return, by name, the row of CHANGES of each measure that needs the times of the parts."""
    rates = rate_row(inputs["node_failure_rate"])
    rate_sums, lost_sums = sum_runs(
        inputs.scan("durations_infra", DURATIONS),
        _flag_failed_runs(inputs, jobs),
        calendar,
        rates["above_gpus"] or 0,
        rates["node_gpus"] or 1,
        rates["node_gpus_from"],
    )
    lost_row = compare_sides(lost_sums, is_share=False, is_count=False)
    lost_hours = {"before": lost_sums.top[:-1].sum(), "after": lost_sums.top[-1].sum()}
    # Without an interval over all time, the rate is withheld.
    daily_row = {"reason": rates["reason"]}
    if rates["ci_high"] is not None:
        daily_row = compare_sides(rate_sums, is_share=False, is_count=True)
    rate_cells = [name for name in ("before", "after", "difference", "ci_low", "ci_high") if name in daily_row]
    return {
        "failure_share": compare_sides(sum_ended_jobs(jobs, calendar), is_share=True, is_count=False),
        "infra_rate": daily_row | {name: 1000 * daily_row[name] for name in rate_cells},
        "scheduled_ettr": _ettr_row(inputs, daily_row, rates["basis"]),
        "lost_time": lost_row | {f"amount_{side}": float(hours) for side, hours in lost_hours.items()},
    }


def _flag_failed_runs(inputs: Inputs, jobs: pl.LazyFrame) -> pl.LazyFrame:
    """Return `failed` for each infrastructure duration: an attempt, or a job if jobs have no attempts."""
    if "attempts" in inputs:
        runs = inputs.scan("attempts", ["start_s", "outcome"]).filter(pl.col("start_s").is_not_null())
    else:
        runs = jobs.filter(pl.col("outcome") != "waiting")
    return runs.select(failed=(pl.col("outcome") == "failure").fill_null(False))


def _ettr_row(inputs: Inputs, rate: dict, basis: str) -> dict:
    """Return the ETTR of scheduled time of the run of the target size, at the failure rate of a node before and after.

    Its interval follows from that of the rate's difference, added to the rate before. rate: per node-day.
    """
    counts = {name: rate.get(name) for name in ("events_before", "events_after", "n_before", "n_after")}
    if basis == PROXY:
        return counts | {"reason": NO_CAUSE}
    if "ettr_assumptions" not in inputs or "mttf_by_gpus" not in inputs:
        return counts | {"reason": NO_SIZE}
    assumptions = inputs["ettr_assumptions"]
    projection = node_rate(inputs["node_failure_rate"], inputs["mttf_by_gpus"])
    ((_, nodes),) = projection.list_gpus_and_nodes([planned_size(assumptions)])
    if projection.why_not(nodes):
        return counts | {"reason": projection.why_not(nodes)}
    if "before" not in rate:
        return counts | {"reason": rate["reason"]}
    habits = habits_from_assumptions(assumptions)

    def ettr_at(node_rate_per_day: float) -> float:
        rate_per_s = nodes * max(node_rate_per_day, 0.0) / SECONDS_A_DAY
        return habits.productive_s / float(expected_scheduled_s(habits.plan(rate_per_s)))

    ettr_before, ettr_after = ettr_at(rate["before"]), ettr_at(rate["after"])
    row = counts | {"before": ettr_before, "after": ettr_after, "difference": ettr_after - ettr_before}
    row["reason"] = rate.get("reason")
    if rate.get("detectable_ratio") and ettr_before:
        row["detectable_ratio"] = ettr_at(rate["before"] * rate["detectable_ratio"]) / ettr_before
    if "ci_low" in rate:
        row |= {"ci_low": ettr_at(rate["before"] + rate["ci_high"]) - ettr_before}
        row |= {"ci_high": ettr_at(rate["before"] + rate["ci_low"]) - ettr_before}
    return row


def _new_word_rows(inputs: Inputs, jobs: pl.LazyFrame, last_part: str, has_clusters: bool) -> tuple[pl.DataFrame, dict]:
    """Return (NEW_WORDS, row of CHANGES) of `find_new_words`, from the jobs and their reasons."""
    job_columns = jobs.collect_schema().names()
    columns = [*("job_id", "task", "part", "outcome", "cluster"), *(name for name in KINDS if name in job_columns)]
    reasons = inputs.scan("reasons", ["job_id", "task", "reason"]) if "reasons" in inputs else None
    return find_new_words(*count_failure_words(jobs.select(columns), reasons, last_part), has_clusters)


def build_forecasts(inputs: Inputs, jobs: pl.LazyFrame, calendar: Calendar) -> pl.DataFrame:
    """Build FORECAST of failed jobs and of infrastructure failures, by the weeks in which they ended."""
    durations = inputs.scan("durations_infra", ["start_s", "duration_s", "event", "basis"])
    basis = durations.select(pl.col("basis").first()).collect(engine="streaming").item()
    ends_by_kind = {
        "failed_jobs": jobs.filter(pl.col("outcome") == "failure").select("end_s"),
        "infra_failures": durations.filter(pl.col("event") == EVENT).select(
            end_s=pl.col("start_s") + pl.col("duration_s")
        ),
    }
    rows = []
    for kind, ends in ends_by_kind.items():
        reason = NO_CAUSES if kind == "infra_failures" and basis == PROXY else calendar.reason
        weeks = [] if reason else _count_by_week(ends, calendar)
        if not weeks:
            rows.append({"what": kind, "week": 1, "weeks_before": 0, "tried": 0, "reason": reason or NO_WEEK})
        rows += [row | {"what": kind} for row in (rolling_forecasts(weeks, calendar.end_s) if weeks else [])]
    return FORECAST.frame(rows)


def _count_by_week(ends: pl.LazyFrame, calendar: Calendar) -> Sequence[int]:
    weeks = int(calendar.end_s - calendar.begins_s[0]) // WEEK_S
    weeks_ago = (calendar.end_s - pl.col("end_s")) // WEEK_S
    week_counts = ends.filter(pl.col("end_s") <= calendar.end_s).group_by(weeks_ago=weeks_ago).agg(n=pl.len())
    counts = week_counts.filter(pl.col("weeks_ago") < weeks).collect(engine="streaming")
    n = np.bincount(weeks - 1 - counts["weeks_ago"].to_numpy(), weights=counts["n"].to_numpy(), minlength=weeks)
    return n.astype(int).tolist()

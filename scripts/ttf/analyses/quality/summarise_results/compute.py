"""Summarise the tables of other analyses for the top of the page."""

import numpy as np
import polars as pl
from scipy.special import logit, stdtrit

from ttf.analyses.lost.measure_losses import NO_CERTAIN_RETRY, NO_RETRY, TRIAL
from ttf.analyses.quality.summarise_results import ACTIONS, FAILED_TIME, MTTF_RANGE, QUALITY_SUMMARY
from ttf.display.metrics import FEWEST_FAILURES
from ttf.engine.size_unit import GPU
from ttf.engine.words import join_list
from ttf.records.inputs import Inputs
from ttf.records.jobs import TIME_LIMITS
from ttf.stats.durations.missing_ends import MOST_RUNNING, MOST_WITHOUT_END, RANGE
from ttf.stats.shares import divide

# Name attempts above a size if they hold at least this share of the GPU time ended by infrastructure failures.
LEAST_COVERED_SHARE = 0.9
# Groups of jobs that may have excess failures.
GROUPS = ("account", "gpu_type")


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    failed = failed_time(inputs) if "lost_work" in inputs and "states" in inputs else FAILED_TIME.frame([])
    price = inputs.settings.prices.get("price_per_gpu_hour") if inputs.unit == GPU else None
    action_rows = actions(inputs, failed) if "lost_work" in inputs else ACTIONS.frame([])
    if price:
        cost = pl.col("gpu_hours") * price
        action_rows = action_rows.with_columns(cost=cost)
        failed = failed.with_columns(cost=cost, currency=pl.lit(inputs.settings.prices.get("currency"), pl.String))
    return {
        "quality_summary": summarise_quality(inputs) if "row_account" in inputs else QUALITY_SUMMARY.frame([]),
        "mttf_range": mttf_range(inputs) if "mttf" in inputs else MTTF_RANGE.frame([]),
        "failed_time": failed,
        "actions": action_rows,
    }


def summarise_quality(inputs: Inputs) -> pl.DataFrame:
    """Sum rows read and quarantined, anomalies, suggestions and columns in the one row of QUALITY_SUMMARY."""
    account, anomalies, statistics = inputs["row_account"], inputs["anomalies"], inputs["statistics"]
    row: dict = {name: int(account[name].sum()) for name in ("rows_read", "rows_accepted", "rows_quarantined")}
    suggested = anomalies.filter(~pl.col("suggestion").str.starts_with("none").fill_null(True))
    stored = statistics.filter(pl.col("stored_as").is_not_null())
    row |= {
        "quarantined_share": divide(row["rows_quarantined"], row["rows_read"]),
        "anomalies": anomalies.height,
        "rows_concerned": int(anomalies["rows"].sum()),
        "suggestions": suggested.height,
        "rows_suggested": int(suggested["rows"].sum()),
        "tables": statistics["table"].n_unique(),
        "columns": statistics.height,
        "columns_stored": stored.height,
        "columns_blank": stored.filter((pl.col("blank") == pl.col("rows")) & (pl.col("rows") > 0)).height,
    }
    return QUALITY_SUMMARY.frame([row])


def mttf_range(inputs: Inputs) -> pl.DataFrame:
    """Return MTTF_RANGE: the range of the mean time to failure if missing or censored ends decide it.

    Each condition adds limits. More than MOST_WITHOUT_END of failures have no end: they failed at once, or as late as
    possible; the estimate from the other failures is withheld. More than MOST_RUNNING of the time at risk is in running
    jobs: exclude that time. More than MOST_WITHOUT_END of ended jobs have no recorded result: all failed. The estimate
    with delayed entry (left truncation) lies outside the interval: include it.
    """
    filters = {"event": "failure", "stratum_by": "all", "confidence": 0.95}
    mean: dict = next(inputs["mttf"].filter(**filters).iter_rows(named=True), {"mttf_s": None})
    limits, reasons = [mean[name] for name in ("mttf_s", *RANGE) if mean.get(name) is not None], []
    if mean.get("mttf_low_s") is not None:
        reasons.append(mean["reason"])
    running_share = inputs["jobs_summary"]["running_time_share"][0] or 0 if "jobs_summary" in inputs else 0
    if limits and running_share > MOST_RUNNING:
        limits.append((1 - running_share) * min(limits))
        reasons.append(f"{running_share:.1%} of the time at risk belongs to runs that are still running")
    if mean["mttf_s"] and "outcomes" in inputs:
        unknown = sum(inputs["outcomes"].filter(outcome="unknown")["n"])
        if unknown > MOST_WITHOUT_END * (inputs["ended_jobs"]["ended"][0] + unknown):
            limits.append(mean["exposure_s"] / (mean["events"] + unknown))
            reasons.append(f"{unknown:,} ended with no result recorded")
    delayed = inputs["mttf_delayed_entry"].filter(**filters) if "mttf_delayed_entry" in inputs else pl.DataFrame()
    for row in delayed.iter_rows(named=True):
        if mean["mttf_s"] and row["mttf_s"] and not mean["ci_low_s"] <= row["mttf_s"] <= mean["ci_high_s"]:
            limits.append(row["mttf_s"])
            reasons.append("what ended before the record began is missing from it")
    if not reasons:
        return MTTF_RANGE.frame([])
    limit_cells = {"low_s": min(limits), "high_s": max(limits), "why": join_list(reasons)}
    return MTTF_RANGE.frame([{"n": mean["n"]} | limit_cells])


def failed_time(inputs: Inputs) -> pl.DataFrame:
    """Return FAILED_TIME; no rows without failed GPU time, only `limit` and `all` if causes are not recorded."""
    sizes, states = inputs["lost_work"], inputs["states"]
    failed = float(sizes["failed_gpu_hours"].sum())
    if not failed:
        return FAILED_TIME.frame([])
    # Use attempts if the trace has them: their rows follow those of jobs.
    is_limit = pl.col("state").is_in(list(TIME_LIMITS))
    limit_hours = float(states.filter(is_limit, kind="state", unit=states["unit"].last())["gpu_hours"].sum())
    hours_by_part = {"limit": limit_hours}
    if sizes["infra_basis"][0] != "proxy":
        hours_by_part["infra"] = float(sizes["infra_gpu_hours"].sum())
        hours_by_part["other"] = max(0.0, failed - limit_hours - hours_by_part["infra"])
    hours_by_part["all"] = failed
    attempts = int(sizes["failed_runs"].sum())
    return FAILED_TIME.frame(
        {"part": part, "attempts": attempts, "gpu_hours": part_hours, "share": min(1.0, part_hours / failed)}
        for part, part_hours in hours_by_part.items()
    )


def actions(inputs: Inputs, failed: pl.DataFrame) -> pl.DataFrame:
    """Return ACTIONS: a row for each action that could save anything. failed: FAILED_TIME."""
    sizes = inputs["lost_work"]
    total, infra_hours = sizes["gpu_hours"].sum(), sizes["infra_gpu_hours"].sum()
    rows = [{"action": "save_state", "gpu_hours": hours} for hours in failed.filter(part="limit")["gpu_hours"] if hours]
    if infra_hours:
        rows.append({"action": "checkpoint"} | _checkpoint_cells(sizes))
    if "what_if" in inputs:
        scenarios = inputs["what_if"].drop_nulls("net_gpu_hours")
        trials = scenarios.filter(scenario=TRIAL).sort("net_gpu_hours", descending=True, maintain_order=True)
        retries = scenarios.filter(pl.col("scenario").is_in([NO_RETRY, NO_CERTAIN_RETRY]))
        for row in pl.concat([trials.head(1), retries]).iter_rows(named=True):
            # Giving up jobs that would have succeeded loses their work.
            saved = row["net_gpu_hours"] - (row["given_up_gpu_hours"] or 0.0)
            rows.append({"action": row["scenario"], "gpu_hours": saved})
    if "lemon_summary" in inputs and sizes["infra_gpu_hours"].count():
        for share in inputs["lemon_summary"]["share_of_failures"].drop_nulls():
            rows.append({"action": "drain", "gpu_hours": share * infra_hours})
    rows += find_bad_group(inputs["strata"]) if "strata" in inputs else []
    total_attempts = {"attempts": int(sizes["runs"].sum())}
    return ACTIONS.frame(row | total_attempts | {"share": row["gpu_hours"] / total if total else None} for row in rows)


def find_bad_group(strata: pl.DataFrame) -> list[dict]:
    """Return the row of ACTIONS of the account or GPU type with the most GPU time in excess failures, if there is one.

    The logit of its failure share exceeds that of all other jobs by more than both clustered standard errors explain,
    at Bonferroni's level for all groups; that of the others is taken from all jobs. gpu_hours: its failed GPU time less
    what it would be at the share of all other jobs.
    """
    whole = next(strata.filter(stratum_by="all").iter_rows(named=True), {"ci_low_clustered": None})
    groups = strata.filter(pl.col("stratum_by").is_in(GROUPS), pl.col("failures") >= FEWEST_FAILURES)
    groups, rows = groups.drop_nulls("ci_low_clustered"), list[dict]()
    if whole["ci_low_clustered"] is None:
        return rows

    def logit_se(row: dict) -> float:
        return np.ptp(logit([row["failure_share"], row["ci_low_clustered"]])) / stdtrit(row["clusters"] - 1, 0.975)

    for row in groups.iter_rows(named=True):
        rest = {name: whole[name] - row[name] for name in ("gpu_hours", "failed_gpu_hours", "ended", "failures")}
        hours = row["failed_gpu_hours"] - row["gpu_hours"] * (divide(rest["failed_gpu_hours"], rest["gpu_hours"]) or 0)
        share = divide(rest["failures"], rest["ended"])
        margin = stdtrit(row["clusters"] - 1, 1 - 0.025 / groups.height) * np.hypot(logit_se(row), logit_se(whole))
        if share is not None and logit(row["failure_share"]) - margin > logit(share) and hours > 0:
            group = {"group_by": row["stratum_by"], "group": row["stratum"], "failures": row["failures"]}
            rows.append({"action": "group", "gpu_hours": hours, "expected": row["ended"] * share} | group)
    return sorted(rows, key=lambda row: -row["gpu_hours"])[:1]


def _checkpoint_cells(sizes: pl.DataFrame) -> dict:
    """Return size, failures, GPU-hours ended and lost of attempts above the largest size with LEAST_COVERED_SHARE."""
    sizes = sizes.sort("gpus_low")
    cumulative_share = sizes["infra_gpu_hours"].cum_sum(reverse=True) / sizes["infra_gpu_hours"].sum()
    gpus_low = sizes.filter(cumulative_share >= LEAST_COVERED_SHARE).tail(1)["gpus_low"].item()
    columns = {"ended": "infra_gpu_hours", "lost": "first_order_gpu_hours", "failures": "infra_failures"}
    covered = sizes.filter(pl.col("gpus_low") >= gpus_low)
    row: dict = {name: covered[column].sum() for name, column in columns.items()}
    return row | {"above_gpus": max(gpus_low - 1, 0), "gpu_hours": max(0.0, row["ended"] - row["lost"])}

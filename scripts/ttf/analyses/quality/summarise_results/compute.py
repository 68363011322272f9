"""The tables of other analyses -> what the page says first."""

import polars as pl

from ttf.analyses.lost.measure_losses.what_if import TRIAL
from ttf.analyses.quality.summarise_results import ACTIONS, FAILED_TIME, MTTF_RANGE, QUALITY_SUMMARY
from ttf.engine.words import listed
from ttf.records.inputs import Inputs
from ttf.records.jobs import TIME_LIMITS
from ttf.stats.durations.missing_ends import MOST_RUNNING, MOST_WITHOUT_END
from ttf.stats.shares import part_of

# Attempts above a size are named where they hold so much of the GPU time that infrastructure failures ended.
MOST_OF_IT = 0.9


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    failed = failed_time(given) if "lost_work" in given and "states" in given else FAILED_TIME.frame([])
    return {
        "quality_summary": summarise_quality(given) if "row_account" in given else QUALITY_SUMMARY.frame([]),
        "mttf_range": mttf_range(given) if "mttf" in given else MTTF_RANGE.frame([]),
        "failed_time": failed,
        "actions": actions(given, failed) if "lost_work" in given else ACTIONS.frame([]),
    }


def summarise_quality(given: Inputs) -> pl.DataFrame:
    """The one row of QUALITY_SUMMARY."""
    account, anomalies, statistics = given["row_account"], given["anomalies"], given["statistics"]
    row = {name: int(account[name].sum()) for name in ("rows_read", "rows_kept", "rows_quarantined")}
    suggested = anomalies.filter(~pl.col("suggestion").str.starts_with("none").fill_null(True))
    stored = statistics.filter(pl.col("stored_as").is_not_null())
    is_blank = (pl.col("blank") == pl.col("rows")) & (pl.col("rows") > 0)
    row |= {
        "quarantined_share": part_of(row["rows_quarantined"], row["rows_read"]),
        "anomalies": anomalies.height,
        "rows_concerned": int(anomalies["rows"].sum()),
        "suggestions": suggested.height,
        "rows_suggested": int(suggested["rows"].sum()),
        "tables": statistics["table"].n_unique(),
        "columns": statistics.height,
        "columns_stored": stored.height,
        "columns_blank": stored.filter(is_blank).height,
    }
    return QUALITY_SUMMARY.frame([row])


def mttf_range(given: Inputs) -> pl.DataFrame:
    """MTTF_RANGE: between what the mean time to failure lies where missing or censored ends decide it.

    More than MOST_WITHOUT_END of the failures have no end: they failed at once, or as late as they can have; the
    estimate from the others is no part of the range, as it leaves these failures out. More than MOST_RUNNING of the
    time at risk is of runs that still go on: without that time. More than MOST_WITHOUT_END of the jobs that ended have
    no result recorded: all of them failed. Delayed entry (left truncation) leads out of the estimate's interval: its
    estimate.
    """
    of_all = {"event": "failure", "stratum_by": "all", "confidence": 0.95}
    mean = next(given["mttf"].filter(**of_all).iter_rows(named=True), {"mttf_s": None})
    limits, why = [] if mean["mttf_s"] is None else [mean["mttf_s"]], []
    for ends in given["failures_without_end"].filter(stratum_by="all").iter_rows(named=True):
        if (ends["share_without_end"] or 0) > MOST_WITHOUT_END:
            limits = [ends["mttf_low_s"], ends["mttf_high_s"]]
            why.append(f"{ends['share_without_end']:.1%} of the failures have no written end")
    running = given["jobs_summary"]["running_time_share"][0] or 0 if "jobs_summary" in given else 0
    if limits and running > MOST_RUNNING:
        limits.append((1 - running) * min(limits))
        why.append(f"{running:.1%} of the time at risk is of runs that still go on")
    if mean["mttf_s"] and "outcomes" in given:
        unknown = sum(given["outcomes"].filter(outcome="unknown")["n"])
        if unknown > MOST_WITHOUT_END * (given["ended_jobs"]["ended"][0] + unknown):
            limits.append(mean["exposure_s"] / (mean["events"] + unknown))
            why.append(f"{unknown:,} ended with no result recorded")
    late = given["mttf_delayed_entry"].filter(**of_all) if "mttf_delayed_entry" in given else pl.DataFrame()
    for entered in late.iter_rows(named=True):
        if mean["mttf_s"] and entered["mttf_s"] and not mean["ci_low_s"] <= entered["mttf_s"] <= mean["ci_high_s"]:
            limits.append(entered["mttf_s"])
            why.append("what ended before the record began is missing from it")
    row = {"n": mean["n"], "low_s": min(limits), "high_s": max(limits), "why": listed(why)} if why else None
    return MTTF_RANGE.frame([row] if row else [])


def failed_time(given: Inputs) -> pl.DataFrame:
    """FAILED_TIME; no row where failed attempts took no GPU time, `limit` alone where no cause is recorded."""
    sizes, states = given["lost_work"], given["states"]
    failed = sizes["failed_gpu_hours"].sum()
    if not failed:
        return FAILED_TIME.frame([])
    # Attempts where the trace has them: they stand after the jobs.
    is_limit = pl.col("state").is_in(list(TIME_LIMITS))
    limit = float(states.filter(is_limit, kind="state", unit=states["unit"].last())["gpu_hours"].sum())
    hours = {"limit": limit}
    if sizes["infra_basis"][0] != "proxy":
        hours["infra"] = sizes["infra_gpu_hours"].sum()
        hours["other"] = max(0.0, failed - limit - hours["infra"])
    attempts = int(sizes["failed_runs"].sum())
    rows = [
        {"part": part, "gpu_hours": of_part, "share": min(1.0, of_part / failed)} for part, of_part in hours.items()
    ]
    return FAILED_TIME.frame(row | {"attempts": attempts} for row in rows)


def actions(given: Inputs, failed: pl.DataFrame) -> pl.DataFrame:
    """ACTIONS: a row for each that could save anything. failed: FAILED_TIME."""
    sizes = given["lost_work"]
    total, infra_hours = sizes["gpu_hours"].sum(), sizes["infra_gpu_hours"].sum()
    rows = [{"action": "save_state", "gpu_hours": hours} for hours in failed.filter(part="limit")["gpu_hours"] if hours]
    if infra_hours:
        rows.append({"action": "checkpoint"} | _checkpoint(sizes))
    if "what_if" in given:
        scenarios = given["what_if"].drop_nulls("net_gpu_hours")
        trials = scenarios.filter(scenario=TRIAL).sort("net_gpu_hours", descending=True, maintain_order=True)
        others = scenarios.filter(pl.col("scenario") != TRIAL)
        for row in pl.concat([trials.head(1), others]).iter_rows(named=True):
            # What jobs that would have succeeded after all had done is lost.
            saved = row["net_gpu_hours"] - (row["given_up_gpu_hours"] or 0.0)
            rows.append({"action": row["scenario"], "gpu_hours": saved})
    if "lemon_summary" in given and sizes["infra_gpu_hours"].count():
        for share in given["lemon_summary"]["share_of_failures"].drop_nulls():
            rows.append({"action": "drain", "gpu_hours": share * infra_hours})
    about = {"attempts": int(sizes["runs"].sum())}
    return ACTIONS.frame(row | about | {"share": row["gpu_hours"] / total if total else None} for row in rows)


def _checkpoint(sizes: pl.DataFrame) -> dict:
    """Of the attempts above the largest size that still hold MOST_OF_IT: size, failures, what these ended and lost."""
    sizes = sizes.sort("gpus_low")
    held = sizes["infra_gpu_hours"].cum_sum(reverse=True) / sizes["infra_gpu_hours"].sum()
    above = sizes.filter(held >= MOST_OF_IT).tail(1)["gpus_low"].item()
    columns = {"ended": "infra_gpu_hours", "lost": "first_order_gpu_hours", "failures": "infra_failures"}
    row = {name: sizes.filter(pl.col("gpus_low") >= above)[column].sum() for name, column in columns.items()}
    return row | {"above_gpus": max(above - 1, 0), "gpu_hours": max(0.0, row["ended"] - row["lost"])}

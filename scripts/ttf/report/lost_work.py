"""The tables of the section on lost work."""

from collections.abc import Callable

import polars as pl

from ttf.charts.text import gpus_label
from ttf.report import words
from ttf.report.tables import Interval, html_table, told_row
from ttf.report.trace import Trace
from ttf.stats.what_if import NO_CERTAIN_RETRY, NO_RETRY, TRIAL

MOST_MONTHS = 24
MOST_OWNERS = 10

_MEASURES = {
    "not_first_share": "Failures that are not the first of their group",
    "failures_per_group": "Failures per group with a failure",
    "preceded_share": "Failures whose job before had failed",
    "failure_after_failure": "Jobs that failed, after a failure",
    "failure_after_success": "Jobs that failed, after a success",
    "first_failure_s": "Median time to the first failure",
}
_GROUPS = {"user": "By user", "recurrence_group": "By recurrence group", "job": "Jobs of several runs"}


def lost_work_tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """Losses by size and by month, owners, repeats, what-ifs; a table with nothing in it is left out."""
    tables = {}
    losses = {
        "runs": ("Runs", words.count),
        "gpu_hours": ("GPU hours", words.number),
        "failed_runs": ("Failed", words.count),
        "failed_gpu_hours": ("their GPU hours", words.number),
        "failed_gpu_hours_share": ("Share", words.share),
        "infra_failures": ("Infra failures", words.count),
        "first_order_gpu_hours": ("GPU hours lost", words.number),
        "preemptions": ("Preempted", words.count),
        "second_order_gpu_hours": ("lost, at most", words.number),
        "linked_gpu_hours": ("of it linked", words.number),
    }
    by_gpus = trace.table("lost_work")
    # Where nothing failed, the text says so in a sentence.
    cost = by_gpus.select(pl.sum_horizontal("failed_runs", "infra_failures", "preemptions").sum()).item() or 0
    if cost:
        labels = [gpus_label(low, high) for low, high in by_gpus.select("gpus_low", "gpus_high").iter_rows()]
        named = by_gpus.with_columns(gpus=pl.Series(labels, dtype=pl.String))
        tables["lost-work"] = html_table(named, {"gpus": ("GPUs", str)} | _present(named, losses), identifier("lost"))
    by_month = trace.table("lost_work_by_month").tail(MOST_MONTHS)
    if cost and by_month.height:
        complete = by_month["complete"].to_list()
        names = [
            "no end written" if whole is None else name if whole else f"{name} (in part)"
            for name, whole in zip(by_month["window"], complete, strict=True)
        ]
        named = by_month.with_columns(window=pl.Series(names, dtype=pl.String))
        columns = {"window": ("Month", None)} | _present(named, losses)
        tables["lost-work-by-month"] = html_table(named, columns, identifier("months"))
    owners = trace.table("failures_by_owner").group_by("owner_by", maintain_order=True).head(MOST_OWNERS)
    if owners["failures"].sum():
        columns = {
            "owner": ("Owner", None),
            "ended": ("Ended", words.count),
            "failures": ("Failures", words.count),
            "failure_share": Interval("Share", words.share, "ci_low", "ci_high"),
            "failed_gpu_hours": ("GPU hours of failed runs", words.number),
            "failed_gpu_hours_share": ("Share of them", words.share),
        }
        tables["owners"] = html_table(owners, columns, identifier("owners"), group="owner_by")
    repeats = trace.table("repeats")
    repeats = repeats.filter(pl.col("estimate").is_not_null())
    if repeats.height:
        columns = {
            "measure": ("What", None),
            "n": ("n", words.count),
            "groups": ("Groups", words.count),
            "estimate": Interval("Estimate", str, "ci_low", "ci_high"),
        }
        tables["repeats"] = html_table(_in_words(repeats), columns, identifier("repeats"), group="group")
    what_if = trace.table("what_if").filter(pl.col("net_gpu_hours").is_not_null())
    if what_if.height:
        names = [_scenario(*row) for row in what_if.select("scenario", "trial_s").iter_rows()]
        columns = {
            "scenario": ("What if", None),
            "n": (f"{trace.about['unit'].capitalize()}s", words.count),
            "affected": ("Affected", words.count),
            "saved_gpu_hours": ("GPU hours saved", words.number),
            "cost_gpu_hours": ("Cost of the trials", words.number),
            "net_gpu_hours": ("Net", words.number),
            "given_up": ("Later successes", words.count),
            "given_up_gpu_hours": ("their GPU hours", words.number),
        }
        named = what_if.with_columns(scenario=pl.Series(names, dtype=pl.String))
        tables["what-if"] = html_table(named, _present(named, columns), identifier("what-if"))
    return tables


def _present(frame: pl.DataFrame, columns: dict) -> dict:
    """The columns that have a value in any row."""
    return {name: about for name, about in columns.items() if frame[name].count()}


def _scenario(scenario: str, trial_s: int | None) -> str:
    if scenario == TRIAL:
        return f"The first {words.duration(trial_s)} on one GPU"
    return {NO_RETRY: "No run after a failure", NO_CERTAIN_RETRY: "No run after a deterministic failure"}[scenario]


def _in_words(repeats: pl.DataFrame) -> pl.DataFrame:
    """Estimates and limits in the words of their unit, under the name of their kind of group."""
    worded = {"share": words.share, "s": words.duration, "failures": words.number}
    names = ("estimate", "ci_low", "ci_high")
    told = [told_row(row, worded[unit]) for unit, *row in repeats.select("unit", *names).iter_rows()]
    return repeats.with_columns(
        pl.col("measure").replace_strict(_MEASURES),
        *pl.DataFrame(told, schema=dict.fromkeys(names, pl.String), orient="row").get_columns(),
        group=pl.col("group_by").replace_strict(_GROUPS),
    )

"""The tables of the section on lost work."""

from collections.abc import Sequence

import polars as pl

from ttf.analyses.measure_losses import FAILURES_BY_OWNER, LOST_WORK, LOST_WORK_BY_MONTH, REPEATS, WHAT_IF
from ttf.analyses.measure_losses.what_if import NO_CERTAIN_RETRY, NO_RETRY, TRIAL
from ttf.charts.text import gpus_label
from ttf.report import words
from ttf.report.tables import CLUSTERED, Interval, Shown, in_words, texts
from ttf.report.trace import Trace

MOST_MONTHS = 24
MOST_OWNERS = 10
LOSSES = (
    *("runs", "gpu_hours", "failed_runs", "failed_gpu_hours", "failed_gpu_hours_share"),
    *("infra_failures", "first_order_gpu_hours", "preemptions", "second_order_gpu_hours", "linked_gpu_hours"),
)
SCENARIOS = (
    *("scenario", "n", "affected", "saved_gpu_hours", "cost_gpu_hours", "net_gpu_hours"),
    *("given_up", "given_up_gpu_hours"),
)

_MEASURES = {
    "not_first_share": "Failures that are not the first of their group",
    "failures_per_group": "Failures per group with a failure",
    "preceded_share": "Failures whose job before had failed",
    "failure_after_failure": "Jobs that failed, after a failure",
    "failure_after_success": "Jobs that failed, after a success",
    "first_failure_s": "Median time to the first failure",
}
_GROUPS = {"user": "By user", "recurrence_group": "By recurrence group", "job": "Jobs of several runs"}


def tables(trace: Trace) -> dict[str, Shown]:
    by_gpus, by_month = trace.table("lost_work"), trace.table("lost_work_by_month").tail(MOST_MONTHS)
    owners = trace.table("failures_by_owner").group_by("owner_by", maintain_order=True).head(MOST_OWNERS)
    shown = {}
    # Where nothing failed, the text says so in a sentence.
    if by_gpus.select(pl.sum_horizontal("failed_runs", "infra_failures", "preemptions").sum()).item():
        named = by_gpus.with_columns(gpus=texts(by_gpus, ("gpus_low", "gpus_high"), gpus_label))
        columns = {"gpus": ("GPUs", str)} | dict.fromkeys(_present(named, LOSSES))
        shown["lost-work"] = Shown(named, columns, LOST_WORK)
        names = texts(by_month, ("window", "complete"), lambda name, whole: name if whole else f"{name} (in part)")
        named = by_month.with_columns(window=names.fill_null("no end written"))
        shown["lost-work-by-month"] = Shown(named, ("window", *_present(named, LOSSES)), LOST_WORK_BY_MONTH)
    if owners["failures"].sum():
        columns = {
            **dict.fromkeys(("owner", "ended", "failures")),
            "failure_share": CLUSTERED,
            **dict.fromkeys(("failed_gpu_hours", "failed_gpu_hours_share")),
        }
        shown["owners"] = Shown(owners, columns, FAILURES_BY_OWNER, "owner_by")
    repeats = _in_words(trace.table("repeats").filter(pl.col("estimate").is_not_null()))
    columns = dict.fromkeys(("measure", "n", "groups"))
    columns |= {"estimate": Interval(worded=str, low="ci_low", high="ci_high")}
    shown["repeats"] = Shown(repeats, columns, REPEATS, "group")
    what_if = trace.table("what_if").filter(pl.col("net_gpu_hours").is_not_null())
    what_if = what_if.with_columns(scenario=texts(what_if, ("scenario", "trial_s"), _scenario))
    unit = (f"{trace.about['unit'].capitalize()}s", words.count)
    columns = {name: unit if name == "n" else None for name in _present(what_if, SCENARIOS)}
    return shown | {"what-if": Shown(what_if, columns, WHAT_IF)}


def _present(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if frame[name].count()]


def _scenario(scenario: str, trial_s: int | None) -> str:
    if scenario == TRIAL:
        return f"The first {words.duration(trial_s)} on one GPU"
    return {NO_RETRY: "No run after a failure", NO_CERTAIN_RETRY: "No run after a deterministic failure"}[scenario]


def _in_words(repeats: pl.DataFrame) -> pl.DataFrame:
    """Estimates and limits in the words of their unit, under the name of their kind of group."""
    worded = {"share": words.share, "s": words.duration, "failures": words.number}
    names = ("estimate", "ci_low", "ci_high")
    estimates = [in_words(row, worded[unit]) for unit, *row in repeats.select("unit", *names).iter_rows()]
    return repeats.with_columns(
        pl.col("measure").replace_strict(_MEASURES),
        *pl.DataFrame(estimates, schema=dict.fromkeys(names, pl.String), orient="row").get_columns(),
        group=pl.col("group_by").replace_strict(_GROUPS),
    )

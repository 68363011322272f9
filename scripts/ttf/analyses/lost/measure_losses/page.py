"""The visible part of the section on GPU time in failures, and its tables."""

from collections.abc import Sequence

import polars as pl

from ttf.analyses.lost.account_gpu_hours import RUNNING, UNKNOWN
from ttf.analyses.lost.measure_losses import (
    FAILURES_BY_OWNER,
    LOCALITY,
    LOST_WORK,
    LOST_WORK_BY_MONTH,
    NO_RETRY,
    REPEATS,
    WHAT_IF,
)
from ttf.display.report_tables import CLUSTERED, Interval, PageTable, add_size_labels, format_estimate, format_rows
from ttf.display.report_trace import Trace
from ttf.display.section_head import Head, Key, Line
from ttf.display.statement_rules import few_gpus_sentence, is_failed_time_bound, r12_few_gpus
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.records.infra import PROXY

MOST_MONTHS = 24
MOST_OWNERS = 10
# The key value is hidden when recorded use exceeds capacity by more than this share.
MOST_ABOVE = 0.05
# The key value is hidden when jobs with an unknown end used more than this share of the GPU time.
MOST_OPEN = 0.5
LOSSES = (
    *("runs", "gpu_hours", "failed_runs", "failed_gpu_hours", "failed_gpu_hours_share"),
    *("infra_failures", "first_order_gpu_hours", "preemptions", "second_order_gpu_hours", "linked_gpu_hours"),
)
SCENARIOS = (
    *("scenario", "n", "affected", "saved_gpu_hours", "cost_gpu_hours", "net_gpu_hours"),
    *("given_up", "given_up_gpu_hours"),
)

_MEASURE_LABELS = {
    "not_first_share": "Failures that are not the first of their group",
    "failures_per_group": "Failures per group with a failure",
    "preceded_share": "Failures whose previous job had failed",
    "failure_after_failure": "Jobs that failed, after a failure",
    "failure_after_success": "Jobs that failed, after a success",
    "first_failure_s": "Median time to the first failure",
    "retried_share": "Failed tries that were tried again",
    "failure_on_same_node": "Tries that failed, after a failure on the same node",
    "failure_on_other_node": "Tries that failed, after a failure on another node",
}
_GROUP_LABELS = {
    "user": "By user",
    "recurrence_group": "By recurrence group",
    "job": "Jobs of several attempts",
    "part": "Parts of jobs, tried again",
}


def head(trace: Trace, m: Numbers) -> Head | Line:
    unit = trace.info["unit"]
    if not m.value("lost_work.runs"):
        return Line("GPU time in failures", f"no {unit} has run", "lost_work", checked=False)
    if not m["lost_work.failed_runs"] and not m["lost_work.infra_failures"]:
        return Line("GPU time in failures", "no attempt failed, of [lost_work.runs]", "lost_work")
    if not m.value("lost_work.failed_gpu_hours"):
        return Line(
            "GPU time in failures", "no failed attempt has a GPU and a known run time", "lost_work", checked=False
        )
    if r12_few_gpus(m):
        return Line(
            "GPU time in failures",
            f"{few_gpus_sentence(m, unit)}: the time is theirs alone",
            "lost_work",
            checked=False,
        )
    sentences = [
        "Checkpoints are not recorded, and work saved in one remains: how much of this time is lost is not known."
    ]
    if m["lost_work.failed_without_time"]:
        sentences.append("Failed attempts without a recorded run time ([lost_work.failed_without_time]) count as 0.")
    return Head(
        claim=_format_claim(m),
        charts=("gpu_hours_by_size",),
        keys=tuple(_list_keys(m)),
        text=tuple(sentences),
        details="by size, month and user, repeated failures, what-ifs",
    )


def lines(trace: Trace, m: Numbers) -> list[Line]:
    if not m.value("lost_work.runs") or "lost_work.second_order_gpu_hours" in m:
        return []
    return [Line("Preemption", "no attempt is recorded as preempted", "lost_work", checked=False)]


def _format_claim(m: Numbers) -> str:
    usage = "Failed attempts used [lost_work.failed_gpu_hours] GPU-hours"
    if is_failed_time_bound(m):
        return usage.replace("used", "used at least")
    if m["lost_work.failed_above_8_gpus_share"] >= 0.5:
        return f"{usage}; [lost_work.failed_above_8_gpus_share] of them on more than 8 GPUs"
    return f"{usage}, [lost_work.failed_gpu_hours_share] of all GPU time"


def _list_keys(m: Numbers) -> list[Key]:
    def hour_text(loss: str) -> str:
        return f"[lost_work.{loss}_gpu_hours] GPU-h"

    def share_text(loss: str) -> str:
        return f"[lost_work.{loss}_gpu_hours_share] of all"

    def run_text(kind: str) -> str:
        return f"[lost_work.{kind} attempt]"

    keys = [Key("Failed attempts", hour_text("failed"), f"{share_text('failed')}, {run_text('failed_runs')}")]
    has_causes, infra = m["lost_work.infra_basis"] != PROXY, m["lost_work.infra_failures"]
    if has_causes and infra:
        keys.append(
            Key("Ended by infrastructure", hour_text("infra"), f"{share_text('infra')}, {run_text('infra_failures')}")
        )
    if infra and m["lost_work.checkpoint_interval_s"]:
        interval = m["lost_work.checkpoint_interval_s"]
        pace = "with hourly checkpoints" if interval == 3600 else f"with checkpoints every {words.duration(interval)}"
        label = f"… would be lost {pace}" if has_causes else f"Would be lost {pace}, any failure"
        keys.append(Key(label, hour_text("first_order"), f"{share_text('first_order')}, assumed"))
    keys += list_productive_keys(m)
    # At most four keys.
    if len(keys) < 4 and m.value("lost_work.preemptions") and "lost_work.second_order_gpu_hours" in m:
        keys.append(Key("Preempted", hour_text("second_order"), f"upper bound, {run_text('preemptions')}"))
    return keys


def list_productive_keys(m: Numbers) -> list[Key]:
    """Return the productive share of capacity as a key value, if results and capacity are known."""
    open_hours = sum(m.value(f"ledger.{category}.gpu_hours", 0) for category in (RUNNING, UNKNOWN))
    if open_hours > MOST_OPEN * m.value("ledger.used_gpu_hours", 0):
        return []
    above = -m.value("ledger.above_capacity.share", 0)
    if "ledger.capacity_gpu_hours" not in m or "ledger.productive.share" not in m or above > MOST_ABOVE:
        return []
    return [Key("Productive", "[ledger.productive.share]", "of capacity, [ledger.capacity_gpu_hours] GPU-h")]


def tables(trace: Trace) -> dict[str, PageTable]:
    sizes, months = trace.table("lost_work"), trace.table("lost_work_by_month").tail(MOST_MONTHS)
    owners = trace.table("failures_by_owner").group_by("owner_by", maintain_order=True).head(MOST_OWNERS)
    page_tables = {}
    # If nothing failed, a sentence says so instead.
    if sizes.select(pl.sum_horizontal("failed_runs", "infra_failures", "preemptions").sum()).item():
        labelled = add_size_labels(sizes)
        columns = {"gpus": ("GPUs", str)} | dict.fromkeys(_nonblank_columns(labelled, LOSSES))
        page_tables["lost-work"] = PageTable(labelled, columns, LOST_WORK)
        names = format_rows(months, ("window", "complete"), lambda name, whole: name if whole else f"{name} (in part)")
        labelled = months.with_columns(window=names.fill_null("no recorded end"))
        page_tables["lost-work-by-month"] = PageTable(
            labelled, ("window", *_nonblank_columns(labelled, LOSSES)), LOST_WORK_BY_MONTH
        )
    if owners["failures"].sum():
        columns = {
            **dict.fromkeys(("owner", "ended", "failures")),
            "failure_share": CLUSTERED,
            **dict.fromkeys(("failed_gpu_hours", "failed_gpu_hours_share")),
        }
        page_tables["owners"] = PageTable(owners, columns, FAILURES_BY_OWNER, "owner_by")
    repeats = _format_estimates(trace.table("repeats").filter(pl.col("estimate").is_not_null()))
    columns = dict.fromkeys(("measure", "n", "groups"))
    columns |= {"estimate": Interval(worded=str, low="ci_low", high="ci_high")}
    page_tables["repeats"] = PageTable(repeats, columns, REPEATS, "group")
    scenarios = trace.table("what_if").filter(pl.col("net_gpu_hours").is_not_null())
    scenarios = scenarios.with_columns(scenario=format_rows(scenarios, ("scenario", "trial_s"), _scenario_label))
    unit = (f"{trace.info['unit'].capitalize()}s", words.count)
    columns = {name: unit if name == "n" else None for name in _nonblank_columns(scenarios, SCENARIOS)}
    what_if = PageTable(scenarios, columns, WHAT_IF)
    saved = trace.table("locality").drop_nulls("saved_gpu_hours")
    columns = {"gpu_bucket": ("GPUs", str), "n": unit, "spread_n": None, "saved_gpu_hours": None, "saved_share": None}
    return page_tables | {"what-if": what_if, "locality": PageTable(saved, columns, LOCALITY)}


def _nonblank_columns(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if frame[name].count()]


def _scenario_label(scenario: str, trial_s: int | None) -> str:
    if trial_s is not None:
        return f"First {words.duration(trial_s)} on one GPU"
    kind = scenario.removeprefix(NO_RETRY).removeprefix("_of_")
    return f"No retry after a {f'{kind} ' if kind else ''}failure"


def _format_estimates(repeats: pl.DataFrame) -> pl.DataFrame:
    """Return estimates and limits formatted by their unit, with the label of their kind of group."""
    format_by_unit = {"share": words.share, "s": words.duration, "failures": words.number}
    names = ("estimate", "ci_low", "ci_high")
    estimates = [
        format_estimate(row, format_by_unit[unit]) for unit, *row in repeats.select("unit", *names).iter_rows()
    ]
    return repeats.with_columns(
        pl.col("measure").replace_strict(_MEASURE_LABELS),
        *pl.DataFrame(estimates, schema=dict.fromkeys(names, pl.String), orient="row").get_columns(),
        group=pl.col("group_by").replace_strict(_GROUP_LABELS),
    )

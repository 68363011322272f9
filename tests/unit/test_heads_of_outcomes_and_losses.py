"""Tests of the heads of the sections on outcomes, causes and lost GPU time: words, numbers and main charts."""

from types import SimpleNamespace

import polars as pl
import pytest
from drawn_figures import draw_svg
from filled_texts import filled
from head_checks import check_head
from memory_tables import compute_metrics, observed_times, outcome_table, outcomes_by_gpus, sized_jobs
from ttf.analyses.causes.classify_failures import LOG_TAILS, TAXONOMY, UNMATCHED
from ttf.analyses.causes.classify_failures import page as causes
from ttf.analyses.causes.classify_failures.charts import MOST_BARS, failed_attempts_by_reason
from ttf.analyses.causes.classify_failures.compute import NO_RULE, failure_kinds, summarise_taxonomy
from ttf.analyses.lost.measure_losses import LOST_WORK_ALL
from ttf.analyses.lost.measure_losses import page as losses
from ttf.analyses.outcomes.describe_states import page as states
from ttf.analyses.outcomes.split_outcomes import page as outcomes
from ttf.analyses.outcomes.split_outcomes import summaries
from ttf.analyses.outcomes.split_outcomes.charts import jobs_and_gpu_time
from ttf.display import phrases
from ttf.display.charts.figure import Study
from ttf.display.section_head import Head, Line
from ttf.display.trace_numbers import Numbers
from ttf.records.clusters import add_clusters
from ttf.records.jobs import JOB_COLUMNS

causes, losses, states, outcomes = map(filled, (causes, losses, states, outcomes))

PODS = SimpleNamespace(info={"unit": "pod"})
HOSTILE = "<script>alert(1)</script>\u202e{outcomes.failure_share|1%}" + "long" * 2_500


def checked(head: Head | Line, m: Numbers) -> Head | Line:
    """Check that the head is short and that its numbers exist; return it."""
    assert head is not None
    return head if isinstance(head, Line) else check_head(head, m)


# ---- outcomes


def jobs(*groups: tuple) -> pl.DataFrame:
    """Make jobs from groups of (number, outcome, GPUs, further columns)."""
    rows = [
        {"job_id": f"{group_number}.{i}", "outcome": outcome, "gpu_milli": 1000 * gpus, "size": 1, "user": f"u{i % 40}"}
        | {"start_s": None if outcome == "waiting" else 0, "runtime_s": None if outcome == "waiting" else 3600}
        | {"trace_end_s": 9999}
        | further_columns
        for group_number, (number, outcome, gpus, *further) in enumerate(groups)
        for i in range(number)
        for further_columns in (further[0] if further else {},)
    ]
    return pl.DataFrame(rows, schema=JOB_COLUMNS)


def outcome_data(frame: pl.DataFrame, words=("TIMEOUT",)) -> tuple[dict, Numbers]:
    frame = add_clusters(frame)
    table = outcome_table(frame, words=words)
    tables = {
        "outcomes": summaries.add_median_intervals(table, observed_times(frame), frame.lazy()),
        "outcomes_by_gpus": outcomes_by_gpus(frame),
    }
    tables |= {"ended_jobs": summaries.ended_jobs(table, *sized_jobs(frame))}
    tables |= {"ended_by_node": summaries.ended_by_node(*sized_jobs(frame))}
    return tables, Numbers(compute_metrics("split_outcomes", tables))


MIXED = jobs((300, "success", 1), (100, "failure", 1), (90, "failure", 16), (10, "success", 16), (7, "cancelled", 2))
CLAIMS = {
    "no end": (jobs((3, "waiting", 1), (2, "running", 1)), "None of 5 pods has ended in success or failure"),
    "none failed": (jobs((12, "success", 1)), "None of 12 ended pods failed"),
    "unrecorded": (
        jobs((8, "failure", 1), (2, "success", 1), (30, "unknown", 1)),
        "80.0% of pods with a recorded result failed; 75.0% of pods have none",
    ),
    "few ended": (
        jobs((8, "failure", 1), (2, "success", 1), (30, "running", 1)),
        "80.0% of ended pods failed, but only 25.0% of pods have ended",
    ),
    "large fail": (MIXED, "38.0% of ended pods failed, 90.0% on more than 8 GPUs"),
    "alike": (
        jobs((3, "failure", 1), (1, "success", 1)),
        "75.0% of ended pods failed; failed pods used 75.0% of GPU time",
    ),
}


@pytest.mark.parametrize("side", ["up_to_8_gpus", "above_8_gpus"])
@pytest.mark.parametrize("bound", ["low", "high"])
def test_intervals_of_sizes_are_compared_only_if_both_exist(side, bound):
    _, m = outcome_data(MIXED)
    assert "do not overlap" in phrases.strip_markup(outcomes.head(PODS, m).text[0])
    del m[f"outcomes.{side}.failure_share_{bound}_clustered"]
    head = checked(outcomes.head(PODS, m), m)
    assert phrases.strip_markup(head.claim).startswith("38.0% of ended pods failed; failed pods used")
    assert phrases.strip_markup(head.text[0]) == "Of pods on up to 8 GPUs 25.0% failed."


@pytest.mark.parametrize("case", CLAIMS)
def test_the_claim_on_outcomes(case):
    frame, claim = CLAIMS[case]
    tables, m = outcome_data(frame)
    head = checked(outcomes.head(PODS, m), m)
    assert phrases.strip_markup(head.claim) == claim
    assert head.charts == ("jobs_and_gpu_time",)
    assert not jobs_and_gpu_time(tables, Study("pod")).empty
    assert (head.callout is not None) == (case in ("unrecorded", "few ended"))


# ---- causes


def cause_data(*rows: tuple[str, str | None, int, float | None], line: str | None = None) -> tuple[dict, Numbers]:
    """Make the tables and numbers of causes from rows of (reason, domain, attempts, GPU seconds)."""
    trials, time = sum(row[2] for row in rows), sum(row[3] or 0 for row in rows)
    zero = dict.fromkeys(("gpu_none", "gpu_1", "gpu_2_4", "gpu_gt4"), 0)

    def row(by, reason, domain, count, seconds, **extra):
        share = seconds / time if time and seconds is not None else None
        base = {"by": by, "reason": reason, "domain": domain, "trials": count, "jobs": count, "n": count} | zero | extra
        return base | {"trials_share": count / trials, "rtf_x_demand_share": share}

    table_rows = [row("reason", *group) for group in rows]
    matched = sum(group[2] for group in rows if group[0] != NO_RULE)
    if matched:
        table_rows.append(row("evidence", None, None, matched, None, evidence="state"))
    table_rows += [row("all", None, None, trials, time)] if rows else []
    lines = [{"source": "log", "line": line, "trials": 5, "trials_share": 1.0, "jobs": 5}] if line else []
    table = TAXONOMY.frame(table_rows)
    tables = {"taxonomy": table, "unmatched": UNMATCHED.frame(lines), "failure_kinds": failure_kinds(table)}
    tables["taxonomy_summary"] = summarise_taxonomy(table, LOG_TAILS.frame([]))
    return tables, Numbers(compute_metrics("classify_failures", tables))


def test_the_head_of_causes_reports_infrastructure_time_limits_and_unknown_reasons():
    tables, m = cause_data(
        ("Node failure", "system software or hardware", 1, 50.0),
        ("Time limit", "user program", 2, 20.0),
        (NO_RULE, None, 7, 30.0),
        line=HOSTILE,
    )
    head = checked(causes.head(PODS, m), m)
    keys = {key.label: (phrases.strip_markup(key.value), phrases.strip_markup(key.note)) for key in head.keys}
    assert keys["Infrastructure"] == ("10.0%", "1 attempt, 50.0% of failed GPU time")
    assert keys["Time limits"] == ("20.0%", "2 attempts, 20.0% of failed GPU time")
    assert phrases.strip_markup(head.callout.lead) == "70.0% of failed attempts have no recorded reason."
    html = phrases.to_html(head.callout.text)
    assert "<script" not in html and "outcomes.failure_share" not in phrases.list_keys(head.callout.text)
    kinds = [row["kind"] for row in failed_attempts_by_reason(tables, Study()).datasets["reasons"]]
    assert kinds == ["infra", "none", "limit"]


def test_long_or_hostile_reasons_do_not_widen_the_chart_of_causes():
    rows = [(f"{HOSTILE} {i}", "user program", 10 + i, float(i)) for i in range(12)]
    tables, _ = cause_data(*rows, (NO_RULE, None, 5, 7.0))
    chart = failed_attempts_by_reason(tables, Study())
    bars = chart.datasets["reasons"]
    assert len(bars) == MOST_BARS
    assert [row["reason"] for row in bars if row["kind"] == "none"] == ["No reason recorded"]
    assert bars[-1]["reason"] == "6 other reasons"
    assert sum(row["trials"] for row in bars) == sum(10 + i for i in range(12)) + 5
    svg = draw_svg(chart)
    assert "<script" not in svg and "\u202e" not in svg and "longlonglonglonglonglonglonglonglong" not in svg


# ---- lost GPU time


def loss_numbers(**losses) -> Numbers:
    """Make the numbers of these losses; without arguments, of a trace without attempts."""
    basis = {"infra_basis": "state", "checkpoint_interval_s": 3600}
    counts = ("runs", "failed_runs", "failed_without_time", "infra_failures", "infra_without_time")
    hours = ("gpu_hours", "failed_gpu_hours", "infra_gpu_hours", "first_order_gpu_hours")
    zero = dict.fromkeys(counts, 0) | dict.fromkeys(hours, 0.0)
    rows = [basis | zero | losses] if losses else []
    return Numbers(compute_metrics("measure_losses", {"lost_work_all": LOST_WORK_ALL.frame(rows)}))


RAN = {"runs": 10, "gpu_hours": 100.0}
FAILED = RAN | {"failed_runs": 2, "failed_gpu_hours": 20.0, "failed_gpu_hours_share": 0.2}
FAILED |= {"failed_above_8_gpus_share": 0.0}
INFRA = {"infra_failures": 1, "infra_gpu_hours": 8.0, "infra_gpu_hours_share": 0.08}
INFRA |= {"first_order_gpu_hours": 0.5, "first_order_gpu_hours_share": 0.005}


def test_the_cost_of_infrastructure_is_reported_if_causes_are_known():
    preempted = {"preemptions": 3, "second_order_gpu_hours": 4.0}
    m = loss_numbers(**FAILED | INFRA | preempted)
    keys = {
        key.label: phrases.strip_markup(f"{key.value} ({key.note})") for key in checked(losses.head(PODS, m), m).keys
    }
    assert "assumed" in keys["… would be lost with hourly checkpoints"] and "upper bound" in keys["Preempted"]
    assert losses.lines(PODS, m) == []
    proxy = loss_numbers(**FAILED | INFRA | {"infra_basis": "proxy"})
    labels = [key.label for key in checked(losses.head(PODS, proxy), proxy).keys]
    assert labels == ["Failed attempts", "Would be lost with hourly checkpoints, any failure"]
    assert [line.subject for line in losses.lines(PODS, proxy)] == ["Preemption"]


def test_a_user_with_most_failures_is_reported_with_the_share_of_all_others():
    def numbers(**failures):
        """Make the numbers of ten ended jobs per user; the arguments say how many of them failed."""
        failed = [(n, "failure", 1, {"user": user}) for user, n in failures.items()]
        return outcome_data(jobs(*failed, *((10 - n, "success", 1, {"user": user}) for user, n in failures.items())))[1]

    m, key = numbers(a=10, b=2, c=3, d=1, e=2), "outcomes.concentration"
    assert m[f"{key}.share"] == pytest.approx(10 / 18)
    assert m[f"{key}.failure_share_without"] == pytest.approx(8 / 40)
    assert f"{key}.share" not in numbers(a=9, b=3, c=3, d=1, e=2)

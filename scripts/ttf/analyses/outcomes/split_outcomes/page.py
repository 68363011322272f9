"""The head of the section on outcomes, its lines and its tables."""

from ttf.analyses.outcomes.split_outcomes import OUTCOMES, OUTCOMES_BY_GPUS
from ttf.display.metrics import FEWEST_ENDED
from ttf.display.report_tables import CLUSTERED, Mean, PageTable, add_size_labels
from ttf.display.report_trace import Trace
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.statement_rules import is_failed_time_bound, r12_few_gpus
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

_SMALL, _LARGE = "outcomes.up_to_8_gpus", "outcomes.above_8_gpus"


def head(trace: Trace, m: Numbers) -> Head | Line:
    unit, units = trace.info["unit"], words.plural_noun(trace.info["unit"])
    if not m.value("outcomes.jobs"):
        return Line("Outcomes", f"the trace has no {unit}", "outcomes", checked=False)
    is_sized = _has_both_sizes(m)
    excluded = [name for name in ("running", "waiting", "cancelled") if m.value(f"outcomes.{name}.jobs")]
    text = []
    if is_sized:
        note = {True: "; the intervals do not overlap", False: "; the intervals overlap", None: ""}[_are_disjoint(m)]
        text.append(
            f"Of {units} on up to 8 GPUs [{_SMALL}.failure_share] failed{note}.{_describe_jobs_without_gpu(m, units)}"
        )
    elif excluded:
        text.append(f"{words.capitalise(words.join_list(excluded))} {units} are excluded from the failure rate.")
    text += _compare_attempts(m, unit, units)
    return Head(
        claim=_format_claim(m, unit, units),
        charts=("jobs_and_gpu_time",),
        keys=tuple(_list_keys(m, unit, units, is_sized)[:4]),
        text=tuple(text),
        callout=_make_unrecorded_callout(m, units),
        details="states as recorded, sizes, run times",
    )


def lines(trace: Trace, m: Numbers) -> list[Line]:
    unit = trace.info["unit"]
    if "outcomes.timeouts" not in m:
        reason = f"no state in this trace says that a time limit ended a {unit}"
        return [Line("Time limits", reason, "outcomes", checked=False)]
    return [] if m["outcomes.timeouts"] else [Line("Time limits", f"no {unit} ended at its time limit", "outcomes")]


def tables(trace: Trace) -> dict[str, PageTable]:
    outcomes, sizes = trace.table("outcomes"), trace.table("outcomes_by_gpus")
    units = words.capitalise(words.plural_noun(trace.info["unit"]))
    columns = {
        **dict.fromkeys(("outcome", "jobs", "jobs_share", "gpu_hours", "gpu_hours_share", "n")),
        "jobs": units,
        "runtime_mean_s": Mean(count_column="n"),
        **dict.fromkeys(("runtime_median_s", "runtime_p90_s")),
    }
    if outcomes["at_time_limit"].sum():
        columns["at_time_limit"] = None
    size_columns = {"gpus": ("GPUs", str), "jobs": units, "ended": None, "failures": None, "failure_share": CLUSTERED}
    return {
        "outcomes": PageTable(outcomes, columns, OUTCOMES),
        "outcomes-by-gpus": PageTable(add_size_labels(sizes), size_columns, OUTCOMES_BY_GPUS),
    }


def _compare_attempts(m: Numbers, unit: str, units: str) -> list[str]:
    """Explain why failed jobs and failed attempts have different shares of the GPU time, if they do."""
    jobs, attempts = "outcomes.failure.gpu_hours_share", "lost_work.failed_gpu_hours_share"
    has_both = jobs in m and attempts in m and not is_failed_time_bound(m) and not r12_few_gpus(m)
    if not has_both or m.words(jobs) == m.words(attempts):
        return []
    is_more = m[attempts] > m[jobs]
    why = f"a {unit} can succeed after one" if is_more else f"a failed {unit} can have attempts that did not fail"
    return [f"Failed attempts used [{attempts}] of GPU time, failed {units} [{jobs}]: {why}."]


def _has_both_sizes(m: Numbers) -> bool:
    return all(m.value(f"{key}.ended", 0) >= FEWEST_ENDED for key in (_SMALL, _LARGE))


def _describe_jobs_without_gpu(m: Numbers, units: str) -> str:
    """Report the jobs without a GPU, which belong to neither size and lower the overall share."""
    if "outcomes.no_gpu.failure_share" not in m:
        return ""
    return f" Of [outcomes.no_gpu.ended] ended {units} without a GPU, [outcomes.no_gpu.failure_share] failed."


def _are_disjoint(m: Numbers) -> bool | None:
    """Return whether the clustered intervals of small and large jobs are disjoint; None if one is missing."""
    keys = [f"{size}.failure_share_{bound}_clustered" for size in (_SMALL, _LARGE) for bound in ("low", "high")]
    if not all(key in m for key in keys):
        return None
    small_low, small_high, large_low, large_high = (m[key] for key in keys)
    return large_low > small_high or small_low > large_high


def _format_claim(m: Numbers, unit: str, units: str) -> str:
    ended, failed = m["outcomes.ended"], m["outcomes.failure.jobs"]
    if not ended:
        return (
            f"None of [outcomes.jobs] {units} has ended in success or failure"
            if m["outcomes.jobs"] > 1
            else (f"The only {unit} has not ended in success or failure")
        )
    if ended == 1:
        return f"The only ended {unit} {'failed' if failed else 'succeeded'}"
    if failed in (0, ended):
        return f"{'All' if failed else 'None of'} [outcomes.ended] ended {units} failed"
    share = "[outcomes.failure_share]"
    if "outcomes.concentration.share" in m:
        key = "outcomes.concentration"
        population = "with a result" if m.value("outcomes.unknown.jobs") else "that ended"
        return (
            f"{share} of {units} {population} failed, [{key}.failure_share_without] without one "
            f"{m[f'{key}.by']} ([{key}.share] of failures)"
        )
    if m.value("outcomes.unknown.jobs_share", 0) >= 0.5:
        return f"{share} of {units} with a recorded result failed; [outcomes.unknown.jobs_share] of {units} have none"
    if m["outcomes.ended_share"] < 0.5:
        return f"{share} of ended {units} failed, but only [outcomes.ended_share] of {units} have ended"
    if _has_both_sizes(m) and _are_disjoint(m):
        return f"{share} of ended {units} failed, [{_LARGE}.failure_share] on more than 8 GPUs"
    has_time = "outcomes.failure.gpu_hours_share" in m and not r12_few_gpus(m)
    if has_time and m["outcomes.failure.with_runtime"] == failed:
        return f"{share} of ended {units} failed; failed {units} used [outcomes.failure.gpu_hours_share] of GPU time"
    return f"{share} of ended {units} failed"


def _list_keys(m: Numbers, unit: str, units: str, is_sized: bool) -> list[Key]:
    def jobs_text(key: str) -> str:
        return f"[{key}] {unit if m[key] == 1 else units}"

    keys = []
    if ended := m["outcomes.ended"]:
        base = "with a result" if m.value("outcomes.unknown.jobs") else "ended"
        note = f"[outcomes.failure_share] of [outcomes.ended] {base}, [outcomes.failure_share:interval]"
        keys.append(Key("Failed", jobs_text("outcomes.failure.jobs"), note))
        if "outcomes.failure_share_without_timeout" in m:
            note = f"[outcomes.failures_without_timeout] of {words.count(ended)} ended {units}"
            keys.append(Key("Failed, time limits not counted", "[outcomes.failure_share_without_timeout]", note))
    if is_sized:
        note = f"[{_LARGE}.failure_share:interval], n = [{_LARGE}.ended]"
        keys.append(Key("Failed on more than 8 GPUs", f"[{_LARGE}.failure_share]", note))
    for label, key in (("No result recorded", "outcomes.unknown.jobs"), ("Running or waiting", "outcomes.open")):
        # A small number of open jobs appears only in the chart.
        if m.value(key) and (key != "outcomes.open" or m["outcomes.ended_share"] < 0.5):
            note = f"[{key}_share] of all {units}" if f"{key}_share" in m else ""
            keys.append(Key(label, jobs_text(key), note))
    return keys


def _make_unrecorded_callout(m: Numbers, units: str) -> Callout | None:
    is_mostly_recorded = m["outcomes.ended_share"] >= 0.5 and m.value("outcomes.unknown.jobs_share", 0) < 0.1
    if not m["outcomes.ended"] or is_mostly_recorded:
        return None
    lead = f"Only [outcomes.ended_share] of {units} have a recorded result."
    if "outcomes.failure_share_at_least" not in m:
        return Callout("care", lead, f"Open {units} may still fail; {units} that end soon are counted first.")
    bounds = "[outcomes.failure_share_at_least] and [outcomes.failure_share_at_most]"
    text = f"With the {units} that ended unrecorded, the failure rate lies between {bounds}."
    return Callout("care", lead, text)

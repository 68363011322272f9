"""What the section on outcomes says in the open, and its tables."""

from ttf.analyses.outcomes.split_outcomes import OUTCOMES, OUTCOMES_BY_GPUS
from ttf.display.metrics import FEWEST_ENDED
from ttf.display.phrases import with_numbers
from ttf.display.report_tables import CLUSTERED, Mean, Shown, with_sizes
from ttf.display.report_trace import Trace
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.statement_rules import r12_few_gpus
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

_SMALL, _LARGE = "outcomes.up_to_8_gpus", "outcomes.above_8_gpus"


@with_numbers
def head(trace: Trace, m: Numbers) -> Head | Line:
    unit, units = trace.about["unit"], words.many(trace.about["unit"])
    if not m.value("outcomes.jobs", 0):
        return Line("Outcomes", f"the trace has no {unit}", "outcomes", checked=False)
    sized = _is_sized(m)
    excluded = {"running": "outcomes.running.jobs", "waiting": "outcomes.waiting.jobs"}
    excluded |= {"cancelled": "outcomes.cancelled.jobs"}
    names = [name for name, key in excluded.items() if m.value(key, 0)]
    text = []
    if sized:
        which = {True: "; the intervals do not overlap", False: "; the intervals overlap", None: ""}[_differ(m)]
        text.append(f"On up to 8 GPUs [{_SMALL}.failure_share] failed{which}.{_without_gpu(m, units)}")
    elif names:
        text.append(f"{words.capital(words.listed(names))} {units} are excluded from the failure rate.")
    return Head(
        claim=_claim(m, unit, units),
        charts=("jobs_and_gpu_time",),
        keys=tuple(_keys(m, unit, units, sized)[:4]),
        text=tuple(text),
        callout=_callout(m, units),
        details="states as recorded, sizes, run times",
    )


@with_numbers
def lines(trace: Trace, m: Numbers) -> list[Line]:
    unit = trace.about["unit"]
    if not m.has("outcomes.timeouts"):
        found = f"no state in this trace says that a time limit ended a {unit}"
        return [Line("Time limits", found, "outcomes", checked=False)]
    return [] if m["outcomes.timeouts"] else [Line("Time limits", f"no {unit} ended at its time limit", "outcomes")]


def tables(trace: Trace) -> dict[str, Shown]:
    outcomes, sizes = trace.table("outcomes"), trace.table("outcomes_by_gpus")
    units = words.capital(words.many(trace.about["unit"]))
    columns = {
        **dict.fromkeys(("outcome", "jobs", "jobs_share", "gpu_hours", "gpu_hours_share", "n")),
        "jobs": units,
        "runtime_mean_s": Mean(of="n"),
        **dict.fromkeys(("runtime_median_s", "runtime_p90_s")),
    }
    if outcomes["at_time_limit"].sum():
        columns["at_time_limit"] = None
    by_gpus = {"gpus": ("GPUs", str), "jobs": units, "ended": None, "failures": None, "failure_share": CLUSTERED}
    return {
        "outcomes": Shown(outcomes, columns, OUTCOMES),
        "outcomes-by-gpus": Shown(with_sizes(sizes), by_gpus, OUTCOMES_BY_GPUS),
    }


def _is_sized(m: Numbers) -> bool:
    return all(m.value(f"{key}.ended", 0) >= FEWEST_ENDED for key in (_SMALL, _LARGE))


def _without_gpu(m: Numbers, units: str) -> str:
    """The jobs that are of neither size: they lower the share of all."""
    if not m.has("outcomes.no_gpu.failure_share"):
        return ""
    return f" Of [outcomes.no_gpu.ended] ended {units} without a GPU [outcomes.no_gpu.failure_share] failed."


def _differ(m: Numbers) -> bool | None:
    """Whether the clustered intervals of small and large jobs have nothing in common; None where one is missing."""
    ends = [f"{key}.failure_share_{end}_clustered" for key in (_SMALL, _LARGE) for end in ("low", "high")]
    if not all(map(m.has, ends)):
        return None
    small_low, small_high, large_low, large_high = (m[end] for end in ends)
    return large_low > small_high or small_low > large_high


def _claim(m: Numbers, unit: str, units: str) -> str:
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
    if m.has("outcomes.concentration.share"):
        key = "outcomes.concentration"
        known = "with a result" if m.value("outcomes.unknown.jobs", 0) else "that ended"
        return (
            f"{share} of {units} {known} failed, [{key}.failure_share_without] without one "
            f"{m[f'{key}.by']} ([{key}.share] of failures)"
        )
    if m.value("outcomes.unknown.jobs_share", 0) >= 0.5:
        return f"{share} of {units} with a recorded result failed; [outcomes.unknown.jobs_share] of {units} have none"
    if m["outcomes.ended_share"] < 0.5:
        return f"{share} of ended {units} failed, but only [outcomes.ended_share] of {units} have ended"
    if _is_sized(m) and _differ(m):
        return f"{share} of ended {units} failed, [{_LARGE}.failure_share] on more than 8 GPUs"
    has_time = m.has("outcomes.failure.gpu_hours_share") and not r12_few_gpus(m)
    if has_time and m["outcomes.failure.with_runtime"] == failed:
        return f"{share} of ended {units} failed; failed {units} used [outcomes.failure.gpu_hours_share] of GPU time"
    return f"{share} of ended {units} failed"


def _keys(m: Numbers, unit: str, units: str, sized: bool) -> list[Key]:
    def counted(key: str) -> str:
        return f"[{key}] {unit if m[key] == 1 else units}"

    keys = []
    if ended := m["outcomes.ended"]:
        known = "with a result" if m.value("outcomes.unknown.jobs", 0) else "ended"
        of = f"[outcomes.failure_share] of [outcomes.ended] {known}"
        keys.append(Key("Failed", counted("outcomes.failure.jobs"), f"{of}, {m.interval('outcomes.failure_share_{}')}"))
        if m.has("outcomes.failure_share_without_timeout"):
            share = "[outcomes.failure_share_without_timeout]"
            note = f"[outcomes.failures_without_timeout] of {words.count(ended)} ended {units}"
            keys.append(Key("Failed, time limits not counted", share, note))
    if sized:
        share, interval = f"[{_LARGE}.failure_share]", m.interval(f"{_LARGE}.failure_share_{{}}")
        note = f"{interval}, n = [{_LARGE}.ended]"
        keys.append(Key("Failed on more than 8 GPUs", share, note))
    for label, key, note in (
        ("No result recorded", "outcomes.unknown.jobs", ""),
        ("Running or waiting", "outcomes.open", "not ended"),
    ):
        # A few that are still open are in the chart alone.
        if m.value(key, 0) and (key != "outcomes.open" or m["outcomes.ended_share"] < 0.5):
            of = f"[{key}_share] of all {units}" if m.has(f"{key}_share") else ""
            keys.append(Key(label, counted(key), note or of))
    return keys


def _callout(m: Numbers, units: str) -> Callout | None:
    many = m["outcomes.ended_share"] >= 0.5 and m.value("outcomes.unknown.jobs_share", 0) < 0.1
    if not m["outcomes.ended"] or many:
        return None
    lead = f"Only [outcomes.ended_share] of {units} have a recorded result."
    if not m.has("outcomes.failure_share_at_least"):
        return Callout(
            "care", lead, f"{words.capital(units)} that are still open may fail; those that end soon are counted first."
        )
    return Callout(
        "care",
        lead,
        (
            f"With the {units} that ended unrecorded, the failure rate lies between "
            "[outcomes.failure_share_at_least] and [outcomes.failure_share_at_most]."
        ),
    )

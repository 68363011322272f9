"""The bottom line: two sentences of at most 45 words from fixed templates, what holds the most GPU-hours first."""

from collections.abc import Mapping

from ttf.display import statement_rules
from ttf.display.phrases import by_group, fill, fraction, is_fraction, length, plain, with_age, with_numbers
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_WORDS = 45


@with_numbers
def bottom_line(m: Numbers, about: Mapping) -> tuple[str, ...]:
    return _of_jobs(m, about["unit"]) if about["gives"] == "jobs" else _of_components(m, about)


def _of_jobs(m: Numbers, unit: str) -> tuple[str, ...]:
    if not m.has("outcomes.failure_share"):
        return (f"No {unit} of this trace has ended in success or failure.",)
    time = "lost_work.failed_gpu_hours_share"
    failed = f"[outcomes.failure_share] of ended {unit}s failed"
    if is_fraction(m, "outcomes.failure_share"):
        failed = f"About {fraction(m, 'outcomes.failure_share')} ended {unit}s failed"
    if statement_rules.r9_few_ended(m):
        failed = f"Of the [outcomes.ended_share] of {unit}s {_known(m)}, [outcomes.failure_share] failed"
    first = f"{failed}."
    has_time = m.has(time) and not statement_rules.r12_few_gpus(m)
    if has_time and not statement_rules.failed_time_is_bound(m):
        link = "but" if m[time] < 0.5 * m["outcomes.failure_share"] else "and"
        first = f"{failed}, {link} failed attempts used [{time}] of GPU time."
    return _with_second(m, first, [[_running(m, unit)], [_cause(m) if has_time else ""], _target(m, unit)])


def _known(m: Numbers) -> str:
    return "with a recorded result" if m.value("outcomes.unknown.jobs", 0) else "that ended"


def _with_second(m: Numbers, first: str, clauses: list[list[str]]) -> tuple[str, ...]:
    """The first sentence, and a second of the clauses, the longest wording of each that has room."""
    first, clauses = fill((first, clauses), m)
    second: list[str] = []
    for wordings in clauses:
        room = MOST_WORDS - length(first) - length("; ".join(second))
        second += [text for text in wordings if text and length(text) <= room][:1]
    said = "; ".join(second)
    return (first, f"{said[:1].upper()}{said[1:]}.") if said else (first,)


def _running(m: Numbers, unit: str) -> str:
    """Jobs of which nobody knows yet how they end, where they hold most of the GPU time."""
    key = "outcomes.running.gpu_hours_share"
    return f"{unit}s still running hold [{key}] of all GPU time" if m.value(key, 0.0) > 0.5 else ""


def _cause(m: Numbers) -> str:
    """Of infrastructure and time limits the one with the most GPU-hours in failed attempts."""
    if not m.has("failed_time.infra.share"):
        return ""
    most = max(("limit", "infra"), key=lambda part: m[f"failed_time.{part}.share"])
    share = f"failed_time.{most}.share"
    who = {"limit": "time limits", "infra": "failures attributed to infrastructure"}[most]
    return f"{who} account for [{share}] of that" if m[share] else ""


def _target(m: Numbers, unit: str) -> list[str]:
    """What a run of the target size can expect, in more words and in fewer."""
    if statement_rules.r12_few_gpus(m):
        return [statement_rules.few_gpus(m, unit)]
    size = statement_rules.target(m).replace(" ", "-").replace(words.NO_BREAK, "-").removesuffix("s")
    run = f"{words.article(plain(size))} {size} run"
    if why := statement_rules.withheld_at_target(m):
        reason = "causes are not recorded" if statement_rules.r1_cause_unknown(m) else why.reasons[0]
        cannot = f"what {run} can expect cannot be estimated"
        return [f"{cannot}: {reason}", cannot]
    if not m.has("ettr.mttf_s"):
        return []
    verb = "is projected to be interrupted" if statement_rules.is_projection(m) else "can expect an interruption"
    said = f"{run} {verb} every [ettr.mttf_s]"
    if statement_rules.r5_measured_differs(m):
        return [f"{said}, but the rate seen at that size differs", said]
    ci = ""
    if m.has("ettr.mttf_low_s") and m.has("ettr.mttf_high_s"):
        ends = m.span("ettr.mttf_low_s", "ettr.mttf_high_s", "ettr.mttf_s")
        ci = f" (90% CI {ends})"
    ettr = f"ettr.{m['ettr.by']}.ettr"
    productive = f", and to be productive [{ettr}] of its time"
    return [f"{said}{ci}{productive}", f"{said}{ci}", said]


def _of_components(m: Numbers, about: Mapping) -> tuple[str, ...]:
    unit = about["unit"]
    if not m.has("lives.units"):
        outages = f"[data.outages outage] of [data.units_with_outage {unit}]"
        return (f"{outages}; how many {unit}s were watched is not known, so there is no failure rate.",)
    if not m.has("mttf.mttf_s"):
        return (f"No {unit} of this trace failed.",)
    ci = m.keyed_interval("mttf.ci_{}_s", "mttf.mttf_s")
    mean = "[mttf.mttf_s]"
    failures = "[mttf.events failure]"
    first = f"{failures}: one per {unit} every {mean} of service ({ci})."
    clauses = []
    verdict = m.value("lifetimes.verdict", "")
    if m.has("afr.afr"):
        rate = f"[afr.afr]% of {words.many(unit)} fail in a year ({m.keyed_interval('afr.ci_{}')})"
        first = f"{rate}: {failures} in [period.days day]."
    elif m.has("groups.highest.failed_share"):
        first = f"{by_group(m, words.many(unit))}."
        clauses.append(f"one failure per {unit} every {mean} of service ({ci}) describes neither")
    elif verdict in ("falls", "rises"):
        way = "decreases" if verdict == "falls" else "increases"
        clauses.append(f"the hazard {way} {with_age(about)}, so this mean does not describe every moment")
    if m.value("lemons.lemons", 0) and m.has("lemons.share_of_failures"):
        nodes = "[lemons.lemons] of [lemons.tested] nodes"
        verb = "holds" if m["lemons.lemons"] == 1 else "hold"
        clauses.append(f"{nodes} with excess failures {verb} [lemons.share_of_failures]")
    return _with_second(m, first, [[clause] for clause in clauses])

"""The bottom line: two sentences of at most 45 words from fixed templates, the most GPU-hours first."""

from collections.abc import Mapping

from ttf.display import statement_rules
from ttf.display.phrases import (
    compare_groups,
    cost_text,
    count_words,
    fill_slots,
    fraction,
    hazard_scale,
)
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_WORDS = 45


def bottom_line(m: Numbers, trace_info: Mapping) -> tuple[str, ...]:
    """Return the one or two sentences that head the page of a trace."""
    has_jobs = trace_info["gives"] == "jobs"
    return _job_bottom_line(m, trace_info["unit"]) if has_jobs else _component_bottom_line(m, trace_info)


def _job_bottom_line(m: Numbers, unit: str) -> tuple[str, ...]:
    if "outcomes.failure_share" not in m:
        return (f"No {unit} of this trace has ended in success or failure.",)
    time_key = "lost_work.failed_gpu_hours_share"
    clause = f"[outcomes.failure_share] of ended {unit}s failed"
    if about := fraction(m, "outcomes.failure_share"):
        clause = f"About {about} ended {unit}s failed"
    if statement_rules.r9_few_ended(m):
        result = "with a recorded result" if m.value("outcomes.unknown.jobs") else "that ended"
        clause = f"Of the [outcomes.ended_share] of {unit}s {result}, [outcomes.failure_share] failed"
    first = f"{clause}."
    has_time = time_key in m and not statement_rules.r12_few_gpus(m)
    if has_time and not statement_rules.is_failed_time_bound(m):
        cost = cost_text(m, "failed_time.all.cost")
        conjunction = "but" if m[time_key] < 0.5 * m["outcomes.failure_share"] else "and"
        first = f"{clause}, {conjunction} failed attempts used [{time_key}] of GPU time{f' ({cost})' if cost else ''}."
    cause = _format_cause_clause(m) if has_time else ""
    share = "outcomes.running.gpu_hours_share"
    running = f"{unit}s still running account for [{share}] of all GPU time" if m.value(share, 0.0) > 0.5 else ""
    return _add_second_sentence(m, first, [[running], [cause], _target_wordings(m, unit)])


def _add_second_sentence(m: Numbers, first: str, clauses: list[list[str]]) -> tuple[str, ...]:
    """Return the first sentence and a second one of the clauses, each in its longest wording that fits."""
    first, clauses = fill_slots((first, clauses), m)
    second: list[str] = []
    for wordings in clauses:
        words_left = MOST_WORDS - count_words(first) - count_words("; ".join(second))
        second += [text for text in wordings if text and count_words(text) <= words_left][:1]
    sentence = "; ".join(second)
    return (first, f"{sentence[:1].upper()}{sentence[1:]}.") if sentence else (first,)


def _format_cause_clause(m: Numbers) -> str:
    if "failed_time.infra.share" not in m:
        return ""
    cause = max(("limit", "infra"), key=lambda part: m[f"failed_time.{part}.share"])
    share = f"failed_time.{cause}.share"
    subject = {"limit": "time limits", "infra": "failures attributed to infrastructure"}[cause]
    return f"{subject} account for [{share}] of that" if m[share] else ""


def _target_wordings(m: Numbers, unit: str) -> list[str]:
    """Return wordings of what a run of the target size can expect, the longest first."""
    if statement_rules.r12_few_gpus(m):
        return [statement_rules.few_gpus_sentence(m, unit)]
    run = f"{statement_rules.target_adjective(m)} run"
    if withheld := statement_rules.find_withheld_reasons(m):
        reason = "causes are not recorded" if statement_rules.r1_cause_unknown(m) else withheld.reasons[0]
        shortest = f"what {run} can expect cannot be estimated"
        return [f"{shortest}: {reason}", shortest]
    if "ettr.mttf_s" not in m:
        return []
    verb = "is projected to be interrupted" if statement_rules.is_projection(m) else "can expect an interruption"
    clause = f"{run} {verb} {statement_rules.frequency(m)} [ettr.mttf_s:duration]"
    ci = ""
    if "ettr.mttf_low_s" in m and "ettr.mttf_high_s" in m:
        ci = f" (90% CI {m.span('ettr.mttf_low_s', 'ettr.mttf_high_s', 'ettr.mttf_s')})"
    if statement_rules.r5_measured_differs(m):
        differs = (
            f"such runs failed {'more' if m['sizes.check.observed'] > m['sizes.check.expected'] else 'less'} often"
        )
        counts = "[sizes.check.observed] times, [sizes.check.expected] expected"
        return [f"{clause}{ci}, but {differs} ({counts})", f"{clause}{ci}, but {differs}", f"{clause}, but {differs}"]
    key = statement_rules.ettr_key(m)
    productive = f", and to be productive [{key}] of its {'scheduled ' * key.endswith('scheduled_ettr')}time"
    return [f"{clause}{ci}{productive}", f"{clause}{ci}", clause]


def _component_bottom_line(m: Numbers, trace_info: Mapping) -> tuple[str, ...]:
    unit = trace_info["unit"]
    if "durations.units" not in m:
        outages = f"[data.outages outage] of [data.units_with_outage {unit}]"
        return (f"{outages}; the number of {unit}s observed is unknown, so there is no failure rate.",)
    if m.value("durations.failures") and not m.value("durations.exposure_s", 1):
        failures = f"[durations.failures failure] of [durations.units {unit}]"
        return (f"{failures}; no time at risk is known, so there is no failure rate.",)
    if "mttf.mttf_s" not in m:
        return (f"No {unit} of this trace failed.",)
    ci = "[mttf.mttf_s:interval]"
    failures, mean = "[mttf.events failure]", "[mttf.mttf_s]"
    first = f"{failures}: one per {unit} every {mean} of service ({ci})."
    clauses = []
    verdict = m.value("lifetimes.verdict", "")
    if "afr.afr" in m:
        rate = f"[afr.afr]% of {words.plural_noun(unit)} fail in a year ([afr.afr:interval])"
        first = f"{rate}: {failures} in [period.days day]."
    elif "groups.highest.failed_share" in m:
        first = f"{compare_groups(m, words.plural_noun(unit))}."
        clauses.append(f"one failure per {unit} every {mean} of service ({ci}) describes neither group")
    elif verdict in ("falls", "rises"):
        change = "decreases" if verdict == "falls" else "increases"
        clauses.append(f"the hazard {change} {hazard_scale(trace_info)}, so this mean does not hold at every age")
    if m.value("lemons.lemons") and "lemons.share_of_failures" in m:
        nodes = "[lemons.lemons] of [lemons.tested] nodes"
        verb = "accounts" if m["lemons.lemons"] == 1 else "account"
        clauses.append(f"{nodes} with excess failures {verb} for [lemons.share_of_failures] of failures")
    return _add_second_sentence(m, first, [[clause] for clause in clauses])

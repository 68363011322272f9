"""What the section on causes says in the open, and the tables of the reasons of failures."""

import polars as pl

from ttf.analyses.causes.classify_failures import LOG_TAILS, TAXONOMY, UNMATCHED
from ttf.analyses.causes.classify_failures.compute import TIME_LIMIT
from ttf.display.phrases import quote_trace_text
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_LINES = 15
# From this share on, attempts without a reason get a callout.
MANY_UNKNOWN = 0.25
_EVIDENCE = {
    "event": "a failed health check",
    "node_log": "an error in a node's log",
    "text": "the log",
    "reason": "the recorded reason",
    "exit_code": "the exit code",
    "state": "the state alone",
}
_LEADING_KEYS = ("taxonomy.most.rtf_x_demand", "taxonomy.most.trials")
_COUNTS, _TIMES = ("trials", "jobs", "users"), ("rtf_p50_s", "rtf_p90_s")
_DEMAND, _SHARES = ("gpu_none", "gpu_1", "gpu_2_4", "gpu_gt4"), ("rtf_total_share", "rtf_x_demand_share")


def head(trace: Trace, m: Numbers) -> Head | Line:
    if not m["taxonomy.trials"]:
        return Line("Causes of failures", "no attempt failed", "taxonomy")
    callout = _make_unmatched_callout(m)
    return Head(
        claim=_format_claim(m),
        charts=("failed_attempts_by_reason",),
        keys=tuple(_list_keys(m)),
        text=() if callout else tuple(_list_evidence_sentences(m)),
        callout=callout,
        details="RTF, GPUs and domain by reason, unmatched lines",
    )


def _format_claim(m: Numbers) -> str:
    if not m["taxonomy.matched"]:
        if m["taxonomy.trials"] == 1:
            return "The only failed attempt has no recorded reason"
        return "None of [taxonomy.trials] failed attempts has a recorded reason"
    prefix = next((prefix for prefix in _LEADING_KEYS if f"{prefix}.reason" in m), None)
    if prefix is None:
        return "[taxonomy.matched_share] of failed attempts have a recorded reason"
    reason = m[f"{prefix}.reason"]
    name = "Time limits" if reason == TIME_LIMIT else quote_trace_text(reason[:1].upper() + reason[1:], 36)
    if m[f"{prefix}.trials"] == m["taxonomy.trials"]:
        is_single = m["taxonomy.trials"] == 1
        return f"{name} ended {'the only failed attempt' if is_single else 'all [taxonomy.trials] failed attempts'}"
    claim = f"{name} ended [{prefix}.trials_share] of failed attempts"
    if f"{prefix}.rtf_x_demand_share" not in m:
        return claim
    share, time_share = m[f"{prefix}.trials_share"], m[f"{prefix}.rtf_x_demand_share"]
    conjunction = "but" if max(share, time_share) >= 2 * min(share, time_share) else "and"
    return f"{claim} {conjunction} [{prefix}.rtf_x_demand_share] of their GPU time"


def _list_keys(m: Numbers) -> list[Key]:
    trials, kinds = "[taxonomy.trials]", {"limit": "Time limits", "infra": "Infrastructure"}
    count_text = f"[taxonomy.matched] of {trials} failed attempts"
    keys = [Key("Reason recorded", "[taxonomy.matched_share]", count_text)]
    for kind, label in kinds.items():
        key = f"taxonomy.kind.{kind}"
        if m.value(f"{key}.trials"):
            note = f"[{key}.trials attempt]"
            if f"{key}.gpu_share" in m:
                note += f", [{key}.gpu_share] of failed GPU time"
            keys.append(Key(label, f"[{key}.trials_share]", note))
    if m.value("taxonomy.deterministic.trials"):
        note = "[taxonomy.deterministic.trials attempt]"
        keys.append(Key("Would recur on a retry", "[taxonomy.deterministic.trials_share]", note))
    return keys


def _list_evidence_sentences(m: Numbers) -> list[str]:
    evidence = {kind: label for kind, label in _EVIDENCE.items() if m.value(f"taxonomy.by_{kind}")}
    if not evidence:
        return []
    parts = [f"{label} ([taxonomy.by_{kind}])" for kind, label in evidence.items()]
    return [f"Reasons come from {words.join_list(parts)}."]


def _make_unmatched_callout(m: Numbers) -> Callout | None:
    if m["taxonomy.unmatched_share"] < MANY_UNKNOWN:
        return None
    text = []
    if "taxonomy.kind.none.gpu_share" in m:
        text.append("They used [taxonomy.kind.none.gpu_share] of failed GPU time.")
    if "taxonomy.unmatched_line" in m:
        line, count = quote_trace_text(m["taxonomy.unmatched_line"]), "[taxonomy.unmatched_line_trials]"
        text.append(f"A taxonomy rule for “{line}” ({count}) would help.")
    return Callout("care", "[taxonomy.unmatched_share] of failed attempts have no recorded reason.", " ".join(text))


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return the reasons, their GPU demand (columns of Philly's Table 7), domains, unmatched lines and log tails."""
    table = trace.table("taxonomy").with_columns(pl.col("domain").fill_null("unmatched"))
    reasons = table.filter(pl.col("by") == "reason")
    domains = table.filter((pl.col("by") == "domain") & pl.lit(reasons.height > 0))
    unmatched, tails = trace.table("unmatched"), trace.table("log_tails")
    lines = ("line", "source", "trials", "trials_share", "jobs", "users")
    tail = ("sentence", "rows", "share", "first_lines")
    return {
        "reasons": PageTable(reasons, ("reason", "category", *_COUNTS, *_TIMES, "rtf_p95_s"), TAXONOMY, "domain"),
        "demand": PageTable(reasons, ("reason", *_DEMAND, *_SHARES), TAXONOMY),
        "domains": PageTable(domains, ("domain", *_COUNTS, *_TIMES, *_SHARES), TAXONOMY),
        "unmatched": PageTable(unmatched.head(MOST_LINES), lines, UNMATCHED, longest=200),
        "tails": PageTable(tails.filter(pl.col("code") != "lines"), tail, LOG_TAILS, longest=100),
    }

"""The header: the size of the trace, its period, what counts as a failure and how causes are determined."""

from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from ttf.display.brief_model import Fact
from ttf.display.phrases import quote_trace_text
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

# An earlier time means that the trace counts from its own origin; no trace is ten years long.
YEAR_1980_S = 315_532_800
_CAUSES = {
    "event": "cause by state and health event",
    "state": "cause by state",
    "proxy": "causes not recorded",
    "component": "every failure is the component's",
}
LONGEST_WORDS = 120


def subtitle(m: Numbers, trace_info: Mapping) -> str:
    """Return "How reliably its jobs ran, 1 March to 7 June 2025 (99 days)"."""
    subject = f"How reliably its {trace_info['unit']}s {'ran' if trace_info['gives'] == 'jobs' else 'served'}"
    if "period.days" not in m:
        return subject
    days, dates = "[period.days day]", period(m, trace_info)
    return f"{subject}, {dates} ({days})" if dates else f"{subject}, over {days}"


def period(m: Numbers, trace_info: Mapping) -> str:
    """Return "1 March to 7 June 2025" in the trace's time zone, or "" if its times have another origin."""
    first, zone = m.value("period.from_s", 0), trace_info.get("clock")
    return _format_dates(first, m["period.to_s"], zone) if zone and first >= YEAR_1980_S else ""


def _format_dates(first_s: int, last_s: int, zone: str) -> str:
    first, last = (datetime.fromtimestamp(moment, UTC).astimezone(ZoneInfo(zone)) for moment in (first_s, last_s))
    end = f"{last.day} {last:%B %Y}"
    if first.date() == last.date():
        return end
    start = f"{first.day}"
    if (first.year, first.month) != (last.year, last.month):
        start += f" {first:%B}"
    return f"{start}{'' if first.year == last.year else f' {first.year}'} to {end}"


def facts(m: Numbers, trace_info: Mapping) -> tuple[Fact, ...]:
    """Return the fields of the page's header: counts, time at risk, and what counts as a failure."""
    has_jobs = trace_info["gives"] == "jobs"
    items = _job_facts(m, trace_info) if has_jobs else _component_facts(m, trace_info)
    basis = m.value("sizes.basis", "proxy" if has_jobs else "component")
    has_reasons = basis == "proxy" and "taxonomy.trials" in m
    causes = "failure reasons read from the records" if has_reasons else _CAUSES[basis]
    if basis == "event" and "node_errors.codes" in m:
        causes = "cause by state, health event or log of the node"
    failures = ", ".join(trace_info.get("failure_words", ())) or "every recorded failure"
    label = f"Failure by {'recorded state' if has_jobs else 'record'}; {causes}"
    if changes := trace_info.get("changed_outcomes"):
        changed = (f"{', '.join(names)} counts as {outcome}" for outcome, names in changes.items() if names)
        failures = f"{'; '.join(changed)} (set for this trace). {failures}"
    return (*items, Fact(label, "", quote_trace_text(failures, LONGEST_WORDS)))


def _job_facts(m: Numbers, trace_info: Mapping) -> list[Fact]:
    unit = trace_info["unit"]
    result = "with a result" if m.value("outcomes.unknown.jobs") else "ended"
    items = [Fact(f"{words.capitalise(unit)}s", "[data.jobs]", f"[outcomes.ended] {result}")]
    if not m.size.is_gpu:
        items += [Fact("Nodes", "[data.nodes]")] if "data.nodes" in m else []
    elif "data.gpus" in m:
        items.append(Fact("GPUs", "[data.gpus]", "on [data.nodes node]"))
    elif m.value("occupancy.gpus"):
        items.append(Fact("GPUs", "[occupancy.gpus]", "seen in use on [occupancy.servers node]"))
    if "lost_work.gpu_hours" in m:
        items.append(Fact("GPU time", "[lost_work.gpu_hours]", "GPU-hours"))
    if "data.users" in m:
        owners_key = "concentration.account.owners"
        accounts = f"in [{owners_key} account]" if owners_key in m else ""
        items.append(Fact("Users", "[data.users]", accounts))
    return items


def _component_facts(m: Numbers, trace_info: Mapping) -> list[Fact]:
    unit = trace_info["unit"]
    if "durations.units" not in m:
        return [
            Fact("Outages", "[data.outages]", f"of [data.units_with_outage {unit}]; the number observed is unknown")
        ]
    durations = f"in [durations.durations] {words.plural_noun(trace_info['subject'])}"
    items = [
        Fact(f"{unit if unit.isupper() else words.capitalise(unit)}s", "[durations.units]"),
        Fact("Failures", "[durations.failures]", "" if trace_info["subject"] == unit else durations),
    ]
    # Units that were never at risk have no exposure.
    if "mttf.node_days" in m:
        items.append(Fact("Time at risk", "[mttf.node_days]", f"{unit}-days"))
    return items

"""The header: what the trace is, from when to when, what counts as a failure and how causes are known."""

from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from ttf.display.brief_model import Fact
from ttf.display.phrases import of_trace, with_numbers
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

# A clock that shows an earlier moment counts from an origin of its own: no trace is ten years from it.
YEAR_1980_S = 315_532_800
_CAUSES = {
    "event": "cause by state and health event",
    "state": "cause by state",
    "proxy": "causes not recorded",
    "component": "every failure is the component's",
}
LONGEST_WORDS = 120


@with_numbers
def subtitle(m: Numbers, about: Mapping) -> str:
    """How reliably its jobs ran, 1 March to 7 June 2025 (99 days)."""
    what = f"How reliably its {about['unit']}s {'ran' if about['gives'] == 'jobs' else 'served'}"
    if not m.has("period.days"):
        return what
    days, dates = "[period.days day]", period(m, about)
    return f"{what}, {dates} ({days})" if dates else f"{what}, over {days}"


def period(m: Numbers, about: Mapping) -> str:
    """1 March to 7 June 2025, by the clock of the trace; "" where its times have an origin of their own."""
    first = m.value("period.from_s", 0)
    return _dates(first, m["period.to_s"], about["clock"]) if about.get("clock") and first >= YEAR_1980_S else ""


def _dates(first_s: int, last_s: int, zone: str) -> str:
    first, last = (datetime.fromtimestamp(moment, UTC).astimezone(ZoneInfo(zone)) for moment in (first_s, last_s))
    end = f"{last.day} {last:%B %Y}"
    if first.date() == last.date():
        return end
    start = f"{first.day}"
    if (first.year, first.month) != (last.year, last.month):
        start += f" {first:%B}"
    return f"{start}{'' if first.year == last.year else f' {first.year}'} to {end}"


@with_numbers
def facts(m: Numbers, about: Mapping) -> tuple[Fact, ...]:
    found = _of_jobs(m, about) if about["gives"] == "jobs" else _of_components(m, about)
    basis = m.value("sizes.basis", "proxy" if about["gives"] == "jobs" else "component")
    known = "failure reasons read from the records" if basis == "proxy" and m.has("taxonomy.trials") else _CAUSES[basis]
    said = of_trace(", ".join(about.get("failure_words", ())) or "every recorded failure", LONGEST_WORDS)
    return (
        *found,
        Fact(f"Failure by {'recorded state' if about['gives'] == 'jobs' else 'record'}; {known}", "", said),
    )


def _of_jobs(m: Numbers, about: Mapping) -> list[Fact]:
    unit = about["unit"]
    known = "with a result" if m.value("outcomes.unknown.jobs", 0) else "ended"
    ended = f"[outcomes.ended] {known}"
    found = [Fact(f"{words.capital(unit)}s", "[data.jobs]", ended)]
    if not m.size.is_gpu:
        found += [Fact("Nodes", "[data.nodes]")] if m.has("data.nodes") else []
    elif m.has("data.gpus"):
        found.append(Fact("GPUs", "[data.gpus]", "on [data.nodes node]"))
    elif m.value("occupancy.gpus", 0):
        seen = "seen in use on [occupancy.servers node]"
        found.append(Fact("GPUs", "[occupancy.gpus]", seen))
    if m.has("lost_work.gpu_hours"):
        found.append(Fact("GPU time", "[lost_work.gpu_hours]", "GPU-hours"))
    if m.has("data.users"):
        of = "concentration.account.owners"
        accounts = f"in [{of} account]" if m.has(of) else ""
        found.append(Fact("Users", "[data.users]", accounts))
    return found


def _of_components(m: Numbers, about: Mapping) -> list[Fact]:
    unit = about["unit"]
    if not m.has("lives.units"):
        return [
            Fact(
                "Outages",
                "[data.outages]",
                f"of [data.units_with_outage {unit}]; how many were watched is not known",
            )
        ]
    found = [
        Fact(f"{unit if unit.isupper() else words.capital(unit)}s", "[lives.units]"),
        Fact("Failures", "[lives.failures]", _periods(m, about)),
    ]
    # Of units that were never at risk there is none.
    if m.has("mttf.node_days"):
        found.append(Fact("Time at risk", "[mttf.node_days]", f"{unit}-days"))
    return found


def _periods(m: Numbers, about: Mapping) -> str:
    """In how many lives, where a unit may have several."""
    lives = f"[lives.lives] {words.many(about['life'])}"
    return "" if about["life"] == about["unit"] else f"in {lives}"

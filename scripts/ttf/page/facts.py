"""The header: what the trace is, from when to when, what counts as a failure and how causes are known."""

from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from ttf import words
from ttf.charts.text import capital
from ttf.charts.text import plural as nouns
from ttf.page.model import Fact
from ttf.page.numbers import Numbers
from ttf.page.phrases import large, number, of_trace, plural

# A clock that shows an earlier moment counts from an origin of its own: no trace is ten years from it.
YEAR_1980_S = 315_532_800
_CAUSES = {
    "event": "cause by state and health event",
    "state": "cause by state",
    "proxy": "causes not recorded",
    "component": "every failure is the component's",
}
LONGEST_WORDS = 120


def subtitle(m: Numbers, about: Mapping) -> str:
    """How reliably its jobs ran, 1 March to 7 June 2025 (99 days)."""
    what = f"How reliably its {about['unit']}s {'ran' if about['gives'] == 'jobs' else 'served'}"
    if not m.has("period.days"):
        return what
    days, dates = plural(m, "period.days", "day"), period(m, about)
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
    ended = f"{number(m, 'outcomes.ended', words.count)} {known}"
    found = [Fact(f"{capital(unit)}s", number(m, "data.jobs", words.count), ended)]
    if not m.size.is_gpu:
        found += [Fact("Nodes", number(m, "data.nodes", words.count))] if m.has("data.nodes") else []
    elif m.has("data.gpus"):
        found.append(Fact("GPUs", number(m, "data.gpus", words.count), f"on {plural(m, 'data.nodes', 'node')}"))
    elif m.value("occupancy.gpus", 0):
        seen = f"seen in use on {plural(m, 'occupancy.servers', 'node')}"
        found.append(Fact("GPUs", number(m, "occupancy.gpus", words.count), seen))
    if m.has("lost_work.gpu_hours"):
        found.append(Fact("GPU time", number(m, "lost_work.gpu_hours", large), "GPU-hours"))
    if m.has("data.users"):
        of = "concentration.account.owners"
        accounts = f"in {plural(m, of, 'account')}" if m.has(of) else ""
        found.append(Fact("Users", number(m, "data.users", words.count), accounts))
    return found


def _of_components(m: Numbers, about: Mapping) -> list[Fact]:
    unit = about["unit"]
    if not m.has("lives.units"):
        having = plural(m, "data.units_with_outage", unit)
        return [
            Fact("Outages", number(m, "data.outages", words.count), f"of {having}; how many were watched is not known")
        ]
    found = [
        Fact(f"{unit if unit.isupper() else capital(unit)}s", number(m, "lives.units", words.count)),
        Fact("Failures", number(m, "lives.failures", words.count), _periods(m, about)),
    ]
    # Of units that were never at risk there is none.
    if m.has("mttf.node_days"):
        found.append(Fact("Time at risk", number(m, "mttf.node_days", large), f"{unit}-days"))
    return found


def _periods(m: Numbers, about: Mapping) -> str:
    """In how many lives, where a unit may have several."""
    lives = f"{number(m, 'lives.lives', words.count)} {nouns(about['life'])}"
    return "" if about["life"] == about["unit"] else f"in {lives}"

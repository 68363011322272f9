"""The tiles of one account, partition, GPU type or size, as JSON: what the page shows when a stratum is chosen."""

import itertools
import json
from collections.abc import Callable, Collection, Mapping

import polars as pl

from ttf import words
from ttf.charts.text import capital, in_words
from ttf.numbers.metrics import FEWEST_FAILURES
from ttf.page import phrases, rules
from ttf.page.model import FEW, SHOWN, WITHHELD
from ttf.page.numbers import Numbers
from ttf.page.phrases import UNITS, hours, joined, whole_percent
from ttf.size_unit import SizeUnit

FEWEST_JOBS, MOST, MOST_BYTES = 30, 24, 25_000
# Of a name in a list to choose from.
LONGEST_NAME = 40
Row = Mapping[str, object]


def eligible(table: pl.DataFrame) -> pl.DataFrame:
    """The strata with enough jobs and failures, of these the largest; the rows of `strata` in their order."""
    enough = (pl.col("jobs") >= FEWEST_JOBS) & (pl.col("failures") >= FEWEST_FAILURES)
    found = table.with_row_index("row").filter(enough, pl.col("stratum_by") != "all")
    return found.sort("jobs", "row", descending=[True, False]).head(MOST).sort("row").drop("row")


def stratum_in_words(stratum_by: str, stratum: str) -> str:
    """The name of a stratum as it stands alone: 5–8 GPUs."""
    if stratum_by != "gpus" or stratum == "0":
        return "no GPU" if stratum_by == "gpus" else stratum
    return f"{under_its_heading(stratum_by, stratum)}{words.NO_BREAK}GPU{'' if stratum == '1' else 's'}"


def under_its_heading(stratum_by: str, stratum: str) -> str:
    """Its name where a heading says what it is of: 5–8."""
    return "–".join(map(words.grouped, stratum.split("-"))) if stratum_by == "gpus" else stratum


def strata_json(table: pl.DataFrame, tiles: Collection[str], m: Numbers, unit: str) -> str | None:
    """{"groups": {Account: {name: {tile: its parts}}}}, safe within a <script>; None where no stratum is large enough.

    table: STRATA; tiles: names of the tiles that the page shows and does not withhold. Of more than MOST_BYTES the
    smallest strata are left out.
    """
    (every,) = table.filter(stratum_by="all").to_dicts() or [{}]
    makers = {name: make for name, make in MAKERS.items() if name in tiles}
    if rules.r6_ends_unknown(m) or not m.has("outcomes.failure.runtime_median_s"):
        makers.pop("when", None)  # The tile gives the range of the mean instead, or no time at all.
    chosen = eligible(table)
    while chosen.height and makers:
        groups: dict[str, dict] = {}
        for row in chosen.iter_rows(named=True):
            group = groups.setdefault(m.size.worded(capital(in_words(row["stratum_by"]))), {})
            parts = {name: make(row, every, m, unit) for name, make in makers.items()}
            group[_name(row, group, m.size)] = phrases.in_unit(parts, m.size)
        text = json.dumps({"groups": groups}, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        if len(text.encode()) <= MOST_BYTES:
            return text
        chosen = chosen.filter(pl.int_range(pl.len()) != pl.col("jobs").arg_min())
    return None


def _name(row: Row, taken: Collection[str], size: SizeUnit) -> str:
    """Its name, cut; told apart from others that are cut to the same."""
    words_of = stratum_in_words(row["stratum_by"], row["stratum"])
    words_of = size.worded(words_of) if row["stratum_by"] == "gpus" else words_of
    name = phrases.plain(phrases.of_trace(words_of, LONGEST_NAME)) or "(no name)"
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def failure_rate(row: Row, every: Row, m: Numbers, unit: str) -> dict:
    means = f"All {unit}s: {words.share(every['failure_share'])}."
    if row["timeouts"]:
        without = words.share((row["failures"] - row["timeouts"]) / row["ended"])
        means = f"{without} without the {words.plural(row['timeouts'], unit)} that reached a time limit. {means}"
    return _tile(
        words.share(row["failure_share"]),
        f"of ended {unit}s",
        joined(_interval(row, "ci_{}", words.share), f"n = {words.count(row['ended'])}"),
        means,
        _ended(row),
        row["failures"],
    )


def failed_gpu_time(row: Row, every: Row, m: Numbers, unit: str) -> dict:
    if row["failed_gpu_hours_share"] is None:
        return _withheld("No GPU time was seen.")
    means = f"All {unit}s: {words.share(every['failed_gpu_hours_share'])}."
    if failed := row["failed_gpu_hours"]:
        parts = {"Time limits ended": row["timeout_gpu_hours"]}
        if not rules.r1_cause_unknown(m):
            parts["Infrastructure failures ended"] = row["infra_gpu_hours"]
        by, most = max(parts.items(), key=lambda part: part[1])
        if most:
            means = f"{by} {words.share(min(1.0, most / failed))} of it. {means}"
    counted = ""
    if missing := row["failed_without_time"]:
        lack = f"{words.plural(missing, 'failed attempt')} {'lacks' if missing == 1 else 'lack'}"
        counted = f"{lack} a run time and count{'s' if missing == 1 else ''} as 0"
    return _tile(
        *(words.share(row["failed_gpu_hours_share"]), f"of {hours(row['gpu_hours'])} GPU-h"),
        *(joined(_interval(row, "failed_gpu_ci_{}", words.share), counted), means, _ended(row)),
    )


def node_rate(row: Row, every: Row, m: Numbers, unit: str) -> dict:
    rate, failures, days = (row[name] for name in ("failures_per_1000_node_days", "infra_failures", "node_days"))
    if rate is None:
        return _withheld("Less than one node-day was seen.")
    per, badge = "per 1,000 node-days", "any failure" if rules.r1_cause_unknown(m) else ""
    means = "Attempts of every size count"
    if every["failures_per_1000_node_days"]:
        means += f"; so counted, all {unit}s: {words.number(every['failures_per_1000_node_days'])}"
    if not failures:
        seen = f"95% confidence · 0 failures in {words.number(days)} node-days"
        return _tile(f"< {words.number(row['rate_ci_high'])}", per, seen, f"{means}.", "upper bound")
    counted = words.plural(failures, "failure")
    ci = _interval(row, "rate_ci_{}", words.number)
    return _tile(words.number(rate), per, joined(ci, counted), f"{means}.", badge, failures)


def when(row: Row, every: Row, m: Numbers, unit: str) -> dict:
    median, failures = row["failure_median_s"], row["failures_with_runtime"]
    if median is None:
        return _withheld("No failure has a known run time.")
    value, _, of = words.duration(median).partition(words.NO_BREAK)
    ci = _interval(row, "median_ci_{}_s", lambda seconds: words.alike(median, seconds)[0])
    limited = row["timeouts"] > rules.MOSTLY * row["failures"]
    return _tile(
        *(value, f"{UNITS.get(of, of)}, median failed {unit}"),
        joined(ci, f"n = {words.plural(failures, 'failure')}"),
        f"All {unit}s: {words.duration(every['failure_median_s'])}.",
        "time limit" if limited else _ended(row),
        failures,
    )


MAKERS: dict[str, Callable[[Row, Row, Numbers, str], dict]] = {
    "failure_rate": failure_rate,
    "failed_gpu_time": failed_gpu_time,
    "node_rate": node_rate,
    "when": when,
}


def _tile(value: str, unit: str, interval: str, means: str, badge: str = "", failures: int | None = None) -> dict:
    """The parts of a tile; with few failures its value is grey."""
    few = failures is not None and rules.r8_few(failures)
    badge = badge or ("few events" if few else "")
    state = FEW if few else SHOWN
    parts = {"value": value, "unit": unit, "interval": interval, "badge": badge, "state": state, "means": means}
    return {name: part for name, part in parts.items() if part}


def _withheld(why: str) -> dict:
    return {"value": "Cannot be estimated", "state": WITHHELD, "means": why}


def _interval(row: Row, ends: str, worded: Callable[[float], str]) -> str:
    """The clustered interval, else the exact one with what it supposes; "" where there is none."""
    *names, last = ends.rpartition("{}")
    clustered = [f"{names[0]}{end}_clustered{last}" for end in ("low", "high")]
    for (low, high), proviso in ((clustered, ""), ([ends.format("low"), ends.format("high")], " if independent")):
        if row.get(low) is not None and row.get(high) is not None:
            return f"95% CI {words.span(worded(row[low]), worded(row[high]))}{proviso}"
    return ""


def _ended(row: Row) -> str:
    share = row["ended"] / row["jobs"]
    return f"{whole_percent(share)} ended" if share < rules.FEWEST_ENDED_SHARE else ""

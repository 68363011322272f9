"""The tiles of one account, partition, GPU type or size, as JSON: what the page shows when a stratum is chosen."""

import itertools
import json
from collections.abc import Collection, Mapping

import polars as pl

from ttf import words
from ttf.analyses.describe_strata import STRATA
from ttf.numbers.metrics import FEWEST_FAILURES
from ttf.page import phrases, rules, tiles
from ttf.page.model import WITHHELD
from ttf.page.numbers import Numbers
from ttf.page.phrases import fill
from ttf.size_unit import SizeUnit

FEWEST_JOBS, MOST, MOST_BYTES = 30, 24, 25_000
# Of a name in a list to choose from.
LONGEST_NAME = 40
Row = Mapping[str, object]
# The columns of a stratum under the keys that tiles name, and their units.
_KEYS = {
    "data.jobs": ("jobs", "jobs"),
    "outcomes.ended": ("ended", "jobs"),
    "outcomes.failure.jobs": ("failures", "jobs"),
    "outcomes.failure.with_runtime": ("failures_with_runtime", "jobs"),
    "outcomes.failure.runtime_median_s": ("failure_median_s", "s"),
    "outcomes.failure_share": ("failure_share", "share"),
    "outcomes.timeouts": ("timeouts", "jobs"),
    "lost_work.gpu_hours": ("gpu_hours", "GPU hours"),
    "lost_work.failed_gpu_hours_share": ("failed_gpu_hours_share", "share"),
    "lost_work.failed_without_time": ("failed_without_time", "attempts"),
    "sizes.rate.failures": ("infra_failures", "failures"),
    "sizes.rate.failures_per_1000_node_days": ("failures_per_1000_node_days", ""),
    "sizes.rate.node_days": ("node_days", "node days"),
}
_INTERVALS = {
    "outcomes.failure_share_{}": ("ci_{}", "share"),
    "outcomes.failure.runtime_median_{}_s": ("median_ci_{}_s", "s"),
    "lost_work.failed_gpu_hours_share_ci_{}": ("failed_gpu_ci_{}", "share"),
    "sizes.rate.ci_{}": ("rate_ci_{}", ""),
}
_ENDS = ("low", "high", "low_clustered", "high_clustered")
# Tile that a stratum has -> the key of its number.
TILES = {
    "failure_rate": "outcomes.failure_share",
    "failed_gpu_time": "lost_work.failed_gpu_hours_share",
    "node_rate": "sizes.rate.failures_per_1000_node_days",
    "when": "outcomes.failure.runtime_median_s",
}


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


def strata_json(table: pl.DataFrame, names: Collection[str], m: Numbers, about: Mapping) -> str | None:
    """{"groups": {Account: {name: {tile: its parts}}}}, safe within a <script>; None where no stratum is large enough.

    table: STRATA; names: of the tiles that the page shows and does not withhold. Of more than MOST_BYTES the smallest
    strata are left out.
    """
    every = [_numbers(row, m) for row in table.filter(stratum_by="all").iter_rows(named=True)]
    names = [name for name in TILES if name in names]
    if "when" in names and (rules.r6_ends_unknown(m) or not m.has(TILES["when"])):
        names.remove("when")  # The tile gives the range of the mean instead, or no time at all.
    chosen = eligible(table)
    while chosen.height and names:
        groups: dict[str, dict] = {}
        for row in chosen.iter_rows(named=True):
            group = groups.setdefault(m.size.worded(words.capital(words.in_words(row["stratum_by"]))), {})
            parts = {name: _tile(name, row, every[0], m, about) for name in names}
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


def _numbers(row: Row, m: Numbers) -> Numbers:
    """The numbers of a stratum that its tiles name; m: those of the trace."""
    found = Numbers()

    def put(key: str, value: object, unit: str) -> None:
        if value is not None:
            found[key] = {"value": value, "unit": unit, "n": None, "source": STRATA.path}

    for key, (column, unit) in _KEYS.items():
        put(key, row[column], unit)
    for key, (column, unit) in _INTERVALS.items():
        for end in _ENDS:
            put(key.format(end), row.get(column.format(end)), unit)
    put("sizes.basis", m.value("sizes.basis", None), "label")
    put("outcomes.ended_share", row["ended"] / row["jobs"], "share")
    if row["timeouts"] and row["ended"]:
        put("outcomes.failure_share_without_timeout", (row["failures"] - row["timeouts"]) / row["ended"], "share")
    if rate := row["failures_per_1000_node_days"]:
        put("sizes.rate.days_a_failure", 1000 / rate, "days")
    if (failed := row["failed_gpu_hours"]) and not rules.r1_cause_unknown(m):
        ended = {"limit": row["timeout_gpu_hours"], "infra": row["infra_gpu_hours"]}
        for name, hours in (ended | {"other": max(0.0, failed - sum(ended.values()))}).items():
            put(f"failed_time.{name}.share", min(1.0, hours / failed), "share")
    return found


def _tile(name: str, row: Row, every: Numbers, m: Numbers, about: Mapping) -> dict[str, str]:
    """The parts of a tile of the stratum, with the same number of all jobs beside."""
    numbers, key = _numbers(row, m), TILES[name]
    tile = fill(
        {
            "failure_rate": lambda: tiles.failure_rate(numbers, about["unit"], {}),
            "failed_gpu_time": lambda: tiles.failed_gpu_time(numbers, about["unit"], {}),
            "node_rate": lambda: tiles.node_rate(numbers, {}, {}, confidence="95"),
            "when": lambda: tiles.when(numbers, {}, about),
        }[name](),
        numbers,
    )
    if tile is None or tile.state == WITHHELD:
        why = phrases.plain(tile.means) if tile else "No run time or no GPU time was seen."
        return {"value": "Cannot be estimated", "state": WITHHELD, "means": why}
    of_all = f"All {about['unit']}s: {every.words(key)}{', attempts of every size counted' * (name == 'node_rate')}."
    parts = {part: phrases.plain(getattr(tile, part)) for part in ("value", "unit", "interval", "badge", "state")}
    if name == "when" and row["timeouts"] > rules.MOSTLY * row["failures"]:
        parts["badge"] = "time limit"
    # Of no failed time there are no parts.
    own = "" if name == "failed_gpu_time" and not row["failed_gpu_hours"] else phrases.plain(tile.means)
    return {part: text for part, text in parts.items() if text} | {"means": f"{own} {of_all}".strip()}

"""The tiles of one account, partition, GPU type or size, as JSON: what the page shows when a stratum is chosen."""

import itertools
import json
from collections.abc import Collection, Mapping

import polars as pl

from ttf.analyses.outcomes.describe_strata import STRATA
from ttf.analyses.outcomes.describe_strata.page import eligible, stratum_in_words
from ttf.display import phrases, statement_rules
from ttf.display.brief_model import WITHHELD
from ttf.display.metrics import Metrics, cells
from ttf.display.phrases import fill
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.engine.size_unit import SizeUnit
from ttf.page.brief import tiles

MOST_BYTES = 25_000
# Of a name in a list to choose from.
LONGEST_NAME = 40
Row = Mapping[str, object]
_ENDS = ("low", "high")


def _limits(key: str, column: str) -> str:
    """Names and columns of both intervals, with {} for low, high, and these with _clustered."""
    ends = (f"{end}{kind}" for kind in ("", "_clustered") for end in _ENDS)
    return " ".join(f"{key.format(end)}={column.format(end)}" for end in ends if column.format(end) in STRATA.columns)


_RATE = f"failures=infra_failures failures_per_1000_node_days node_days days_a_failure {_limits('ci_{}', 'rate_ci_{}')}"
_MEDIAN = f"runtime_median_s=failure_median_s {_limits('runtime_median_{}_s', 'median_ci_{}_s')}"
_FAILED_TIME = _limits("failed_gpu_hours_share_ci_{}", "failed_gpu_ci_{}")
# The columns of a stratum under the keys that tiles name.
_CELLS = [
    cells(STRATA, "data", "jobs"),
    cells(STRATA, "outcomes", "ended ended_share timeouts failure_share failure_share_without_timeout"),
    cells(STRATA, "outcomes", _limits("failure_share_{}", "ci_{}")),
    cells(STRATA, "outcomes.failure", f"jobs=failures with_runtime=failures_with_runtime {_MEDIAN}"),
    cells(STRATA, "lost_work", f"gpu_hours failed_gpu_hours_share failed_without_time {_FAILED_TIME}"),
    cells(STRATA, "sizes", "basis"),
    cells(STRATA, "sizes.rate", _RATE),
    cells(STRATA, "failed_time", "limit.share=limit_share infra.share=infra_share other.share=other_share"),
]
# Tile that a stratum has -> the key of its number.
TILES = {
    "failure_rate": "outcomes.failure_share",
    "failed_gpu_time": "lost_work.failed_gpu_hours_share",
    "node_rate": "sizes.rate.failures_per_1000_node_days",
    "when": "outcomes.failure.runtime_median_s",
}


def strata_json(table: pl.DataFrame, names: Collection[str], m: Numbers, about: Mapping) -> str | None:
    """{"groups": {Account: {name: {tile: its parts}}}}, safe within a <script>; None where no stratum is large enough.

    table: STRATA; names: of the tiles that the page shows and does not withhold. Of more than MOST_BYTES the smallest
    strata are left out.
    """
    every = [_numbers(row) for row in table.filter(stratum_by="all").iter_rows(named=True)]
    names = [name for name in TILES if name in names]
    if "when" in names and (statement_rules.r6_ends_unknown(m) or not m.has(TILES["when"])):
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


def _numbers(row: Row) -> Numbers:
    """The numbers of a stratum that its tiles name."""
    metrics = Metrics()
    metrics.add(_CELLS, {STRATA.name: STRATA.frame([row])})
    return Numbers(metrics)


def _tile(name: str, row: Row, every: Numbers, m: Numbers, about: Mapping) -> dict[str, str]:
    """The parts of a tile of the stratum, with the same number of all jobs beside."""
    numbers, key = _numbers(row), TILES[name]
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
    if name == "when" and row["timeouts"] > statement_rules.MOSTLY * row["failures"]:
        parts["badge"] = "time limit"
    # Of no failed time there are no parts.
    own = "" if name == "failed_gpu_time" and not row["failed_gpu_hours"] else phrases.plain(tile.means)
    return {part: text for part, text in parts.items() if text} | {"means": f"{own} {of_all}".strip()}

"""The tiles of one account, partition, GPU type or size as JSON, for the page's choice of a stratum."""

import itertools
import json
from collections.abc import Collection, Mapping

import polars as pl

from ttf.analyses.outcomes.describe_strata import STRATA
from ttf.analyses.outcomes.describe_strata.page import format_stratum, select_eligible
from ttf.display import phrases, statement_rules
from ttf.display.brief_model import WITHHELD
from ttf.display.metrics import Metrics, cells
from ttf.display.phrases import fill_slots
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.engine.size_unit import SizeUnit
from ttf.page.brief import tiles

MOST_BYTES = 25_000
# Characters of a name in the list of strata.
LONGEST_NAME = 40


def _limits(key: str, column: str) -> str:
    """Return "key=column" pairs; {} becomes low, high, low_clustered and high_clustered, if STRATA has the column."""
    bounds = (f"{bound}{suffix}" for suffix in ("", "_clustered") for bound in ("low", "high"))
    pairs = ((key.format(bound), column.format(bound)) for bound in bounds)
    return " ".join(f"{name}={cell}" for name, cell in pairs if cell in STRATA.columns)


_RATE = (
    "failures=infra_failures failures_per_1000_node_days node_days days_per_failure reason "
    f"{_limits('ci_{}', 'rate_ci_{}')}"
)
_MEDIAN = f"runtime_median_s=failure_median_s {_limits('runtime_median_{}_s', 'median_ci_{}_s')}"
_FAILED_TIME = _limits("failed_gpu_hours_share_ci_{}", "failed_gpu_ci_{}")
# The columns of a stratum, by the metric keys that tiles use.
_METRIC_CELLS = [
    cells(STRATA, "data", "jobs"),
    cells(STRATA, "outcomes", "ended ended_share timeouts failure_share failure_share_without_timeout"),
    cells(STRATA, "outcomes", _limits("failure_share_{}", "ci_{}")),
    cells(STRATA, "outcomes.failure", f"jobs=failures with_runtime=failures_with_runtime {_MEDIAN}"),
    cells(STRATA, "lost_work", f"gpu_hours failed_gpu_hours_share failed_without_time {_FAILED_TIME}"),
    cells(STRATA, "sizes", "basis"),
    cells(STRATA, "sizes.rate", _RATE),
    cells(STRATA, "failed_time", "limit.share=limit_share infra.share=infra_share other.share=other_share"),
]
# Tiles of a stratum, with the key of their number.
KEY_BY_TILE = {
    "failure_rate": "outcomes.failure_share",
    "failed_gpu_time": "lost_work.failed_gpu_hours_share",
    "node_rate": "sizes.rate.failures_per_1000_node_days",
    "when": "outcomes.failure.runtime_median_s",
}


def strata_json(table: pl.DataFrame, tile_names: Collection[str], m: Numbers, trace_info: Mapping) -> str | None:
    """Return JSON {"groups": {stratification: {stratum: {tile: {part: text}}}}}, or None without a large stratum.

    table: STRATA; tile_names: the tiles that the page shows. Above MOST_BYTES, the smallest strata are left out.
    """
    overall = [_stratum_numbers(row) for row in table.filter(stratum_by="all").iter_rows(named=True)]
    tile_names = [name for name, key in KEY_BY_TILE.items() if name in tile_names and key in overall[0]]
    if "when" in tile_names and (statement_rules.r6_ends_unknown(m) or KEY_BY_TILE["when"] not in m):
        tile_names.remove("when")  # The tile shows the range of the mean, or no time.
    strata = select_eligible(table)
    while strata.height and tile_names:
        groups: dict[str, dict] = {}
        for row in strata.iter_rows(named=True):
            group = groups.setdefault(m.size.worded(words.capitalise(words.stratification_name(row["stratum_by"]))), {})
            parts = {name: _tile_parts(name, row, overall[0], trace_info) for name in tile_names}
            group[_unique_name(row, group, m.size)] = phrases.convert_units(parts, m.size)
        text = json.dumps({"groups": groups}, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        if len(text.encode()) <= MOST_BYTES:
            return text
        strata = strata.filter(pl.int_range(pl.len()) != pl.col("jobs").arg_min())
    return None


def _unique_name(row: Mapping, names: Collection[str], size: SizeUnit) -> str:
    label = format_stratum(row["stratum_by"], row["stratum"])
    label = size.worded(label) if row["stratum_by"] == "gpus" else label
    name = phrases.strip_markup(phrases.quote_trace_text(label, LONGEST_NAME)) or "(no name)"
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return name if name not in names else next(candidate for candidate in numbered if candidate not in names)


def _stratum_numbers(row: Mapping) -> Numbers:
    metrics = Metrics()
    metrics.add(_METRIC_CELLS, {STRATA.name: STRATA.frame([row])})
    return Numbers(metrics)


def _tile_parts(name: str, row: Mapping, overall: Numbers, trace_info: Mapping) -> dict[str, str]:
    """Return the parts of a tile of the stratum, with the number for all jobs as a comparison."""
    numbers, key = _stratum_numbers(row), KEY_BY_TILE[name]
    tile = fill_slots(
        {
            "failure_rate": lambda: tiles.failure_rate(numbers, trace_info["unit"], {}),
            "failed_gpu_time": lambda: tiles.failed_gpu_time(numbers, trace_info["unit"], {}),
            "node_rate": lambda: tiles.node_rate(numbers, {}, {}, confidence="95"),
            "when": lambda: tiles.failure_time(numbers, {}, trace_info),
        }[name](),
        numbers,
    )
    if tile is None or tile.state == WITHHELD:
        reason = phrases.strip_markup(tile.means) if tile else "No run time or no GPU time was recorded."
        return {"value": "Cannot be estimated", "state": WITHHELD, "means": reason}
    scope = ", over attempts of every size" if name == "node_rate" else ""
    comparison = f"All {trace_info['unit']}s: {overall.words(key)}{scope}."
    parts = {
        part: phrases.strip_markup(getattr(tile, part)) for part in ("value", "unit", "interval", "badge", "state")
    }
    if name == "when" and row["timeouts"] > statement_rules.MOSTLY * row["failures"]:
        parts["badge"] = "time limit"
    # Without failed GPU time there is no split by cause.
    means = "" if name == "failed_gpu_time" and not row["failed_gpu_hours"] else phrases.strip_markup(tile.means)
    return {part: text for part, text in parts.items() if text} | {"means": f"{means} {comparison}".strip()}

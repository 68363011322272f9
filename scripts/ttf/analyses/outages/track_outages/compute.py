"""Growth and trend of faults over time, and their mean cumulative function."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.outages.track_outages import GROWTH, MCF
from ttf.engine.counts import most_frequent
from ttf.records.clusters import DAY_S
from ttf.records.inputs import Inputs
from ttf.records.outages.faults import faults
from ttf.records.outages.outage_records import is_start_watched
from ttf.stats.basics.holm import add_adjusted_p
from ttf.stats.durations.growth import FEWEST_EVENTS, Stratum, accumulate_exposure, fit_common_growth
from ttf.stats.durations.mcf import mean_cumulative

MOST_STEPS, MOST_STRATA = 2000, 20
SIGNIFICANCE = 0.05
# Long observation has longer blocks, so that a drift of some months is in one block.
MOST_BLOCKS = 100
# New units fail more often. In their first year this looks like a trend.
YOUNG_S = 365 * DAY_S
FEW = "fewer than 4 units watched: no interval that holds when they differ"
_COMMON_NAMES = {"beta": "beta_within", "ci_low": "beta_within_ci_low", "ci_high": "beta_within_ci_high"}
_RECORDS = ("unit_id", "start_s", "end_s", "level")
_EXPOSURE = ("unit_id", "group", "from_s", "until_s")


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    records, exposure = inputs.read("outage_records", _RECORDS), inputs.read("exposure", _EXPOSURE)
    return analyse_growth(records, exposure, inputs.settings.block_days)


@dataclass(frozen=True)
class Fleet:
    """Observed units and their faults by time: Int64 arrays.

    begin, end, owner: start, end and unit of each observation window. fault_s, unit: time and unit of each fault. Times
    count from the first window of the trace.
    """

    begin: np.ndarray
    end: np.ndarray
    owner: np.ndarray
    fault_s: np.ndarray
    unit: np.ndarray


def analyse_growth(records: pl.DataFrame, exposure: pl.DataFrame, block_days: int = 7) -> dict[str, pl.DataFrame]:
    """Return GROWTH and MCF, all units first. block_days: minimum length of the blocks of time of intervals."""
    begin = exposure.select(pl.col("from_s").min()).item() or 0
    growth_rows, mcf_tables = [], [MCF.frame([])]
    for stratum_by, stratum, fleet, parts in _iterate_fleets(faults(records), exposure, begin):
        keys = {"stratum_by": stratum_by, "stratum": stratum}
        strata, mature = (
            _make_strata(selected, block_days * DAY_S) for selected in (parts, list(map(_select_mature, parts)))
        )
        growth_rows.append(keys | _growth_cells(fleet.fault_s.size, strata, mature))
        steps = mean_cumulative(fleet.fault_s, fleet.unit, fleet.begin, fleet.end, fleet.owner, MOST_STEPS)
        key_columns = {name: pl.lit(value) for name, value in keys.items()}
        frame = pl.DataFrame(steps).with_columns(pl.col("ci_low", "ci_high").fill_nan(None), **key_columns)
        mcf_tables.append(MCF.conform(frame.with_columns(reason=pl.when(pl.col("ci_low").is_null()).then(pl.lit(FEW)))))
    _add_trends(growth_rows)
    trends = [row.get("trend") for row in growth_rows if row["stratum_by"] == "group"]
    growth_rows[0] |= {"groups_tested": len(trends) - trends.count(None)}
    growth_rows[0] |= {f"groups_{trend}": trends.count(trend) for trend in ("better", "worse")}
    return {"growth": GROWTH.frame(growth_rows), "mcf": pl.concat(mcf_tables)}


def _iterate_fleets(
    records: pl.DataFrame, exposure: pl.DataFrame, begin: int
) -> Iterator[tuple[str, str, Fleet, list[Fleet]]]:
    """Yield stratum_by, stratum, fleet and its parts by group: all units, then groups, then levels with all units.

    Of groups and levels, the MOST_STRATA with most faults, by name.
    """
    units = exposure.select("unit_id").unique().sort("unit_id").with_row_index("owner")
    windows = exposure.join(units, on="unit_id").with_columns(pl.col("from_s", "until_s") - begin)
    faults_in_window = records.select("unit_id", "level", pl.col("start_s") - begin).join(windows, on="unit_id")
    faults_in_window = faults_in_window.filter(is_start_watched()).sort("start_s", "owner")
    by_group = windows.partition_by("group", as_dict=True)

    def split_by_group(faults_in_window: pl.DataFrame) -> tuple[Fleet, list[Fleet]]:
        """Return the fleet of all units, and of each group with a fault."""
        faults_by_group = faults_in_window.partition_by("group", as_dict=True)
        parts = [_make_fleet(by_group[group], faults_by_group[group]) for group in by_group if group in faults_by_group]
        return _make_fleet(windows, faults_in_window), parts

    yield "all", "all", *split_by_group(faults_in_window)
    for stratum_by in ("group", "level"):
        for stratum in sorted(most_frequent(faults_in_window, stratum_by, MOST_STRATA)):
            stratum_faults = faults_in_window.filter(pl.col(stratum_by) == stratum)
            if stratum_by == "level":
                yield stratum_by, stratum, *split_by_group(stratum_faults)
            else:
                fleet = _make_fleet(by_group[stratum,], stratum_faults)
                yield stratum_by, stratum, fleet, [fleet]


def _make_fleet(windows: pl.DataFrame, fault_rows: pl.DataFrame) -> Fleet:
    columns = *windows.select("from_s", "until_s", "owner"), *fault_rows.select("start_s", "owner")
    return Fleet(*(column.to_numpy().astype(np.int64) for column in columns))


def _select_mature(fleet: Fleet) -> Fleet:
    """Return the fleet without YOUNG_S from when each unit is first observed: its age is unknown, so it may be new."""
    mature_s = np.full(int(fleet.owner.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(mature_s, fleet.owner, fleet.begin + YOUNG_S)
    is_mature = fleet.fault_s > mature_s[fleet.unit]
    begin = np.clip(mature_s[fleet.owner], fleet.begin, fleet.end)
    return Fleet(begin, fleet.end, fleet.owner, fleet.fault_s[is_mature], fleet.unit[is_mature])


def _growth_cells(n: int, strata: list[Stratum], mature: list[Stratum]) -> dict:
    """Return the cells of GROWTH of n faults except those of `_add_trends`, and what that needs of mature units."""
    if n < FEWEST_EVENTS:
        return {"n": n, "reason": f"fewer than {FEWEST_EVENTS} events: no trend"}
    cells = {_COMMON_NAMES.get(name, name): value for name, value in fit_common_growth(strata).items()}
    mature_fit = fit_common_growth(mature)
    cells |= {"trend_p_mature": mature_fit.get("trend_p"), "mature_t": mature_fit.get("trend_t")}
    return cells | {"n": n, "reason": "; ".join(cells["reasons"]) or None}


def _make_strata(parts: list[Fleet], block_s: int) -> list[Stratum]:
    """Divide fleets with faults into blocks of time, from the start of the first to the end of the last."""
    parts = [part for part in parts if part.fault_s.size]
    if not parts:
        return []
    first, last = min(int(part.begin.min()) for part in parts), max(int(part.end.max()) for part in parts)
    length = block_s * -(-(last - first) // (block_s * MOST_BLOCKS))
    edges = np.minimum(first + length * np.arange(-(-(last - first) // length) + 1), last)
    strata = []
    for part in parts:
        total = int((part.end - part.begin).sum())
        fault_shares, edge_shares = (
            accumulate_exposure(times, part.begin, part.end) / total for times in (part.fault_s, edges)
        )
        strata.append(Stratum(fault_shares, (part.fault_s - first - 1) // length, edge_shares))
    return strata


def _add_trends(rows: list[dict]) -> None:
    """Add trend_p_adjusted, by Holm's method over the rows of a stratification, and the trend."""
    for stratum_by in ("all", "group", "level"):
        group_rows = (row for row in rows if row["stratum_by"] == stratum_by)
        for row in add_adjusted_p(group_rows, "trend_p", "trend_p_adjusted"):
            if row["trend_p_adjusted"] is not None:
                is_confirmed = (row["trend_p_mature"] or 1) < SIGNIFICANCE and row["mature_t"] * row["trend_t"] > 0
                verdict = ("worse" if row["trend_t"] > 0 else "better") if is_confirmed else "unclear"
                row["trend"] = verdict if row["trend_p_adjusted"] < SIGNIFICANCE else "none"

"""Faults over time -> growth, trend, point of change, and the mean cumulative function."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.outages.follow_outages import GROWTH, MCF
from ttf.analyses.shared.outages.faults import faults
from ttf.engine.counts import commonest
from ttf.records.clusters import DAY_S
from ttf.records.inputs import Inputs
from ttf.records.outages.outage_records import began_under_watch
from ttf.stats.basics.holm import with_holm
from ttf.stats.durations.growth import Stratum, common_growth, cumulative, growth
from ttf.stats.durations.mcf import mean_cumulative

MOST_STEPS, MOST_STRATA = 2000, 20
SIGNIFICANCE = 0.05
# A long watch has longer blocks, so that what drifts for some months is in one.
MOST_BLOCKS = 100
FEW = "fewer than 4 units watched: no interval that holds when they differ"
_WITHIN = {"beta": "beta_within", "ci_low": "beta_within_ci_low", "ci_high": "beta_within_ci_high"}
_RECORDS = ("unit_id", "start_s", "end_s", "level")
_EXPOSURE = ("unit_id", "group", "from_s", "until_s")


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    return follow(given.read("outage_records", _RECORDS), given.read("exposure", _EXPOSURE), given.settings.block_days)


@dataclass(frozen=True)
class Fleet:
    """Units watched, and their faults by time: Int64 arrays. begin, end, owner: of each watch; at, unit: of each fault.

    Times count from the first watch of the trace.
    """

    begin: np.ndarray
    end: np.ndarray
    owner: np.ndarray
    at: np.ndarray
    unit: np.ndarray


def follow(records: pl.DataFrame, exposure: pl.DataFrame, block_days: int = 7) -> dict[str, pl.DataFrame]:
    """GROWTH and MCF, of all units first. block_days: the shortest block of time that intervals go by."""
    begin = exposure["from_s"].min() or 0
    of_growth, of_mcf = [], [MCF.frame([])]
    for stratum_by, stratum, fleet, parts in _fleets(faults(records), exposure, begin):
        names = {"stratum_by": stratum_by, "stratum": stratum}
        of_growth.append(names | _growth(fleet, _strata(parts, block_days * DAY_S), begin))
        steps = mean_cumulative(fleet.at, fleet.unit, fleet.begin, fleet.end, fleet.owner, MOST_STEPS)
        frame = pl.DataFrame(steps).with_columns(
            pl.col("ci_low", "ci_high").fill_nan(None), **{name: pl.lit(value) for name, value in names.items()}
        )
        of_mcf.append(MCF.typed(frame.with_columns(reason=pl.when(pl.col("ci_low").is_null()).then(pl.lit(FEW)))))
    _judge(of_growth)
    trends = [row.get("trend") for row in of_growth if row["stratum_by"] == "group"]
    of_growth[0] |= {"groups_tested": len(trends) - trends.count(None)}
    of_growth[0] |= {f"groups_{trend}": trends.count(trend) for trend in ("better", "worse")}
    return {"growth": GROWTH.frame(of_growth), "mcf": pl.concat(of_mcf)}


def _fleets(records: pl.DataFrame, exposure: pl.DataFrame, begin: int) -> Iterator[tuple[str, str, Fleet, list[Fleet]]]:
    """(stratum_by, stratum, fleet, its parts by group): all, groups with their units, levels with all units; of the
    latter two the 20 with most faults, by name."""
    units = exposure.select("unit_id").unique().sort("unit_id").with_row_index("owner")
    windows = exposure.join(units, on="unit_id").with_columns(pl.col("from_s", "until_s") - begin)
    began = records.select("unit_id", "level", pl.col("start_s") - begin).join(windows, on="unit_id")
    began = began.filter(began_under_watch()).sort("start_s", "owner")
    by_group = windows.partition_by("group", as_dict=True)

    def with_parts(began: pl.DataFrame) -> tuple[Fleet, list[Fleet]]:
        of_groups = began.partition_by("group", as_dict=True)
        parts = [_fleet(by_group[group], of_groups[group]) for group in by_group if group in of_groups]
        return _fleet(windows, began), parts

    yield "all", "all", *with_parts(began)
    for stratum_by in ("group", "level"):
        for stratum in sorted(commonest(began, stratum_by, MOST_STRATA)):
            mine = began.filter(pl.col(stratum_by) == stratum)
            if stratum_by == "level":
                yield stratum_by, stratum, *with_parts(mine)
            else:
                fleet = _fleet(by_group[stratum,], mine)
                yield stratum_by, stratum, fleet, [fleet]


def _fleet(windows: pl.DataFrame, began: pl.DataFrame) -> Fleet:
    columns = [windows[name] for name in ("from_s", "until_s", "owner")] + [
        began[name] for name in ("start_s", "owner")
    ]
    return Fleet(*(column.to_numpy().astype(np.int64) for column in columns))


def _growth(fleet: Fleet, strata: list[Stratum], begin: int) -> dict:
    """The columns of GROWTH but for `_judge`'s; begin: when times of the fleet count from, on the trace's clock."""
    exposed = cumulative(fleet.at, fleet.begin, fleet.end)
    total = int((fleet.end - fleet.begin).sum())
    found = growth(exposed, total)
    if "change_place" in found:
        place = found["change_place"]
        after, left = exposed.size - place - 1, total - int(exposed[place])
        found["change_point_s"] = int(fleet.at[place]) + begin
        if left:
            found["rate_ratio"] = (after / left) / ((place + 1) / int(exposed[place]))
        else:
            found["reasons"].append("the rate is furthest from constant at the end of the watch: no rate after it")
        within = common_growth(strata)
        found["reasons"] += within.pop("reasons")
        found |= {_WITHIN.get(name, name): value for name, value in within.items()}
    return found | {"reason": "; ".join(found["reasons"]) or None}


def _strata(parts: list[Fleet], block_s: int) -> list[Stratum]:
    """Fleets with faults, in blocks of the time from the begin of the first to the end of the last."""
    if not parts:
        return []
    first, last = min(int(part.begin.min()) for part in parts), max(int(part.end.max()) for part in parts)
    length = block_s * -(-(last - first) // (block_s * MOST_BLOCKS))
    edges = np.minimum(first + length * np.arange(-(-(last - first) // length) + 1), last)
    found = []
    for part in parts:
        total = int((part.end - part.begin).sum())
        at, passed = (cumulative(times, part.begin, part.end) / total for times in (part.at, edges))
        found.append(Stratum(at, (part.at - first - 1) // length, passed))
    return found


def _judge(rows: list[dict]) -> None:
    """Adds to the rows of GROWTH trend_p_adjusted, by Holm's method over those of a stratification, and the trend."""
    for stratum_by in ("all", "group", "level"):
        mine = (row for row in rows if row["stratum_by"] == stratum_by)
        for row in with_holm(mine, "trend_p", "trend_p_adjusted"):
            if row["trend_p_adjusted"] is not None:
                way = "worse" if row["trend_t"] > 0 else "better"
                row["trend"] = way if row["trend_p_adjusted"] < SIGNIFICANCE else "none"

"""Faults over time -> growth, trend, point of change, and the mean cumulative function."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.follow_outages import GROWTH, MCF
from ttf.inputs import Inputs
from ttf.outages.faults import faults
from ttf.outages.records import began_under_watch
from ttf.stats.growth import cumulative, growth
from ttf.stats.mcf import mean_cumulative

MOST_STEPS, MOST_STRATA = 2000, 20
SIGNIFICANCE = 0.05
FEW = "fewer than 4 units watched: no interval that holds when they differ"
_RECORDS = ("unit_id", "start_s", "end_s", "level")
_EXPOSURE = ("unit_id", "group", "from_s", "until_s")


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    return follow(given.read("outage_records", _RECORDS), given.read("exposure", _EXPOSURE))


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


def follow(records: pl.DataFrame, exposure: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """GROWTH and MCF, of all units first."""
    begin = exposure["from_s"].min() or 0
    of_growth, of_mcf = [], [MCF.frame([])]
    for stratum_by, stratum, fleet in _fleets(faults(records), exposure, begin):
        names = {"stratum_by": stratum_by, "stratum": stratum}
        of_growth.append(names | _growth(fleet, begin))
        steps = mean_cumulative(fleet.at, fleet.unit, fleet.begin, fleet.end, fleet.owner, MOST_STEPS)
        frame = pl.DataFrame(steps).with_columns(
            pl.col("ci_low", "ci_high").fill_nan(None), **{name: pl.lit(value) for name, value in names.items()}
        )
        of_mcf.append(MCF.typed(frame.with_columns(reason=pl.when(pl.col("ci_low").is_null()).then(pl.lit(FEW)))))
    return {"growth": GROWTH.frame(of_growth), "mcf": pl.concat(of_mcf)}


def _fleets(records: pl.DataFrame, exposure: pl.DataFrame, begin: int) -> Iterator[tuple[str, str, Fleet]]:
    """(stratum_by, stratum, fleet): all, groups with their units, levels with all units; of the latter two the 20 with
    most faults, by name."""
    units = exposure.select("unit_id").unique().sort("unit_id").with_row_index("owner")
    windows = exposure.join(units, on="unit_id").with_columns(pl.col("from_s", "until_s") - begin)
    began = records.select("unit_id", "level", pl.col("start_s") - begin).join(windows, on="unit_id")
    began = began.filter(began_under_watch()).sort("start_s", "owner")
    yield "all", "all", _fleet(windows, began)
    for stratum_by in ("group", "level"):
        known = began.drop_nulls(stratum_by).group_by(stratum_by).len()
        most = known.sort("len", stratum_by, descending=[True, False]).head(MOST_STRATA)
        for stratum in most[stratum_by].sort():
            of = pl.col(stratum_by) == stratum
            yield (
                stratum_by,
                stratum,
                _fleet(windows.filter(of) if stratum_by == "group" else windows, began.filter(of)),
            )


def _fleet(windows: pl.DataFrame, began: pl.DataFrame) -> Fleet:
    columns = [windows[name] for name in ("from_s", "until_s", "owner")] + [
        began[name] for name in ("start_s", "owner")
    ]
    return Fleet(*(column.to_numpy().astype(np.int64) for column in columns))


def _growth(fleet: Fleet, begin: int) -> dict:
    """The columns of GROWTH; begin: when the times of the fleet count from, on the clock of the trace."""
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
        found["trend"] = _trend(found)
    return found | {"reason": "; ".join(found["reasons"]) or None}


def _trend(found: dict) -> str:
    """What the tests allow to say; bursts make those that suppose a Poisson process reject."""

    def rejects(*tests: str) -> bool:
        return any(found.get(test, 1) < SIGNIFICANCE for test in tests)

    if rejects("lewis_robinson_p"):
        return "worse" if found["laplace_u"] > 0 else "better"
    if rejects("change_point_p_corrected"):
        return "changed"
    return "bursts" if rejects("laplace_p", "mil_hdbk_p", "change_point_p") else "none"

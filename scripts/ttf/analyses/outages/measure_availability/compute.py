"""Outages and their records -> how often, how long, what for, and the share of the time up."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ttf.analyses.outages.measure_availability import AVAILABILITY, OUTAGE_CAUSES, OUTAGES_SUMMARY
from ttf.analyses.outages.measure_availability.outage_free import outage_free
from ttf.analyses.shared.outages.faults import faults
from ttf.records.clusters import DAY_S, block_name, runs_of_steps, steps_by_block
from ttf.records.inputs import Inputs
from ttf.records.outages.outage_records import began_under_watch
from ttf.stats.durations.renewal import estimates, repair_times

CAUSE = ("level", "class", "cause")
DEPTHS = {"all": (), "level": CAUSE[:1], "class": CAUSE[:2], "cause": CAUSE}
MOST_CAUSES, MOST_LEVELS = 500, 20
# What divides units, and what divides their outages.
OF_UNITS = {"all": pl.lit("all"), "group": pl.col("group")}
OF_OUTAGES = {
    "planned": pl.when("planned").then(pl.lit("planned")).otherwise(pl.lit("unplanned")),
    "level": pl.col("level"),
}
_OUTAGES = ("unit_id", "node", "group", "start_s", "end_s", "seen_until_s", "duration_s", "level", "planned", "counted")
_RECORDS = ("unit_id", "start_s", "end_s", *CAUSE, "planned", "outage")
_EXPOSURE = ("unit_id", "group", "from_s", "until_s")
REPAIR_TIMES = ("median_s", "p90_s", "restricted_mean_s", "horizon_s")
NO_TIMES = repair_times(np.zeros(0, np.int64), np.zeros(0, bool))
_SUMS = ("down_s", "outages", "under_way", "repairs", "records")


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    outages, records = given.read("outages", _OUTAGES), given.read("outage_records", _RECORDS)
    exposure = given.read("exposure", _EXPOSURE) if "exposure" in given else None
    clusters = {name: getattr(given.settings, name) for name in ("block_days", "cluster_by")}
    return {
        "outage_causes": causes(outages, records),
        "availability": availability(outages, records, exposure, **clusters),
        "outages_summary": summarise_outages(outages, exposure, given.settings.is_all),
        "outage_free": outage_free(outages, exposure, **clusters),
    }


def summarise_outages(outages: pl.DataFrame, exposure: pl.DataFrame | None, is_all: bool) -> pl.DataFrame:
    """The one row of OUTAGES_SUMMARY. is_all: whether the trace has nothing else."""
    row = {"outages": outages.height, "units_with_outage": outages["unit_id"].n_unique()}
    row["units_watched"] = None if exposure is None else exposure["unit_id"].n_unique()
    if is_all and outages.height:
        row |= {"from_s": outages["start_s"].min(), "to_s": outages["seen_until_s"].max()}
        row["days"] = -(-(row["to_s"] - row["from_s"]) // DAY_S)
    return OUTAGES_SUMMARY.frame([row])


def causes(outages: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """The records by cause (OUTAGE_CAUSES), of a depth the most frequent first; of those that overlap each counts."""
    until = pl.coalesce("end_s", outages["seen_until_s"].gather(records["outage"]))
    records = records.with_columns(seconds=until - pl.col("start_s"), ended=pl.col("end_s").is_not_null())
    groups = [
        records.group_by(pl.lit(depth).alias("depth"), *by)
        .agg("seconds", "ended", pl.col("planned").sum().cast(pl.Int64), events=pl.len().cast(pl.Int64))
        .filter(pl.col("events") > 0)
        .sort("events", *by, descending=[True, *(False for _ in by)], nulls_last=True)
        .head(MOST_CAUSES)
        for depth, by in DEPTHS.items()
        if depth == "all" or records[depth].count()
    ]
    downtime = records["seconds"].sum()
    found = pl.concat(groups, how="diagonal")
    rows = found.drop("seconds", "ended").iter_rows(named=True)
    times = zip(rows, found["seconds"], found["ended"], strict=True)
    return OUTAGE_CAUSES.frame(_cause(row, *of, records.height, downtime) for row, *of in times)


def _cause(row: dict, seconds: pl.Series, ended: pl.Series, events: int, downtime: int) -> dict:
    """A row of `causes`; row: its names and counts."""
    seconds, ended = seconds.to_numpy(), ended.to_numpy()
    down, repairs, times = int(seconds.sum()), int(ended.sum()), repair_times(seconds, ended)
    reasons = ["no record has ended: no mean"] * (not repairs) + times["reasons"]
    return row | {
        "share": row["events"] / events,
        "downtime_s": down,
        "downtime_share": down / downtime if downtime else None,
        "repair_mean_s": down / repairs if repairs else None,
        "repair_median_s": times.get("median_s"),
        "repair_p90_s": times.get("p90_s"),
        "reason": "; ".join(reasons + ["no record lasts"] * (not downtime)) or None,
    }


def availability(
    outages: pl.DataFrame,
    records: pl.DataFrame,
    exposure: pl.DataFrame | None,
    block_days: int,
    cluster_by: str | None = None,
) -> pl.DataFrame:
    """Of all units and of each group of them, and of outages planned or not and by level (AVAILABILITY).

    Intervals allow for blocks of so many days where the watch is known; of levels, which are many, by unit alone.
    cluster_by: what groups of units are, where intervals go by them, as those of lives do; else they go by unit.
    """
    unit = "node" if outages["unit_id"].equals(outages["node"]) else "unit"
    units, windows = _watched(outages, exposure)
    numbers = units.select("unit_id", cluster=pl.col("group").rank("dense")).sort("unit_id").with_row_index("unit")
    units, windows = (frame.join(numbers, on="unit_id") for frame in (units, windows))
    outages, records = _in_windows(outages, faults(records), windows)
    whole = [units, outages, records]
    steps = whole if exposure is None else _steps(windows, outages, records, block_days)
    rows = []
    for stratum_by, kind in (OF_UNITS | OF_OUTAGES).items():
        every, *events = whole if stratum_by == "level" else steps
        events = [_labelled(frame, kind) for frame in events]
        of_units = _labelled(every, kind) if stratum_by in OF_UNITS else _kinds(stratum_by, events[0], every)
        times = {label: repair_times(*of) for label, *of in _repairs(_labelled(outages, kind))}
        frames, of = [of_units, *events], unit
        if cluster_by and stratum_by != "group":
            frames, of = [frame.with_columns(unit=pl.col("cluster").fill_null(0)) for frame in frames], cluster_by
        # The sums are held no longer than their rows are made.
        for row in estimates(_sums(frames), ["stratum"], of, block_name(block_days), of == cluster_by):
            row |= {"stratum_by": stratum_by, "unit": unit}
            row["down_share"] = None if row.get("availability") is None else row["down_s"] / row["exposure_s"]
            if row["units"] is not None and of == cluster_by:
                row["units"] = units.height
            of_repairs = times.get(row["stratum"], NO_TIMES)
            row |= {f"repair_{name}": of_repairs.get(name) for name in REPAIR_TIMES} | {"open": of_repairs["open"]}
            rows.append(row | {"reason": "; ".join(row["reasons"] + of_repairs["reasons"]) or None})
    return AVAILABILITY.frame(rows)


def _watched(outages: pl.DataFrame, exposure: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(units, windows): unit_id, group, exposure_s of each unit watched; unit_id, group, from_s, until_s of each watch.

    Where nobody knows which units were watched: those with an outage, all the time, exposure_s blank.
    """
    groups = outages.group_by("unit_id").agg(pl.col("group").drop_nulls().first())
    if exposure is None:
        ends = outages.select(from_s=pl.col("start_s").min() - 1, until_s=pl.col("seen_until_s").max())
        return groups.with_columns(exposure_s=pl.lit(None, pl.Int64)), groups.join(ends, how="cross")
    windows = exposure.join(groups, on="unit_id", how="left", suffix="_of_outages").select(
        "unit_id", "from_s", "until_s", group=pl.coalesce("group", "group_of_outages")
    )
    watched = windows.group_by("unit_id").agg(
        pl.col("group").drop_nulls().first(), exposure_s=(pl.col("until_s") - pl.col("from_s")).sum()
    )
    return watched, windows


def _in_windows(
    outages: pl.DataFrame, records: pl.DataFrame, windows: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Outages and records in each watch of their unit, with what the sums are of (Int64)."""
    keys = ("unit", "cluster", "group", "planned", "level")
    inside = pl.min_horizontal("seen_until_s", "until_s") - pl.max_horizontal("start_s", "from_s")
    ended = (pl.col("end_s") > pl.col("from_s")) & (pl.col("end_s") <= pl.col("until_s"))
    sums = {
        "outages": began_under_watch(),
        "under_way": (pl.col("start_s") <= pl.col("from_s")) & (inside > 0),
        "repairs": ended.fill_null(False),
    }
    times = ("start_s", "end_s", "seen_until_s", "from_s", "until_s")
    return (
        outages.drop("group")
        .join(windows, on="unit_id")
        .select(
            *keys,
            *times,
            down_s=inside.clip(lower_bound=0),
            **{name: of.cast(pl.Int64) for name, of in sums.items()},
        ),
        records.drop("group", strict=False)
        .join(windows, on="unit_id")
        .select(*keys, "start_s", records=began_under_watch().cast(pl.Int64)),
    )


def _steps(windows: pl.DataFrame, outages: pl.DataFrame, records: pl.DataFrame, block_days: int) -> list[pl.DataFrame]:
    """[units, events] as steps by block of time: an outage begins in its first block and ends in its last."""
    keys = ("unit", "cluster", "group")
    windows = windows.with_columns(watched=pl.lit(1))
    units = steps_by_block(
        windows, keys, pl.col("from_s"), pl.col("until_s"), block_days, "exposure_s", throughout=["watched"]
    )
    keys += ("planned",)
    start_s, end_s = pl.max_horizontal("start_s", "from_s"), pl.min_horizontal("seen_until_s", "until_s")
    seen = outages.filter(start_s <= end_s)
    began, ended = ("outages", "under_way"), ("repairs",)
    of_outages = steps_by_block(seen, keys, start_s, end_s, block_days, "down_s", at_start=began, at_end=ended)
    at = pl.col("start_s")
    of_records = steps_by_block(records.filter(records=1), keys, at, at, block_days, at_start=["records"])
    # Most records begin with an outage.
    events = pl.concat([of_outages, of_records], how="diagonal").lazy().group_by(*keys, "block").agg(pl.all().sum())
    return [units, events.collect(engine="streaming")]


def _labelled(frame: pl.DataFrame, kind: pl.Expr) -> pl.DataFrame:
    return frame.with_columns(stratum=kind).drop_nulls("stratum")


def _kinds(stratum_by: str, outages: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """All units in each of the strata of outages."""
    if stratum_by == "planned":
        return pl.DataFrame({"stratum": ["planned", "unplanned"]}).join(units, how="cross")
    counted = outages.group_by("stratum").agg(n=pl.col("outages").sum())
    most = counted.sort("n", "stratum", descending=[True, False]).head(MOST_LEVELS)
    return most.select("stratum").join(units, how="cross")


def _sums(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """What `ttf.stats.durations.renewal.estimates` takes, by stratum, unit and run of blocks, of steps or of whole
    units."""
    names, of = ("stratum", "unit", "block"), ("watched", "exposure_s", *_SUMS)
    frames = [frame.select(name for name in (*names, *of) if name in frame.columns) for frame in frames]
    labels = pl.concat([frame["stratum"].unique() for frame in frames]).unique().sort()
    units = max(frame["unit"].max() or 0 for frame in frames) + 1
    key = pl.col("stratum").cast(pl.Enum(labels)).to_physical().cast(pl.Int64) * units + pl.col("unit")
    together = pl.concat(
        [frame.lazy().select(pl.exclude("stratum", "unit"), key=key) for frame in frames], how="diagonal"
    )
    if "block" in frames[0].columns:
        sums = runs_of_steps(together)
    else:
        sums = together.group_by("key").agg(pl.all().sum()).sort("key")
        sums = sums.with_columns(block=pl.lit(None), blocks=pl.lit(None)).collect(engine="streaming")
    if not frames[0]["exposure_s"].count():
        # Nobody knows how long they were watched.
        sums = sums.with_columns(exposure_s=pl.lit(None, pl.Int64))
    stratum = pl.lit(labels.cast(pl.Enum(labels))).gather(pl.col("key") // units)
    return sums.select(pl.exclude("key"), stratum=stratum, unit=pl.col("key") % units)


def _repairs(outages: pl.DataFrame) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(stratum, seconds down, whether they ended) of the outages that began while the unit was watched.

    Those under way when the watch began are left out: of them the long ones are met more often.
    """
    times = outages.filter(outages=1).select(
        "stratum", seconds=pl.col("seen_until_s") - pl.col("start_s"), ended=pl.col("end_s").is_not_null()
    )
    for (label,), part in times.group_by("stratum"):
        yield label, part["seconds"].to_numpy(), part["ended"].to_numpy()

"""How often units are down, for how long, why, and the share of time up: from outages and their records."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ttf.analyses.outages.measure_availability import AVAILABILITY, OUTAGE_CAUSES, OUTAGES_SUMMARY
from ttf.analyses.outages.measure_availability.outage_free import outage_free
from ttf.records.clusters import DAY_S, block_name, steps_by_block, sum_step_runs
from ttf.records.inputs import Inputs
from ttf.records.outages.faults import faults
from ttf.records.outages.outage_records import is_start_watched
from ttf.stats.durations.renewal import estimate_strata, repair_times

CAUSE = ("level", "class", "cause")
DEPTHS = {"all": (), "level": CAUSE[:1], "class": CAUSE[:2], "cause": CAUSE}
MOST_CAUSES, MOST_LEVELS = 500, 20
# Expressions that divide the units, and that divide their outages.
UNIT_STRATA = {"all": pl.lit("all"), "group": pl.col("group")}
OUTAGE_STRATA = {
    "planned": pl.when("planned").then(pl.lit("planned")).otherwise(pl.lit("unplanned")),
    "level": pl.col("level"),
}
_OUTAGES = ("unit_id", "node", "group", "start_s", "end_s", "seen_until_s", "duration_s", "level", "planned", "counted")
_RECORDS = ("unit_id", "start_s", "end_s", *CAUSE, "planned", "outage")
_EXPOSURE = ("unit_id", "group", "from_s", "until_s")
REPAIR_TIMES = ("median_s", "p90_s", "restricted_mean_s", "horizon_s", "longest_share")
NO_TIMES = repair_times(np.zeros(0, np.int64), np.zeros(0, bool))
_SUMS = ("down_s", "outages", "under_way", "repairs", "records")


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    outages, records = inputs.read("outages", _OUTAGES), inputs.read("outage_records", _RECORDS)
    exposure = inputs.read("exposure", _EXPOSURE) if "exposure" in inputs else None
    cluster_settings = {name: getattr(inputs.settings, name) for name in ("block_days", "cluster_by")}
    return {
        "outage_causes": causes(outages, records),
        "availability": availability(outages, records, exposure, **cluster_settings),
        "outages_summary": summarise_outages(outages, exposure, inputs.settings.is_all),
        "outage_free": outage_free(outages, exposure, **cluster_settings),
    }


def summarise_outages(outages: pl.DataFrame, exposure: pl.DataFrame | None, is_all: bool) -> pl.DataFrame:
    """Return the one row of OUTAGES_SUMMARY. is_all: whether the trace records nothing but outages."""
    row: dict = {"outages": outages.height, "units_with_outage": outages["unit_id"].n_unique()}
    if exposure is not None:
        is_observed = (pl.col("start_s") <= pl.col("until_s")) & (pl.col("seen_until_s") >= pl.col("from_s"))
        observed = outages.with_row_index().join(exposure, on="unit_id").filter(is_observed)["index"].n_unique()
        row["outages_outside"] = outages.height - observed
    if is_all and outages.height:
        from_s, to_s = outages.select(pl.col("start_s").min(), pl.col("seen_until_s").max()).row(0)
        row |= {"from_s": from_s, "to_s": to_s, "days": -(-(to_s - from_s) // DAY_S)}
    return OUTAGES_SUMMARY.frame([row])


def causes(outages: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Return the outage records by cause (OUTAGE_CAUSES), the most frequent first. Overlapping records each count."""
    until_s = pl.coalesce("end_s", outages["seen_until_s"].gather(records["outage"]))
    records = records.with_columns(seconds=until_s - pl.col("start_s"), ended=pl.col("end_s").is_not_null())
    parts = [
        records.group_by(pl.lit(depth).alias("depth"), *columns)
        .agg("seconds", "ended", pl.col("planned").sum().cast(pl.Int64), events=pl.len().cast(pl.Int64))
        .filter(pl.col("events") > 0)
        .sort("events", *columns, descending=[True, *(False for _ in columns)], nulls_last=True)
        .head(MOST_CAUSES)
        for depth, columns in DEPTHS.items()
        if depth == "all" or records[depth].count()
    ]
    downtime = int(records["seconds"].sum())
    groups = pl.concat(parts, how="diagonal")
    rows = groups.drop("seconds", "ended").iter_rows(named=True)
    return OUTAGE_CAUSES.frame(
        _cause_row(row, seconds.to_numpy(), ended.to_numpy(), records.height, downtime)
        for row, seconds, ended in zip(rows, groups["seconds"], groups["ended"], strict=True)
    )


def _cause_row(row: dict, seconds: np.ndarray, ended: np.ndarray, events: int, downtime: int) -> dict:
    """Return a row of OUTAGE_CAUSES from the seconds of the cause's records. events, downtime: of all records."""
    down_s, repairs, times = int(seconds.sum()), int(ended.sum()), repair_times(seconds, ended)
    reasons = ["no record has ended: no mean"] * (not repairs) + times["reasons"]
    return row | {
        "share": row["events"] / events,
        "downtime_share": down_s / downtime if downtime else None,
        "repair_mean_s": down_s / repairs if repairs else None,
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
    """Return the availability of all units, of each group, and of outages by plan and level (AVAILABILITY).

    Intervals allow for correlation within blocks of time if the watched time is known; those of levels, which are many,
    only within units. cluster_by: the group by which intervals of durations are clustered; default: unit.
    """
    unit = "node" if outages["unit_id"].equals(outages["node"]) else "unit"
    units, windows = _watched_units(outages, exposure)
    numbers = units.select("unit_id", cluster=pl.col("group").rank("dense")).sort("unit_id").with_row_index("unit")
    units, windows = (frame.join(numbers, on="unit_id") for frame in (units, windows))
    outages, records = _cut_to_windows(outages, faults(records), windows)
    whole_frames = [units, outages, records]
    steps = whole_frames if exposure is None else _blocks(windows, outages, records, block_days)
    rows = []
    for stratum_by, strata in (UNIT_STRATA | OUTAGE_STRATA).items():
        watched, *events = whole_frames if stratum_by == "level" else steps
        events = [_add_stratum(frame, strata) for frame in events]
        units_frame = (
            _add_stratum(watched, strata) if stratum_by in UNIT_STRATA else _cross_units(stratum_by, events[0], watched)
        )
        times = {stratum: repair_times(*spells) for stratum, *spells in _iterate_repairs(_add_stratum(outages, strata))}
        frames, label = [units_frame, *events], unit
        if cluster_by and stratum_by != "group":
            frames, label = [frame.with_columns(unit=pl.col("cluster").fill_null(0)) for frame in frames], cluster_by
        # The sums are freed as soon as their rows exist.
        for row in estimate_strata(
            _sum_strata(frames), ["stratum"], label, block_name(block_days), label == cluster_by
        ):
            row |= {"stratum_by": stratum_by, "unit": unit}
            row["down_share"] = None if row.get("availability") is None else row["down_s"] / row["exposure_s"]
            if row["units"] is not None and label == cluster_by:
                row["units"] = units.height
            repair = times.get(row["stratum"], NO_TIMES)
            row |= {f"repair_{name}": repair.get(name) for name in REPAIR_TIMES} | {"open": repair["open"]}
            rows.append(row | {"reason": "; ".join(row["reasons"] + repair["reasons"]) or None})
    return AVAILABILITY.frame(rows)


def _watched_units(outages: pl.DataFrame, exposure: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (units: unit_id, group, exposure_s; windows: unit_id, group, from_s, until_s of each watch).

    If the trace does not say which units were watched: units with an outage, over the whole period, exposure_s blank.
    """
    groups = outages.group_by("unit_id").agg(pl.col("group").drop_nulls().first())
    if exposure is None:
        period = outages.select(from_s=pl.col("start_s").min() - 1, until_s=pl.col("seen_until_s").max())
        return groups.with_columns(exposure_s=pl.lit(None, pl.Int64)), groups.join(period, how="cross")
    windows = exposure.join(groups, on="unit_id", how="left", suffix="_of_outages").select(
        "unit_id", "from_s", "until_s", group=pl.coalesce("group", "group_of_outages")
    )
    units = windows.group_by("unit_id").agg(
        pl.col("group").drop_nulls().first(), exposure_s=(pl.col("until_s") - pl.col("from_s")).sum()
    )
    return units, windows


def _cut_to_windows(
    outages: pl.DataFrame, records: pl.DataFrame, windows: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return outages and records within each watch of their unit, with the Int64 columns that are summed."""
    keys = ("unit", "cluster", "group", "planned", "level")
    overlap_s = pl.min_horizontal("seen_until_s", "until_s") - pl.max_horizontal("start_s", "from_s")
    sums = {
        "outages": is_start_watched(),
        "under_way": (pl.col("start_s") <= pl.col("from_s")) & (overlap_s > 0),
        "repairs": ((pl.col("end_s") > pl.col("from_s")) & (pl.col("end_s") <= pl.col("until_s"))).fill_null(False),
    }
    return (
        outages.drop("group")
        .join(windows, on="unit_id")
        .select(
            *keys,
            *("start_s", "end_s", "seen_until_s", "from_s", "until_s"),
            down_s=overlap_s.clip(lower_bound=0),
            **{name: flag.cast(pl.Int64) for name, flag in sums.items()},
        ),
        records.drop("group", strict=False)
        .join(windows, on="unit_id")
        .select(*keys, "start_s", records=is_start_watched().cast(pl.Int64)),
    )


def _blocks(windows: pl.DataFrame, outages: pl.DataFrame, records: pl.DataFrame, block_days: int) -> list[pl.DataFrame]:
    """Return [units, events] by block of time. An outage begins in its first block and ends in its last."""
    keys = ("unit", "cluster", "group")
    windows = windows.with_columns(watched=pl.lit(1))
    units = steps_by_block(
        windows, keys, pl.col("from_s"), pl.col("until_s"), block_days, "exposure_s", throughout=["watched"]
    )
    event_keys = (*keys, "planned")
    start_s, end_s = pl.max_horizontal("start_s", "from_s"), pl.min_horizontal("seen_until_s", "until_s")
    observed = outages.filter(start_s <= end_s)
    starts, ends = ("outages", "under_way"), ("repairs",)
    outage_steps = steps_by_block(
        observed, event_keys, start_s, end_s, block_days, "down_s", at_start=starts, at_end=ends
    )
    first_records, time_s = records.filter(records=1), pl.col("start_s")
    record_steps = steps_by_block(first_records, event_keys, time_s, time_s, block_days, at_start=["records"])
    # Most records begin with an outage, so their rows merge.
    steps = pl.concat([outage_steps, record_steps], how="diagonal").lazy()
    return [units, steps.group_by(*event_keys, "block").agg(pl.all().sum()).collect(engine="streaming")]


def _add_stratum(frame: pl.DataFrame, strata: pl.Expr) -> pl.DataFrame:
    """Add the column stratum; drop rows in none."""
    return frame.with_columns(stratum=strata).drop_nulls("stratum")


def _cross_units(stratum_by: str, outages: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """Return all units for each stratum of outages: planned or not, or the MOST_LEVELS most frequent levels."""
    if stratum_by == "planned":
        return pl.DataFrame({"stratum": ["planned", "unplanned"]}).join(units, how="cross")
    counted = outages.group_by("stratum").agg(n=pl.col("outages").sum())
    largest = counted.sort("n", "stratum", descending=[True, False]).head(MOST_LEVELS)
    return largest.select("stratum").join(units, how="cross")


def _sum_strata(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Sum by stratum, unit and run of blocks, or whole unit: input of `ttf.stats.durations.renewal.estimate_strata`."""
    names, summed = ("stratum", "unit", "block"), ("watched", "exposure_s", *_SUMS)
    frames = [frame.select(name for name in (*names, *summed) if name in frame.columns) for frame in frames]
    labels = pl.concat([frame["stratum"].unique() for frame in frames]).unique().sort()
    units = max(frame.select(pl.col("unit").max()).item() or 0 for frame in frames) + 1
    key = pl.col("stratum").cast(pl.Enum(labels)).to_physical().cast(pl.Int64) * units + pl.col("unit")
    combined = pl.concat(
        [frame.lazy().select(pl.exclude("stratum", "unit"), key=key) for frame in frames], how="diagonal"
    )
    if "block" in frames[0].columns:
        sums = sum_step_runs(combined)
    else:
        key_sums = combined.group_by("key").agg(pl.all().sum()).sort("key")
        sums = key_sums.with_columns(block=pl.lit(None), blocks=pl.lit(None)).collect(engine="streaming")
    if not frames[0]["exposure_s"].count():
        # The watched time is not known.
        sums = sums.with_columns(exposure_s=pl.lit(None, pl.Int64))
    stratum = pl.lit(labels.cast(pl.Enum(labels))).gather(pl.col("key") // units)
    return sums.select(pl.exclude("key"), stratum=stratum, unit=pl.col("key") % units)


def _iterate_repairs(outages: pl.DataFrame) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield (stratum, seconds down, whether they ended) of the outages that began while the unit was watched.

    Outages under way when the watch began are excluded: they are more often long ones.
    """
    times = outages.filter(outages=1).select(
        "stratum", seconds=pl.col("seen_until_s") - pl.col("start_s"), ended=pl.col("end_s").is_not_null()
    )
    for (label,), part in times.group_by("stratum"):
        yield label, part["seconds"].to_numpy(), part["ended"].to_numpy()

"""Durations of units with outages: up times from the begin of the watch or a repair to the next outage."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.records.clusters import add_levels
from ttf.records.durations import DURATION_COLUMNS
from ttf.records.jobs import conform

# Columns that an exposure may have besides those of EXPOSURE.
DIVISIONS = ("kind", "node_gpus")


def durations_of_outages(
    outages: pl.DataFrame, exposure: pl.DataFrame, causes: Sequence[str], clusters: Mapping[str, Sequence[str]]
) -> pl.DataFrame:
    """Return a row per up period within the watch, by unit and time, with DURATION_COLUMNS and more columns.

    system: the group of EXPOSURE. kind, node_gpus: of the unit, if the exposure has them. A Boolean per cause: whether
    it is the level of the outage that ended the period (`Human Error` is human_error). start_s: begin of the period.
    repair_s: length of that outage, blank if none or still open. A period ends in failure at a counted unplanned
    outage; a planned outage and the end of the watch censor it. Periods of no length are dropped. clusters: name -> the
    columns that units have in common.
    """
    divisions = [name for name in DIVISIONS if name in exposure.columns]
    watch = exposure.select("unit_id", "from_s", "until_s", *divisions, division="group").with_row_index("watch")
    down = watch.join(outages, on="unit_id").filter(
        pl.col("start_s") <= pl.col("until_s"), pl.col("seen_until_s") >= pl.col("from_s")
    )
    # Outages of a unit do not overlap: each ends a period, and the end of the watch ends the last one.
    ends = pl.concat([down, watch.with_columns(start_s="until_s")], how="diagonal").sort(
        "watch", "start_s", "seen_until_s", nulls_last=True
    )
    begin_s = pl.max_horizontal("from_s", pl.col("seen_until_s").shift().over("watch"))
    is_failure = pl.col("counted").fill_null(False) & ~pl.col("planned").fill_null(True)
    level = pl.col("level").str.to_lowercase().str.replace_all(" ", "_")
    durations = ends.with_columns(begin_s=begin_s, is_failure=is_failure).filter(pl.col("start_s") > pl.col("begin_s"))
    frame = durations.select(
        unit_id="unit_id",
        duration_id=pl.int_range(pl.len()).over("unit_id"),
        entry_s=pl.lit(0),
        duration_s=pl.col("start_s") - pl.col("begin_s"),
        event=pl.when("is_failure").then(pl.lit("failure")),
        nodes=pl.lit(1),
        system="division",
        **{name: name for name in divisions},
        **{cause: (pl.col("is_failure") & (level == cause)).fill_null(False) for cause in causes},
        start_s="begin_s",
        repair_s=pl.when("is_failure").then("duration_s"),
    )
    return conform(add_levels(frame, clusters), DURATION_COLUMNS)

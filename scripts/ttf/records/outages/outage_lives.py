"""Lives of units that have outages: the time they were up, from the watch's begin or a repair to the next outage."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.records.clusters import with_levels
from ttf.records.jobs import conform
from ttf.records.lives import LIFE_COLUMNS


def lives_of_outages(
    outages: pl.DataFrame, exposure: pl.DataFrame, causes: Sequence[str], clusters: Mapping[str, Sequence[str]]
) -> pl.DataFrame:
    """A row per up period within the watch, by unit and time, with LIFE_COLUMNS and these columns:

    system, the group of EXPOSURE; a Boolean per cause, whether it is the level of the outage that ended the life
    (`Human Error` is human_error); start_s: when the life began; repair_s: seconds that outage lasted, blank if none
    ended it or it was still open. A life ends in failure where a counted outage begins that nobody planned; a planned
    one and the end of the watch censor it. A period of no time is no life. clusters: name -> the columns that units
    have in common.
    """
    watch = exposure.select("unit_id", "from_s", "until_s", division="group").with_row_index("watch")
    down = watch.join(outages, on="unit_id").filter(
        pl.col("start_s") <= pl.col("until_s"), pl.col("seen_until_s") >= pl.col("from_s")
    )
    # Outages of a unit do not overlap: each is the end of a period, and the end of the watch that of the last one.
    ends = pl.concat([down, watch.with_columns(start_s="until_s")], how="diagonal").sort(
        "watch", "start_s", "seen_until_s", nulls_last=True
    )
    begins = pl.max_horizontal("from_s", pl.col("seen_until_s").shift().over("watch"))
    failed = pl.col("counted").fill_null(False) & ~pl.col("planned").fill_null(True)
    level = pl.col("level").str.to_lowercase().str.replace_all(" ", "_")
    lives = ends.with_columns(begins=begins, failed=failed).filter(pl.col("start_s") > pl.col("begins"))
    frame = lives.select(
        unit_id="unit_id",
        life_id=pl.int_range(pl.len()).over("unit_id"),
        entry_s=pl.lit(0),
        duration_s=pl.col("start_s") - pl.col("begins"),
        event=pl.when("failed").then(pl.lit("failure")),
        nodes=pl.lit(1),
        system="division",
        **{cause: (pl.col("failed") & (level == cause)).fill_null(False) for cause in causes},
        start_s="begins",
        repair_s=pl.when("failed").then("duration_s"),
    )
    return conform(with_levels(frame, clusters), LIFE_COLUMNS)

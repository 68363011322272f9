"""Records of outages -> outages: the maximal intervals in which a unit could not be used."""

import polars as pl

from ttf.records.jobs import conform
from ttf.records.record_contracts import EXPOSURE, OUTAGE_RECORDS, OUTAGES

CAUSE = ("level", "class", "cause", "domain")
PLACE = ("node", "rack", "group", "kind")
# Columns of a format's `outage_records`, besides its own; blank if unknown. seen_until_s: for a record without an end,
# the last moment at which the unit was still down. flagged: oddities of the record.
RECORD_COLUMNS = {
    **dict.fromkeys(("unit_id", *PLACE), pl.String),
    **dict.fromkeys(("start_s", "end_s", "seen_until_s"), pl.Int64),
    **dict.fromkeys(CAUSE, pl.String),
    "planned": pl.Boolean,
    "flagged": pl.String,
}
NO_TIME = "starts and ends in the same second"
SEVERAL_CAUSES = "records that overlap name several causes"
OUTSIDE = "reaches beyond the time in which the unit was watched"
STILL_DOWN = "no end was written"


def merge_records(
    trace: str, records: pl.DataFrame, exposure: pl.DataFrame | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (outages, records), with the columns of OUTAGES and of OUTAGE_RECORDS, by unit and time.

    records: RECORD_COLUMNS, none with an end before its start. exposure: of EXPOSURE, None if the watched units are
    unknown; every outage then counts, and an open one lasts to the last moment in any record.

    Records of a unit that overlap or touch are one outage. Its cause is that of the record with the earliest start (of
    several the first by name). It is planned if every record is. An open record makes the outage open.
    """
    columns = [name for name in records.columns if name not in RECORD_COLUMNS]
    records = conform(records, RECORD_COLUMNS).with_columns(pl.col("planned").fill_null(False))
    last = records.select(pl.max_horizontal("start_s", "end_s", "seen_until_s").max()).item()
    watched = None if exposure is None else exposure.group_by("unit_id").agg(watch_end_s=pl.col("until_s").max())
    latest_s = pl.coalesce("end_s", "seen_until_s", *([] if watched is None else ["watch_end_s"]), pl.lit(last))
    if watched is not None:
        records = records.join(watched, on="unit_id", how="left", maintain_order="left")
    records = records.with_columns(seen_until_s=pl.max_horizontal("start_s", latest_s)).sort(
        "unit_id", "start_s", "seen_until_s", *CAUSE, nulls_last=True, maintain_order=True
    )
    latest_end = pl.col("seen_until_s").cum_max().shift().over("unit_id")
    is_first = (pl.col("start_s") > latest_end).fill_null(True)
    records = records.with_columns(outage=(is_first.cum_sum() - 1).cast(pl.UInt32))
    is_open = pl.col("end_s").is_null().any()
    has_several_causes = pl.struct(CAUSE).n_unique() > 1
    merged = records.group_by("outage", "unit_id", maintain_order=True).agg(
        pl.col(*PLACE).drop_nulls().first(),
        pl.col("start_s").min(),
        end_s=pl.when(~is_open).then(pl.col("end_s").max()),
        seen_until_s=pl.col("seen_until_s").max(),
        **{name: pl.col(name).first() for name in CAUSE},
        planned=pl.col("planned").all(),
        flags=pl.col("flagged").drop_nulls().unique(maintain_order=True),
        has_several_causes=has_several_causes,
        records=pl.len().cast(pl.Int64),
    )
    merged = _add_counted(merged, exposure).with_columns(duration_s=pl.col("end_s") - pl.col("start_s"))
    flags = {
        STILL_DOWN: pl.col("end_s").is_null(),
        NO_TIME: pl.col("duration_s") == 0,
        SEVERAL_CAUSES: pl.col("has_several_causes"),
        OUTSIDE: pl.col("is_outside"),
    }
    flag_texts = pl.concat_list("flags", *(pl.when(holds).then(pl.lit(flag)) for flag, holds in flags.items()))
    flagged = flag_texts.list.drop_nulls().list.unique(maintain_order=True).list.join("; ")
    merged = merged.with_columns(flagged=pl.when(flagged != "").then(flagged), trace=pl.lit(trace))
    record_rows = conform(records.with_columns(trace=pl.lit(trace)), OUTAGE_RECORDS.schema)
    return (
        conform(merged, OUTAGES.schema).select(list(OUTAGES.schema)),
        record_rows.select(*OUTAGE_RECORDS.schema, *columns),
    )


def _add_counted(outages: pl.DataFrame, exposure: pl.DataFrame | None) -> pl.DataFrame:
    """Add `counted` (the outage began in a watch of its unit) and `is_outside` (part of it is outside all watches)."""
    if exposure is None:
        return outages.with_columns(counted=pl.lit(True), is_outside=pl.lit(False))
    windows = outages.select("outage", "unit_id", "start_s", "seen_until_s").join(
        exposure.select("unit_id", "from_s", "until_s"), on="unit_id", how="inner"
    )
    overlap_s = pl.min_horizontal("seen_until_s", "until_s") - pl.max_horizontal("start_s", "from_s")
    overlaps = (
        windows.filter(overlap_s >= 0)
        .group_by("outage")
        .agg(
            counted=is_start_watched().any(),
            inside_s=overlap_s.sum(),
        )
    )
    length_s = pl.col("seen_until_s") - pl.col("start_s")
    return (
        outages.join(overlaps, on="outage", how="left", maintain_order="left")
        .with_columns(pl.col("counted").fill_null(False), is_outside=pl.col("inside_s").fill_null(-1) < length_s)
        .drop("inside_s")
    )


def is_start_watched() -> pl.Expr:
    """Return whether start_s lies in the watch, after from_s: a unit down at from_s was down before."""
    return (pl.col("start_s") > pl.col("from_s")) & (pl.col("start_s") <= pl.col("until_s"))


def select_nodes(units: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of units that are whole nodes; node: their name."""
    node = pl.coalesce("node", "unit_id")
    return units.filter(pl.col("unit_id") == node).with_columns(node=node)


def build_exposure(trace: str, units: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of EXPOSURE, by unit and time. units: unit_id, from_s, until_s; optional node, rack, group."""
    return conform(units.with_columns(trace=pl.lit(trace)), EXPOSURE.schema).sort("unit_id", "from_s")

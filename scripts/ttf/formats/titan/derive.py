"""Derive the durations of the Titan supercomputer's GPUs: one per GPU, its time in service summed over its stays.

Raw table `stays` (gc_full.csv of olcf/TitanGPULife), read as its authors did (Ostrouchov et al., "GPU Lifetimes on
Titan Supercomputer: Survival Analysis and Reliability", SC'20):

- A GPU failed if it was removed (its last stay ended before the final inventory) and has at least one event at any
  time: a double-bit error (DBE) or an off-the-bus error (OTB). Every other GPU is right-censored: removed without an
  event, or still in place, with or without events.
- Its duration is the sum of the durations in the file, not a difference of wall clock times: the two disagree by an
  hour for stays across a change to or from daylight saving time, and there are gaps between stays.
- Causes: a failed GPU with both kinds of event counts in each.
- Batch: `new` if first inserted after 2016-01-01 00:00 (local time), else `old`. Service before the first inventory of
  the file (2013-11-19) is not known: as in the published study, the duration counts from there.
- Cage, column, row, slot and node: those of the location with the longest total stay. The first location in time, then
  by name, breaks a tie (there is none in the real file).

The summary of the source (gc_summary_loc.csv) has the same per GPU. It is not read, but the tests compare with it. The
list of service nodes (titan.service.txt) is not read, because no GPU is in one.
"""

import polars as pl
from ttf.formats.format_declaration import load_declaration
from ttf.formats.protocol import Format, Source
from ttf.records.clusters import add_levels
from ttf.records.durations import DURATION_COLUMNS
from ttf.records.jobs import conform

ZONE, CLUSTERS = (load_declaration("titan")[key] for key in ("zone", "clusters"))
# Cause -> word in the table.
CAUSES = {cause: cause.upper() for cause in load_declaration("titan")["causes"]}
CONSTANT_COLUMNS = {"duration_id": 0, "entry_s": 0, "gpu_count": 1, "gpu_milli": 1000, "nodes": 1}
LOCATION_PARTS = ("column", "row", "cage", "slot", "node")
# Cray's name of a location, such as c11-2c1s4n0: cabinet column and row, cage, slot, node.
LOCATION_PATTERN = r"^c(?<column>\d+)-(?<row>\d+)c(?<cage>\d+)s(?<slot>\d+)n(?<node>\d+)$"


def durations(source: Source) -> pl.DataFrame:
    """Return one row per GPU, in file order, with DURATION_COLUMNS (trace blank) and some extras.

    batch (new, old), cage, dbe, otb (Boolean: it failed and had such an event), and column, row, slot, node. A stay
    with a blank duration lasted from insert to remove. A serial number with events but no stay is omitted.
    """
    rows = source.raw["stays"].with_columns(pl.coalesce("duration_s", pl.col("remove_s") - pl.col("insert_s")))
    gpus = rows.group_by("serial", maintain_order=True).agg(
        duration_s=pl.col("duration_s").sum(),
        stays=pl.col("duration_s").count(),
        first_insert_s=pl.col("insert_s").min(),
        is_out=(pl.col("out") == "TRUE").any(),
        **{cause: (pl.col("event") == word).any() for cause, word in CAUSES.items()},
    )
    has_failed = pl.col("is_out") & pl.any_horizontal(*CAUSES)
    new_batch_start = pl.datetime(2016, 1, 1, time_zone=ZONE).dt.epoch("s")
    is_new = pl.col("first_insert_s") > new_batch_start
    frame = (
        gpus.filter(pl.col("stays") > 0)
        .join(_longest_held(rows), on="serial", how="left", maintain_order="left")
        .select(
            unit_id="serial",
            duration_s="duration_s",
            event=pl.when(has_failed).then(pl.lit("failure")),
            **{name: pl.lit(value) for name, value in CONSTANT_COLUMNS.items()},
            batch=pl.when(is_new).then(pl.lit("new")).when(~is_new).then(pl.lit("old")),
            cage="cage",
            **{cause: has_failed & pl.col(cause) for cause in CAUSES},
            **{name: pl.col(name) for name in LOCATION_PARTS if name != "cage"},
        )
        .collect()
    )
    return conform(add_levels(frame, CLUSTERS), DURATION_COLUMNS)


FORMAT = Format(durations=durations)


def _longest_held(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return, per serial number with a stay, the parts of its location with the longest stay, as whole numbers."""
    longest_held = (
        rows.drop_nulls("duration_s")
        .group_by("serial", "location")
        .agg(pl.col("duration_s").sum(), pl.col("insert_s").min())
        .sort("serial", -pl.col("duration_s"), "insert_s", "location", nulls_last=True)
        .unique("serial", keep="first", maintain_order=True)
    )
    parts = pl.col("location").str.extract_groups(LOCATION_PATTERN)
    return longest_held.select("serial", *(parts.struct.field(name).cast(pl.Int64) for name in LOCATION_PARTS))

"""The GPUs of the Titan supercomputer: one GPU is one life, all the time it served, summed over its stays.

Raw table `stays` (gc_full.csv of olcf/TitanGPULife), read as its authors did (Ostrouchov et al., "GPU Lifetimes on
Titan Supercomputer: Survival Analysis and Reliability", SC'20):

- A GPU failed if it was taken out (its last stay ended before the final inventory) and has at least one event, a
  double-bit error (DBE) or an off-the-bus error (OTB), wherever in its life the event fell. Every other GPU is
  right-censored: one taken out without an event, and one still in place with events.
- Its life is the sum of the durations written for its stays, not a difference of wall clock times: the two disagree by
  an hour for stays across a change to or from daylight saving time, and there are gaps between stays.
- Causes: a failed GPU with both kinds of event counts in each.
- Batch: `new` if first inserted after 2016-01-01 00:00 (local time), else `old`. What a GPU served before the first
  inventory of the file (2013-11-19) is not known: its life, as in the published study, counts from there.
- Cage, column, row, slot and node: those of the location it held longest. Of locations held equally long (none in the
  real file) the one it came to first counts, then the first by name.

The summary beside the table (gc_summary_loc.csv) says the same per GPU and is not read: the tests compare with it. The
list of service nodes (titan.service.txt) is not read either: no GPU sits in one.
"""

import polars as pl
from ttf.formats.format_declaration import declared
from ttf.formats.protocol import Format, Source
from ttf.records.clusters import with_levels
from ttf.records.jobs import conform
from ttf.records.lives import LIFE_COLUMNS

ZONE, CLUSTERS = (declared("titan")[key] for key in ("zone", "clusters"))
# Cause -> its word in the table.
CAUSES = {cause: cause.upper() for cause in declared("titan")["causes"]}
ONE_GPU = {"life_id": 0, "entry_s": 0, "gpu_count": 1, "gpu_milli": 1000, "nodes": 1}
PLACE = ("column", "row", "cage", "slot", "node")
# Cray's name of a place, such as c11-2c1s4n0: cabinet column and row, cage, slot, node.
LOCATION = r"^c(?<column>\d+)-(?<row>\d+)c(?<cage>\d+)s(?<slot>\d+)n(?<node>\d+)$"


def lives(source: Source) -> pl.DataFrame:
    """One row per GPU, in file order, with LIFE_COLUMNS (trace blank) and these columns:

    batch (new, old), cage, dbe, otb (Boolean: it failed and such an event occurred in its life), and column, row, slot,
    node. A stay whose duration is blank
    lasted from insert to remove; a serial number with events only and no stay has no life.
    """
    rows = source.raw["stays"].with_columns(pl.coalesce("duration_s", pl.col("remove_s") - pl.col("insert_s")))
    gpus = rows.group_by("serial", maintain_order=True).agg(
        duration_s=pl.col("duration_s").sum(),
        stays=pl.col("duration_s").count(),
        first_insert_s=pl.col("insert_s").min(),
        is_out=(pl.col("out") == "TRUE").any(),
        **{cause: (pl.col("event") == word).any() for cause, word in CAUSES.items()},
    )
    failed = pl.col("is_out") & pl.any_horizontal(*CAUSES)
    new_from = pl.datetime(2016, 1, 1, time_zone=ZONE).dt.epoch("s")
    is_new = pl.col("first_insert_s") > new_from
    frame = (
        gpus.filter(pl.col("stays") > 0)
        .join(_longest_held(rows), on="serial", how="left", maintain_order="left")
        .select(
            unit_id="serial",
            duration_s="duration_s",
            event=pl.when(failed).then(pl.lit("failure")),
            **{name: pl.lit(value) for name, value in ONE_GPU.items()},
            batch=pl.when(is_new).then(pl.lit("new")).when(~is_new).then(pl.lit("old")),
            cage="cage",
            **{cause: failed & pl.col(cause) for cause in CAUSES},
            **{name: pl.col(name) for name in PLACE if name != "cage"},
        )
        .collect()
    )
    return conform(with_levels(frame, CLUSTERS), LIFE_COLUMNS)


FORMAT = Format(lives=lives)


def _longest_held(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Per serial number with a stay: the parts of the location it held longest, as whole numbers."""
    held = (
        rows.drop_nulls("duration_s")
        .group_by("serial", "location")
        .agg(pl.col("duration_s").sum(), pl.col("insert_s").min())
        .sort("serial", -pl.col("duration_s"), "insert_s", "location", nulls_last=True)
        .unique("serial", keep="first", maintain_order=True)
    )
    parts = pl.col("location").str.extract_groups(LOCATION)
    return held.select("serial", *(parts.struct.field(name).cast(pl.Int64) for name in PLACE))

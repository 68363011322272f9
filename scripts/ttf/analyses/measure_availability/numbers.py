"""The numbers of outages: how often, how long, what share of the time, and what for."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.measure_availability import SPANS
from ttf.numbers.metrics import OLD_CLUSTERS, Metrics

FREE = dict.fromkeys(("share", "ci_low_clustered", "ci_high_clustered"), "share") | OLD_CLUSTERS
ENDS = ("ci_low", "ci_high", "ci_low_clustered", "ci_high_clustered")


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    source, table = "tables/availability.csv", given["availability"]
    every = table.filter(pl.col("stratum_by") == "all")
    counts = {"outages": "outages", "units": "units", "repairs": "repairs", "open": "outages", "records": "records"}
    counts["under_way"] = "outages"
    metrics.put_rows("outages", every, counts, source, None)
    # Of all the clusters may be groups of units, of a group they are units.
    for by in pl.concat([table.filter(pl.col("stratum_by") == "group"), every])["cluster_by"].head(1):
        metrics.put("outages.unit", by.partition(" and ")[0], "label", source)
    for about, name in (("between", "mtbf"), ("up_time", "mttf")):
        ends = {f"{end}_s": (f"{name}_{end}_s", "s") for end in ENDS}
        metrics.put_rows(f"outages.{about}", every, {f"{name}_s": "s"} | ends | OLD_CLUSTERS, source, "outages")
    repair = {f"{end}_clustered_s": (f"mttr_{end}_s", "s") for end in ENDS[:2]} | {"mttr_s": "s"} | OLD_CLUSTERS
    metrics.put_rows("outages.repair", every, repair, source, "repairs")
    times = ("median_s", "p90_s", "restricted_mean_s", "horizon_s")
    metrics.put_rows("outages.repair", every, {name: (f"repair_{name}", "s") for name in times}, source, "outages")
    records = {f"{name}": (f"records_{name}", "records per 1000 unit-days") for name in ENDS}
    records["per_1000_unit_days"] = ("records_per_1000_unit_days", "records per 1000 unit-days")
    metrics.put_rows("outages.faults", every, records | OLD_CLUSTERS, source, "records")
    _of_availability(metrics, every, source)
    for row in given["outage_free"].drop_nulls("share").iter_rows(named=True):
        name = next(name for name, (span_s, _) in SPANS.items() if span_s == row["span_s"])
        metrics.put_row(f"free.{name}", row, FREE, "tables/outage_free.csv", row["n"])
    planned = table.filter(pl.col("stratum") == "planned", pl.col("stratum_by") == "planned", pl.col("outages") > 0)
    metrics.put_rows("outages.planned", planned, {"outages": "outages", "down_s": "s"}, source, None)
    _of_causes(metrics, given["outage_causes"])


def _of_availability(metrics: Metrics, every: pl.DataFrame, source: str) -> None:
    """Its interval is a clustered one or, of few units, an exact one, of which the method is told."""
    clustered = every.select((pl.col("availability_method") == "clustered").any()).item()
    ends = ENDS[2:] if clustered else ENDS[:2]
    limits = {end: (f"availability_{exact}", "share") for end, exact in zip(ends, ENDS[:2], strict=True)}
    about = {"availability": "share", "method": ("availability_method", "label")}
    metrics.put_rows("outages.up", every, about | limits | OLD_CLUSTERS, source, "outages")
    for row in every.drop_nulls("availability").iter_rows(named=True):
        metrics.put("outages.down_share", row["down_s"] / row["exposure_s"], "share", source, row["outages"])


def _of_causes(metrics: Metrics, causes: pl.DataFrame) -> None:
    """Of levels, and of classes: that with most time down."""
    source = "tables/outage_causes.csv"
    for depth in ("level", "class"):
        known = causes.filter(pl.col("depth") == depth).drop_nulls([depth, "downtime_share"])
        most = known.sort("downtime_share", "events", descending=True, maintain_order=True).head(1)
        units = {"name": (depth, "label"), "share": "share", "downtime_share": "share"}
        metrics.put_rows(f"outages.most.{depth}", most, units, source, "events")

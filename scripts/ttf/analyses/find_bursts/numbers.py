"""The numbers of bursts, of outages soon after a repair, and of the spread of outages over time."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import OLD_CLUSTERS, Metrics

SHARES = ("share", "ci_low_clustered", "ci_high_clustered", "chance")
OF_REPAIRS = ("observed", "ci_low_clustered", "ci_high_clustered", "expected_fleet", "expected_own")
WINDOWS = {1800: "30_min", 86_400: "day"}
AFTER = {3600: "hour", 86_400: "day", 604_800: "week"}


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    known = given["bursts"].drop_nulls("share")
    for row in known.filter(pl.col("window_s").is_in([*WINDOWS])).iter_rows(named=True):
        units = dict.fromkeys(SHARES, "share") | OLD_CLUSTERS | {"chain_share": "share", "longest_chain": "outages"}
        units["is_burst"] = "truth"
        metrics.put_row(f"bursts.{row['within']}.{WINDOWS[row['window_s']]}", row, units, "tables/bursts.csv", row["n"])
    if not known.height:
        metrics.put("bursts.reason", given["bursts"]["reason"][0], "label", "tables/bursts.csv")
    for row in given["again_after_repair"].drop_nulls("observed").iter_rows(named=True):
        units = dict.fromkeys(OF_REPAIRS, "share") | OLD_CLUSTERS
        metrics.put_row(f"again.{AFTER[row['within_s']]}", row, units, "tables/again_after_repair.csv", row["repairs"])
    for row in given["outage_counts"].filter(period_s=86_400).drop_nulls("mean").iter_rows(named=True):
        units = {"mean": "outages", "dispersion": "ratio", "most": "outages"}
        metrics.put_row("bursts.daily", row, units, "tables/outage_counts.csv", row["periods"])

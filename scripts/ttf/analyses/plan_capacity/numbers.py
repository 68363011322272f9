"""The numbers of the largest run that all ways can be asked about: a week of it."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics

HOURS = 168
SHARES = {"p_no_interruption": "share", "p_no_interruption_se": "share"}


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    source, table = "tables/spares_needed.csv", given["spares_needed"]
    known = table.filter(hours=HOURS).filter(pl.col("target") == pl.col("target").max()).drop_nulls("spares")
    if not known.height:
        metrics.put("capacity.reason", table["reason"][0], "label", source)
        return
    ways = known["way"].n_unique()
    largest = known.filter(pl.col("way").n_unique().over("nodes") == ways)["nodes"].max()
    metrics.put("capacity.nodes", largest, "nodes", source)
    metrics.put("capacity.target", known["target"][0], "share", source)
    for row in known.filter(nodes=largest).iter_rows(named=True):
        units = {"spares": "nodes", "p_never_short": "share", "p_never_short_se": "share"}
        metrics.put_row(f"capacity.{row['way']}", row, units, source)
    alone = given["capacity"].filter(nodes=largest, hours=HOURS, spares=given["capacity"]["spares"].min())
    for row in alone.iter_rows(named=True):
        metrics.put_row(f"capacity.{row['way']}", row, SHARES, "tables/capacity.csv", row["simulations"])

"""The numbers of failures near outages: their share, what chance would give, and what outages ended."""

import polars as pl

from ttf.analyses.match_outages.compute import DID, NEAR
from ttf.infra import AFTER_S, BEFORE_S
from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics, ends

_SOURCE = "tables/outage_matches.csv"


def numbers(metrics: Metrics, given: Inputs) -> None:
    table = given["outage_matches"].filter(pl.col("n") > 0, before_s=BEFORE_S, after_s=AFTER_S)
    for row in table.filter(measure=NEAR, kind="unplanned").iter_rows(named=True):
        units = {"events": "failures", "share": "share", "expected": "share", "median_s": "s", "basis": "label"}
        metrics.put_row("outage_matches.failures", row, units | ends("share"), _SOURCE, row["n"])
        metrics.put("outage_matches.failures.n", row["n"], "failures", _SOURCE)
    for row in table.filter(pl.col("measure").is_in(DID), kind="unplanned").iter_rows(named=True):
        metrics.put_row(
            f"outage_matches.{row['measure']}", row, {"events": "outages", "share": "share"}, _SOURCE, row["n"]
        )
        metrics.put("outage_matches.outages", row["n"], "outages", _SOURCE)

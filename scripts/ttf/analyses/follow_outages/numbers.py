"""The numbers of the growth of faults: the trend, what the tests say, and the point of change."""

from collections.abc import Mapping
from datetime import UTC, datetime

import polars as pl

from ttf.numbers.metrics import Metrics

# A clock that shows a later moment counts from 1970: no trace is 20 years long.
YEAR_1990_S = 631_152_000
TESTS = ("laplace_p", "mil_hdbk_p", "lewis_robinson_p", "change_point_p", "change_point_p_corrected")


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    source, every = "tables/growth.csv", given["growth"].filter(pl.col("stratum_by") == "all")
    units = {"trend": "label", "beta": "1", "ci_low": "1", "ci_high": "1", "laplace_u": "1", "rate_ratio": "1"}
    metrics.put_rows("growth", every, {"n": "faults"}, source, None)
    metrics.put_rows("growth", every, units | dict.fromkeys(TESTS, "p"), source)
    for row in every.drop_nulls("change_point_s").iter_rows(named=True):
        metrics.put("growth.change_point", _moment(row["change_point_s"]), "label", source, row["n"])
    divided = given["growth"].filter(pl.col("stratum_by") == "group").drop_nulls("trend")
    metrics.put("growth.groups.n", divided.height, "groups", source)
    for trend in ("better", "worse"):
        metrics.put(f"growth.groups.{trend}", divided.filter(trend=trend).height, "groups", source)
    last = given["mcf"].filter(pl.col("stratum_by") == "all").tail(1)
    metrics.put_rows("growth.mcf", last, dict.fromkeys(("mcf", "ci_low", "ci_high"), "faults"), "tables/mcf.csv", None)


def _moment(clock_s: int) -> str:
    """A day: by its date, or counted from 0 where the clock of the trace does not count from 1970."""
    return f"{datetime.fromtimestamp(clock_s, UTC):%Y-%m-%d}" if clock_s > YEAR_1990_S else f"day {clock_s // 86_400}"

"""The numbers of the occupancy of servers that the report's prose uses."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.reconstruct_occupancy.delay_causes import LONGEST_PLAIN_WAIT_S, RECOGNISED
from ttf.analyses.reconstruct_occupancy.occupancy import TWO_THIRDS
from ttf.numbers.metrics import Metrics, ends

# A load is named as the highest only if it was there for so much of the time.
LEAST_TIME_SHARE = 0.01


def numbers(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """What there was, what was in use on average and at the highest load, where the free GPUs were, why jobs waited."""
    units = {"servers": "servers", "servers_by_use": "servers", "gpus": "GPUs", "reason": "label"}
    units |= dict.fromkeys(("placements", "left_out", "spread"), "placements") | {"above_capacity_share": "share"}
    metrics.put_rows("occupancy", tables["occupancy_basis"], units, "tables/occupancy_basis.csv", "placements")
    over_time = tables["load_over_time"]
    if over_time.height:
        peak = over_time.select((pl.col("gpus_in_use_max") / pl.col("gpus")).max()).item()
        metrics.put("occupancy.peak_share", peak, "share", "tables/load_over_time.csv", over_time.height)
    known = tables["occupancy"].filter(pl.col("time_s") > 0)
    loads = known.filter(pl.col("load") != "all", pl.col("time_share") >= LEAST_TIME_SHARE)
    chosen = {"all": known.filter(load="all"), "two_thirds": known.filter(load=TWO_THIRDS), "highest": loads.tail(1)}
    shares = ("gpus_in_use_share", "servers_empty_share", "servers_partly_share", "servers_full_share")
    units = {"load": "label", "time_s": "s"} | dict.fromkeys(shares, "share")
    of_level = {"free_gpus_share": "share", "placeable_time_share": "share"}
    levels = tables["fragmentation"].with_columns(level=pl.col("free_at_least").str.replace_all(" ", "_"))
    for key, rows in chosen.items():
        metrics.put_rows(f"occupancy.{key}", rows, units, "tables/occupancy.csv")
        mine = levels.filter(pl.col("load").is_in(rows["load"].implode()))
        metrics.put_rows(f"occupancy.{key}.{{level}}", mine, of_level, "tables/fragmentation.csv")
    sharing = tables["server_sharing"].tail(1)
    metrics.put_rows("occupancy", sharing, {"dedicated_share": "share"}, "tables/server_sharing.csv", "attempts")
    source, causes = "tables/delay_causes.csv", tables["delay_causes"]
    of_all = causes.filter(pl.col("group") == "all", pl.col("cause").is_not_null())
    metrics.put("occupancy.causes.longest_plain_wait_s", LONGEST_PLAIN_WAIT_S, "s", source)
    for cause in (*RECOGNISED, "unrecognised"):
        mine = of_all.filter(pl.col("cause") == cause if cause in RECOGNISED else ~pl.col("cause").is_in(RECOGNISED))
        for name in ("jobs", "wait_s") if of_all.height else ():
            share = mine[name].sum() / of_all[name].sum()
            metrics.put(f"occupancy.causes.{cause}.{name.split('_')[0]}_share", share, "share", source, of_all["n"][0])
    recognised = of_all.filter(pl.col("cause").is_in(RECOGNISED))
    metrics.put_rows("occupancy.causes.{cause}", recognised, ends("share"), source)
    metrics.put("occupancy.causes.started", of_all["started"].first(), "jobs", source, of_all["started"].first())
    if not of_all.height:
        metrics.put("occupancy.causes.reason", causes["reason"][0], "label", source)

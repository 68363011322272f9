"""Nodes on which errors occur on more days than on the other nodes of their fleet."""

import polars as pl

from ttf.analyses.causes.judge_node_errors import ERROR_NODES
from ttf.analyses.causes.judge_node_errors.log_records import LogRecords
from ttf.records.clusters import DAY_S
from ttf.stats.nodes.excess_failures import compare_by_exposure, with_verdict

MOST_CODES = 3
# An application code on one node for fewer users can be the work of one of them.
FEWEST_USERS = 3
SIGNIFICANCE = 0.05
NO_TEST = "its fleet has no other watched node, or no error"


def compare_nodes(records: LogRecords, codes: list[str], false_discovery: float) -> pl.DataFrame:
    """Return ERROR_NODES, significant nodes first: the errors of these codes by node.

    Errors of a node come in bursts, so the test counts days with an error.
    """
    errors = records.errors.filter(pl.col("code").is_in(codes))
    watched = records.days.group_by("unit").agg(exposure_s=pl.col("node_s").sum())
    tested = _test_days(records, errors, watched, false_discovery)
    totals = errors.group_by("unit").agg(errors=pl.len().cast(pl.Int64))
    gpus = errors.drop_nulls("gpu").group_by("unit", "gpu").agg(gpu_errors=pl.len().cast(pl.Int64))
    gpus = gpus.sort("unit", "gpu_errors", "gpu", descending=[False, True, False]).unique("unit", keep="first")
    names = errors.group_by("unit", "code").len().sort("unit", "len", "code", descending=[False, True, False])
    label = pl.format("{} ({})", "code", "len")
    names = names.group_by("unit", maintain_order=True).agg(codes=label.head(MOST_CODES).str.join(", "))
    rows = tested.filter(pl.col("counted") > 0)
    for frame in (totals, gpus, names):
        rows = rows.join(frame, on="unit", how="left")
    rows = rows.with_columns(
        q_value="q_spread",
        p_value="p_spread",
        excess="lemon",
        reason=pl.when(pl.col("p_spread").is_null() | pl.col("ci_high").is_null()).then(pl.lit(NO_TEST)),
    )
    order = ["excess", "p_value", "node"]
    return ERROR_NODES.conform(rows.sort(order, descending=[True, False, False], nulls_last=True))


def _test_days(
    records: LogRecords, errors: pl.DataFrame, exposure: pl.DataFrame, false_discovery: float
) -> pl.DataFrame:
    """Compare the days with an error of each node with those of its fleet. exposure: unit, exposure_s (any unit)."""
    days = errors.group_by("unit").agg(counted=(pl.col("time_s") // DAY_S).n_unique().cast(pl.Int64))
    rows = records.nodes.join(exposure, on="unit").join(days, on="unit", how="left").sort("unit")
    tested = compare_by_exposure(rows.with_columns(pl.col("counted").fill_null(0)))
    return with_verdict(tested, false_discovery)[0]


def find_repeating_node(records: LogRecords, hits: pl.DataFrame, code: str) -> str | None:
    """Return the node on which an application's code repeats for several users, if there is one.

    There, the code occurs on more days than the runs of the affected users explain, so the node may be its cause.
    """
    users = records.attempts.select("user", run="attempt_id")
    hit_users = hits.filter(pl.col("code") == code).drop("user").join(users, on="run").drop_nulls("user")
    runs = records.history.runs.drop("user").join(users.join(hit_users.select("user").unique(), on="user"), on="run")
    exposure = runs.group_by("unit").agg(exposure_s=pl.len().cast(pl.Int64))
    tested = _test_days(records, records.errors.filter(pl.col("code") == code), exposure, SIGNIFICANCE)
    first = tested.filter("lemon").sort("p_spread", "node").head(1)
    n_users = hit_users.join(first, on="unit", how="semi")["user"].n_unique()
    return first["node"].item() if n_users >= FEWEST_USERS else None

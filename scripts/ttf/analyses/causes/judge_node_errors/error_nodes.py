"""Nodes on which errors occur on more days than on the other nodes of their fleet."""

import polars as pl

from ttf.analyses.causes.judge_node_errors import ERROR_NODES
from ttf.analyses.causes.judge_node_errors.log_records import LogRecords
from ttf.analyses.nodes.find_lemon_nodes.compute import with_verdict
from ttf.analyses.nodes.find_lemon_nodes.excess import compare_by_exposure
from ttf.engine.words import count, plural
from ttf.records.clusters import DAY_S

MOST_CODES = 3
# An application code on one node for fewer users can be the work of one of them.
FEWEST_USERS = 3
NO_TEST = "its fleet has no other watched node, or no error"


def compare_nodes(records: LogRecords, codes: list[str], false_discovery: float) -> pl.DataFrame:
    """Return ERROR_NODES, significant nodes first: the errors of these codes by node.

    Errors of a node come in bursts, so the test counts days with an error.
    """
    errors = records.errors.filter(pl.col("code").is_in(codes))
    tested = _test_days(records, errors, false_discovery)
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


def _test_days(records: LogRecords, errors: pl.DataFrame, false_discovery: float) -> pl.DataFrame:
    watched = records.days.group_by("unit").agg(exposure_s=pl.col("node_s").sum())
    days = errors.group_by("unit").agg(counted=(pl.col("time_s") // DAY_S).n_unique().cast(pl.Int64))
    rows = records.nodes.join(watched, on="unit").join(days, on="unit", how="left").sort("unit")
    tested = compare_by_exposure(rows.with_columns(pl.col("counted").fill_null(0)))
    return with_verdict(tested, false_discovery)[0]


def describe_concentration(records: LogRecords, hits: pl.DataFrame, code: str) -> str | None:
    """Return a note if an application code repeats on one node for several users, else None."""
    errors = records.errors.filter(pl.col("code") == code)
    tested = _test_days(records, errors, 0.05).filter("lemon").sort("p_spread", "node").head(1)
    if tested.is_empty():
        return None
    node_hits = hits.filter(pl.col("code") == code, pl.col("unit") == tested["unit"].item())
    users = node_hits.join(records.attempts, left_on="run", right_on="attempt_id")["user"].drop_nulls().n_unique()
    if users < FEWEST_USERS:
        return None
    node, days = tested["node"].item(), tested["counted"].item()
    return f"it repeats on {node} ({plural(days, 'day')}) for {count(users)} users: check this node"

"""Infrastructure failures of jobs near outages of their nodes, and outages with the jobs on their node.

The expected number of failures near an outage comes from a null model: each node's outages are shifted by their own
random time, cyclically over the observed time. A failure then has an outage near with the share of the node's time that
is near a start; a failure on several nodes with 1 less the product of the remaining shares.
"""

import numpy as np
import polars as pl

from ttf.analyses.outages.match_outages import OUTAGE_MATCHES
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.infra import AFTER_S, BEFORE_S, EVENT, pair_near_events
from ttf.records.inputs import Inputs
from ttf.stats.clustered import CLUSTERED, clustered_shares, join_clustered
from ttf.stats.outages.nearness import covered_shares
from ttf.stats.shares import add_wilson

HOUR, DAY = 3_600, 86_400
# Seconds before and after the end of an attempt.
WINDOWS = ((BEFORE_S, AFTER_S), (HOUR, HOUR), (DAY, DAY), (DAY, 0), (0, DAY))
KINDS = {"unplanned": False, "planned": True}
NEAR = "failure_near_outage"
# Effect of an outage: the first that applies.
EFFECTS = ("job_failed", "job_ended", "job_ran_on", "no_job")
_KEYS = ["measure", "kind", "before_s", "after_s"]
_DURATIONS = ("attempt_id", "end_s", "event", "basis", *CLUSTER_COLUMNS)
NO_FAILURE = "no infrastructure failure of an attempt on a watched node"
NO_OUTAGE = "no such outage of a node began while it was watched"
NO_NULL = "asked of failures alone"
NONE_NEAR = "no such outage is near"


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    outages = inputs.read("outages", ("node", "start_s", "planned", "counted"))
    outages = outages.filter("counted").drop_nulls("node").select("node", "planned", time_s="start_s")
    exposure = inputs.read("exposure", ("node", "from_s", "until_s")).drop_nulls("node")
    durations, placements = inputs.scan("durations_infra", _DURATIONS), inputs.scan("placements")
    failures = failures_on_nodes(durations, placements, exposure)
    basis = durations.select(pl.col("basis").first()).collect(engine="streaming").item() or ""
    matches = [
        match_failures(failures, outages.filter(planned=planned), exposure, kind) for kind, planned in KINDS.items()
    ]
    matches.append(outage_effects(durations, placements, outages))
    return {"outage_matches": summarise_matches(pl.concat(matches, how="diagonal"), basis)}


def failures_on_nodes(durations: pl.LazyFrame, placements: pl.LazyFrame, exposure: pl.DataFrame) -> pl.DataFrame:
    """Return run, end_s, node_list and CLUSTER_COLUMNS of infra failures. node_list: nodes observed at that time."""
    infra_failures = durations.filter(event=EVENT).drop_nulls("end_s").drop("event", "basis")
    attempt_nodes = placements.select("attempt_id", "node").drop_nulls().unique()
    node_windows = infra_failures.select("attempt_id", "end_s").join(attempt_nodes, on="attempt_id")
    node_windows = node_windows.join(exposure.lazy(), on="node")
    observed = node_windows.filter(pl.col("end_s").is_between("from_s", "until_s"))
    nodes = observed.group_by("attempt_id").agg(node_list=pl.col("node").unique().sort())
    failures = infra_failures.join(nodes, on="attempt_id").rename({"attempt_id": "run"})
    return failures.collect(engine="streaming").sort("run")


def match_failures(failures: pl.DataFrame, outages: pl.DataFrame, exposure: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Return, per failure and window, to_s (from its end to the nearest outage) and the null probability."""
    parts = []
    for before_s, after_s in WINDOWS:
        pairs = pair_near_events(failures, outages.select("node", "time_s"), before_s, after_s)
        nearest = pairs.sort("run", "apart_s", "time_s").unique("run", keep="first", maintain_order=True)
        nearest = nearest.select("run", to_s=pl.col("time_s") - pl.col("end_s"))
        probability = null_probability(failures, outages, exposure, before_s + after_s + 1)
        rows = failures.with_columns(probability=pl.Series(probability, dtype=pl.Float64)).drop("node_list", "end_s")
        rows = rows.join(nearest, on="run", how="left", maintain_order="left")
        window = {"before_s": pl.lit(before_s, pl.Int64), "after_s": pl.lit(after_s, pl.Int64)}
        parts.append(rows.with_columns(**window, measure=pl.lit(NEAR), kind=pl.lit(kind)))
    return pl.concat(parts).with_columns(holds=pl.col("to_s").is_not_null())


def null_probability(failures: pl.DataFrame, outages: pl.DataFrame, exposure: pl.DataFrame, width_s: int) -> np.ndarray:
    """Return the null probability that an outage begins in a window of `width_s` seconds around each failure."""
    spans = exposure.group_by("node").agg(span_s=pl.col("until_s").max() - pl.col("from_s").min())
    shares = covered_shares(outages, spans, "node", width_s)
    return np.array([1 - np.prod([1 - shares.get(node, 0.0) for node in nodes]) for nodes in failures["node_list"]])


def outage_effects(durations: pl.LazyFrame, placements: pl.LazyFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """Return a row per outage and effect: whether the outage had this effect on the attempts on its node.

    An attempt is affected if it began before the outage and did not end more than AFTER_S before it. It ended with the
    outage if it ended at most BEFORE_S after its start; one without an end ran on.
    """
    attempt_ends = durations.select("attempt_id", failed=(pl.col("event") == EVENT).fill_null(False))
    outages = outages.with_row_index("outage")
    affected = placements.select("attempt_id", "node", "start_s", "end_s").join(outages.lazy(), on="node")
    delay_s = pl.col("end_s") - pl.col("time_s")
    affected = affected.filter(pl.col("start_s") < pl.col("time_s"), (delay_s >= -AFTER_S).fill_null(True))
    affected = affected.join(attempt_ends, on="attempt_id", how="left", maintain_order="left")
    is_ended = (delay_s <= BEFORE_S).fill_null(False)
    effect_exprs = {"job_failed": (is_ended & pl.col("failed").fill_null(False)).any(), "job_ended": is_ended.any()}
    effects = affected.group_by("outage").agg(**effect_exprs, job_ran_on=(~is_ended).any()).collect(engine="streaming")
    rows = outages.join(effects, on="outage", how="left", maintain_order="left")
    first_effect = pl.coalesce(*(pl.when(name).then(pl.lit(name)) for name in EFFECTS[:-1]), pl.lit(EFFECTS[-1]))
    node = pl.col("node").rank("dense").cast(pl.UInt32)
    rows = rows.select(
        effect=first_effect,
        kind=pl.when("planned").then(pl.lit("planned")).otherwise(pl.lit("unplanned")),
        cluster_by=pl.lit("node"),
        cluster=node,
        group_by=pl.lit("node"),
        group=node,
        before_s=pl.lit(BEFORE_S, pl.Int64),
        after_s=pl.lit(AFTER_S, pl.Int64),
    )
    parts = [rows.with_columns(measure=pl.lit(name), holds=pl.col("effect") == name).drop("effect") for name in EFFECTS]
    return pl.concat(parts)


def summarise_matches(rows: pl.DataFrame, basis: str) -> pl.DataFrame:
    """Summarise the rows of `match_failures` and `outage_effects` by measure (OUTAGE_MATCHES)."""
    measures = [(NEAR, kind, *window) for kind in KINDS for window in WINDOWS]
    measures += [(name, kind, BEFORE_S, AFTER_S) for kind in KINDS for name in EFFECTS]
    table_rows = []
    for key in measures:
        keys = dict(zip(_KEYS, key, strict=True))
        matches = rows.filter(**keys)
        n, events = matches.height, int(matches["holds"].sum())
        row = keys | {"basis": basis, "n": n, "events": events} | add_wilson("share", events, n)
        if not n:
            row["reason"] = NO_FAILURE if key[0] == NEAR else NO_OUTAGE
        elif key[0] != NEAR:
            row["reason"] = f"expected and time: {NO_NULL}"
        else:
            row["expected"] = float(matches["probability"].to_numpy().sum()) / n
            row |= {"median_s": matches["to_s"].median(), "reason": None if events else NONE_NEAR}
        table_rows.append(row)
    is_near, table = pl.col("measure") == NEAR, OUTAGE_MATCHES.frame(table_rows).drop(CLUSTERED)
    parts = [
        clustered_shares(rows.filter(mask), _KEYS, pl.col("holds").sum(), pl.len()) for mask in (is_near, ~is_near)
    ]
    return OUTAGE_MATCHES.conform(join_clustered(table, pl.concat(parts), _KEYS))

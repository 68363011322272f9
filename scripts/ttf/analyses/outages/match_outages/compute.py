"""Infrastructure failures of jobs beside outages of their nodes, and outages beside what ran on the node.

How many failures would have an outage near by chance is asked of a null in which each node's outages are shifted by a
random time of their own, what leaves the end of the watch coming in at its begin: then a failure has one near with the
share of the node's time that is near a start, and one on several nodes with one less the product of what is left.
"""

import numpy as np
import polars as pl

from ttf.analyses.outages.match_outages import OUTAGE_MATCHES
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.infra import AFTER_S, BEFORE_S, EVENT, near
from ttf.records.inputs import Inputs
from ttf.stats.clustered import CLUSTERED, beside, clustered_shares
from ttf.stats.shares import with_wilson

HOUR, DAY = 3_600, 86_400
# Before the end of an attempt, and after it.
WINDOWS = ((BEFORE_S, AFTER_S), (HOUR, HOUR), (DAY, DAY), (DAY, 0), (0, DAY))
KINDS = {"unplanned": False, "planned": True}
NEAR = "failure_near_outage"
# What an outage did, the first that holds.
DID = ("job_failed", "job_ended", "job_ran_on", "no_job")
_BY = ["measure", "kind", "before_s", "after_s"]
_LIVES = ("attempt_id", "end_s", "event", "basis", *CLUSTER_COLUMNS)
NO_FAILURE = "no infrastructure failure of an attempt on a watched node"
NO_OUTAGE = "no such outage of a node began while it was watched"
NO_NULL = "asked of failures alone"
NONE_NEAR = "no such outage is near"


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    outages = given.read("outages", ("node", "start_s", "planned", "counted"))
    outages = outages.filter("counted", pl.col("node").is_not_null()).select("node", "planned", time_s="start_s")
    exposure = given.read("exposure", ("node", "from_s", "until_s")).drop_nulls("node")
    lives, placements = given.scan("lives_infra", _LIVES), given.scan("placements")
    failures = failures_on(lives, placements, exposure)
    basis = lives.select(pl.col("basis").first()).collect(engine="streaming").item() or ""
    every = [matched(failures, outages.filter(planned=planned), exposure, kind) for kind, planned in KINDS.items()]
    every.append(of_outages(lives, placements, outages))
    return {"outage_matches": table_of(pl.concat(every, how="diagonal"), basis)}


def failures_on(lives: pl.LazyFrame, placements: pl.LazyFrame, exposure: pl.DataFrame) -> pl.DataFrame:
    """run, end_s, node_list, CLUSTER_COLUMNS of infra failures with a node that was watched then; node_list: these."""
    failed = lives.filter(pl.col("event") == EVENT, pl.col("end_s").is_not_null()).drop("event", "basis")
    placed = placements.select("attempt_id", "node").drop_nulls().unique()
    on_nodes = failed.select("attempt_id", "end_s").join(placed, on="attempt_id").join(exposure.lazy(), on="node")
    watched = on_nodes.filter(pl.col("end_s").is_between("from_s", "until_s"))
    nodes = watched.group_by("attempt_id").agg(node_list=pl.col("node").unique().sort())
    found = failed.join(nodes, on="attempt_id").rename({"attempt_id": "run"})
    return found.collect(engine="streaming").sort("run")


def matched(failures: pl.DataFrame, outages: pl.DataFrame, exposure: pl.DataFrame, kind: str) -> pl.DataFrame:
    """A row of each failure and window: whether an outage of one of its nodes began in it, with what chance one would.

    to_s: from the end of the attempt to the nearest outage, blank without one.
    """
    parts = []
    for before_s, after_s in WINDOWS:
        pairs = near(failures, outages.select("node", "time_s"), before_s, after_s)
        nearest = pairs.sort("run", "apart_s", "time_s").unique("run", keep="first", maintain_order=True)
        nearest = nearest.select("run", to_s=pl.col("time_s") - pl.col("end_s"))
        chance = chances(failures, outages, exposure, before_s + after_s + 1)
        found = failures.with_columns(chance=pl.Series(chance, dtype=pl.Float64)).drop("node_list", "end_s")
        found = found.join(nearest, on="run", how="left", maintain_order="left")
        window = {"before_s": pl.lit(before_s, pl.Int64), "after_s": pl.lit(after_s, pl.Int64)}
        parts.append(found.with_columns(**window, measure=pl.lit(NEAR), kind=pl.lit(kind)))
    return pl.concat(parts).with_columns(holds=pl.col("to_s").is_not_null())


def chances(failures: pl.DataFrame, outages: pl.DataFrame, exposure: pl.DataFrame, width_s: int) -> np.ndarray:
    """The chance that an outage begins within `width_s` seconds in which the failure lies, by the null."""
    spans = exposure.group_by("node").agg(span_s=pl.col("until_s").max() - pl.col("from_s").min())
    starts = outages.group_by("node").agg(pl.col("time_s").unique().sort()).join(spans, on="node").sort("node")
    free = {
        node: 1 - covered(np.array(times), span_s, width_s) for node, times, span_s in starts.iter_rows() if span_s > 0
    }
    return np.array([1 - np.prod([free.get(node, 1.0) for node in nodes]) for nodes in failures["node_list"]])


def covered(starts: np.ndarray, span_s: int, width_s: int) -> float:
    """The share of a circle of span_s seconds that lies within width_s seconds from a start (ascending) on."""
    gaps = np.diff(starts, append=starts[0] + span_s)
    return float(np.minimum(gaps, width_s).clip(0).sum() / span_s)


def of_outages(lives: pl.LazyFrame, placements: pl.LazyFrame, outages: pl.DataFrame) -> pl.DataFrame:
    """A row of each outage and each of DID: whether it is what the outage did to the attempts on its node.

    An attempt was there if it began before the outage; it ended with it from AFTER_S before its start to BEFORE_S after
    it. One without an end ran on.
    """
    ends = lives.select("attempt_id", failed=(pl.col("event") == EVENT).fill_null(False))
    there = placements.select("attempt_id", "node", "start_s", "end_s").join(
        outages.with_row_index("outage").lazy(), on="node"
    )
    after = pl.col("end_s") - pl.col("time_s")
    there = there.filter(pl.col("start_s") < pl.col("time_s"), (after >= -AFTER_S).fill_null(True))
    there = there.join(ends, on="attempt_id", how="left", maintain_order="left")
    ended = (after <= BEFORE_S).fill_null(False)
    did = {"job_failed": (ended & pl.col("failed").fill_null(False)).any(), "job_ended": ended.any()}
    found = there.group_by("outage").agg(**did, job_ran_on=(~ended).any()).collect(engine="streaming")
    every = outages.with_row_index("outage").join(found, on="outage", how="left", maintain_order="left")
    first = pl.coalesce(*(pl.when(name).then(pl.lit(name)) for name in DID[:-1]), pl.lit(DID[-1]))
    node = pl.col("node").rank("dense").cast(pl.UInt32)
    every = every.select(
        did=first,
        kind=pl.when("planned").then(pl.lit("planned")).otherwise(pl.lit("unplanned")),
        cluster_by=pl.lit("node"),
        cluster=node,
        group_by=pl.lit("node"),
        group=node,
        before_s=pl.lit(BEFORE_S, pl.Int64),
        after_s=pl.lit(AFTER_S, pl.Int64),
    )
    parts = [every.with_columns(measure=pl.lit(name), holds=pl.col("did") == name).drop("did") for name in DID]
    return pl.concat(parts)


def table_of(rows: pl.DataFrame, basis: str) -> pl.DataFrame:
    """OUTAGE_MATCHES, of the rows of `matched` and `of_outages`; a row for each measure, of which none may be there."""
    measures = [(NEAR, kind, *window) for kind in KINDS for window in WINDOWS]
    measures += [(name, kind, BEFORE_S, AFTER_S) for kind in KINDS for name in DID]
    found = []
    for values in measures:
        shared = dict(zip(_BY, values, strict=True)) | {"basis": basis}
        mine = rows.filter(pl.col(name) == value for name, value in zip(_BY, values, strict=True))
        n, events = mine.height, int(mine["holds"].sum())
        reasons, row = [], shared | {"n": n, "events": events} | with_wilson("share", events, n)
        if not n:
            reasons.append(NO_FAILURE if values[0] == NEAR else NO_OUTAGE)
        elif values[0] != NEAR:
            reasons.append(f"expected and time: {NO_NULL}")
        else:
            row["expected"] = float(mine["chance"].to_numpy().sum()) / n
            row["median_s"] = mine["to_s"].median()
            reasons += [] if events else [NONE_NEAR]
        found.append(row | {"reason": "; ".join(reasons) or None})
    is_near = pl.col("measure") == NEAR
    parts = [clustered_shares(rows.filter(of), _BY, pl.col("holds").sum(), pl.len()) for of in (is_near, ~is_near)]
    return OUTAGE_MATCHES.typed(beside(OUTAGE_MATCHES.frame(found).drop(CLUSTERED), pl.concat(parts), _BY))

"""Find words of failures and nodes with excess failures that are new in the last part."""

import numpy as np
import polars as pl
from scipy.special import bdtrc

from ttf.analyses.quality.compare_parts import GONE_SUSPECTS, NEW_SUSPECTS, NEW_WORDS
from ttf.analyses.quality.compare_parts.part_tests import NO_EVENTS, SIGNIFICANCE
from ttf.display.statement_rules import has_power
from ttf.engine.storage.partitions import choose_partitions
from ttf.records.inputs import Inputs
from ttf.stats.basics.benjamini_hochberg import benjamini_hochberg
from ttf.stats.basics.p_value import raise_to_smallest
from ttf.stats.nodes.excess_failures import median_detectable_ratio
from ttf.stats.nodes.node_runs import DURATIONS_READ
from ttf.stats.nodes.node_tests import PARTITION_ROWS, compare_nodes

# Column of the jobs -> kind of its words. Where several words describe one failure, the last adds the least.
KINDS = {"status_raw": "state", "exit_code": "exit code", "slurm_reason": "reason"}
CLASS, _SIDES = "class", ("before", "after")
_WORDS = {"kind": pl.String, "word": pl.String, "cluster": pl.UInt32, "is_last": pl.Boolean, "failures": pl.Int64}
LIST = "a list of what is new: no interval"
NO_NODES = "the trace does not say on which nodes jobs ran"
NO_NODE_TEST = "no node can be compared with others"
NO_POWER = "cannot tell: failures that name a node are too few to compare nodes"


def count_failure_words(
    jobs: pl.LazyFrame, reasons: pl.LazyFrame | None, last_part: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (words, owners): kind, word, cluster, is_last, failures; and cluster, is_last, failures over all words.

    jobs: job_id, task, part, outcome, cluster and the available columns of KINDS; reasons: reasons.parquet, whose words
    are the classes of the taxonomy; last_part: its name. A word counts once per job.
    """
    job_columns = jobs.collect_schema().names()
    failed = jobs.filter(pl.col("outcome") == "failure").with_columns(is_last=pl.col("part") == last_part)
    keys = ["cluster", "is_last"]
    kind_columns = [column for column in KINDS if column in job_columns]
    counts = failed.group_by(*keys, *kind_columns).agg(failures=pl.len().cast(pl.Int64)).collect(engine="streaming")
    words = [
        counts.drop_nulls(column)
        .group_by(pl.lit(KINDS[column]).alias("kind"), pl.col(column).cast(pl.String).alias("word"), *keys)
        .agg(pl.col("failures").sum())
        for column in kind_columns
    ]
    owners = counts.group_by(keys).agg(pl.col("failures").sum())
    if reasons is not None:
        words.append(_count_classes(jobs.filter(pl.col("part") == last_part), reasons))
    return pl.concat(words, how="diagonal_relaxed") if words else pl.DataFrame(schema=_WORDS), owners


def _count_classes(last_jobs: pl.LazyFrame, reasons: pl.LazyFrame) -> pl.DataFrame:
    """Count the failures by class and cluster in the last part, and by class in all earlier parts.

    Clusters of earlier failures are not looked up: one cluster stands for all of them.
    """
    key = ["job_id", "task"]
    last_reasons = reasons.drop_nulls("reason").join(last_jobs.select(*key, "cluster"), on=key, nulls_equal=True)
    count = pl.len().cast(pl.Int64).alias("failures")
    last_counts = last_reasons.group_by("cluster", word="reason").agg(count).collect(engine="streaming")
    totals = reasons.drop_nulls("reason").group_by(word="reason").agg(total=count).collect(engine="streaming")
    earlier = totals.join(last_counts.group_by("word").agg(pl.col("failures").sum()), on="word", how="left").select(
        "word", failures=pl.col("total") - pl.col("failures").fill_null(0), is_last=pl.lit(False)
    )
    parts = [last_counts.with_columns(is_last=pl.lit(True)), earlier.filter(pl.col("failures") > 0)]
    return pl.concat(parts, how="diagonal_relaxed").with_columns(kind=pl.lit(CLASS))


def find_new_words(words: pl.DataFrame, owners: pl.DataFrame, has_clusters: bool) -> tuple[pl.DataFrame, dict]:
    """Return (NEW_WORDS, row of CHANGES) for the words of the last part alone, from `count_failure_words`.

    chance: probability that each cluster with the word has its failure with it in the last part if all its failures are
    equally likely to have it: the product of the shares of their failures in the last part. A new cluster is no
    evidence (its share is 1); a word counts once per cluster. p of the row: the smallest chance times the number of
    words (Bonferroni). Without clusters each failure is its own cluster.
    """
    totals = {side: int(owners.filter(pl.col("is_last") == side)["failures"].sum()) for side in (False, True)}
    last_share = totals[True] / max(1, sum(totals.values()))
    shares = owners.group_by("cluster").agg(share=pl.col("failures").filter("is_last").sum() / pl.col("failures").sum())
    flagged = words.with_columns(pl.col("is_last").all().over("kind", "word").alias("is_new"))
    new = flagged.filter("is_new").join(shares, on="cluster", how="left", nulls_equal=True)
    # Sorted shares, so that the product is rounded in one order.
    chance = pl.col("share").sort().product() if has_clusters else pl.lit(last_share) ** pl.col("failures").sum()
    clusters = pl.len().cast(pl.Int64) if has_clusters else pl.lit(None, pl.Int64)
    new = new.group_by("kind", "word").agg(pl.col("failures").sum(), clusters=clusters, chance=chance)
    new = new.sort("chance", "failures", "kind", "word", descending=[False, True, False, False])
    row: dict = {"n_before": totals[False], "n_after": totals[True], "events_before": 0}
    row["events_after"] = int(new["failures"].sum())
    if not all(totals.values()):
        return NEW_WORDS.conform(new), row | {"reason": NO_EVENTS}
    n_old = flagged.filter(~pl.col("is_new")).select("kind", "word").n_unique()
    n_words = n_old + new.height
    row |= {"before": float(n_old), "after": float(n_words), "difference": float(new.height), "reason": LIST}
    if n_words:
        chance = new.select(pl.col("chance").min()).item()
        row["p_value"] = 1.0 if chance is None else min(1.0, n_words * raise_to_smallest(chance)[0])
    return NEW_WORDS.conform(new), row


def find_new_suspects(
    inputs: Inputs, border_s: int | None, false_discovery: float
) -> tuple[pl.DataFrame, pl.DataFrame, dict]:
    """Return (NEW_SUSPECTS, GONE_SUSPECTS, row of CHANGES): nodes with excess failures on each side.

    Both sides have the same length: the window of find_lemon_nodes, which ends where the last part begins and where it
    ends, or less if the records begin later.
    """
    empty = NEW_SUSPECTS.frame([]), GONE_SUSPECTS.frame([])
    if "lemon_nodes" not in inputs or "placements" not in inputs:
        return *empty, {"reason": NO_NODES}
    window = inputs["lemon_nodes"].select("window_from_s", "window_to_s").head(1)
    placements = inputs.scan("placements")
    first_s = placements.select(pl.col("start_s").min()).collect(engine="streaming").item()
    if border_s is None or not window.height or first_s is None or first_s >= border_s:
        return *empty, {"reason": NO_NODE_TEST}
    from_s, to_s = window.row(0)
    if to_s <= border_s:  # no job of the last part has started
        return *empty, {"reason": NO_NODE_TEST}
    length_s = min(to_s - from_s, border_s - first_s)
    begin_s = border_s - length_s
    windows = [(begin_s, to_s), (begin_s, border_s), (to_s - length_s, to_s), (border_s, to_s)]
    with inputs.scratch() as folder:
        partitions = choose_partitions([placements], PARTITION_ROWS, folder)
        durations = inputs.scan("durations_infra", DURATIONS_READ)
        return compare_suspects(*compare_nodes(placements, durations, windows, false_discovery, partitions))


def compare_suspects(
    all_nodes: pl.DataFrame, nodes_before: pl.DataFrame, nodes_after: pl.DataFrame, last_nodes: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, dict]:
    """Return (NEW_SUSPECTS, GONE_SUSPECTS, row of CHANGES). Nodes: all the time, before, as long at the end, last part.

    Only nodes with excess failures over all the time are tested, which does not depend on when they failed. Given a
    node's total, its failures in the last part are binomial, with the share expected there (Przyborowski and Wilenski
    1940). p of the row: the smallest adjusted one (Simes 1986).
    """
    tables = [nodes.filter(pl.col("q_value").is_not_null()) for nodes in (nodes_before, nodes_after)]
    row: dict = {f"n_{side}": nodes.height for side, nodes in zip(_SIDES, tables, strict=True)}
    row |= {f"events_{side}": int(nodes["counted"].sum()) for side, nodes in zip(_SIDES, tables, strict=True)}
    if not all(nodes.height for nodes in tables):
        return NEW_SUSPECTS.frame([]), GONE_SUSPECTS.frame([]), row | {"reason": NO_NODE_TEST}
    n_before, n_after = (nodes.filter("lemon").height for nodes in tables)
    if not n_before + n_after + all_nodes.filter("lemon").height and not has_power(median_detectable_ratio(all_nodes)):
        return NEW_SUSPECTS.frame([]), GONE_SUSPECTS.frame([]), row | {"reason": NO_POWER}
    row |= {"before": float(n_before), "after": float(n_after), "difference": float(n_after - n_before), "reason": LIST}
    gone_nodes = nodes_before.filter("lemon").select("node", counted_before="counted").sort("node")
    gone_nodes = gone_nodes.join(nodes_after.filter("lemon"), on="node", how="anti", maintain_order="left")
    counts_after = nodes_after.select("node", pl.col("counted").fill_null(0))
    gone_nodes = gone_nodes.join(counts_after, on="node", how="left", maintain_order="left").fill_null(0)
    gone = GONE_SUSPECTS.conform(gone_nodes)
    columns = ("counted", "expected")
    nodes = all_nodes.filter("lemon").select("node").sort("node")
    for table, suffix in ((nodes_before, "_before"), (last_nodes, "")):
        counts = table.select("node", *(pl.col(name).fill_null(0).alias(f"{name}{suffix}") for name in columns))
        nodes = nodes.join(counts, on="node", how="left", maintain_order="left").fill_null(0)
    nodes = nodes.filter(pl.col("expected_before") + pl.col("expected") > 0)
    if nodes.is_empty():
        return NEW_SUSPECTS.frame([]), gone, row | {"p_value": 1.0}
    last_counts, totals = nodes["counted"].to_numpy(), (nodes["counted"] + nodes["counted_before"]).to_numpy()
    share = (nodes["expected"] / (nodes["expected"] + nodes["expected_before"])).to_numpy()
    p_values = np.where(last_counts > 0, bdtrc(np.maximum(last_counts - 1, 0), totals, share), 1.0)
    nodes = nodes.with_columns(q_value=benjamini_hochberg(p_values), expected=totals * share)
    suspect_nodes = nodes.filter(pl.col("q_value") < SIGNIFICANCE).sort("q_value", "node")
    smallest_q = nodes.select(pl.col("q_value").min()).item()
    return NEW_SUSPECTS.conform(suspect_nodes), gone, row | {"p_value": raise_to_smallest(smallest_q)[0]}

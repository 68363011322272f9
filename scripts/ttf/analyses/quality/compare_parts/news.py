"""What the last part has that no earlier one has: words of failures, and nodes that fail more than the others."""

import numpy as np
import polars as pl
from scipy.special import bdtrc

from ttf.analyses.nodes.find_lemon_nodes.compute import PARTITION_ROWS, lemon_nodes
from ttf.analyses.nodes.find_lemon_nodes.excess import benjamini_hochberg
from ttf.analyses.nodes.find_lemon_nodes.node_runs import LIVES_READ
from ttf.analyses.quality.compare_parts import NEW_SUSPECTS, NEW_WORDS
from ttf.analyses.quality.compare_parts.part_tests import NOTHING, SIGNIFICANCE
from ttf.engine.storage.partitions import partitions_of
from ttf.records.inputs import Inputs
from ttf.stats.basics.p_value import never_zero

# Column of the jobs -> what its words are called; the last of several words for one failure is no more than they say.
KINDS = {"status_raw": "state", "exit_code": "exit code", "slurm_reason": "reason"}
CLASS = "class"
_WORDS = {"kind": pl.String, "word": pl.String, "cluster": pl.UInt32, "is_last": pl.Boolean, "failures": pl.Int64}
LIST = "a list of what is new: no interval"
NO_NODES = "the trace does not say on which nodes jobs ran"
NO_NODE_TEST = "no node can be compared with others"


def words_of_failures(jobs: pl.LazyFrame, reasons: pl.LazyFrame | None, last: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(words, owners): kind, word, cluster, is_last, failures; and cluster, is_last, failures of all failed jobs.

    jobs: job_id, task, part, outcome, cluster and the columns of KINDS that there are; reasons: reasons.parquet, whose
    words are the classes of the taxonomy; last: the name of the last part. A word counts once a job.
    """
    there = jobs.collect_schema().names()
    failed = jobs.filter(pl.col("outcome") == "failure").with_columns(is_last=pl.col("part") == last)
    keys = ["cluster", "is_last"]
    given = [column for column in KINDS if column in there]
    counted = failed.group_by(*keys, *given).agg(failures=pl.len().cast(pl.Int64)).collect(engine="streaming")
    named = [
        counted.drop_nulls(column)
        .group_by(pl.lit(KINDS[column]).alias("kind"), pl.col(column).cast(pl.String).alias("word"), *keys)
        .agg(pl.col("failures").sum())
        for column in given
    ]
    owners = counted.group_by(keys).agg(pl.col("failures").sum())
    if reasons is not None:
        named.append(_classes(jobs.filter(pl.col("part") == last), reasons))
    return pl.concat(named, how="diagonal_relaxed") if named else pl.DataFrame(schema=_WORDS), owners


def _classes(of_last: pl.LazyFrame, reasons: pl.LazyFrame) -> pl.DataFrame:
    """The same of the classes: only the attempts of the last part's jobs are looked up, and what else has the class.

    The clusters of failures in earlier parts are not looked up: one stands for all of them.
    """
    key = ["job_id", "task"]
    mine = reasons.drop_nulls("reason").join(of_last.select(*key, "cluster"), on=key, nulls_equal=True)
    count = pl.len().cast(pl.Int64).alias("failures")
    found = mine.group_by("cluster", word="reason").agg(count).collect(engine="streaming")
    every = reasons.drop_nulls("reason").group_by(word="reason").agg(every=count).collect(engine="streaming")
    of_word = found.group_by("word").agg(pl.col("failures").sum())
    before = every.join(of_word, on="word", how="left").select(
        "word", failures=pl.col("every") - pl.col("failures").fill_null(0), is_last=pl.lit(False)
    )
    both = [found.with_columns(is_last=pl.lit(True)), before.filter(pl.col("failures") > 0)]
    return pl.concat(both, how="diagonal_relaxed").with_columns(kind=pl.lit(CLASS))


def new_words(words: pl.DataFrame, owners: pl.DataFrame, has_clusters: bool) -> tuple[pl.DataFrame, dict]:
    """(NEW_WORDS, row of CHANGES): words of the last part alone. words, owners: `words_of_failures`.

    chance: that each cluster with the word would have had its failure with it in the last part if all its failures were
    alike: the product of the shares of their failures that are of the last part. One that is new itself is no evidence
    (its share is 1), and one that has a word a hundred times has it once. p of the row: the smallest, times the number
    of words (Bonferroni). Without clusters a failure is one of its own.
    """
    sides = {side: int(owners.filter(pl.col("is_last") == side)["failures"].sum()) for side in (False, True)}
    share_of_all = sides[True] / max(1, sum(sides.values()))
    shares = owners.group_by("cluster").agg(share=pl.col("failures").filter("is_last").sum() / pl.col("failures").sum())
    is_new = pl.col("is_last").all()
    told = words.with_columns(is_new.over("kind", "word").alias("is_new"))
    found = told.filter("is_new").join(shares, on="cluster", how="left", nulls_equal=True)
    # In the order of the shares, so that a product has one rounding.
    own = pl.col("share").sort().product() if has_clusters else pl.lit(share_of_all) ** pl.col("failures").sum()
    clusters = pl.len().cast(pl.Int64) if has_clusters else pl.lit(None, pl.Int64)
    found = found.group_by("kind", "word").agg(pl.col("failures").sum(), clusters=clusters, chance=own)
    found = found.sort("chance", "failures", "kind", "word", descending=[False, True, False, False])
    row = {"n_before": sides[False], "n_after": sides[True], "events_after": int(found["failures"].sum())}
    row |= {"events_before": 0}
    if not all(sides.values()):
        return NEW_WORDS.typed(found), row | {"reason": NOTHING}
    old = told.filter(~pl.col("is_new")).select("kind", "word").n_unique()
    number = old + found.height
    row |= {"before": float(old), "after": float(number), "difference": float(found.height), "reason": LIST}
    if number:
        smallest = found["chance"].min()
        row["p_value"] = min(1.0, number * never_zero(smallest)[0]) if smallest is not None else 1.0
    return NEW_WORDS.typed(found), row


def new_suspects(given: Inputs, border_s: int | None, false_discovery: float) -> tuple[pl.DataFrame, dict]:
    """(NEW_SUSPECTS, row of CHANGES): nodes with excess failures before and after, and those that fail more often.

    Both sides are as long: the window of find_lemon_nodes, ended where the last part begins and where it ends, or less
    where the records begin later.
    """
    none = NEW_SUSPECTS.frame([])
    if "lemon_nodes" not in given or "placements" not in given:
        return none, {"reason": NO_NODES}
    window = given["lemon_nodes"].select("window_from_s", "window_to_s").head(1)
    placements = given.scan("placements")
    first_s = placements.select(pl.col("start_s").min()).collect(engine="streaming").item()
    if border_s is None or not window.height or first_s is None or first_s >= border_s:
        return none, {"reason": NO_NODE_TEST}
    from_s, to_s = window.row(0)
    length_s = min(to_s - from_s, border_s - first_s)
    begin_s = border_s - length_s
    windows = [(begin_s, to_s), (begin_s, border_s), (to_s - length_s, to_s), (border_s, to_s)]
    with given.scratch() as spilled:
        partitions = partitions_of([placements], PARTITION_ROWS, spilled)
        lives = given.scan("lives_infra", LIVES_READ)
        return suspects(*lemon_nodes(placements, lives, windows, false_discovery, partitions))


def suspects(
    both: pl.DataFrame, before: pl.DataFrame, after: pl.DataFrame, last: pl.DataFrame
) -> tuple[pl.DataFrame, dict]:
    """The same of tables LEMON_NODES: of all the time, the time before, as much of it at the end, and the last part.

    Nodes are tested that have excess failures over all the time, which does not say when they came: given how many a
    node has, those of the last part are binomial, with the share of what was expected of it there (Przyborowski and
    Wilenski 1940). p of the row: the smallest adjusted one (Simes 1986).
    """
    tested = [nodes.filter(pl.col("q_value").is_not_null()) for nodes in (before, after)]
    row = {f"n_{side}": nodes.height for side, nodes in zip(("before", "after"), tested, strict=True)}
    row |= {f"events_{side}": int(of["counted"].sum()) for side, of in zip(("before", "after"), tested, strict=True)}
    if not all(nodes.height for nodes in tested):
        return NEW_SUSPECTS.frame([]), row | {"reason": NO_NODE_TEST}
    were, are = (nodes.filter("lemon").height for nodes in tested)
    row |= {"before": float(were), "after": float(are), "difference": float(are - were), "reason": LIST}
    columns = ("counted", "expected")
    nodes = both.filter("lemon").select("node").sort("node")
    for table, suffix in ((before, "_before"), (last, "")):
        of_node = table.select("node", *(pl.col(name).fill_null(0).alias(f"{name}{suffix}") for name in columns))
        nodes = nodes.join(of_node, on="node", how="left", maintain_order="left").fill_null(0)
    nodes = nodes.filter(pl.col("expected_before") + pl.col("expected") > 0)
    if nodes.is_empty():
        return NEW_SUSPECTS.frame([]), row | {"p_value": 1.0}
    counted, every = nodes["counted"].to_numpy(), (nodes["counted"] + nodes["counted_before"]).to_numpy()
    share = (nodes["expected"] / (nodes["expected"] + nodes["expected_before"])).to_numpy()
    p_values = np.where(counted > 0, bdtrc(np.maximum(counted - 1, 0), every, share), 1.0)
    nodes = nodes.with_columns(q_value=benjamini_hochberg(p_values), expected=every * share)
    new = nodes.filter(pl.col("q_value") < SIGNIFICANCE).sort("q_value", "node")
    return NEW_SUSPECTS.typed(new), row | {"p_value": never_zero(nodes["q_value"].min())[0]}

"""List the nodes with excess job failures, excess outages or both, with the evidence of each.

A test with the basis `event` attributes failures by health events, so that these list nodes too. Two kinds of failures
list none: users' failures (the basis `proxy`), whose test takes ordinary nodes as equal, and failures of components
whose outages are tested, because these are the same events.
"""

import polars as pl

from ttf.analyses.nodes.find_lemon_nodes import LEMON_NODES
from ttf.analyses.nodes.list_drains import DRAIN_EVIDENCE
from ttf.analyses.outages.rank_drains import DRAIN_LIST
from ttf.analyses.outages.rank_drains.compute import top_causes
from ttf.analyses.shared.outages.node_ranges import hostlist, is_safe
from ttf.records.infra import EVENT, PROXY
from ttf.records.inputs import Inputs


def compute(inputs: Inputs) -> dict[str, pl.DataFrame | dict[str, str]]:
    failures = inputs["lemon_nodes"] if "lemon_nodes" in inputs else LEMON_NODES.frame([])
    outages = inputs["drain_list"] if "drain_list" in inputs else DRAIN_LIST.frame([])
    same_events = ["component"] * bool(outages.height)
    failures = failures.filter(~pl.col("basis").is_in([PROXY, *same_events]))
    has_causes = "durations_infra" in inputs
    causes = failure_causes(inputs.scan("durations_infra", ["event", "failed_node", "cause"])) if has_causes else None
    nodes = list_nodes(failures, outages, causes)
    return {"drain_evidence": nodes, "drains": {"exclude.txt": exclude_option(nodes)}}


def exclude_option(nodes: pl.DataFrame) -> str:
    """Return the option of sbatch that avoids the nodes, or "" if there is none."""
    listed = hostlist(nodes["node"])
    return f"--exclude={listed}\n" if listed else ""


def failure_causes(durations: pl.LazyFrame) -> pl.DataFrame:
    """Return node, failure_causes of the infrastructure failures that name a node."""
    failed = durations.filter(pl.col("event") == EVENT, pl.col("failed_node").is_not_null())
    causes = top_causes(failed.select("cause", node="failed_node").collect(engine="streaming"))
    return causes.rename({"causes": "failure_causes"})


def list_nodes(failures: pl.DataFrame, outages: pl.DataFrame, causes: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return DRAIN_EVIDENCE. failures: LEMON_NODES; outages: DRAIN_LIST; causes: `failure_causes`, None if unknown."""
    by_failures = failures.select(
        *("node", "fleet", "basis", "lemon"), failures="counted", failures_expected="expected", failures_q="q_spread"
    )
    by_outages = outages.select(
        *("node", "listed", pl.col("fleet").alias("group")),
        outages="counted",
        outages_expected="expected",
        outages_q="q_value",
        outage_causes="causes",
    )
    nodes = by_failures.join(by_outages, on="node", how="full", coalesce=True)
    causes = pl.DataFrame(schema={"node": pl.String, "failure_causes": pl.String}) if causes is None else causes
    nodes = nodes.join(causes, on="node", how="left", maintain_order="left")
    nodes = nodes.with_columns(pl.col("lemon", "listed").fill_null(False)).filter(pl.col("lemon") | pl.col("listed"))
    listed_by = pl.when("lemon", "listed").then(pl.lit("both")).when("lemon").then(pl.lit("failures"))
    nodes = nodes.with_columns(
        fleet=pl.coalesce("fleet", "group"),
        listed_by=listed_by.otherwise(pl.lit("outages")),
        excluded=pl.col("node").map_elements(is_safe, pl.Boolean),
    )
    is_one, q_value = pl.col("listed_by") != "both", pl.min_horizontal("failures_q", "outages_q")
    return DRAIN_EVIDENCE.conform(nodes.sort(is_one, q_value, "node", nulls_last=True))

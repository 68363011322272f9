"""List the nodes with excess job failures, excess outages or both, with the evidence of each, and backtest such lists.

Both tests have the rule of the nodes with excess failures (`with_verdict`): more than the rate of the fleet and the
spread of ordinary nodes explain, at a false-discovery rate. Failures attributed by health events list nodes too. Two
kinds of failures list none: users' failures (the basis `proxy`), whose test takes ordinary nodes as equal, and failures
of components whose outages are tested, because these are the same events: both tests must then agree.

The saving of a week is the shrunken rate of a node's outages minus the fleet's, times the mean cost of an outage of its
fleet: the node's work then fails at the fleet's rate.
"""

from collections.abc import Iterable

import polars as pl

from ttf.analyses.nodes.find_lemon_nodes import LEMON_NODES
from ttf.analyses.outages.list_drains import DRAIN_BACKTEST, DRAIN_LIST, DRAIN_SUMMARY
from ttf.analyses.outages.list_drains.backtest import DAY, WEEK, backtest
from ttf.analyses.outages.list_drains.history import History
from ttf.display.node_ranges import hostlist, is_safe
from ttf.records.infra import EVENT, PROXY
from ttf.records.inputs import Inputs
from ttf.records.jobs import join_reasons
from ttf.records.outages.outage_records import select_nodes
from ttf.records.runs import GPU_HOUR
from ttf.stats.nodes.excess_failures import median_detectable_ratio, next_threshold, with_posterior, with_power

HOUR = 3_600
MOST_CAUSES, LONGEST_CAUSE = 3, 60
NO_TEST = "no time up, no other node in its fleet, or no outage in it: not compared"
NO_OUTAGES = "the outages of the node are not compared"
NO_GPUS = "how many GPUs a node has is not known"
NO_JOBS = "no job's failure can be attributed to a node"
NO_SPREAD = "the outages of the fleet differ no more than by chance: no interval of the ratio"


def compute(inputs: Inputs) -> dict[str, pl.DataFrame | dict[str, str]]:
    settings = inputs.settings
    nodes, summary, weeks = DRAIN_LIST.frame([]), DRAIN_SUMMARY.frame([]), DRAIN_BACKTEST.frame([])
    failures = inputs["lemon_nodes"] if "lemon_nodes" in inputs else LEMON_NODES.frame([])
    has_causes, has_outages = "durations_infra" in inputs, "outages" in inputs and "exposure" in inputs
    if has_outages:
        outages = select_nodes(inputs.read("outages"))
        history = History.build(outages, inputs.read("exposure"))
        losses = jobs_lost(inputs, settings.checkpoint_interval_s) if settings.has_jobs else None
        gpus = gpus_by_node(inputs, history.names)
        nodes = compare_outages(history, outages, losses, gpus, settings.false_discovery)
        weeks = backtest(history, settings.false_discovery)
    causes = failure_causes(inputs.scan("durations_infra", ["event", "failed_node", "cause"])) if has_causes else None
    nodes = list_nodes(failures, nodes, causes)
    if has_outages:
        summary, price = summarise_drains(nodes), settings.prices.get("price_per_gpu_hour")
        if price:
            summary = summary.with_columns(saved_cost=pl.col("saved_gpu_hours") * price)
    return {
        "drain_list": nodes,
        "drain_summary": summary,
        "drain_backtest": weeks,
        "drains": {"exclude.txt": exclude_option(nodes.drop_nulls("listed_by")["node"])},
    }


def exclude_option(names: Iterable[str]) -> str:
    """Return the option of sbatch that avoids the nodes, or "" if there is none."""
    listed = hostlist(names)
    return f"--exclude={listed}\n" if listed else ""


def failure_causes(durations: pl.LazyFrame) -> pl.DataFrame:
    """Return node, failure_causes of the infrastructure failures that name a node."""
    failed = durations.filter(event=EVENT).drop_nulls("failed_node")
    causes = top_causes(failed.select("cause", node="failed_node").collect(engine="streaming"))
    return causes.rename({"causes": "failure_causes"})


def list_nodes(failures: pl.DataFrame, nodes: pl.DataFrame, causes: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return DRAIN_LIST of the nodes with a test of outages, and those with excess failures.

    failures: LEMON_NODES; nodes: `compare_outages`; causes: `failure_causes`, None if unknown.
    """
    if nodes.height:
        is_component = pl.col("basis") == "component"
        refuted = failures.filter(is_component, ~pl.col("lemon").fill_null(False))["node"].implode()
        nodes = nodes.with_columns(pl.col("listed") & ~pl.col("node").is_in(refuted))
        failures = failures.filter(~is_component)
    by_failures = failures.filter(pl.col("basis") != PROXY).select(
        *("node", "basis", "lemon", pl.col("fleet").alias("failure_fleet")),
        failures="counted",
        failures_expected="expected",
        failures_q="q_spread",
    )
    nodes = nodes.select(pl.exclude("basis", "^failure.*$"))
    nodes = nodes.join(by_failures, on="node", how="full", coalesce=True)
    causes = pl.DataFrame(schema={"node": pl.String, "failure_causes": pl.String}) if causes is None else causes
    nodes = nodes.join(causes, on="node", how="left", maintain_order="left")
    nodes = nodes.with_columns(pl.col("lemon", "listed").fill_null(False))
    listed_by = pl.when("lemon", "listed").then(pl.lit("both")).when("lemon").then(pl.lit("failures"))
    nodes = nodes.with_columns(
        fleet=pl.coalesce("fleet", "failure_fleet"),
        listed_by=listed_by.when("listed").then(pl.lit("outages")),
        reason=pl.when(pl.col("outages").is_null()).then(pl.lit(NO_OUTAGES)).otherwise("reason"),
    )
    has_place = pl.col("outages").is_not_null() | pl.col("lemon")
    q_value = pl.when(pl.col("listed_by").is_not_null()).then(pl.min_horizontal("failures_q", "q_value"))
    is_both, saved = pl.col("listed_by") == "both", pl.coalesce("saved_gpu_hours", "saved_node_hours")
    ranked = nodes.filter(has_place).sort(
        *(pl.col("listed_by").is_null(), ~is_both, q_value, -saved, "p_value", "node"), nulls_last=True
    )
    return DRAIN_LIST.conform(ranked)


def summarise_drains(nodes: pl.DataFrame) -> pl.DataFrame:
    """Return the one row of DRAIN_SUMMARY; nodes: DRAIN_LIST."""
    compared = nodes.drop_nulls("p_value")
    listed, outages = compared.filter("listed"), int(compared["outages"].sum())
    row: dict = {"nodes": compared.height, "listed": listed.height, "outages": outages}
    row["excluded"] = sum(map(is_safe, listed["node"]))
    row |= {"ordinary_cv": compared["ordinary_cv"].first(), "detectable_ratio": median_detectable_ratio(compared)}
    if listed.height:
        row["share_of_outages"] = listed["outages"].sum() / max(outages, 1)
        for name in ("saved_gpu_hours", "saved_node_hours", "idle_gpu_hours"):
            row[name] = float(listed[name].to_numpy().sum()) if listed[name].count() else None
    return DRAIN_SUMMARY.frame([row])


def jobs_lost(inputs: Inputs, checkpoint_interval_s: int) -> pl.DataFrame | None:
    """Return node, jobs_lost, job_hours: attempts with a failure attributed to the node, and the GPU-hours they lost.

    An attempt loses half a checkpoint interval, or its run time if shorter. None if no failure is attributed to a node.
    """
    if "durations_infra" not in inputs:
        return None
    attempts = inputs.scan("durations_infra", ["event", "failed_node", "duration_s", "gpu_milli"])
    attributed = attempts.filter(event=EVENT).drop_nulls("failed_node")
    half_s = pl.min_horizontal(2 * pl.col("duration_s"), pl.lit(checkpoint_interval_s))
    sums = attributed.group_by(node="failed_node").agg(
        jobs_lost=pl.len().cast(pl.Int64), half_s=(pl.col("gpu_milli").cast(pl.Int128) * half_s).sum()
    )
    losses = sums.collect(engine="streaming").sort("node")
    hours = pl.Series([half_s / (2 * GPU_HOUR) for half_s in losses["half_s"]], dtype=pl.Float64)
    return losses.select("node", "jobs_lost", job_hours=hours) if losses.height else None


def gpus_by_node(inputs: Inputs, names: list[str]) -> list[float | None]:
    """Return the GPUs of each node: as recorded, else the mean of the cluster, else None."""
    recorded = inputs.read("nodes", ("node", "gpu_count")).drop_nulls() if "nodes" in inputs else None
    count_by_node = {} if recorded is None else dict(recorded.iter_rows())
    basis = inputs["occupancy_basis"].to_dicts() if "occupancy_basis" in inputs else []
    mean = next((row["gpus"] / row["servers"] for row in basis if row["servers"]), None)
    return [count_by_node.get(name, mean) for name in names]


def compare_outages(
    history: History,
    outages: pl.DataFrame,
    losses: pl.DataFrame | None,
    gpus: list[float | None],
    false_discovery: float,
) -> pl.DataFrame:
    """Return the columns of DRAIN_LIST on outages, of nodes in service.

    outages: of nodes; losses: from `jobs_lost`; gpus: per node.
    """
    names = pl.Series("node", history.names, dtype=pl.String)
    compared, ordinary = history.compare_nodes(history.end_s, false_discovery)
    threshold = next_threshold(compared["p_value"], compared["listed"], false_discovery)
    compared = with_power(compared, threshold, ordinary)
    nodes = with_posterior(compared).with_columns(
        names,
        outages=history.count_outages(history.begin_s, history.end_s + 1),
        gpus=pl.Series(gpus, dtype=pl.Float64),
        in_service=history.is_in_service,
    )
    unplanned = outages.filter(~pl.col("planned"), "counted")
    down = unplanned.group_by("node").agg(down_s=(pl.col("seen_until_s") - pl.col("start_s")).sum())
    for columns in (top_causes(unplanned), down):
        nodes = nodes.join(columns, on="node", how="left", maintain_order="left")
    if losses is None:
        nodes = nodes.with_columns(jobs_lost=pl.lit(None, pl.Int64), job_hours=pl.lit(0.0))
    else:
        nodes = nodes.join(losses, on="node", how="left", maintain_order="left")
        nodes = nodes.with_columns(pl.col("jobs_lost", "job_hours").fill_null(0))
    # Nodes are sorted by name, so float sums have a fixed order.
    fleets = nodes.group_by("fleet", maintain_order=True).agg(
        fleet_counted=pl.col("counted").sum(),
        fleet_s=pl.col("exposure_s").sum(),
        fleet_down_s=pl.col("down_s").sum(),
        fleet_job_hours=pl.col("job_hours").sum(),
    )
    nodes = nodes.join(fleets, on="fleet", how="left", maintain_order="left")
    counted, ratio = pl.col("fleet_counted"), pl.col("posterior_rate_ratio")
    has_rate = pl.when((counted > 0) & (pl.col("fleet_s") > 0))
    nodes = nodes.with_columns(
        down_hours=has_rate.then(pl.col("fleet_down_s") / counted / HOUR),
        lost_job_hours=has_rate.then(pl.col("fleet_job_hours") / counted),
        excess_outages=has_rate.then((ratio - 1).clip(lower_bound=0) * counted / pl.col("fleet_s") * WEEK),
    )
    lost_hours = pl.col("gpus") * pl.col("down_hours") + pl.col("lost_job_hours")
    reasons = {
        NO_TEST: pl.col("p_value").is_null(),
        NO_GPUS: pl.col("gpus").is_null(),
        NO_JOBS: pl.col("jobs_lost").is_null(),
        NO_SPREAD: ratio.is_not_null() & pl.col("posterior_ci_low").is_null(),
    }
    return nodes.filter("in_service").select(
        *("node", "fleet", "outages", "counted", "expected", "causes", "jobs_lost", "p_value", "q_value"),
        *("listed", "ordinary_cv", "detectable_ratio"),
        saved_gpu_hours=pl.col("excess_outages") * lost_hours,
        saved_node_hours=pl.col("excess_outages") * pl.col("down_hours"),
        idle_gpu_hours=pl.col("gpus") * (WEEK // HOUR),
        lost_gpu_hours=lost_hours,
        up_s="exposure_s",
        again_24h=pl.col("outages") - pl.col("counted"),
        rate=_rate_per_1000_days("counted", "exposure_s"),
        fleet_rate=_rate_per_1000_days("fleet_counted", "fleet_s"),
        rate_ratio=ratio,
        ci_low="posterior_ci_low",
        ci_high="posterior_ci_high",
        above_1="posterior_above_1",
        reason=join_reasons(reasons),
    )


def _rate_per_1000_days(events: str, seconds: str) -> pl.Expr:
    return pl.when(pl.col(seconds) > 0).then(pl.col(events) / pl.col(seconds) * (1000 * DAY))


def top_causes(outages: pl.DataFrame) -> pl.DataFrame:
    """Return node, causes: the most frequent three causes of its outages, or failures, with their counts."""
    cause = pl.coalesce(name for name in ("cause", "class", "level") if name in outages.columns).str.slice(
        0, LONGEST_CAUSE
    )
    counts = outages.select("node", cause=cause).drop_nulls().group_by("node", "cause").len()
    counts = counts.sort("node", "len", "cause", descending=[False, True, False])
    ranked = pl.format("{} ({})", "cause", "len").head(MOST_CAUSES).str.join(", ")
    return counts.group_by("node", maintain_order=True).agg(causes=ranked)

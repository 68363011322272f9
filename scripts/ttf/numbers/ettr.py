"""The numbers of effective training time: what the run that the configuration asks about has to expect."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics
from ttf.stats.plans import BEST_INTERVAL


def of_ettr(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """The assumptions, the run of the configured size at the first checkpoint interval, and its mitigations."""
    ettr, outlook = tables["ettr"], tables["ettr_outlook"]
    asked = {row["assumption"]: row for row in tables["ettr_assumptions"].iter_rows(named=True)}
    for name, row in asked.items():
        key = name.replace(", ", "_").replace(" ", "_").replace("-", "_")
        metrics.put(f"ettr.assumed.{key}", row["amount"], row["unit"], "tables/ettr_assumptions.csv", row["n"])
    failures = asked["failure rate"]["n"]
    metrics.put("ettr.basis", asked["failure rate"]["source"], "label", "tables/ettr_assumptions.csv", failures)
    metrics.put("ettr.rate_reason", asked["failure rate"]["reason"], "label", "tables/ettr_assumptions.csv")
    metrics.put("ettr.unit", asked["size of the run"]["unit"], "label", "tables/ettr_assumptions.csv")
    metrics.put("ettr.queue_source", asked["queue"]["source"], "label", "tables/ettr_assumptions.csv")
    of_run = (pl.coalesce("gpus", "nodes") == asked["size of the run"]["amount"]) & (
        pl.col("checkpoint_interval_s") == asked["checkpoint interval"]["amount"]
    )
    for row in ettr.filter(of_run).iter_rows(named=True):
        metrics.put(f"ettr.{row['rate']}.ettr", row["ettr_renewal"], "share", "tables/ettr.csv", failures)
        if row["rate"] == "estimate":
            metrics.put("ettr.nodes", row["nodes"], "nodes", "tables/ettr.csv")
            metrics.put("ettr.mttf_s", row["mttf_s"], "s", "tables/ettr.csv", failures)
            metrics.put("ettr.approximated", row["ettr_combined"], "share", "tables/ettr.csv", failures)
            metrics.put("ettr.valid", row["approximation_valid"], "label", "tables/ettr.csv")
            metrics.put("ettr.optimal_interval_s", row["optimal_interval_s"], "s", "tables/ettr.csv", failures)
    source = "tables/ettr_outlook.csv"
    for row in outlook.filter(of_run).iter_rows(named=True):
        rate = row["rate"]
        metrics.put(f"ettr.{rate}.interruptions", row["expected_interruptions"], "interruptions", source, failures)
        metrics.put(f"ettr.{rate}.wall_s", row["expected_wall_s"], "s", source, failures)
        if rate == "estimate":
            metrics.put("ettr.at_optimum", row["ettr_at_optimum"], "share", source, failures)
            metrics.put("ettr.daly_young_s", row["daly_young_interval_s"], "s", source, failures)
            for name in ("interruptions_p05", "interruptions_p95", "wall_p05_s", "wall_p95_s"):
                unit = "s" if name.endswith("_s") else "interruptions"
                metrics.put(f"ettr.simulated.{name}", row[f"simulated_{name}"], unit, source, row["simulated_runs"])
    beyond = ettr.filter((pl.col("rate") == "estimate") & ~pl.col("approximation_valid")).filter(
        pl.col("checkpoint_interval_s") == asked["checkpoint interval"]["amount"]
    )
    if beyond.height:
        size = beyond.select(pl.coalesce("gpus", "nodes").min()).item()
        metrics.put("ettr.limit.size", size, asked["size of the run"]["unit"], "tables/ettr.csv", failures)
    _of_mitigations(metrics, tables["mitigations"], asked["size of the run"]["amount"])


def _of_mitigations(metrics: Metrics, mitigations: pl.DataFrame, size: float) -> None:
    """The change that buys most at the size of the run, besides the best interval, which has numbers already."""
    mine = mitigations.filter(
        (pl.coalesce("gpus", "nodes") == size)
        & pl.col("ettr_after").is_not_null()
        & (pl.col("mitigation") != BEST_INTERVAL)
    )
    if not mine.height:
        return
    best = mine.sort("ettr_after", descending=True, maintain_order=True).row(0, named=True)
    source = "tables/mitigations.csv"
    metrics.put("ettr.mitigation.name", best["mitigation"], "label", source)
    metrics.put("ettr.mitigation.before", best["ettr_before"], "share", source)
    metrics.put("ettr.mitigation.after", best["ettr_after"], "share", source)
    for unit in ("gpu", "node"):
        saved = best[f"{unit}_hours_saved_per_productive_week"]
        metrics.put(f"ettr.mitigation.{unit}_hours", saved, f"{unit}-hours", source)


def of_ettr_measured(metrics: Metrics, measured: pl.DataFrame) -> None:
    """How many job runs were measured, and their mean ratio beside the expected one."""
    source = "tables/ettr_measured.csv"
    runs = int(measured["runs"].sum())
    metrics.put("ettr.measured.runs", runs, "runs", source)
    if not runs:
        return
    metrics.put("ettr.measured.interruptions", int(measured["interruptions"].sum()), "interruptions", source, runs)
    mean = float((measured["ettr_mean"] * measured["runs"]).sum()) / runs
    metrics.put("ettr.measured.mean", mean, "share", source, runs)
    known = measured.filter(pl.col("expected_ettr").is_not_null())
    if known.height == measured.height:
        expected = float((known["expected_ettr"] * known["runs"]).sum()) / runs
        metrics.put("ettr.measured.expected", expected, "share", source, runs)
    worst = float((measured["ettr_if_all_interrupted_mean"] * measured["runs"]).sum()) / runs
    metrics.put("ettr.measured.if_all_interrupted", worst, "share", source, runs)

"""The numbers of the effective training time ratio (ETTR): what the run of the target size has to expect."""

import polars as pl

from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics
from ttf.stats.plans import BEST_INTERVAL, ESTIMATE, MEASURED, rate_row


def numbers(metrics: Metrics, given: Inputs) -> None:
    """The assumptions, the run of the configured size at the first checkpoint interval, and its mitigations.

    ettr.by: what the text answers by: the projected failure rate (`estimate`), else the one measured in runs of that
    size (`measured_rate`). Where the projection is withheld, ettr.withheld says why and ettr.needed what data it takes.
    """
    ettr, outlook, by_gpus = given["ettr"], given["ettr_outlook"], given["mttf_by_gpus"]
    asked = {row["assumption"]: row for row in given["ettr_assumptions"].iter_rows(named=True)}
    source = "tables/ettr_assumptions.csv"
    for name, row in asked.items():
        key = name.replace(", ", "_").replace(" ", "_").replace("-", "_")
        metrics.put(f"ettr.assumed.{key}", row["amount"], row["unit"], source, row["n"])
    size, unit = asked["size of the run"]["amount"], asked["size of the run"]["unit"]
    failures = asked["failure rate"]["n"]
    metrics.put("ettr.basis", asked["failure rate"]["source"], "label", source, failures)
    metrics.put("ettr.unit", unit, "label", source)
    metrics.put("ettr.queue_source", asked["queue"]["source"], "label", source)
    at_first = pl.col("checkpoint_interval_s") == asked["checkpoint interval"]["amount"]
    of_run = (pl.coalesce("gpus", "nodes") == size) & at_first
    mine = {row["rate"]: row for row in ettr.filter(of_run).iter_rows(named=True)}
    known = (rate for rate in (ESTIMATE[0], MEASURED[0]) if mine.get(rate, {}).get("ettr_renewal") is not None)
    by = next(known, None)
    metrics.put("ettr.by", by, "label", "tables/ettr.csv")
    if mine[ESTIMATE[0]]["ettr_renewal"] is None:
        metrics.put("ettr.withheld", mine[ESTIMATE[0]]["reason"], "label", "tables/ettr.csv")
        needed = given["node_failure_rate"]["needed"].first()
        metrics.put("ettr.needed", needed, "label", "tables/node_failure_rate.csv")
    has_runs = given["node_failure_rate"]["node_gpus"].first() is not None
    bucket = by_gpus.filter(pl.lit(has_runs) & (pl.col("gpus_low") <= size) & (size <= pl.col("gpus_high")))
    observed = bucket["failures"].first() if bucket.height else None
    n_of = dict.fromkeys(ESTIMATE, failures) | dict.fromkeys(MEASURED, observed)
    for row in bucket.filter(pl.col("p_clustered").is_not_null()).iter_rows(named=True):
        source, n = "tables/mttf_by_gpus.csv", row["jobs"]
        metrics.put("sizes.check.observed", observed, "failures", source, n)
        metrics.put("sizes.check.expected", row["expected_failures"], "failures", source, n)
        metrics.put("sizes.check.p_value", row["p_clustered"], "p", source, n)
    source = "tables/ettr.csv"
    metrics.put("ettr.no_interval", asked["queue"]["reason"], "label", "tables/ettr_assumptions.csv")
    clustered = {
        ESTIMATE[0]: rate_row(given["node_failure_rate"]).get("ci_low_clustered") is not None,
        MEASURED[0]: bucket["ci_low_clustered_s"].count() > 0,
    }
    for rate, row in mine.items():
        n = n_of[rate]
        metrics.put(f"ettr.{rate}.ettr", row["ettr_renewal"], "share", source, n)
        suffix = "_clustered" if clustered.get(rate) else ""
        for end in ("low", "high"):
            metrics.put(f"ettr.{rate}.ettr_ci_{end}{suffix}", row[f"ettr_ci_{end}"], "share", source, n)
        if rate == by:
            metrics.put_row("ettr", row, {"nodes": "nodes"}, source)
            metrics.put(f"ettr.{rate}.queue_s", row["queue_s"], "s", source, asked["queue"]["n"])
            metrics.put_row("ettr", row, {"mttf_s": "s", "optimal_interval_s": "s"}, source, n)
            metrics.put("ettr.approximated", row["ettr_combined"], "share", source, n)
            metrics.put("ettr.valid", row["approximation_valid"], "label", source)
    source = "tables/ettr_outlook.csv"
    for row in outlook.filter(of_run).iter_rows(named=True):
        rate, n = row["rate"], n_of[row["rate"]]
        expected = {"interruptions": "interruptions", "wall_s": "s"}
        metrics.put_row(f"ettr.{rate}", row, expected, source, n, prefix="expected_")
        metrics.put(f"ettr.{rate}.scheduled_share", row["scheduled_share"], "share", source, n)
        if rate == by:
            # A wait at the submission and one after each failure.
            queued = row["queue_s"] * (1 + (row["expected_interruptions"] or 0))
            metrics.put(f"ettr.{rate}.queued_s", queued, "s", source, asked["queue"]["n"])
            metrics.put("ettr.at_optimum", row["ettr_at_optimum"], "share", source, n)
            metrics.put("ettr.daly_young_s", row["daly_young_interval_s"], "s", source, n)
            simulated = dict.fromkeys(("interruptions_p05", "interruptions_p95"), "interruptions")
            simulated |= dict.fromkeys(("wall_p05_s", "wall_p95_s"), "s")
            metrics.put_row("ettr.simulated", row, simulated, source, row["simulated_runs"], prefix="simulated_")
    beyond = ettr.filter((pl.col("rate") == ESTIMATE[0]) & ~pl.col("approximation_valid") & at_first)
    if beyond.height:
        limit = beyond.select(pl.coalesce("gpus", "nodes").min()).item()
        metrics.put("ettr.limit.size", limit, unit, "tables/ettr.csv", failures)
    _of_mitigations(metrics, given["mitigations"], size)


def _of_mitigations(metrics: Metrics, mitigations: pl.DataFrame, size: float) -> None:
    """The change that raises the ratio most at the size of the run, and the one that saves the most of its nodes' time.

    Besides the best interval, which has numbers already. Less waiting raises the ratio and saves no node anything.
    """
    saved, source = pl.col("node_hours_saved_per_productive_week"), "tables/mitigations.csv"
    is_other = (pl.coalesce("gpus", "nodes") == size) & (pl.col("mitigation") != BEST_INTERVAL)
    mine = mitigations.filter(is_other & pl.col("ettr_after").is_not_null())
    for row in mine.sort("ettr_after", descending=True, maintain_order=True).head(1).iter_rows(named=True):
        metrics.put("ettr.mitigation.name", row["mitigation"], "label", source)
        metrics.put_row("ettr.mitigation", row, {"before": "share", "after": "share"}, source, prefix="ettr_")
    for row in mine.filter(saved > 0).sort(saved, descending=True, maintain_order=True).head(1).iter_rows(named=True):
        metrics.put("ettr.saving.name", row["mitigation"], "label", source)
        for unit in ("gpu", "node"):
            hours = row[f"{unit}_hours_saved_per_productive_week"]
            metrics.put(f"ettr.saving.{unit}_hours", hours, f"{unit}-hours", source)

"""The planned run: its rows in the tables of plans, and its row of TARGET_RUN."""

import polars as pl

from ttf.analyses.large_runs.plan_ettr import ETTR, ETTR_OUTLOOK, MITIGATIONS, TARGET_RUN
from ttf.stats.large_runs.plans import ESTIMATE, MEASURED, rate_row


def mark_target(
    ettr: pl.DataFrame,
    outlook: pl.DataFrame,
    mitigations: pl.DataFrame,
    assumptions: pl.DataFrame,
    rates: pl.DataFrame,
    sizes: pl.DataFrame,
) -> dict[str, pl.DataFrame]:
    """Mark the rows of the target run in ettr, ettr_outlook and mitigations; return them, and target_run, by name.

    assumptions: ETTR_ASSUMPTIONS; rates: node_failure_rate.csv; sizes: mttf_by_gpus.csv.
    """
    settings = {row["assumption"]: row for row in assumptions.iter_rows(named=True)}
    size, failures = settings["size of the run"]["amount"], settings["failure rate"]["n"]
    is_first_interval = pl.col("checkpoint_interval_s") == settings["checkpoint interval"]["amount"]
    is_size = pl.coalesce("gpus", "nodes") == size
    has_runs = rates["node_gpus"].first() is not None
    bucket = sizes.filter(pl.lit(has_runs) & (pl.col("gpus_low") <= size) & (size <= pl.col("gpus_high")))
    observed = bucket["failures"].first() if bucket.height else None
    target_rows = ettr.filter(is_size & is_first_interval)
    # The rate that the page quotes: the projected one, else the one measured in runs of that size.
    known_rates = target_rows.drop_nulls("ettr_renewal")["rate"].to_list()
    rate_name = next((name for name in (ESTIMATE[0], MEASURED[0]) if name in known_rates), None)
    is_measured = pl.col("rate").is_in(MEASURED)
    marks = {
        "failures": pl.when(is_measured).then(pl.lit(observed, pl.Int64)).otherwise(pl.lit(failures, pl.Int64)),
        "is_target": is_size & is_first_interval,
        "answers": (is_size & is_first_interval & (pl.col("rate") == pl.lit(rate_name, pl.String))).fill_null(False),
    }
    are_clustered = rate_row(rates).get("ci_low_clustered") is not None, bucket["ci_low_clustered_s"].count() > 0
    clustered_cell = pl.when(is_measured).then(pl.lit(are_clustered[1])).otherwise(pl.lit(are_clustered[0]))
    ettr, outlook = (table.with_columns(clustered=clustered_cell, **marks) for table in (ettr, outlook))
    invalid_rows = ettr.filter(~pl.col("approximation_valid"), is_first_interval, rate=ESTIMATE[0])
    row = {
        "by": rate_name,
        "basis": settings["failure rate"]["source"],
        "rate_failures": failures,
        "unit": settings["size of the run"]["unit"],
        "queue_source": settings["queue"]["source"],
        "no_interval": settings["queue"]["reason"],
        "waits": settings["queue"]["n"],
        "limit_size": invalid_rows.select(pl.coalesce("gpus", "nodes").min()).item(),
    }
    for test in bucket.drop_nulls("p_clustered").iter_rows(named=True):
        row |= {"check_runs": test["jobs"], "check_observed": observed, "check_p_value": test["p_clustered"]}
        row["check_expected"] = test["expected_failures"]
    estimate = target_rows.row(by_predicate=pl.col("rate") == ESTIMATE[0], named=True)
    if estimate["ettr_renewal"] is None:
        row |= {"withheld": estimate["reason"], "needed": rates["needed"].first()}
    if rate_name is not None:
        row |= _answer_cells(ettr, outlook.row(by_predicate=pl.col("answers"), named=True))
    return {
        "ettr": ETTR.conform(ettr),
        "ettr_outlook": ETTR_OUTLOOK.conform(outlook),
        "mitigations": MITIGATIONS.conform(mitigations.with_columns(is_target=is_size.fill_null(False))),
        "target_run": TARGET_RUN.frame([row]),
    }


def _answer_cells(ettr: pl.DataFrame, outlook: dict) -> dict:
    """Return cells of TARGET_RUN at the quoted rate: failures, MTTF and the parts of the wall-clock time."""
    row = ettr.row(by_predicate=pl.col("answers"), named=True)
    mttf_by_rate = dict(ettr.filter("is_target").select("rate", "mttf_s").iter_rows())
    # A higher rate means a shorter time between failures.
    low, high = ("high", "low") if row["rate"] == ESTIMATE[0] else ("measured_rate_high", "measured_rate_low")
    interruptions = outlook["expected_interruptions"] or 0
    cells = {"failures": row["failures"], "queued_s": outlook["queue_s"] * (1 + interruptions)}
    cells |= {"mttf_low_s": mttf_by_rate.get(low), "mttf_high_s": mttf_by_rate.get(high)}
    if outlook["expected_wall_s"] is not None and outlook["scheduled_ettr"]:
        work_s, held_s = row["productive_s"], row["productive_s"] / outlook["scheduled_ettr"]
        cells |= {"wall_productive_s": work_s, "wall_overhead_s": max(0.0, held_s - work_s)}
        cells["wall_queued_s"] = max(0.0, outlook["expected_wall_s"] - held_s)
        cells["requeue_saved_s"] = interruptions * row["queue_s"]
    return cells

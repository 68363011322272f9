"""What is told of the run planned for: its rows in the tables of plans, and its row of TARGET_RUN."""

import polars as pl

from ttf.analyses.large_runs.plan_ettr import ETTR, ETTR_OUTLOOK, MITIGATIONS, TARGET_RUN
from ttf.stats.large_runs.plans import ESTIMATE, MEASURED, rate_row


def with_target(
    ettr: pl.DataFrame,
    outlook: pl.DataFrame,
    mitigations: pl.DataFrame,
    assumed: pl.DataFrame,
    rates: pl.DataFrame,
    by_gpus: pl.DataFrame,
) -> dict[str, pl.DataFrame]:
    """The tables of these names with their rows of the target marked, and target_run.

    assumed: ETTR_ASSUMPTIONS; rates: node_failure_rate.csv; by_gpus: mttf_by_gpus.csv.
    """
    settings = {row["assumption"]: row for row in assumed.iter_rows(named=True)}
    size, failures = settings["size of the run"]["amount"], settings["failure rate"]["n"]
    at_first = pl.col("checkpoint_interval_s") == settings["checkpoint interval"]["amount"]
    is_size = pl.coalesce("gpus", "nodes") == size
    has_runs = rates["node_gpus"].first() is not None
    bucket = by_gpus.filter(pl.lit(has_runs) & (pl.col("gpus_low") <= size) & (size <= pl.col("gpus_high")))
    observed = bucket["failures"].first() if bucket.height else None
    of_target = ettr.filter(is_size & at_first)
    # The rate that the text answers by: the projected one, else the one measured in runs of that size.
    rates_known = of_target.drop_nulls("ettr_renewal")["rate"].to_list()
    by = next((name for name in (ESTIMATE[0], MEASURED[0]) if name in rates_known), None)
    is_measured = pl.col("rate").is_in(MEASURED)
    marks = {
        "failures": pl.when(is_measured).then(pl.lit(observed, pl.Int64)).otherwise(pl.lit(failures, pl.Int64)),
        "of_target": is_size & at_first,
        "answers": (is_size & at_first & (pl.col("rate") == pl.lit(by, pl.String))).fill_null(False),
    }
    clustered = rate_row(rates).get("ci_low_clustered") is not None, bucket["ci_low_clustered_s"].count() > 0
    is_clustered = pl.when(is_measured).then(pl.lit(clustered[1])).otherwise(pl.lit(clustered[0]))
    ettr, outlook = ettr.with_columns(clustered=is_clustered, **marks), outlook.with_columns(**marks)
    beyond = ettr.filter(~pl.col("approximation_valid"), at_first, rate=ESTIMATE[0])
    row = {
        "by": by,
        "basis": settings["failure rate"]["source"],
        "rate_failures": failures,
        "unit": settings["size of the run"]["unit"],
        "queue_source": settings["queue"]["source"],
        "no_interval": settings["queue"]["reason"],
        "waits": settings["queue"]["n"],
        "limit_size": beyond.select(pl.coalesce("gpus", "nodes").min()).item(),
    }
    for test in bucket.filter(pl.col("p_clustered").is_not_null()).iter_rows(named=True):
        row |= {"check_runs": test["jobs"], "check_observed": observed, "check_p_value": test["p_clustered"]}
        row["check_expected"] = test["expected_failures"]
    estimate = of_target.row(by_predicate=pl.col("rate") == ESTIMATE[0], named=True)
    if estimate["ettr_renewal"] is None:
        row |= {"withheld": estimate["reason"], "needed": rates["needed"].first()}
    if by is not None:
        row |= _answer(ettr, outlook.row(by_predicate=pl.col("answers"), named=True))
    return {
        "ettr": ETTR.typed(ettr),
        "ettr_outlook": ETTR_OUTLOOK.typed(outlook),
        "mitigations": MITIGATIONS.typed(mitigations.with_columns(of_target=is_size.fill_null(False))),
        "target_run": TARGET_RUN.frame([row]),
    }


def _answer(ettr: pl.DataFrame, outlook: dict) -> dict:
    """Cells of TARGET_RUN. ettr: with marks; outlook: the row that answers."""
    row = ettr.row(by_predicate=pl.col("answers"), named=True)
    mttf_by_rate = dict(ettr.filter("of_target").select("rate", "mttf_s").iter_rows())
    # A higher rate is a shorter time.
    low, high = ("high", "low") if row["rate"] == ESTIMATE[0] else ("measured_rate_high", "measured_rate_low")
    interruptions = outlook["expected_interruptions"] or 0
    answer = {"failures": row["failures"], "queued_s": outlook["queue_s"] * (1 + interruptions)}
    answer |= {"mttf_low_s": mttf_by_rate.get(low), "mttf_high_s": mttf_by_rate.get(high)}
    if outlook["expected_wall_s"] is not None and outlook["scheduled_share"]:
        work, held = row["productive_s"], row["productive_s"] / outlook["scheduled_share"]
        answer |= {"wall_productive_s": work, "wall_overhead_s": max(0.0, held - work)}
        answer["wall_queued_s"] = max(0.0, outlook["expected_wall_s"] - held)
        answer["requeue_saved_s"] = interruptions * row["queue_s"]
    return answer

"""Suggest a request from past jobs, and test it on later ones (rolling origin).

The jobs of a group, by start, form FOLDS folds of equal size. For each fold but the first, the quantile of all that was
known when the fold began is compared with the jobs of the fold: their values as shares of that quantile. The quantile
of these shares widens the next suggestion. The test repeats the whole rule: each fold is judged by the quantile and the
widening from before it.
"""

import polars as pl

from ttf.stats.durations.quantiles import kaplan_meier, survival_quantiles

SHARE = 0.9
FOLDS = 10
# With fewer jobs the quantile is the longest of them.
FEWEST_JOBS = 10
# Shares of a suggestion are whole thousandths of it.
WHOLE = 1000


def suggest_and_test(jobs: pl.DataFrame, is_time: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (suggestions, tests).

    jobs: number (of the group), start_s, end_s; duration_s: the value that the job used; event: success or blank
    (censored). is_time: the value is the run time, so a job that still ran when a fold began is censored at its age.

    suggestions, a row per group: number; n, events; quantile: within which SHARE of the jobs succeed; suggested: the
    quantile, widened, blank above the largest value seen; tested: later jobs that judged the rule; fitted_share: of
    these, by Kaplan-Meier, within their suggestion. tests: the columns of these later jobs, with duration_s in
    thousandths of their suggestion.
    """
    quantiles = survival_quantiles(jobs, ["number"], SHARE)
    trials = _compare_folds(jobs, is_time)
    widenings = _widen(trials, trials.select("number", before="fold").unique())
    tests = trials.join(widenings, on=["number", "fold"]).with_columns(
        duration_s=(WHOLE * pl.col("duration_s") / pl.col("widening")).ceil().cast(pl.Int64)
    )
    last = _widen(trials, trials.select("number", before=pl.lit(FOLDS, pl.Int64)).unique()).drop("fold")
    counts = tests.group_by("number").agg(tested=pl.len())
    rows = quantiles.join(last, on="number", how="left", maintain_order="left")
    rows = rows.join(counts, on="number", how="left", maintain_order="left")
    rows = rows.join(fitted_shares(tests, ["number"]), on="number", how="left", maintain_order="left")
    largest = jobs.group_by("number").agg(largest=pl.col("duration_s").max())
    rows = rows.join(largest, on="number", how="left", maintain_order="left")
    suggested = (pl.col("quantile") * pl.col("widening") / WHOLE).ceil().cast(pl.Int64)
    suggested = pl.when(suggested <= pl.col("largest")).then(suggested)
    return rows.with_columns(pl.col("tested").fill_null(0), suggested=suggested).drop("widening", "largest"), tests


def fitted_shares(tests: pl.DataFrame, strata: list[str]) -> pl.DataFrame:
    """Return fitted_share by stratum: the share of the tests, by Kaplan-Meier, that succeed within their suggestion."""
    within = kaplan_meier(tests, strata).filter(pl.col("duration_s") <= WHOLE)
    return within.group_by(strata, maintain_order=True).agg(fitted_share=1 - pl.col("survival").last())


def _compare_folds(jobs: pl.DataFrame, is_time: bool) -> pl.DataFrame:
    """Return the jobs of all folds with a quantile from before, with duration_s in thousandths of that quantile."""
    jobs = jobs.drop_nulls("start_s").sort("number", "start_s", maintain_order=True)
    jobs = jobs.with_columns(fold=pl.int_range(pl.len()).over("number") * FOLDS // pl.len().over("number"))
    origins = jobs.group_by("number", before="fold").agg(origin_s=pl.col("start_s").min())
    known = jobs.join(origins, on="number", maintain_order="left").filter(
        pl.col("fold") < pl.col("before"), pl.col("start_s") < pl.col("origin_s")
    )
    has_ended = (pl.col("end_s") <= pl.col("origin_s")).fill_null(False)
    so_far = pl.col("origin_s") - pl.col("start_s") if is_time else pl.lit(None, pl.Int64)
    known = known.with_columns(
        event=pl.when(has_ended).then("event"), duration_s=pl.when(has_ended).then("duration_s").otherwise(so_far)
    ).drop_nulls("duration_s")
    quantiles = survival_quantiles(known, ["number", "before"], SHARE)
    quantiles = quantiles.filter(pl.col("n") >= FEWEST_JOBS, pl.col("quantile") > 0)
    trials = jobs.join(quantiles.select("number", "quantile", fold="before"), on=["number", "fold"])
    share = (WHOLE * pl.col("duration_s") / pl.col("quantile")).ceil().cast(pl.Int64)
    return trials.with_columns(duration_s=share).drop("quantile")


def _widen(trials: pl.DataFrame, folds: pl.DataFrame) -> pl.DataFrame:
    """Return number, fold, widening (thousandths, at least WHOLE), from the trials of earlier folds if they suffice.

    folds: number, before (a fold).
    """
    earlier = trials.join(folds, on="number").filter(pl.col("fold") < pl.col("before"))
    quantiles = survival_quantiles(earlier, ["number", "before"], SHARE)
    quantiles = quantiles.filter(pl.col("n") >= FEWEST_JOBS).drop_nulls("quantile")
    return quantiles.select("number", fold="before", widening=pl.max_horizontal("quantile", pl.lit(WHOLE)))

"""GPU time that two recommendations of Jeon et al. (ATC'19) would have saved: a trial on one GPU, no futile retries.

Savings are upper bounds: they assume that a failure would have shown on one GPU at the same time. Costs of the trials
are counted in full. Sums are integers; hours are computed at the end.
"""

from collections.abc import Sequence

import polars as pl

from ttf.analyses.lost.measure_losses import NO_CERTAIN_RETRY, NO_RETRY, NO_SYSTEM_RETRY, NO_USER_RETRY, TRIAL, WHAT_IF
from ttf.records.infra import PROXY
from ttf.records.jobs import Frame
from ttf.records.runs import GPU_HOUR, gpu_time
from ttf.stats.shares import divide

ONE_GPU_MILLI = 1000
_RETRY_COLUMNS = ("n", "affected", "saved", "given_up", "given_up_gpu")

NO_TIME = "no GPU time was seen"
NO_LARGE = "no job of several GPUs has run"
NO_RETRIES = "no job of the trace has a second attempt"
NO_REASONS = "the trace gives no reasons of failures"


def what_if_sums(runs: Frame, trials_s: Sequence[int]) -> pl.DataFrame:
    """Return the sums from which `what_if` is made: one row of integers that add up over runs of different jobs.

    runs: `ttf.records.runs.build_runs`. trials_s: each 1 s or longer.
    """
    # On the basis `proxy` every failure is an infra failure, so it excuses none.
    is_excused = (pl.col("infra") & (pl.col("basis") != PROXY)) | pl.col("timed_out")
    measured = runs.lazy().select(
        *("job", "outcome", "again", "deterministic", "by_user", "gpu_milli", "runtime_s"),
        gpu=gpu_time(),
        failed=pl.col("failed") & ~is_excused,
    )
    measured = measured.collect().lazy()
    # Runs of one job are adjacent. Most jobs have one run.
    retried = measured.filter(pl.col("again") | pl.col("again").shift(-1, fill_value=False)).collect().lazy()
    is_large = ~pl.col("again") & (pl.col("gpu_milli") > ONE_GPU_MILLI)
    terms = measured.select(
        total="gpu",
        again="again",
        reasons=pl.any_horizontal(pl.col("deterministic", "by_user").is_not_null()),
        large=is_large,
        **{f"{name}_{s}": part for s in trials_s for name, part in _trial_terms(is_large, s).items()},
    )
    stops_by_scenario = {
        NO_RETRY: pl.lit(True),
        NO_CERTAIN_RETRY: pl.col("deterministic").fill_null(False),
        NO_USER_RETRY: pl.col("by_user").fill_null(False),
        NO_SYSTEM_RETRY: ~pl.col("by_user").fill_null(True),
    }
    retries: list[pl.LazyFrame] = [
        _sum_no_retry(retried, name, pl.col("failed") & stops) for name, stops in stops_by_scenario.items()
    ]
    stopped_jobs = measured.select(
        pl.col("job").filter(pl.col("failed") & stops).n_unique().alias(f"{name}_n")
        for name, stops in stops_by_scenario.items()
    )
    return pl.concat([terms.sum(), stopped_jobs, *retries], how="horizontal").cast(pl.Int128).collect()


def what_if(sums: pl.DataFrame, trials_s: Sequence[int]) -> pl.DataFrame:
    """Return GPU time that would have been saved (WHAT_IF): a row per length of the trial, and four for retries.

    sums: `what_if_sums` of all jobs. net = saved - cost; net_share = net over the GPU time of all runs.

    `trial_on_one_gpu`: the first run of every job of more than one GPU (n) starts with `trial_s` seconds on one GPU. A
    first run that failed within them (affected) would have failed there, which saves its other GPUs. Recorded infra
    failures do not count, because another node would not have had them; nor do runs at their time limit. Every other
    job pays one GPU for the trial, or for its run time if shorter; a run of unknown length pays for the whole trial.

    `no_retry`: jobs do not run again after a first failed run of that kind. n: jobs with such a failure. affected: jobs
    that ran again without success up to the end of their last run; their later runs are saved. given_up: jobs that
    succeeded on a later run, and the GPU time of their later runs, which the recommendation would lose; it is in
    neither saved nor cost. A job whose last run is still open is in neither. `no_retry_of_deterministic`: the same
    after failures that recur on a retry, if the trace gives reasons; `no_retry_of_user`, `no_retry_of_system`: after
    those whose cause can only, or not only, be the user program. Blank cells have a reason.
    """
    (totals,) = sums.sum().iter_rows(named=True)
    rows = [_trial_row(totals, trial) for trial in sorted(set(trials_s))]
    for scenario in (NO_RETRY, NO_CERTAIN_RETRY, NO_USER_RETRY, NO_SYSTEM_RETRY):
        row = {"scenario": scenario}
        if scenario != NO_RETRY and not totals["reasons"]:
            rows.append(row | {"reason": NO_REASONS})
        elif not totals["again"]:
            rows.append(row | {"reason": NO_RETRIES})
        else:
            rows.append(row | {"cost": 0} | {name: totals[f"{scenario}_{name}"] for name in _RETRY_COLUMNS})
    return WHAT_IF.frame(_convert_to_gpu_hours(row, totals["total"]) for row in rows)


def _trial_terms(is_large: pl.Expr, trial_s: int) -> dict[str, pl.Expr]:
    """Return what the first run of a large job adds: whether it is caught, GPU time saved, and cost of the trial."""
    is_caught = is_large & (pl.col("failed") & (pl.col("runtime_s") <= trial_s)).fill_null(False)
    saved = (pl.col("gpu_milli") - ONE_GPU_MILLI).cast(pl.Int128) * pl.col("runtime_s")
    trial_time = pl.min_horizontal("runtime_s", pl.lit(trial_s)).fill_null(trial_s)
    return {
        "affected": is_caught,
        "saved": pl.when(is_caught).then(saved),
        "cost": pl.when(is_large & ~is_caught).then(trial_time.cast(pl.Int128) * ONE_GPU_MILLI),
    }


def _trial_row(sums: dict, trial_s: int) -> dict:
    row = {"scenario": TRIAL, "trial_s": trial_s}
    if not sums["large"]:
        return row | {"reason": NO_LARGE}
    return row | {"n": sums["large"]} | {name: sums[f"{name}_{trial_s}"] for name in ("affected", "saved", "cost")}


def _sum_no_retry(retried: pl.LazyFrame, scenario: str, stops: pl.Expr) -> pl.LazyFrame:
    """Return the _RETRY_COLUMNS of the scenario but n, one row.

    retried: runs of jobs with several. stops: failures after which a job would not run again.
    """
    retried_jobs = (
        retried.with_columns(stops=stops)
        .with_columns(stopped=pl.col("stops").cast(pl.Int64).cum_sum().over("job"))
        # Later runs come after the first stop; runs up to that one happen in any case.
        .with_columns(later=(pl.col("stopped") - pl.col("stops").cast(pl.Int64)) > 0)
        .group_by("job")
        .agg(
            again=pl.col("later").any(),
            succeeded=(pl.col("later") & (pl.col("outcome") == "success").fill_null(False)).any(),
            # Not known to be futile: still running, or without a recorded outcome.
            is_open=pl.col("outcome").is_in(["running", "unknown"]).fill_null(False).any(),
            gpu=pl.col("gpu").filter("later").sum(),
        )
    )
    is_futile = pl.col("again") & ~pl.col("succeeded") & ~pl.col("is_open")
    sums = {
        "affected": is_futile.sum(),
        "saved": pl.col("gpu").filter(is_futile).sum(),
        "given_up": pl.col("succeeded").sum(),
        "given_up_gpu": pl.col("gpu").filter("succeeded").sum(),
    }
    return retried_jobs.select(value.alias(f"{scenario}_{name}") for name, value in sums.items())


def _convert_to_gpu_hours(row: dict, total: int) -> dict:
    if "saved" not in row:
        return row
    net = row["saved"] - row["cost"]
    amounts = {"saved": row["saved"], "cost": row["cost"], "net": net}
    if "given_up" in row:
        amounts["given_up"] = row["given_up_gpu"]
    row = row | {f"{name}_gpu_hours": amount / GPU_HOUR for name, amount in amounts.items()}
    return row | {"net_share": divide(net, total), "reason": None if total else NO_TIME}

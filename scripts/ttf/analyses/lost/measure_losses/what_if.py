"""What two pieces of advice of Jeon et al. (ATC'19) would have saved: try on one GPU first; retry nothing in vain.

Upper bounds of what could be saved, as they take for granted that a failure would have shown on one GPU, at the same
time; what the trials would have cost is counted in full. Sums are of integers, hours are made of them at the end.
"""

from collections.abc import Sequence

import polars as pl

from ttf.analyses.lost.measure_losses import WHAT_IF
from ttf.records.infra import PROXY
from ttf.records.jobs import Frame
from ttf.records.runs import GPU_HOUR, gpu_time
from ttf.stats.shares import part_of

TRIAL, NO_RETRY, NO_CERTAIN_RETRY = "trial_on_one_gpu", "no_retry", "no_retry_of_deterministic"
ONE_GPU_MILLI = 1000
_RETRIES = ("n", "affected", "saved", "given_up", "given_up_gpu")

NO_TIME = "no GPU time was seen"
NO_LARGE = "no job of several GPUs has run"
NO_RETRIES = "no job of the trace has a second attempt"
NO_REASONS = "the trace gives no reasons of failures"


def what_if_sums(runs: Frame, trials_s: Sequence[int]) -> pl.DataFrame:
    """What `what_if` is made of: one row of whole numbers, which add up over the runs of different jobs.

    runs: `ttf.records.runs.runs`. trials_s: each 1 s or longer.
    """
    # By proxy every failure is an infra failure, which says nothing.
    excused = (pl.col("infra") & (pl.col("basis") != PROXY)) | pl.col("timed_out")
    measured = runs.lazy().with_columns(gpu=gpu_time(), failed=pl.col("failed") & ~excused)
    is_large = ~pl.col("again") & (pl.col("gpu_milli") > ONE_GPU_MILLI)
    parts = measured.select(
        total="gpu",
        again="again",
        reasons=pl.col("deterministic").is_not_null(),
        large=is_large,
        **{f"{name}_{s}": part for s in trials_s for name, part in _trial(is_large, s).items()},
    )
    certain = pl.col("failed") & pl.col("deterministic").fill_null(False)
    retries = [_no_retry(measured, *way) for way in ((NO_RETRY, pl.col("failed")), (NO_CERTAIN_RETRY, certain))]
    return pl.concat([parts.sum(), *retries], how="horizontal").cast(pl.Int128).collect()


def what_if(sums: pl.DataFrame, trials_s: Sequence[int]) -> pl.DataFrame:
    """GPU time that would have been saved (WHAT_IF): a row per length of the trial, and two for retries.

    sums: `what_if_sums` of all jobs. net = saved - cost, net_share = net over the GPU time of all runs.

    trial_on_one_gpu: the first run of every job of more than one GPU (n) starts with `trial_s` seconds on one. A first
    run that failed within them (affected) would have failed there, and its other GPUs are saved. Infra failures that
    the trace records are not among these, as another node would not have had them, nor are runs at their time limit.
    Every other job pays one GPU for the trial, or for its run time if that is shorter; a run of unknown length pays for
    the whole trial.

    no_retry: jobs are not run again after a first failed run of that kind. n: jobs with such a failure; affected: those
    of them that were run again and had not succeeded when their last run ended, whose later runs are saved. given_up:
    those that did succeed on a later run, and the GPU time of their later runs: this would be lost with the advice, and
    is in neither saved nor cost. A job whose last run still goes on is neither.
    no_retry_of_deterministic: the same after failures that a retry meets again, where the trace gives reasons.
    What cannot be computed is blank, with a reason.
    """
    (of_all,) = sums.sum().iter_rows(named=True)
    rows = [_of_trial(of_all, trial) for trial in sorted(set(trials_s))]
    for scenario in (NO_RETRY, NO_CERTAIN_RETRY):
        row = {"scenario": scenario}
        if scenario == NO_CERTAIN_RETRY and not of_all["reasons"]:
            rows.append(row | {"reason": NO_REASONS})
        elif not of_all["again"]:
            rows.append(row | {"reason": NO_RETRIES})
        else:
            rows.append(row | {"cost": 0} | {name: of_all[f"{scenario}_{name}"] for name in _RETRIES})
    return WHAT_IF.frame(_in_hours(row, of_all["total"]) for row in rows)


def _trial(is_large: pl.Expr, trial_s: int) -> dict[str, pl.Expr]:
    """What a large job's first run adds: whether it was caught, what that saves, what the trial costs otherwise."""
    caught = is_large & (pl.col("failed") & (pl.col("runtime_s") <= trial_s)).fill_null(False)
    spared = (pl.col("gpu_milli") - ONE_GPU_MILLI).cast(pl.Int128) * pl.col("runtime_s")
    trial = pl.min_horizontal("runtime_s", pl.lit(trial_s)).fill_null(trial_s)
    return {
        "affected": caught,
        "saved": pl.when(caught).then(spared),
        "cost": pl.when(is_large & ~caught).then(trial.cast(pl.Int128) * ONE_GPU_MILLI),
    }


def _of_trial(sums: dict, trial_s: int) -> dict:
    row = {"scenario": TRIAL, "trial_s": trial_s}
    if not sums["large"]:
        return row | {"reason": NO_LARGE}
    return row | {"n": sums["large"]} | {name: sums[f"{name}_{trial_s}"] for name in ("affected", "saved", "cost")}


def _no_retry(measured: pl.LazyFrame, scenario: str, stops: pl.Expr) -> pl.LazyFrame:
    """_RETRIES of the scenario, a row. stops: the failure after which a job would not be run again."""
    measured = measured.with_columns(stops=stops)
    # Runs of one job stand together, and most jobs have one, after which nothing comes.
    of_several = pl.col("again") | pl.col("again").shift(-1, fill_value=False)
    of_jobs = (
        measured.filter(of_several)
        .with_columns(stopped=pl.col("stops").cast(pl.Int64).cum_sum().over("job"))
        # Runs after the first that stops the job: those before and that one itself are run in any case.
        .with_columns(later=(pl.col("stopped") - pl.col("stops").cast(pl.Int64)) > 0)
        .group_by("job")
        .agg(
            again=pl.col("later").any(),
            succeeded=(pl.col("later") & (pl.col("outcome") == "success").fill_null(False)).any(),
            # Neither known to be in vain: it runs, or how it ended is not recorded.
            is_open=pl.col("outcome").is_in(["running", "unknown"]).fill_null(False).any(),
            gpu=pl.col("gpu").filter("later").sum(),
        )
    )
    in_vain = pl.col("again") & ~pl.col("succeeded") & ~pl.col("is_open")
    sums = of_jobs.select(
        affected=in_vain.sum(),
        saved=pl.col("gpu").filter(in_vain).sum(),
        given_up=pl.col("succeeded").sum(),
        given_up_gpu=pl.col("gpu").filter("succeeded").sum(),
    )
    stopped = measured.select(n=pl.col("job").filter("stops").n_unique())
    return pl.concat([stopped, sums], how="horizontal").select(pl.col(_RETRIES).name.prefix(f"{scenario}_"))


def _in_hours(row: dict, total: int) -> dict:
    if "saved" not in row:
        return row
    net = row["saved"] - row["cost"]
    amounts = {"saved": row["saved"], "cost": row["cost"], "net": net}
    if "given_up" in row:
        amounts["given_up"] = row["given_up_gpu"]
    row = row | {f"{name}_gpu_hours": amount / GPU_HOUR for name, amount in amounts.items()}
    return row | {"net_share": part_of(net, total), "reason": None if total else NO_TIME}

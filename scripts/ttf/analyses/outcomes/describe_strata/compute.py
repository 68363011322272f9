"""The first numbers of the report by what jobs differ by, one thing at a time: each as the whole trace has it."""

from collections.abc import Iterable

import numpy as np
import polars as pl

from ttf.analyses.outcomes.describe_strata import MOST, STRATA
from ttf.engine.counts import Counted
from ttf.engine.storage.tables import BLOCK_ROWS
from ttf.records.clusters import (
    CLUSTER_COLUMNS,
    LEVEL_NAMES,
    READ_OF_JOBS,
    level_names,
    with_clusters,
    with_level_names,
)
from ttf.records.inputs import Inputs
from ttf.records.jobs import Frame, at_time_limit, doubling, join_reasons, whole_gpus
from ttf.records.lives import nodes_at_work
from ttf.records.runs import GPU_HOUR, gpu_time, in_blocks, runs
from ttf.stats.basics.median import CONFIDENCE, median_interval
from ttf.stats.clustered import (
    CLUSTERED,
    at_share,
    beside,
    by_cluster,
    clustered_ratios,
    clustered_shares,
    in_strata,
    with_limits,
)
from ttf.stats.durations.mttf import NO_NODE_DAY, SECONDS_A_DAY, poisson_limits
from ttf.stats.shares import ENDED, failure_shares

# What jobs differ by where the trace says so, and what it always says.
OF_JOB, GPUS = ("account", "partition", "gpu_type"), "gpus"
JOBS = ("user", "outcome", "status_raw", "gpu_milli", "size", *OF_JOB, *READ_OF_JOBS, "runtime_s")
TIMES = ("start_s", "end_s", "trace_end_s")
ATTEMPTS = ("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli")
LIVES = ("event", "state", "basis", "duration_s", "gpu_count", "nodes", *CLUSTER_COLUMNS)
_LEVELS = ("cluster", "group", "block")
_REQUESTED = doubling(whole_gpus().fill_null(0))
_PER_1000_DAYS = 1000 * SECONDS_A_DAY
_FAILED = pl.col("outcome") == "failure"
_OF_JOBS = {
    "jobs": pl.len().cast(pl.Int64),
    **ENDED,
    "timeouts": (_FAILED & pl.col("at_time_limit")).sum().cast(pl.Int64),
}
_GPU_TIME = {
    "gpu": gpu_time().sum(),
    "failed_gpu": gpu_time().filter(pl.col("failed")).sum(),
    "timeout_gpu": gpu_time().filter(pl.col("failed") & pl.col("timed_out")).sum(),
    "infra_gpu": gpu_time().filter(pl.col("infra")).sum(),
}
_WITHOUT_TIME = (pl.col("failed") & pl.col("runtime_s").is_null()).sum().cast(pl.Int64)
_OF_RUNS = _GPU_TIME | {"failed_without_time": _WITHOUT_TIME}
_AT_RISK = {
    "infra_failures": pl.col("infra").sum().cast(pl.Int64),
    "node_s": pl.col("node_s").sum(),
    "at_risk": pl.len().cast(pl.Int64),
}


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    attempts = given.scan("attempts", ATTEMPTS) if "attempts" in given else None
    jobs = given.scan("jobs", [*JOBS, *(TIMES if attempts is None else [])])
    node_gpus = given["node_failure_rate"].select("node_gpus", "node_gpus_from").row(0)
    return {"strata": strata(jobs, attempts, given.scan("lives_infra", LIVES), node_gpus)}


def strata(
    jobs: pl.LazyFrame,
    attempts: pl.LazyFrame | None,
    lives: pl.LazyFrame,
    node_gpus: tuple[int, str | None],
    most: int = MOST,
    size: int = BLOCK_ROWS,
) -> pl.DataFrame:
    """STRATA: all jobs, then by each thing that they differ by the `most` values with the most jobs, sorted.

    jobs, attempts, lives: as `ttf.records.runs.in_blocks` takes them. A job counts by the GPUs that it requested, an
    attempt by those that it got. Lives with a GPU and a known duration are the exposure of the rate, by the nodes that
    `nodes_at_work` gives them. A job with a blank is in no stratum of that column.
    Of failed jobs, some columns are held for the medians of their run times, which no sums give.
    """
    jobs, levels = with_clusters(jobs), level_names(lives)
    basis = lives.select("basis").head(1).collect(engine="streaming")["basis"].first()
    failed = jobs.filter(_FAILED).with_columns(gpus=_REQUESTED).drop_nulls("runtime_s")
    there = [name for name in OF_JOB if name in jobs.collect_schema()]
    failed = failed.select(*there, GPUS, "runtime_s", *CLUSTER_COLUMNS).collect(engine="streaming")
    lives = lives.select(name for name in LIVES if name not in LEVEL_NAMES)
    blocks = in_blocks(_looked_at(jobs, attempts is not None), attempts, lives, size=size)
    parts = [of_block(*block, *node_gpus) for block in blocks]
    every = {name: pl.concat(part[name] for part in parts) for name in parts[0]}
    by = [name for name in there if every["jobs"][name].drop_nulls().n_unique() > 1]
    tables = []
    for name in ("all", *by, GPUS):
        counted = _summed(every["jobs"], name, _OF_JOBS)
        found = counted.sort("jobs", "stratum", descending=[True, False]).head(most).sort("stratum")
        for of, sums in (("runs", _OF_RUNS), ("lives", _AT_RISK)):
            found = found.join(_summed(every[of], name, sums), on="stratum", how="left", maintain_order="left")
        found = found.with_columns(pl.col(*_OF_RUNS, *_AT_RISK).fill_null(0))
        of_clusters = (with_level_names(every[of], levels) for of in ("jobs", "runs", "lives"))
        found = _estimated(found, *(_of_strata(rows, name, found["stratum"]) for rows in (failed, *of_clusters)))
        tables.append(found.with_columns(stratum=_label(name), stratum_by=pl.lit(name)))
    return STRATA.typed(with_shares(pl.concat(tables).with_columns(basis=pl.lit(basis, pl.String))))


def with_shares(strata: pl.DataFrame) -> pl.DataFrame:
    """The columns of STRATA that follow from others of its row: shares, and days per failure."""
    failed, ended, rate = pl.col("failed_gpu_hours"), pl.col("ended"), pl.col("failures_per_1000_node_days")
    other = (failed - pl.col("timeout_gpu_hours") - pl.col("infra_gpu_hours")).clip(0)
    hours = {"limit": pl.col("timeout_gpu_hours"), "infra": pl.col("infra_gpu_hours"), "other": other}
    has_cause = (failed > 0) & (pl.col("basis") != "proxy")
    without = (pl.col("failures") - pl.col("timeouts")) / ended
    return strata.with_columns(
        **{f"{part}_share": pl.when(has_cause).then((of_part / failed).clip(0, 1)) for part, of_part in hours.items()},
        ended_share=ended / pl.col("jobs"),
        failure_share_without_timeout=pl.when(pl.col("timeouts") > 0, ended > 0).then(without),
        days_a_failure=pl.when(rate > 0).then(1000 / rate),
    )


def _looked_at(jobs: pl.LazyFrame, has_attempts: bool) -> pl.LazyFrame:
    """The columns of jobs that `of_block` looks at."""
    jobs = jobs.with_columns(at_time_limit=at_time_limit("status_raw"))
    of_attempts = ("start_s", "end_s", "runtime_s") if has_attempts else ()
    return jobs.drop("user", "status_raw", *LEVEL_NAMES, *of_attempts, strict=False)


def of_block(
    jobs: pl.DataFrame,
    attempts: pl.DataFrame | None,
    infra_lives: pl.DataFrame,
    node_gpus: int,
    node_gpus_from: str | None,
) -> dict[str, pl.DataFrame]:
    """Sums over some jobs (`ttf.records.runs.Block`), their runs and their lives at risk, by all that jobs differ
    by."""
    by = [name for name in OF_JOB if name in jobs.columns]
    if attempts is None:
        job = jobs.select(pl.arg_where(pl.col("outcome") != "waiting")).to_series()
    else:
        job = attempts.filter(pl.col("start_s").is_not_null())["job"]
    tries = runs(jobs, attempts, infra_lives).collect()
    tries = tries.with_columns(*jobs.select(*by, *_LEVELS)[tries["job"]])
    nodes = nodes_at_work(node_gpus, node_gpus_from)
    at_risk = infra_lives.hstack(jobs.select(by)[job]).filter(
        (pl.col("gpu_count") > 0) & pl.col("duration_s").is_not_null()
    )
    return {
        "jobs": jobs.with_columns(gpus=_REQUESTED).group_by(*by, GPUS, *_LEVELS).agg(**_OF_JOBS),
        "runs": tries.with_columns(gpus=doubling((pl.col("gpu_milli") + 999) // 1000))
        .group_by(*by, GPUS, *_LEVELS)
        .agg(**_OF_RUNS),
        "lives": at_risk.with_columns(node_s=nodes * pl.col("duration_s"), gpus=doubling(pl.col("gpu_count")))
        .group_by(*by, GPUS, *_LEVELS)
        .agg(**_AT_RISK),
    }


def _estimated(
    found: pl.DataFrame, failed: pl.LazyFrame, of_jobs: pl.LazyFrame, of_runs: pl.LazyFrame, of_lives: pl.LazyFrame
) -> pl.DataFrame:
    """The strata with shares, rates and medians, their intervals, and why any is blank.

    failed: jobs with a run time; of_jobs, of_runs, of_lives: sums by cluster and block.
    """
    of_times = medians(failed)
    found = found.join(of_times, on="stratum", how="left", maintain_order="left")
    rated, gpu = pl.col("node_s") >= SECONDS_A_DAY, pl.col("gpu")
    low, high = poisson_limits(found["infra_failures"].to_numpy(), CONFIDENCE)
    rates = {
        "failures_per_1000_node_days": pl.col("infra_failures"),
        "rate_ci_low": pl.Series(low),
        "rate_ci_high": pl.Series(high),
    }
    found = found.with_columns(
        **failure_shares(found),
        **{f"{name}_hours": pl.col(name) / GPU_HOUR for name in _GPU_TIME},
        failed_gpu_hours_share=pl.when(gpu > 0).then(pl.col("failed_gpu") / gpu),
        node_days=pl.col("node_s") / SECONDS_A_DAY,
        failures_with_runtime=pl.col("failures_with_runtime").fill_null(0),
        **{name: pl.when(rated).then(count * _PER_1000_DAYS / pl.col("node_s")) for name, count in rates.items()},
    )
    reasons = {
        "no job of the stratum ended": pl.col("ended") == 0,
        "no GPU time was seen": gpu == 0,
        NO_NODE_DAY: ~rated,
        "no failed job has a known run time": pl.col("failure_median_s").is_null(),
    }
    found = beside(
        found.with_columns(reason=join_reasons(reasons)),
        clustered_shares(of_jobs, ["stratum"], *(pl.col(name).sum() for name in ("failures", "ended"))),
        ["stratum"],
    )
    limits = clustered_ratios(of_lives, ["stratum"], *(pl.col(name).sum() for name in _AT_RISK), CONFIDENCE, both=True)
    ends = {f"rate_ci_{end}_clustered": pl.col(f"ci_{end}_clustered") * _PER_1000_DAYS for end in ("low", "high")}
    found = found.join(limits.select("stratum", **ends), on="stratum", how="left", maintain_order="left")
    found = found.with_columns(pl.when(rated).then(pl.col(*ends)))
    times = (pl.col(name).sum().cast(pl.Float64) for name in ("failed_gpu", "gpu"))
    limits = clustered_shares(of_runs, ["stratum"], *times)
    named = {f"failed_gpu_{name}": name for name in CLUSTERED}
    return found.join(limits.select("stratum", **named), on="stratum", how="left", maintain_order="left")


def medians(failed: pl.LazyFrame) -> pl.DataFrame:
    """The median run time of the jobs of each stratum with its exact and its clustered interval (Woodruff 1952)."""
    times = failed.drop_nulls("runtime_s").group_by("stratum", "runtime_s").agg(n=pl.len().cast(pl.Int64))
    times = times.collect(engine="streaming").sort("stratum", "runtime_s")
    counted = {of["stratum"].first(): Counted.of(of, "runtime_s") for of in times.partition_by("stratum")}
    rows = [(stratum, of.size, of.median(), *median_interval(of.size, of.at)) for stratum, of in counted.items()]
    schema = {"stratum": times.schema["stratum"], "failures_with_runtime": pl.Int64}
    schema |= dict.fromkeys(("failure_median_s", "median_ci_low_s", "median_ci_high_s"), pl.Float64)
    found = pl.DataFrame(rows, schema=schema, orient="row")
    halves = failed.join(found.lazy().select("stratum", "failure_median_s"), on="stratum")
    below = (pl.col("runtime_s") <= pl.col("failure_median_s")).sum()
    of, members, clusters = in_strata(
        by_cluster(halves, ["stratum"], below=below, n=pl.col("runtime_s").count()), ["stratum"], "n"
    )
    ranks = clusters.around_the_middle(*(members[name].to_numpy().astype(float) for name in ("below", "n")), CONFIDENCE)
    ends = (
        np.array([at_share(counted[stratum], rank) for stratum, rank in zip(of["stratum"], end, strict=True)], float)
        for end in ranks[:2]
    )
    limits = with_limits(of, *ends, ranks.effective)
    named = {f"median_ci_{end}_clustered_s": f"ci_{end}_clustered" for end in ("low", "high")}
    return found.join(limits.select("stratum", **named), on="stratum", how="left", maintain_order="left")


def _summed(sums: pl.DataFrame, by: str, names: Iterable[str]) -> pl.DataFrame:
    """Sums by all that jobs differ by, made sums by one thing."""
    label = pl.lit("all") if by == "all" else pl.col(by)
    return sums.group_by(stratum=label).agg(pl.col(*names).sum()).drop_nulls("stratum")


def _of_strata(rows: Frame, by: str, strata: pl.Series) -> pl.LazyFrame:
    if by == "all":
        return rows.lazy().with_columns(stratum=pl.lit("all"))
    return rows.lazy().with_columns(stratum=by).filter(pl.col("stratum").is_in(strata.implode()))


def _label(by: str) -> pl.Expr:
    """The name of a stratum; of sizes the span, such as 3-4."""
    high = pl.col("stratum")
    if by != GPUS:
        return high.cast(pl.String)
    return pl.when(high > 2).then(pl.format("{}-{}", high // 2 + 1, high)).otherwise(high.cast(pl.String))

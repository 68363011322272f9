"""The first numbers of the report by what jobs differ by, one thing at a time: each as the whole trace has it."""

import numpy as np
import polars as pl

from ttf.analyses.describe_strata import MOST, STRATA
from ttf.clusters import CLUSTER_COLUMNS, READ_OF_JOBS, level_names, with_clusters
from ttf.infra import EVENT
from ttf.inputs import Inputs
from ttf.jobs import at_time_limit, doubling, whole_gpus
from ttf.runs import GPU_HOUR, gpu_time, runs
from ttf.stats.clustered import at_share, beside, by_cluster, clustered_ratios, clustered_shares, in_strata, with_limits
from ttf.stats.counts import Counted, labels
from ttf.stats.median import CONFIDENCE, median_interval
from ttf.stats.mttf import NO_NODE_DAY, SECONDS_A_DAY, poisson_limits
from ttf.stats.shares import ENDED, failure_shares

# What jobs differ by where the trace says so, and what it always says.
OF_JOB, GPUS = ("account", "partition", "gpu_type"), "gpus"
JOBS = (
    *("job_id", "user", "outcome", "status_raw", "gpu_milli", "size", *OF_JOB, *READ_OF_JOBS),
    *("start_s", "end_s", "runtime_s", "trace_end_s"),
)
ATTEMPTS = ("job_id", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli")
LIVES = ("event", "state", "basis", "duration_s", "gpu_count", *CLUSTER_COLUMNS)
_PER_1000_DAYS = 1000 * SECONDS_A_DAY
_FAILED = pl.col("outcome") == "failure"
_OF_JOBS = {
    "jobs": pl.len().cast(pl.Int64),
    **ENDED,
    "timeouts": (_FAILED & at_time_limit("status_raw")).sum().cast(pl.Int64),
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
    "infra_failures": (pl.col("event") == EVENT).fill_null(False).sum().cast(pl.Int64),
    "node_s": pl.col("node_s").sum(),
    "at_risk": pl.len().cast(pl.Int64),
}


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    attempts = given.read("attempts", ATTEMPTS) if "attempts" in given else None
    node_gpus = given["node_failure_rate"]["node_gpus"].first()
    return {"strata": strata(given.scan("jobs", JOBS), attempts, given.scan("lives_infra", LIVES), node_gpus)}


def strata(
    jobs: pl.LazyFrame, attempts: pl.DataFrame | None, lives: pl.LazyFrame, node_gpus: int, most: int = MOST
) -> pl.DataFrame:
    """STRATA: all jobs, then by each thing that they differ by the `most` values with the most jobs, sorted.

    jobs, attempts, lives: as `ttf.runs.runs` takes them; jobs and lives are not held. A job counts by the GPUs that it
    requested, an attempt by those that it got. Lives with a GPU and a known duration are the exposure of the rate:
    their GPUs rounded up to nodes of `node_gpus`. A job with a blank is in no stratum of that column.
    """
    jobs, lives = with_clusters(jobs), lives.select(LIVES)
    names = {name: labels(jobs, name) for name in OF_JOB if name in jobs.collect_schema()}
    by = [name for name, found in names.items() if len(found) > 1]
    # By number, which takes less room than the texts.
    jobs = jobs.with_columns(pl.col(name).cast(pl.Enum(names[name])) for name in by)
    sized = jobs.with_columns(gpus=doubling(whole_gpus().fill_null(0)))
    tries = _tries(jobs, attempts, lives, by)
    exposed = _exposed(lives, _of_lives(jobs, attempts, by) if by else None, node_gpus)
    by = [*by, GPUS]
    every = ((sized, by, _OF_JOBS), (tries, by, _OF_RUNS), (exposed, [*by, "cluster", "group"], _AT_RISK))
    counted, *others = (frame.group_by(keys).agg(**sums).collect(engine="streaming") for frame, keys, sums in every)
    cluster_by, group_by = (pl.lit(name, pl.String) for name in level_names(lives))
    per_cluster = others[-1].lazy().with_columns(cluster_by=cluster_by, group_by=group_by)
    basis = lives.select("basis").head(1).collect(engine="streaming")["basis"].first()
    tables = []
    for name in ("all", *by):
        found = _summed(counted, name).sort("jobs", "stratum", descending=[True, False]).head(most).sort("stratum")
        for sums in others:
            found = found.join(_summed(sums, name), on="stratum", how="left", maintain_order="left")
        found = found.with_columns(pl.col(*_OF_RUNS, *_AT_RISK).fill_null(0))
        of_jobs, of_lives = (_of_strata(rows, name, found["stratum"]) for rows in (sized, per_cluster))
        found = _estimated(found, of_jobs, of_lives)
        tables.append(found.with_columns(stratum=_label(name), stratum_by=pl.lit(name)))
    return STRATA.typed(pl.concat(tables).with_columns(basis=pl.lit(basis, pl.String)))


def _estimated(found: pl.DataFrame, of_jobs: pl.LazyFrame, of_lives: pl.LazyFrame) -> pl.DataFrame:
    """The strata with shares, rates and medians, their intervals, and why any is blank."""
    of_times = medians(of_jobs.filter(_FAILED))
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
    blank = {
        "no job of the stratum ended": pl.col("ended") == 0,
        "no GPU time was seen": gpu == 0,
        NO_NODE_DAY: ~rated,
        "no failed job has a known run time": pl.col("failure_median_s").is_null(),
    }
    why = pl.concat_str(
        [pl.when(is_so).then(pl.lit(why)) for why, is_so in blank.items()], separator="; ", ignore_nulls=True
    )
    found = beside(
        found.with_columns(reason=pl.when(why != "").then(why)),
        clustered_shares(of_jobs, ["stratum"], ENDED["failures"], ENDED["ended"]),
        ["stratum"],
    )
    limits = clustered_ratios(of_lives, ["stratum"], *(pl.col(name).sum() for name in _AT_RISK), CONFIDENCE, both=True)
    ends = {f"rate_ci_{end}_clustered": pl.col(f"ci_{end}_clustered") * _PER_1000_DAYS for end in ("low", "high")}
    found = found.join(limits.select("stratum", **ends), on="stratum", how="left", maintain_order="left")
    return found.with_columns(pl.when(rated).then(pl.col(*ends)))


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
        for end in ranks
    )
    limits = with_limits(of, clusters, *ends)
    named = {f"median_ci_{end}_clustered_s": f"ci_{end}_clustered" for end in ("low", "high")}
    return found.join(limits.select("stratum", **named), on="stratum", how="left", maintain_order="left")


def _tries(jobs: pl.LazyFrame, attempts: pl.DataFrame | None, lives: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
    """The runs, each with what its job differs by."""
    if attempts is not None:
        # On which nodes it was does not matter here, and takes much room.
        attempts = attempts.with_columns(node_list=pl.lit(None, pl.List(pl.String)))
    tries = runs(jobs, attempts, lives).with_columns(gpus=doubling((pl.col("gpu_milli") + 999) // 1000))
    of_jobs = jobs.select(by).with_row_index("job").with_columns(pl.col("job").cast(pl.Int64))
    return tries.drop(by, strict=False).join(of_jobs, on="job", how="left") if by else tries


def _of_lives(jobs: pl.LazyFrame, attempts: pl.DataFrame | None, by: list[str]) -> pl.LazyFrame:
    """What the job of each life differs by, in the lives' order (`ttf.infra.infra_lives`)."""
    if attempts is None:
        return jobs.filter(pl.col("outcome") != "waiting").select(by)
    started = attempts.lazy().filter(pl.col("start_s").is_not_null()).select("job_id")
    return started.join(jobs.select("job_id", *by), on="job_id", how="left", maintain_order="left").select(by)


def _exposed(lives: pl.LazyFrame, of_jobs: pl.LazyFrame | None, node_gpus: int) -> pl.LazyFrame:
    """The lives at risk, with the time of whole nodes."""
    lives = lives if of_jobs is None else pl.concat([lives, of_jobs], how="horizontal")
    nodes = (pl.col("gpu_count") + node_gpus - 1) // node_gpus
    at_risk = lives.filter((pl.col("gpu_count") > 0) & pl.col("duration_s").is_not_null())
    return at_risk.with_columns(node_s=nodes * pl.col("duration_s"), gpus=doubling(pl.col("gpu_count")))


def _summed(sums: pl.DataFrame, by: str) -> pl.DataFrame:
    """Sums by all that jobs differ by, made sums by one thing."""
    numbers = [name for name in sums.columns if name in (*_OF_JOBS, *_OF_RUNS, *_AT_RISK)]
    label = pl.lit("all") if by == "all" else pl.col(by)
    return sums.group_by(stratum=label).agg(pl.col(numbers).sum()).drop_nulls("stratum")


def _of_strata(rows: pl.LazyFrame, by: str, strata: pl.Series) -> pl.LazyFrame:
    if by == "all":
        return rows.with_columns(stratum=pl.lit("all"))
    return rows.with_columns(stratum=by).filter(pl.col("stratum").is_in(strata.implode()))


def _label(by: str) -> pl.Expr:
    """The name of a stratum; of sizes the span, such as 3-4."""
    high = pl.col("stratum")
    if by != GPUS:
        return high.cast(pl.String)
    return pl.when(high > 2).then(pl.format("{}-{}", high // 2 + 1, high)).otherwise(high.cast(pl.String))

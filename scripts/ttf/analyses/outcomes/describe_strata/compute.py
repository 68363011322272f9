"""The main numbers of the report by groups of jobs, one column at a time, estimated as for the whole trace."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from ttf.analyses.outcomes.describe_strata import MAX_STRATA, STRATA
from ttf.engine.counts import ValueCounts
from ttf.engine.storage.tables import BLOCK_ROWS
from ttf.records.clusters import (
    CLUSTER_COLUMNS,
    JOB_CLUSTER_COLUMNS,
    LEVEL_NAMES,
    add_clusters,
    add_level_names,
    level_names,
)
from ttf.records.durations import count_nodes
from ttf.records.infra import PROXY
from ttf.records.inputs import Inputs
from ttf.records.jobs import doubling_bucket, is_at_time_limit, join_reasons, whole_gpus
from ttf.records.runs import GPU_HOUR, build_runs, gpu_time, iterate_blocks
from ttf.stats.basics.median import CONFIDENCE, median_interval
from ttf.stats.clustered import (
    CLUSTERED,
    clustered_medians,
    clustered_ratios,
    clustered_shares,
    join_clustered,
)
from ttf.stats.durations.missing_ends import MOST_WITHOUT_END
from ttf.stats.durations.mttf import NO_NODE_DAY, NO_NODES, SECONDS_A_DAY, poisson_limits
from ttf.stats.shares import ENDED, failure_share_columns

# Columns that group jobs where the trace has them, and the one that always exists.
GROUP_COLUMNS, GPUS = ("account", "partition", "gpu_type"), "gpus"
JOBS = ("user", "outcome", "status_raw", "gpu_milli", "size", *GROUP_COLUMNS, *JOB_CLUSTER_COLUMNS, "runtime_s")
TIMES = ("start_s", "end_s", "trace_end_s")
ATTEMPTS = ("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli")
DURATIONS = ("event", "state", "basis", "duration_s", "gpu_count", "nodes", *CLUSTER_COLUMNS)
_LEVELS = ("cluster", "group", "block")
_REQUESTED = doubling_bucket(whole_gpus().fill_null(0))
_PER_1000_DAYS = 1000 * SECONDS_A_DAY
_FAILED = pl.col("outcome") == "failure"
_JOB_SUMS = {
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
_UNTIMED_FAILURES = (pl.col("failed") & pl.col("runtime_s").is_null()).sum().cast(pl.Int64)
_RUN_SUMS = _GPU_TIME | {"failed_without_time": _UNTIMED_FAILURES}
_HAS_TIME = pl.col("duration_s").is_not_null()
_RISK_SUMS = {
    "infra_failures": (pl.col("infra") & _HAS_TIME).sum().cast(pl.Int64),
    "node_s": pl.col("node_s").sum(),
    "at_risk": _HAS_TIME.sum().cast(pl.Int64),
    "without_end": (pl.col("infra") & ~_HAS_TIME).sum().cast(pl.Int64),
}
# Why a stratum has no failure rate.
_NO_RATE = {
    NO_NODE_DAY: pl.col("node_s") < SECONDS_A_DAY,
    NO_NODES: pl.col("no_nodes"),
    "more than 5% of the failures have no recorded end": pl.col("without_end")
    > MOST_WITHOUT_END * (pl.col("infra_failures") + pl.col("without_end")),
}


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    attempts = inputs.scan("attempts", ATTEMPTS) if "attempts" in inputs else None
    jobs = inputs.scan("jobs", [*JOBS, *(TIMES if attempts is None else [])])
    node_gpus = inputs["node_failure_rate"].select("node_gpus", "node_gpus_from").row(0)
    return {"strata": build_strata(jobs, attempts, inputs.scan("durations_infra", DURATIONS), node_gpus)}


def build_strata(
    jobs: pl.LazyFrame,
    attempts: pl.LazyFrame | None,
    durations: pl.LazyFrame,
    node_gpus: tuple[int, str | None],
    max_strata: int = MAX_STRATA,
    size: int = BLOCK_ROWS,
) -> pl.DataFrame:
    """Build STRATA: all jobs, then for each column the `max_strata` values with the most jobs, sorted.

    jobs, attempts, durations: as for `ttf.records.runs.iterate_blocks`. A job counts by the GPUs that it requested, an
    attempt by those that it got. Exposure: durations with a GPU and a known length, on the nodes that `count_nodes`
    counts. A job with a blank is in no stratum of that column. Failed jobs stay in memory for the medians of their run
    times, which sums cannot give.
    """
    jobs, levels = add_clusters(jobs), level_names(durations)
    basis = durations.select("basis").head(1).collect(engine="streaming")["basis"].first()
    no_nodes = basis == PROXY and node_gpus[1] == "default"
    failed_jobs = jobs.filter(_FAILED).with_columns(gpus=_REQUESTED).drop_nulls("runtime_s")
    job_columns = [name for name in GROUP_COLUMNS if name in jobs.collect_schema()]
    failed = failed_jobs.select(*job_columns, GPUS, "runtime_s", *CLUSTER_COLUMNS).collect(engine="streaming")
    durations = durations.select(name for name in DURATIONS if name not in LEVEL_NAMES)
    blocks = iterate_blocks(_prepare_jobs(jobs, attempts is not None), attempts, durations, size=size)
    parts = [sum_block(*block, *node_gpus) for block in blocks]
    sums = {name: pl.concat(part[name] for part in parts).cast({pl.Categorical: pl.String}) for name in parts[0]}
    columns = [name for name in job_columns if sums["jobs"][name].drop_nulls().n_unique() > 1]
    tables = []
    for name in ("all", *columns, GPUS):
        job_sums = _sum_by(sums["jobs"], name, _JOB_SUMS)
        strata = job_sums.sort("jobs", "stratum", descending=[True, False]).head(max_strata).sort("stratum")
        for source, names in (("runs", _RUN_SUMS), ("durations", _RISK_SUMS)):
            strata = strata.join(_sum_by(sums[source], name, names), on="stratum", how="left", maintain_order="left")
        strata = strata.with_columns(pl.col(*_RUN_SUMS, *_RISK_SUMS).fill_null(0), no_nodes=pl.lit(no_nodes))
        clustered = (add_level_names(sums[source], levels) for source in ("jobs", "runs", "durations"))
        strata = _add_estimates(strata, *(_stratify(rows, name, strata["stratum"]) for rows in (failed, *clustered)))
        tables.append(strata.with_columns(stratum=_stratum_label(name), stratum_by=pl.lit(name)))
    return STRATA.conform(add_shares(pl.concat(tables).with_columns(basis=pl.lit(basis, pl.String))))


def add_shares(strata: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of STRATA that follow from others of the row: shares, and days per failure."""
    failed, ended, rate = pl.col("failed_gpu_hours"), pl.col("ended"), pl.col("failures_per_1000_node_days")
    other_hours = (failed - pl.col("timeout_gpu_hours") - pl.col("infra_gpu_hours")).clip(0)
    causes = {"limit": pl.col("timeout_gpu_hours"), "infra": pl.col("infra_gpu_hours"), "other": other_hours}
    has_cause = (failed > 0) & (pl.col("basis") != "proxy")
    other_failure_share = (pl.col("failures") - pl.col("timeouts")) / ended
    return strata.with_columns(
        **{f"{cause}_share": pl.when(has_cause).then((hours / failed).clip(0, 1)) for cause, hours in causes.items()},
        ended_share=ended / pl.col("jobs"),
        failure_share_without_timeout=pl.when(pl.col("timeouts") > 0, ended > 0).then(other_failure_share),
        days_per_failure=pl.when(rate > 0).then(1000 / rate),
    )


def _prepare_jobs(jobs: pl.LazyFrame, has_attempts: bool) -> pl.LazyFrame:
    """Add at_time_limit; drop columns that no sum needs, and times of jobs if attempts have them.

    The group columns are Categorical: grouping by texts takes twice as long.
    """
    groups = pl.col(name for name in GROUP_COLUMNS if name in jobs.collect_schema()).cast(pl.Categorical)
    jobs = jobs.with_columns(groups, at_time_limit=is_at_time_limit("status_raw"))
    attempt_columns = ("start_s", "end_s", "runtime_s") if has_attempts else ()
    return jobs.drop("user", "status_raw", *LEVEL_NAMES, *attempt_columns, strict=False)


def sum_block(
    jobs: pl.DataFrame,
    attempts: pl.DataFrame | None,
    infra_durations: pl.DataFrame,
    node_gpus: int,
    node_gpus_from: str | None,
) -> dict[str, pl.DataFrame]:
    """Sum one block of jobs (`ttf.records.runs.Block`), their runs and durations at risk by all group columns."""
    columns = [name for name in GROUP_COLUMNS if name in jobs.columns]
    if attempts is None:
        job = jobs.select(pl.arg_where(pl.col("outcome") != "waiting")).to_series()
    else:
        job = attempts.filter(pl.col("start_s").is_not_null())["job"]
    block_runs = build_runs(jobs, attempts, infra_durations).collect()
    block_runs = block_runs.with_columns(*jobs.select(*columns, *_LEVELS)[block_runs["job"]])
    nodes = count_nodes(node_gpus, node_gpus_from)
    at_risk = infra_durations.hstack(jobs.select(columns)[job]).filter(pl.col("gpu_count") > 0)
    return {
        "jobs": _sum_cells(jobs, columns, _REQUESTED, _JOB_SUMS),
        "runs": _sum_cells(block_runs, columns, doubling_bucket((pl.col("gpu_milli") + 999) // 1000), _RUN_SUMS),
        "durations": _sum_cells(
            at_risk.with_columns(node_s=nodes * pl.col("duration_s")),
            columns,
            doubling_bucket(pl.col("gpu_count")),
            _RISK_SUMS,
        ),
    }


def _sum_cells(rows: pl.DataFrame, columns: Sequence[str], gpus: pl.Expr, sums: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Sum rows by columns, GPUs, cluster and block, and by group where a stratum may have a single cluster.

    Only a stratum of a single cluster is split by groups, and it has no second cluster in any block of jobs.
    """
    rows, keys = rows.with_columns(gpus=gpus), [*columns, GPUS]
    clusters = rows.group_by(keys).agg(low=pl.col("cluster").min(), high=pl.col("cluster").max())
    is_single = pl.col("low").min() == pl.col("high").max()
    may_split = [pl.lit(clusters.select(is_single).item())]
    for key in keys:
        values = clusters.group_by(key).agg(is_single=is_single).filter("is_single")[key].drop_nulls()
        may_split += [pl.col(key).is_in(values.implode())] if values.len() else []
    group = pl.when(pl.any_horizontal(may_split)).then("group")
    cells = rows.lazy().group_by(*keys, "cluster", "block", group=group).agg(**sums)
    return cells.collect(engine="streaming")


def _add_estimates(
    rows: pl.DataFrame, failed: pl.LazyFrame, job_sums: pl.LazyFrame, run_sums: pl.LazyFrame, risk_sums: pl.LazyFrame
) -> pl.DataFrame:
    """Add shares, rates and medians with their intervals, and the reasons for blanks, to the strata.

    failed: jobs with a run time; job_sums, run_sums, risk_sums: sums by cluster and block.
    """
    rows = rows.join(median_run_times(failed), on="stratum", how="left", maintain_order="left")
    is_rated, gpu = ~pl.any_horizontal(*_NO_RATE.values()), pl.col("gpu")
    low, high = poisson_limits(rows["infra_failures"].to_numpy(), CONFIDENCE)
    rates = {
        "failures_per_1000_node_days": pl.col("infra_failures"),
        "rate_ci_low": pl.lit(pl.Series(low)),
        "rate_ci_high": pl.lit(pl.Series(high)),
    }
    rows = rows.with_columns(
        **failure_share_columns(rows),
        **{f"{name}_hours": pl.col(name) / GPU_HOUR for name in _GPU_TIME},
        failed_gpu_hours_share=pl.when(gpu > 0).then(pl.col("failed_gpu") / gpu),
        node_days=pl.col("node_s") / SECONDS_A_DAY,
        failures_with_runtime=pl.col("failures_with_runtime").fill_null(0),
        **{name: pl.when(is_rated).then(count * _PER_1000_DAYS / pl.col("node_s")) for name, count in rates.items()},
    )
    reasons = {
        "no job of the stratum ended": pl.col("ended") == 0,
        "no GPU time was seen": gpu == 0,
        **_NO_RATE,
        "no failed job has a known run time": pl.col("failure_median_s").is_null(),
    }
    rows = join_clustered(
        rows.with_columns(reason=join_reasons(reasons)),
        clustered_shares(job_sums, ["stratum"], pl.col("failures").sum(), pl.col("ended").sum()),
        ["stratum"],
    )
    failures, node_s, members, _ = (pl.col(name).sum() for name in _RISK_SUMS)
    limits = clustered_ratios(risk_sums, ["stratum"], failures, node_s, members, CONFIDENCE, has_mean_leverage=True)
    bounds = {f"rate_ci_{side}_clustered": pl.col(f"ci_{side}_clustered") * _PER_1000_DAYS for side in ("low", "high")}
    rows = rows.join(limits.select("stratum", **bounds), on="stratum", how="left", maintain_order="left")
    rows = rows.with_columns(pl.when(is_rated).then(pl.col(*bounds)))
    failed_time, all_time = (pl.col(name).sum().cast(pl.Float64) for name in ("failed_gpu", "gpu"))
    limits = clustered_shares(run_sums, ["stratum"], failed_time, all_time)
    renamed = {f"failed_gpu_{name}": name for name in CLUSTERED}
    return rows.join(limits.select("stratum", **renamed), on="stratum", how="left", maintain_order="left")


def median_run_times(failed: pl.LazyFrame) -> pl.DataFrame:
    """Return the median run time of each stratum with its exact and its clustered interval (Woodruff 1952)."""
    counts = failed.drop_nulls("runtime_s").group_by("stratum", "runtime_s").agg(n=pl.len().cast(pl.Int64))
    times = counts.collect(engine="streaming").sort("stratum", "runtime_s")
    parts = {
        part["stratum"].first(): ValueCounts.from_frame(part, "runtime_s") for part in times.partition_by("stratum")
    }
    rows = [(name, part.size, part.median(), *median_interval(part.size, part.at)) for name, part in parts.items()]
    columns = ["stratum", "failures_with_runtime", "failure_median_s", "median_ci_low_s", "median_ci_high_s"]
    dtypes = [times.schema["stratum"], pl.Int64(), pl.Float64(), pl.Float64(), pl.Float64()]
    medians = pl.DataFrame(rows, schema=dict(zip(columns, dtypes, strict=True)), orient="row")
    limits = clustered_medians(failed, "stratum", "runtime_s", parts)
    renamed = {f"median_ci_{side}_clustered_s": f"ci_{side}_clustered" for side in ("low", "high")}
    return medians.join(limits.select("stratum", **renamed), on="stratum", how="left", maintain_order="left")


def _sum_by(sums: pl.DataFrame, column: str, sum_columns: Iterable[str]) -> pl.DataFrame:
    label = pl.lit("all") if column == "all" else pl.col(column)
    return sums.group_by(stratum=label).agg(pl.col(*sum_columns).sum()).drop_nulls("stratum")


def _stratify(rows: pl.DataFrame | pl.LazyFrame, column: str, strata: pl.Series) -> pl.LazyFrame:
    if column == "all":
        return rows.lazy().with_columns(stratum=pl.lit("all"))
    return rows.lazy().with_columns(stratum=column).filter(pl.col("stratum").is_in(strata.implode()))


def _stratum_label(column: str) -> pl.Expr:
    high = pl.col("stratum")
    if column != GPUS:
        return high.cast(pl.String)
    return pl.when(high > 2).then(pl.format("{}-{}", high // 2 + 1, high)).otherwise(high.cast(pl.String))

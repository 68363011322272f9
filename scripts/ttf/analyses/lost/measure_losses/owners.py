"""Failures per user and per account, and their concentration."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.analyses.lost.measure_losses import FAILURE_CONCENTRATION, FAILURES_BY_OWNER
from ttf.records.jobs import Frame, join_reasons
from ttf.records.runs import GPU_HOUR, gpu_time
from ttf.stats.clustered import clustered_failure_shares, join_clustered
from ttf.stats.shares import ENDED, divide, failure_share_columns

OWNERS = ("user", "account")
NO_FAILED_TIME = "no failed attempt has GPU time"
# Shares of the owners, most active first, in percent; at least one owner.
TOP_PERCENT = (1, 2, 5, *range(10, 101, 10))


def owner_sums(jobs: Frame, runs: Frame) -> dict[str, pl.DataFrame]:
    """Return by kind of owner the sums over some jobs and their runs from which `owner_counts` is made.

    jobs: user, account, outcome; runs: `ttf.records.runs.build_runs` of the same jobs. Jobs without an owner are
    excluded.
    """
    cost = {"failed_runs": pl.len().cast(pl.Int64), "failed_gpu": gpu_time().sum()}
    sums_by_kind = {}
    for owner_by in OWNERS:
        job_sums = _sum_by_owner(jobs.lazy(), owner_by, ENDED)
        run_sums = _sum_by_owner(runs.lazy().filter("failed"), owner_by, cost)
        sums_by_kind[owner_by] = job_sums.join(run_sums, on="owner", how="full", coalesce=True)
    return dict(zip(sums_by_kind, pl.collect_all(sums_by_kind.values()), strict=True))


def _sum_by_owner(rows: pl.LazyFrame, owner_by: str, sums: Mapping[str, pl.Expr]) -> pl.LazyFrame:
    return rows.filter(pl.col(owner_by).is_not_null()).group_by(owner=owner_by).agg(**sums)


def owner_counts(parts: Sequence[Mapping[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """Return by kind of named owner: owner, ended, failures, failed_runs, failed_gpu (Int128 milli-GPU s).

    parts: `owner_sums` of all jobs. ended: jobs with success or failure. Sorted by owner.
    """
    sums_by_kind = {owner_by: pl.concat(part[owner_by] for part in parts) for owner_by in OWNERS}
    return {
        owner_by: sums.group_by("owner").agg(pl.all().sum()).sort("owner")
        for owner_by, sums in sums_by_kind.items()
        if sums.height
    }


def failures_by_owner(owners: Mapping[str, pl.DataFrame], n_owners: int, jobs: Frame) -> pl.DataFrame:
    """Return the `n_owners` users and accounts with the most GPU time in failed runs (FAILURES_BY_OWNER), most first.

    owners: `owner_counts`. failure_share: failures over ended jobs, with Wilson's 95% CI and, for jobs with
    CLUSTER_COLUMNS, the clustered one. If an owner is a single cluster, its groups are the clusters. failed_gpu_hours:
    of all failed runs, including those of jobs that then succeeded; its share is of that of all owners. Ties are sorted
    by failures, then by name. Blank cells have a reason.
    """
    parts = [FAILURES_BY_OWNER.frame([])]
    for owner_by, counts in owners.items():
        total = sum(counts["failed_gpu"].to_list())
        top = counts.sort("failed_gpu", "failures", "owner", descending=[True, True, False]).head(n_owners)
        # Division of Python integers of any size rounds once.
        failed_gpu = top["failed_gpu"].to_list()
        table = top.with_columns(
            owner_by=pl.lit(owner_by),
            **failure_share_columns(top),
            failed_gpu_hours=pl.Series([value / GPU_HOUR for value in failed_gpu], dtype=pl.Float64),
            failed_gpu_hours_share=pl.Series([divide(value, total) for value in failed_gpu], dtype=pl.Float64),
            reason=join_reasons(
                {"no job of this owner ended": pl.col("ended") == 0, NO_FAILED_TIME: pl.lit(not total)}
            ),
        )
        owner_jobs = jobs.lazy().filter(pl.col(owner_by).is_in(top["owner"].implode())).with_columns(owner=owner_by)
        clustered = clustered_failure_shares(owner_jobs, ["owner"])
        parts.append(FAILURES_BY_OWNER.conform(join_clustered(table, clustered, ["owner"])))
    return pl.concat(parts)


def concentration(owners: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the share of failures from a few owners (FAILURE_CONCENTRATION): a row per TOP_PERCENT.

    owners: `owner_counts`. ranked_by `ended`: the owners with the most ended jobs; compare their share of failures with
    their share of jobs. `failures`: the owners with the most failures, a ranking that selects on the counted event.
    top_share: a fraction. owners_in_top: that many of the owners with an ended job, rounded up. Ties: by name.
    """
    rows = []
    for owner_by, counts in owners.items():
        counts = counts.filter(pl.col("ended") > 0)
        if not counts.height:
            continue
        for ranked_by in ("ended", "failures"):
            ranked = counts.sort(ranked_by, "owner", descending=[True, False])
            totals = {name: sum(ranked[name].to_list()) for name in ("ended", "failures", "failed_gpu")}
            reason = "no job failed" if not totals["failures"] else None if totals["failed_gpu"] else NO_FAILED_TIME
            row_keys = {"owner_by": owner_by, "ranked_by": ranked_by, "owners": ranked.height, "reason": reason}
            for percent in TOP_PERCENT:
                top = ranked.head(-(-percent * ranked.height // 100))
                row = row_keys | {"top_share": percent / 100, "owners_in_top": top.height}
                for name, total in totals.items():
                    top_sum = sum(top[name].to_list())
                    row |= {name: top_sum, f"{name}_share": divide(top_sum, total)}
                row["failed_gpu_hours"] = row["failed_gpu"] / GPU_HOUR
                rows.append(row | {"failed_gpu_hours_share": row["failed_gpu_share"]})
    return FAILURE_CONCENTRATION.frame(rows)

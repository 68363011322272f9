"""Failures per user and per account, and how far they come from a few."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.analyses.lost.measure_losses import FAILURE_CONCENTRATION, FAILURES_BY_OWNER
from ttf.records.jobs import Frame, join_reasons
from ttf.records.runs import GPU_HOUR, gpu_time
from ttf.stats.clustered import beside, clustered_shares
from ttf.stats.shares import ENDED, failure_shares, part_of

OWNERS = ("user", "account")
NO_FAILED_TIME = "no failed attempt has GPU time"
# Most active first: these shares of the owners, in per cent, at least one of them.
TOP_PERCENT = (1, 2, 5, *range(10, 101, 10))


def owner_sums(jobs: Frame, runs: Frame) -> dict[str, pl.DataFrame]:
    """Per kind of owner what `owner_counts` is made of: sums over some jobs and their runs.

    jobs: user, account, outcome; runs: `ttf.records.runs.runs` of the same jobs. Jobs without an owner are excluded.
    """
    cost = {"failed_runs": pl.len().cast(pl.Int64), "failed_gpu": gpu_time().sum()}
    found = {}
    for owner_by in OWNERS:
        of_jobs = _by_owner(jobs.lazy(), owner_by, ENDED)
        of_runs = _by_owner(runs.lazy().filter("failed"), owner_by, cost)
        found[owner_by] = of_jobs.join(of_runs, on="owner", how="full", coalesce=True)
    return dict(zip(found, pl.collect_all(found.values()), strict=True))


def _by_owner(rows: pl.LazyFrame, owner_by: str, sums: Mapping[str, pl.Expr]) -> pl.LazyFrame:
    return rows.filter(pl.col(owner_by).is_not_null()).group_by(owner=owner_by).agg(**sums)


def owner_counts(parts: Sequence[Mapping[str, pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """Per kind of owner that the trace names: owner, ended, failures, failed_runs, failed_gpu (Int128 milli-GPU s).

    parts: `owner_sums` of all jobs. ended: jobs with success or failure. Owners by name.
    """
    found = {}
    for owner_by in OWNERS:
        counts = pl.concat(part[owner_by] for part in parts).group_by("owner").agg(pl.all().sum()).sort("owner")
        if counts.height:
            found[owner_by] = counts
    return found


def failures_by_owner(owners: Mapping[str, pl.DataFrame], most: int, jobs: Frame) -> pl.DataFrame:
    """The `most` users and the `most` accounts with the most GPU time in failed runs (FAILURES_BY_OWNER), most first.

    owners: `owner_counts`. failure_share: failures among the ended jobs, with Wilson's interval at 95 % and, of jobs
    with CLUSTER_COLUMNS, the clustered one: an owner that is one cluster has its groups for clusters.
    failed_gpu_hours: of all runs that failed, also of jobs that then succeeded; its share is of that of all owners.
    Where GPU time is equal, more failures come first, then the name. What cannot be computed is blank, with a reason.
    """
    parts = [FAILURES_BY_OWNER.frame([])]
    for owner_by, counts in owners.items():
        total = sum(counts["failed_gpu"].to_list())
        top = counts.sort("failed_gpu", "failures", "owner", descending=[True, True, False]).head(most)
        # Python's integers of any size are divided with one rounding.
        of_failed = top["failed_gpu"].to_list()
        table = top.with_columns(
            owner_by=pl.lit(owner_by),
            **failure_shares(top),
            failed_gpu_hours=pl.Series([value / GPU_HOUR for value in of_failed], dtype=pl.Float64),
            failed_gpu_hours_share=pl.Series([part_of(value, total) for value in of_failed], dtype=pl.Float64),
            reason=join_reasons(
                {"no job of this owner ended": pl.col("ended") == 0, NO_FAILED_TIME: pl.lit(not total)}
            ),
        )
        theirs = jobs.lazy().filter(pl.col(owner_by).is_in(top["owner"].implode())).with_columns(owner=owner_by)
        alike = clustered_shares(theirs, ["owner"], ENDED["failures"], ENDED["ended"])
        parts.append(FAILURES_BY_OWNER.typed(beside(table, alike, ["owner"])))
    return pl.concat(parts)


def concentration(owners: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Which share of the failures comes from a few owners (FAILURE_CONCENTRATION): a row per TOP_PERCENT of them.

    owners: `owner_counts`. ranked_by `ended`: the owners with the most ended jobs, whose share of failures is to be
    held against their share of jobs; `failures`: those with the most failures, a choice that selects on what is
    counted. top_share: a fraction; owners_in_top: so many of the owners with an ended job, rounded up. Equal owners by
    name.
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
            about = {"owner_by": owner_by, "ranked_by": ranked_by, "owners": ranked.height, "reason": reason}
            for percent in TOP_PERCENT:
                top = ranked.head(-(-percent * ranked.height // 100))
                row = about | {"top_share": percent / 100, "owners_in_top": top.height}
                for name, total in totals.items():
                    of_top = sum(top[name].to_list())
                    row |= {name: of_top, f"{name}_share": part_of(of_top, total)}
                row["failed_gpu_hours"] = row["failed_gpu"] / GPU_HOUR
                rows.append(row | {"failed_gpu_hours_share": row["failed_gpu_share"]})
    return FAILURE_CONCENTRATION.frame(rows)

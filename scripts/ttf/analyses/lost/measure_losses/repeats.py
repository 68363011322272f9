"""Repeated failures: the next job of a group after a failure and after a success, and the time to a first failure."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np
import polars as pl

from ttf.analyses.lost.measure_losses import REPEATS
from ttf.engine.exact_sums import dot
from ttf.engine.storage.partitions import Partitions
from ttf.records.clusters import number_keys
from ttf.records.jobs import Frame
from ttf.stats.basics.order import run_starts, sort_rows
from ttf.stats.durations.survival import survival_summary
from ttf.stats.shares import wilson_interval

# A group is all jobs of one user, or jobs that the trace records as resubmissions of one job.
GROUPS = ("user", "recurrence_group")
JOB_GROUP = "job"
# Kinds of events, in their order within a second: a job that ends in the second of a start is not before it, and of
# several ends in a second a failure is the last.
START, START_OF_FAILURE, END, END_OF_FAILURE = range(4)
PART_GROUP = "part"
NO_GROUP = "no job that ended has a group"
NO_FAILURE = "no failure"
COUNTED = "counted, not estimated: no interval"
ONE_GROUP = "one group: no interval over groups"
NOTHING_BEFORE = "nothing of a group came after another of it that had ended so"
NO_MEDIAN = "fewer than half have failed by then"
NO_UPPER = "the interval has no upper end"


def repeats(
    jobs: pl.LazyFrame,
    run_times: pl.DataFrame,
    partitions: Partitions,
    placements: pl.LazyFrame | None = None,
    attempt_jobs: pl.Series | None = None,
) -> pl.DataFrame:
    """Return how failures repeat (REPEATS): a row per kind of group and measure.

    jobs: the job record. run_times: its `times_of_runs`. partitions: of the jobs; one is in memory at a time.
    placements, attempt_jobs: see `part_retries`. Only jobs that ended in success or failure count. The previous job is
    the one of the same group that ended last before a job started; if several ended in that second, a failure counts.

    not_first_share: failures that are not the first of their group, over all failures. failures_per_group: failures
    over groups with a failure (the repetition factor of ATC'19). preceded_share: failures whose previous job had
    failed, over failures with a previous job. failure_after_failure, failure_after_success: failed jobs, over jobs
    whose previous job had failed, or had succeeded. Shares have Wilson's 95% CI on the effective number of jobs. Jobs
    of one group are correlated, so the variance is that between groups (linearised for a ratio). Groups are thus the
    clusters, and there is no further clustered interval.

    first_failure_s: median time from a group's first start to its first failure, by Kaplan-Meier; groups without a
    failure are censored when last seen. group_by `job`: the same in jobs of several runs, up to the end of the first
    failed run. n: jobs (for times: groups or jobs). events: jobs or groups with the event. Blank cells have a reason.
    """
    rows, ended = [], jobs.filter(pl.col("outcome").is_in(["success", "failure"]))
    for group_by in GROUPS:
        is_column = group_by in jobs.collect_schema()
        if is_column and jobs.select(pl.col(group_by).count()).collect(engine="streaming").item():
            failed = (pl.col("outcome") == "failure").alias("failed")
            grouped_jobs = ended.filter(pl.col(group_by).is_not_null())
            parts = partitions.split(group_by, grouped_jobs, group_by, group_by, "start_s", "end_s", failed)
            rows += _group_rows((_read_numbered(part, group_by) for part in parts), group_by)
    if run_times.height:
        rows.append({"group_by": JOB_GROUP, "groups": run_times.height, **_first_failure_row(run_times)})
    if placements is not None:
        rows += part_retries(placements, attempt_jobs)
    return REPEATS.frame(rows)


def part_retries(placements: pl.LazyFrame, attempt_jobs: pl.Series | None = None) -> list[dict]:
    """Return how parts of jobs fare on the next try after a failure: rows of REPEATS, none without a retry.

    placements: PLACEMENT_COLUMNS; attempt_jobs: `job` of each attempt, None if jobs are attempts. A part has one number
    in all attempts at a job. A failed try counts if the failure is known to be its own. retried_share: failed tries
    that were retried. failure_on_same_node, failure_on_other_node: next tries that failed too, over those that ended in
    success or failure. Groups are jobs.
    """
    failed = ((pl.col("outcome") == "failure") & pl.col("own_outcome")).fill_null(False)
    # Only failed tries and retries are needed. Numbers sort faster than names.
    needed = placements.filter(failed | (pl.col("attempt") > 0))
    columns = ("attempt_id", "placement", "attempt", "node", "outcome")
    tries = needed.select(*columns, failed=failed).collect(engine="streaming")
    if not (tries["attempt"] > 0).any():
        return []
    job = tries["attempt_id"] if attempt_jobs is None else attempt_jobs.gather(tries["attempt_id"])
    part = pl.col("group") * (pl.col("placement").max() + 1) + pl.col("placement")
    tries = (
        tries.with_columns(group=job.cast(pl.Int64))
        .with_columns(part=part)
        .sort("part", "attempt", maintain_order=True)
    )
    is_repeat = (pl.col("part") == pl.col("part").shift(1)) & (pl.col("attempt") == pl.col("attempt").shift(1))
    tries = tries.filter(~is_repeat.fill_null(False))
    next_try = (
        pl.when(pl.col("part") == pl.col("part").shift(-1))
        .then(pl.col("attempt", "node", "outcome").shift(-1))
        .name.prefix("next_")
    )
    tries = tries.with_columns(next_try).filter("failed")
    shares = {"retried_share": tries.select("group", hit=pl.col("next_attempt").is_not_null())}
    ended = tries.filter(pl.col("next_outcome").is_in(["success", "failure"]))
    for measure, condition in (
        ("failure_on_same_node", pl.col("next_node") == pl.col("node")),
        ("failure_on_other_node", pl.col("next_node") != pl.col("node")),
    ):
        shares[measure] = ended.filter(condition).select("group", hit=pl.col("next_outcome") == "failure")
    return [
        {"group_by": PART_GROUP, "measure": measure, "unit": "share"} | share_over_groups(counts_by_group(members))
        for measure, members in shares.items()
    ]


def times_of_runs(runs: Frame) -> pl.DataFrame:
    """Return duration_s, failed of jobs of several runs: from the first start to the end of the first failed run.

    runs: `ttf.records.runs.build_runs`.
    """
    is_several = pl.col("again") | pl.col("again").shift(-1, fill_value=False)
    retried = runs.lazy().filter(is_several).select("start_s", "end_s", "failed", group="job").collect()
    return _first_failure_durations(*list_events(retried))


def list_events(jobs: pl.DataFrame) -> list[np.ndarray]:
    """Return group, time and kind (START or END, and 1 more for a failure) of the starts and ends of jobs, sorted.

    jobs: group, failed, start_s, end_s; a blank time is no event.
    """
    events = pl.concat(
        jobs.select("group", time=time, kind=kind + pl.col("failed").cast(pl.Int64)).drop_nulls()
        for time, kind in (("start_s", START), ("end_s", END))
    )
    return sort_rows(*(column.to_numpy() for column in events.get_columns()))


def previous_outcome(group: np.ndarray, kind: np.ndarray) -> pl.DataFrame:
    """Return the jobs with a previous job by the rule of `repeats`: group, failed, before (whether that one failed).

    group, kind: of `list_events`. A job without end_s is never a previous job, one without start_s has none.
    """
    index = np.arange(kind.size)
    last_end = np.maximum.accumulate(np.where(kind >= END, index, -1))
    # The last end of another group, or none at all, is not of this job's group.
    starts = index[(kind < END) & (last_end >= 0) & (group[last_end] == group)]
    before = kind[last_end[starts]] == END_OF_FAILURE
    return pl.DataFrame({"group": group[starts], "failed": kind[starts] == START_OF_FAILURE, "before": before})


def counts_by_group(members: pl.DataFrame) -> Counter:
    """Return the counts from which `share_over_groups` is made; counts of members of different groups add up.

    members: group (Int64, 0 or more), hit (Boolean). Counts: n, hits, groups, sums over groups of products of n, hits.
    """
    group = members["group"].to_numpy()
    n_by_group = np.bincount(group)
    hits_by_group = np.bincount(group[members["hit"].to_numpy()], minlength=n_by_group.size)
    return Counter(
        n=members.height,
        hits=int(hits_by_group.sum()),
        groups=int(np.count_nonzero(n_by_group)),
        hits_hits=dot(hits_by_group, hits_by_group),
        hits_n=dot(hits_by_group, n_by_group),
        n_n=dot(n_by_group, n_by_group),
    )


def share_over_groups(counts: Counter) -> dict:
    """Return the share of members that hit, with its interval: n, groups, events, estimate, ci_low, ci_high, reason.

    counts: `counts_by_group`. The variance of hits / n between groups of random size (Cochran 1977, section 2.11) gives
    the effective number of members n_eff = p (1 - p) / variance, at most n. For a share of 0 or 1 the variance is 0,
    and n_eff is the number of groups. The interval is Wilson's for p n_eff of n_eff.
    """
    n, hits, groups = (counts[name] for name in ("n", "hits", "groups"))
    row: dict[str, float] = {"n": n, "groups": groups, "events": hits}
    if n == 0:
        return row | {"reason": NOTHING_BEFORE}
    row |= {"estimate": hits / n}
    if groups == 1:
        return row | {"reason": ONE_GROUP}
    # The sum of (hits_g n - n_g hits)^2, in integers.
    squares = n * n * counts["hits_hits"] - 2 * n * hits * counts["hits_n"] + hits * hits * counts["n_n"]
    if hits in (0, n):
        effective = float(groups)
    else:
        # variance = groups / (groups - 1) x sum of (hits_g - p n_g)^2 / n^2, and squares is that sum times n^2.
        effective = min(float(n), hits * (n - hits) * n * n * (groups - 1) / (groups * squares)) if squares else n
    low, high = map(float, wilson_interval(hits / n * effective, effective))
    return row | {"ci_low": low, "ci_high": high}


def _read_numbered(jobs: pl.LazyFrame, group_by: str) -> pl.DataFrame:
    """Collect start_s, end_s, failed of jobs, with each group's name replaced by a number from 0 on."""
    # Hashes take less memory than names.
    rows = jobs.select("start_s", "end_s", "failed", hash=pl.col(group_by).hash()).collect(engine="streaming")
    return rows.with_columns(group=number_keys(rows.lazy(), ["hash"]).cast(pl.Int64)).drop("hash")


def _group_rows(parts: Iterable[pl.DataFrame], group_by: str) -> list[dict]:
    """Return the rows of one kind of group. parts: group, failed, start_s, end_s; a group is within one part."""
    counts: Counter[str] = Counter()
    shares: defaultdict[str, Counter[str]] = defaultdict(Counter)
    durations = []
    for ended in parts:
        counts += Counter(
            jobs=ended.height,
            groups=ended["group"].n_unique(),
            failures=int(ended["failed"].sum()),
            failing=ended.filter("failed")["group"].n_unique(),
        )
        group, time, kind = list_events(ended)
        durations.append(_first_failure_durations(group, time, kind))
        followed_jobs = previous_outcome(group, kind)
        after_failure = pl.col("before")
        for name, members in {
            "preceded_share": followed_jobs.filter("failed").select("group", hit="before"),
            "failure_after_failure": followed_jobs.filter(after_failure).select("group", hit="failed"),
            "failure_after_success": followed_jobs.filter(~after_failure).select("group", hit="failed"),
        }.items():
            shares[name].update(counts_by_group(members))
    if not counts["jobs"]:
        return [{"group_by": group_by, "measure": "not_first_share", "n": 0, "groups": 0, "reason": NO_GROUP}]
    failures, failing = counts["failures"], counts["failing"]
    shared = {"n": failures, "groups": failing, "reason": COUNTED if failures else NO_FAILURE}
    repeated = failures - failing
    rows = [
        shared | {"measure": "not_first_share", "unit": "share", "events": repeated},
        shared | {"measure": "failures_per_group", "unit": "failures", "events": failures},
    ]
    if failures:
        rows[0]["estimate"], rows[1]["estimate"] = repeated / failures, failures / failing
    rows += [{"measure": name, "unit": "share"} | share_over_groups(sums) for name, sums in shares.items()]
    rows.append({"groups": counts["groups"]} | _first_failure_row(pl.concat(durations)))
    return [{"group_by": group_by} | row for row in rows]


def _first_failure_durations(group: np.ndarray, time: np.ndarray, kind: np.ndarray) -> pl.DataFrame:
    """Return duration_s, failed of groups: from the first start to the end of the first failure, else to the last end.

    group, time, kind: of `list_events`. A failure before the first known start counts as one at that start.
    """
    group_rows, never = run_starts(group), np.iinfo(np.int64).max
    begin_s, failed_s = (
        np.minimum.reduceat(np.where(is_event, time, never), group_rows)
        for is_event in (kind < END, kind == END_OF_FAILURE)
    )
    seen_s = np.maximum.reduceat(np.where(kind >= END, time, -never), group_rows)
    is_timed, failed = (begin_s < never) & (seen_s > -never), failed_s < never
    duration_s = np.maximum(np.where(failed, failed_s, seen_s) - begin_s, 0)
    return pl.DataFrame({"duration_s": duration_s[is_timed], "failed": failed[is_timed]})


def _first_failure_row(durations: pl.DataFrame) -> dict:
    event = pl.when("failed").then(pl.lit("failure"))
    (summary,) = survival_summary(durations.lazy().with_columns(event=event), "failure", ["all"]).iter_rows(named=True)
    median, high, reason = summary["median_s"], summary["median_ci_high_s"], summary["reason"]
    if durations.height:
        reason = NO_MEDIAN if median is None else NO_UPPER if high is None else None
    row = {"measure": "first_failure_s", "unit": "s", "n": summary["n"], "events": summary["events"], "reason": reason}
    return row | {"estimate": median, "ci_low": summary["median_ci_low_s"], "ci_high": high}

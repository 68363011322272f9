"""How failures repeat: the next job of a group after a failure and after a success, and the time to a first failure."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

from ttf.analyses.lost.measure_losses import REPEATS
from ttf.engine.exact_sums import dot
from ttf.engine.storage.partitions import Partitions
from ttf.records.jobs import Frame
from ttf.stats.basics.name_codes import Numbers
from ttf.stats.durations.survival import survival_summary
from ttf.stats.shares import wilson_interval

# A group is everything of one user, or the jobs that a trace says are one job sent again.
GROUPS = ("user", "recurrence_group")
OF_ONE_JOB = "job"
OF_ONE_PART = "part"
# Everything in memory.
WHOLE = Partitions(Path())


NO_GROUP = "no job that ended has a group"
NO_FAILURE = "no failure"
COUNTED = "counted, not estimated: no interval"
ONE_GROUP = "one group: no interval over groups"
NOTHING_BEFORE = "nothing of a group came after another of it that had ended so"
NO_MEDIAN = "fewer than half have failed by then"
NO_UPPER = "the interval has no upper end"


def repeats(
    jobs: pl.LazyFrame,
    of_runs: pl.DataFrame,
    partitions: Partitions = WHOLE,
    placements: pl.LazyFrame | None = None,
    attempt_jobs: pl.Series | None = None,
) -> pl.DataFrame:
    """How failures repeat (REPEATS): a row per kind of group and measure.

    jobs: the job record; of_runs: `times_of_runs` of it; partitions: of the jobs, one of which is held at a time;
    placements, attempt_jobs: see `part_retries`. Only jobs that ended in success or failure are looked at. The job
    before a job is the one of its group that ended last before it started; of several that ended in one second, a
    failure counts.

    not_first_share: failures that are not the first of their group, among all. failures_per_group: failures over the
    groups with a failure (ATC'19 call it the repetition factor). preceded_share: failures whose job before had failed,
    among failures with a job before. failure_after_failure, failure_after_success: jobs that failed, among those
    whose job before had failed, had succeeded. Shares have Wilson's interval at 95 % on the effective number of jobs:
    jobs of one group are alike, so the variance is that between groups (of a ratio, linearised): the groups are the
    clusters, so that no clustered interval stands beside it.
    first_failure_s: the median time from a group's first start to its first failure, by Kaplan-Meier; groups without a
    failure are censored when last seen. group_by `job`, first_failure_s: the same in jobs of several runs, from
    the first start to the end of the first failed run.
    n: jobs (times: groups or jobs); events: those of them that count. What cannot be computed is blank, with a reason.
    """
    rows, ended = [], jobs.filter(pl.col("outcome").is_in(["success", "failure"]))
    for group_by in GROUPS:
        is_column = group_by in jobs.collect_schema()
        if is_column and jobs.select(pl.col(group_by).count()).collect(engine="streaming").item():
            failed = (pl.col("outcome") == "failure").alias("failed")
            of_groups = ended.filter(pl.col(group_by).is_not_null())
            parts = partitions.split(group_by, of_groups, group_by, group_by, "start_s", "end_s", failed)
            rows += _of_groups((_with_numbers(part, group_by) for part in parts), group_by)
    if of_runs.height:
        rows.append({"group_by": OF_ONE_JOB, "groups": of_runs.height, **_first_failure(of_runs)})
    if placements is not None:
        rows += part_retries(placements, attempt_jobs)
    return REPEATS.frame(rows)


def part_retries(placements: pl.LazyFrame, attempt_jobs: pl.Series | None = None) -> list[dict]:
    """How parts of jobs fare that failed on one node and were tried again: rows of REPEATS, none without a retry.

    placements: PLACEMENT_COLUMNS; attempt_jobs: `job` of each attempt, None where jobs are attempts. A part is what
    stands under one number in the attempts at a job; a try that failed counts where the failure is known to be its own.
    retried_share: failed tries that were tried again. failure_on_same_node, failure_on_other_node: next tries that
    failed too, of those that ended in success or failure. Jobs are the groups.
    """
    failed = ((pl.col("outcome") == "failure") & pl.col("own_outcome")).fill_null(False)
    # What a failed try is followed by is not the first one. Numbers are sorted sooner than names.
    tries = placements.filter(failed | (pl.col("attempt") > 0))
    tries = tries.select("attempt_id", "placement", "attempt", "node", "outcome", failed=failed)
    tries = tries.collect(engine="streaming")
    if not (tries["attempt"] > 0).any():
        return []
    job = tries["attempt_id"] if attempt_jobs is None else attempt_jobs.gather(tries["attempt_id"])
    part = job.cast(pl.Int64) * (tries["placement"].max() + 1) + tries["placement"]
    tries = tries.with_columns(group=job.cast(pl.Int64), part=part).sort("part", "attempt", maintain_order=True)
    is_again = (pl.col("part") == pl.col("part").shift(1)) & (pl.col("attempt") == pl.col("attempt").shift(1))
    tries = tries.filter(~is_again.fill_null(False))
    following = (
        pl.when(pl.col("part") == pl.col("part").shift(-1))
        .then(pl.col("attempt", "node", "outcome").shift(-1))
        .name.prefix("next_")
    )
    tries = tries.with_columns(following).filter("failed")
    shares = {"retried_share": tries.select("group", hit=pl.col("next_attempt").is_not_null())}
    ended = tries.filter(pl.col("next_outcome").is_in(["success", "failure"]))
    for measure, where in (
        ("failure_on_same_node", pl.col("next_node") == pl.col("node")),
        ("failure_on_other_node", pl.col("next_node") != pl.col("node")),
    ):
        shares[measure] = ended.filter(where).select("group", hit=pl.col("next_outcome") == "failure")
    return [
        {"group_by": OF_ONE_PART, "measure": measure, "unit": "share"} | share_over_groups(counts_by_group(members))
        for measure, members in shares.items()
    ]


def times_of_runs(runs: Frame) -> pl.DataFrame:
    """duration_s, failed of jobs of several runs: from the first start to the end of the first run that failed.

    runs: `ttf.records.runs.runs`.
    """
    of_several = pl.col("again") | pl.col("again").shift(-1, fill_value=False)
    several = runs.lazy().filter(of_several).select("job", "start_s", "end_s", "failed").collect()
    return _until_first_failure(_times(several, "job"))


def previous_outcome(ended: pl.DataFrame) -> pl.DataFrame:
    """The jobs with a job before them, as group, failed, before (whether that one failed): the rule of `repeats`.

    ended: group, failed, start_s, end_s (null: such a job comes before no other, and none before it).
    """
    # The last of several ends in one second is a failure if any of them is.
    ends = ended.select("group", "end_s", before="failed").drop_nulls("end_s").sort("end_s", "before")
    starts = ended.select("group", "start_s", "failed").drop_nulls("start_s").sort("start_s")
    known = starts.join_asof(
        ends,
        left_on="start_s",
        right_on="end_s",
        by="group",
        allow_exact_matches=False,
        check_sortedness=False,
    )
    return known.drop_nulls("before").select("group", "failed", "before")


def counts_by_group(members: pl.DataFrame) -> Counter:
    """What `share_over_groups` is made of; counts of members of different groups add up.

    members: group (Int64, not negative), hit (Boolean). n, hits and groups, and the sums over groups of products of the
    two numbers that each has.
    """
    group = members["group"].to_numpy()
    n_of = np.bincount(group)
    hits_of = np.bincount(group[members["hit"].to_numpy()], minlength=n_of.size)
    return Counter(
        n=members.height,
        hits=int(hits_of.sum()),
        groups=int(np.count_nonzero(n_of)),
        hits_hits=dot(hits_of, hits_of),
        hits_n=dot(hits_of, n_of),
        n_n=dot(n_of, n_of),
    )


def share_over_groups(counts: Counter) -> dict:
    """The share of members that hit, with its interval: n, groups, events, estimate, ci_low, ci_high, reason.

    counts: `counts_by_group`. The variance of hits / n between groups, of which sizes are random too (Cochran 1977,
    section 2.11), gives the effective number of members n_eff = p (1 - p) / variance, at most n; a share of 0 or 1,
    where it is 0, has as many as groups. The interval is Wilson's with p n_eff of n_eff.
    """
    n, hits, groups = (counts[name] for name in ("n", "hits", "groups"))
    row = {"n": n, "groups": groups, "events": hits}
    if n == 0:
        return row | {"reason": NOTHING_BEFORE}
    row |= {"estimate": hits / n}
    if groups == 1:
        return row | {"reason": ONE_GROUP}
    # The sum of (hits_g n - n_g hits)^2, in whole numbers.
    squares = n * n * counts["hits_hits"] - 2 * n * hits * counts["hits_n"] + hits * hits * counts["n_n"]
    if hits in (0, n):
        effective = float(groups)
    else:
        # variance = groups / (groups - 1) x sum of (hits_g - p n_g)^2 / n^2, and squares is that sum times n^2.
        effective = min(float(n), hits * (n - hits) * n * n * (groups - 1) / (groups * squares)) if squares else n
    low, high = map(float, wilson_interval(hits / n * effective, effective))
    return row | {"ci_low": low, "ci_high": high}


def _with_numbers(jobs: pl.LazyFrame, group_by: str) -> pl.DataFrame:
    """The jobs with `group`, a number, in place of the group's name; which one does not matter."""
    numbers = Numbers()
    group = numbers.of(pl.col(group_by)).cast(pl.Int64)
    return jobs.select("start_s", "end_s", "failed", group=group).collect(engine="streaming")


def _of_groups(parts: Iterable[pl.DataFrame], group_by: str) -> list[dict]:
    """parts: group, failed, start_s, end_s; the jobs of one group in one part."""
    counts, shares, lives = Counter(), defaultdict(Counter), []
    for ended in parts:
        counts += Counter(
            jobs=ended.height,
            groups=ended["group"].n_unique(),
            failures=int(ended["failed"].sum()),
            failing=ended.filter("failed")["group"].n_unique(),
        )
        lives.append(_until_first_failure(_times(ended, "group")))
        known = previous_outcome(ended)
        after = pl.col("before")
        for name, members in {
            "preceded_share": known.filter("failed").select("group", hit="before"),
            "failure_after_failure": known.filter(after).select("group", hit="failed"),
            "failure_after_success": known.filter(~after).select("group", hit="failed"),
        }.items():
            shares[name].update(counts_by_group(members))
    if not counts["jobs"]:
        return [{"group_by": group_by, "measure": "not_first_share", "n": 0, "groups": 0, "reason": NO_GROUP}]
    failures, failing = counts["failures"], counts["failing"]
    first = {"n": failures, "groups": failing, "reason": COUNTED if failures else NO_FAILURE}
    after_first = failures - failing
    rows = [
        first | {"measure": "not_first_share", "unit": "share", "events": after_first},
        first | {"measure": "failures_per_group", "unit": "failures", "events": failures},
    ]
    if failures:
        rows[0]["estimate"], rows[1]["estimate"] = after_first / failures, failures / failing
    rows += [{"measure": name, "unit": "share"} | share_over_groups(of_share) for name, of_share in shares.items()]
    rows.append({"groups": counts["groups"]} | _first_failure(pl.concat(lives)))
    return [{"group_by": group_by} | row for row in rows]


def _times(ended: pl.DataFrame, group_by: str) -> pl.DataFrame:
    found = ended.group_by(group_by).agg(
        begin_s=pl.min("start_s"), failed_s=pl.col("end_s").filter("failed").min(), seen_s=pl.max("end_s")
    )
    return found.drop_nulls(["begin_s", "seen_s"])


def _until_first_failure(times: pl.DataFrame) -> pl.DataFrame:
    """duration_s, failed of groups from `_times`. A failure before the first known start is taken for one at it."""
    duration = (pl.coalesce("failed_s", "seen_s") - pl.col("begin_s")).clip(lower_bound=0)
    return times.select(duration_s=duration, failed=pl.col("failed_s").is_not_null())


def _first_failure(lives: pl.DataFrame) -> dict:
    """lives: of `_until_first_failure`."""
    event = pl.when("failed").then(pl.lit("failure"))
    (found,) = survival_summary(lives.lazy().with_columns(event=event), "failure", ["all"]).iter_rows(named=True)
    median, high, reason = found["median_s"], found["median_ci_high_s"], found["reason"]
    if lives.height:
        reason = NO_MEDIAN if median is None else NO_UPPER if high is None else None
    row = {"measure": "first_failure_s", "unit": "s", "n": found["n"], "events": found["events"], "reason": reason}
    return row | {"estimate": median, "ci_low": found["median_ci_low_s"], "ci_high": high}

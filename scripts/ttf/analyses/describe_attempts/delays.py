"""How long attempts wait: by account, size and nodes, first and later ones apart; and who starts before whom."""

import numpy as np
import polars as pl

from ttf.analyses.describe_attempts import DELAY_BY_NODES, DELAYS, OUT_OF_ORDER
from ttf.jobs import GPU_BUCKETS, gpu_bucket, whole_gpus
from ttf.runs import in_sequence
from ttf.stats.counts import commonest
from ttf.stats.exact import parts_of, percentile, total

MOST_ACCOUNTS = 20
ALL = "all"
BUCKETS = (ALL, *GPU_BUCKETS)
# Of an attempt: any, the first of its job, another.
EVERY, FIRST, LATER = ATTEMPTS = ("every", "first", "later")
WITHIN_S = (60, 600, 3_600, 6_000)
PERCENTS = (25, 50, 75, 90, 95)
# Philly's delays have a step at about 3 minutes: these seconds, first and last, and as many before and after them.
STEP_S = (170, 200)
BESIDE_S = ((139, 169), (201, 231))
# ATC'19 looks at the servers of these sizes.
BUCKETS_OF_NODES = ("5-8", ">8")
ACCOUNT, CLUSTER = SCOPES = ("account", "cluster")

NO_DELAY = "no delay is known"
NO_POSITIVE = "no delay above 0 is known"
NO_TIMES = "no job has the times it takes"


def bucket_of() -> pl.Expr:
    """The place in GPU_BUCKETS of a job's whole GPUs; -1 where it has none or nothing is known of them."""
    return gpu_bucket(whole_gpus()).fill_null(-1)


def placed(jobs: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """The attempts in order of jobs and in sequence, with `job`, the row of theirs in `jobs`, and what that says.

    bucket: see `bucket_of`; job_gpu_milli: of all instances of the job.
    """
    of_jobs = jobs.with_row_index("job").select("job", "job_id")
    about = jobs.select(
        "account",
        "user",
        "submit_s",
        "attempts",
        bucket=bucket_of(),
        job_gpu_milli=pl.col("gpu_milli") * pl.col("size"),
    )
    tries = (
        attempts.select("job_id", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "nodes")
        .join(of_jobs, on="job_id", how="left", maintain_order="left", validate="m:1")
        .drop("job_id")
    )
    tries = in_sequence(tries).drop("attempt")
    return tries.hstack(about[tries["job"]])


def waits(tries: pl.DataFrame) -> pl.DataFrame:
    """One row per attempt, by job and in sequence: account, bucket, nodes, is_first, delay_s.

    tries: of `placed`. The delay of a first attempt is its start less the job's submission; of a later one, its start
    less the end of the attempt before. It is negative where the clocks say so, and null where one of the two times is
    not known, or where the job had attempts before that the trace does not have.
    """
    is_new = (pl.col("job") != pl.col("job").shift(1)).fill_null(True)
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    # How many rows the job has from this, its first one, on.
    following = pl.when(is_new).then(number).shift(-1, fill_value=pl.len()).backward_fill() - number
    since = pl.when(is_new).then(pl.when(pl.col("attempts") <= following).then("submit_s")).otherwise(
        pl.col("end_s").shift(1)
    )  # fmt: skip
    return tries.select("account", "bucket", "nodes", is_first=is_new, delay_s=pl.col("start_s") - since)


def busiest(jobs: pl.DataFrame) -> list[str]:
    """The MOST_ACCOUNTS accounts with the most jobs, most first."""
    return commonest(jobs, "account", MOST_ACCOUNTS)


def delays(waits: pl.DataFrame, accounts: list[str]) -> pl.DataFrame:
    """Queueing delay over all and by account x size of the job x which attempts (DELAYS); waits: of `waits`.

    accounts: those that have rows. Every group with an attempt has a row with the delays of 0 and one without (as the
    notebook of the Philly trace has it). beside_180_s_share: the mean of the shares in the two spans around STEP_S, of
    the same width, so that a step at 3 minutes stands out. Percentiles are linear between ranks.
    """
    places = waits["account"].replace_strict(accounts, range(len(accounts)), default=-1, return_dtype=pl.Int16)
    account = places.fill_null(-1).to_numpy()
    bucket = waits["bucket"].to_numpy()
    which = waits.select(pl.when("is_first").then(0).otherwise(1).cast(pl.Int16)).to_series().to_numpy()
    delay = waits["delay_s"].fill_null(0).to_numpy()
    unknown = waits["delay_s"].is_null().to_numpy()
    order = np.argsort(delay, kind="stable")
    order = order[(~unknown & (delay >= 0))[order]]
    ascending = delay[order]
    nothing = np.zeros(waits.height, dtype=np.int16)
    found = {}
    for group_by, groups, by_account in ((ALL, [ALL], nothing), ("account", accounts, account)):
        for buckets, by_bucket in (([ALL], nothing), (list(GPU_BUCKETS), bucket)):
            for kinds, by_which in (([EVERY], nothing), ([FIRST, LATER], which)):
                inside = (by_account >= 0) & (by_bucket >= 0)
                code = (by_account * len(buckets) + by_bucket) * np.int16(len(kinds)) + by_which
                code = np.where(inside, code, np.int16(-1))
                size = len(groups) * len(buckets) * len(kinds)
                rows = np.bincount(code[inside], minlength=size)
                blank = np.bincount(code[inside & unknown], minlength=size)
                below = np.bincount(code[inside & ~unknown & (delay < 0)], minlength=size)
                values = dict(parts_of(ascending, code[order]))
                for cell in np.flatnonzero(rows).tolist():
                    rest, kind = divmod(cell, len(kinds))
                    group, place = divmod(rest, len(buckets))
                    key = (group_by, groups[group], buckets[place], kinds[kind])
                    counted = {"negative": int(below[cell]), "unknown": int(blank[cell])}
                    found[key] = _both(values.get(cell, ascending[:0]), counted)
    table = [
        dict(zip(("group_by", "group", "gpu_bucket", "which"), key, strict=True)) | row
        for group_by, groups in ((ALL, [ALL]), ("account", accounts))
        for group in groups
        for bucket_name in BUCKETS
        for kind in ATTEMPTS
        if (key := (group_by, group, bucket_name, kind)) in found
        for row in found[key]
    ]
    return DELAYS.frame(table)


def _both(ascending: np.ndarray, counted: dict) -> list[dict]:
    """The rows of one group, with delays of 0 and without them."""
    zeros = int(np.searchsorted(ascending, 0, side="right"))
    rows = []
    for kept, part, reason in ((True, ascending, NO_DELAY), (False, ascending[zeros:], NO_POSITIVE)):
        row = {"zeros_kept": kept, "n": part.size, "zeros": zeros, **counted}
        if part.size:
            row |= {f"within_{limit}_s_share": _share(part, 0, limit) for limit in WITHIN_S}
            beside = sum(_count(part, *span) for span in BESIDE_S)
            row |= {"step_180_s_share": _share(part, *STEP_S), "beside_180_s_share": beside / (2 * part.size)}
            row |= _times(part)
        else:
            row["reason"] = reason
        rows.append(row)
    return rows


def _count(ascending: np.ndarray, first: int, last: int) -> int:
    ends = np.searchsorted(ascending, first, side="left"), np.searchsorted(ascending, last, side="right")
    return int(ends[1] - ends[0])


def _share(ascending: np.ndarray, first: int, last: int) -> float:
    return _count(ascending, first, last) / ascending.size


def _times(ascending: np.ndarray) -> dict[str, float]:
    """Mean and PERCENTS of times, at least one."""
    percents = {f"p{percent}_s": percentile(ascending, percent) for percent in PERCENTS}
    return {"mean_s": total(ascending) / ascending.size, **percents}


def delay_by_nodes(waits: pl.DataFrame) -> pl.DataFrame:
    """Delay of the first attempt by the nodes it got, of jobs of 5 GPUs and more (DELAY_BY_NODES)."""
    rows = []
    for name in BUCKETS_OF_NODES:
        place = list(GPU_BUCKETS).index(name)
        first = waits.filter(pl.col("is_first") & (pl.col("bucket") == place) & pl.col("nodes").is_not_null())
        counts = (
            first.group_by("nodes")
            .agg(
                negative=(pl.col("delay_s") < 0).sum().cast(pl.Int64),
                unknown=pl.col("delay_s").is_null().sum().cast(pl.Int64),
            )
            .sort("nodes")
        )
        known = first.filter(pl.col("delay_s") >= 0).sort("delay_s", maintain_order=True)
        codes = np.searchsorted(counts["nodes"].to_numpy(), known["nodes"].to_numpy())
        values = dict(parts_of(known["delay_s"].to_numpy(), codes))
        for group, row in enumerate(counts.iter_rows(named=True)):
            part = values.get(group, np.empty(0, dtype=np.int64))
            about = {"gpu_bucket": name, "n": part.size, **row}
            about |= _times(part) | {"longest_s": int(part[-1])} if part.size else {"reason": NO_DELAY}
            rows.append(about)
    return DELAY_BY_NODES.frame(rows)


def out_of_order(jobs: pl.DataFrame) -> pl.DataFrame:
    """How many jobs started while one that was submitted before them still waited (OUT_OF_ORDER).

    Excluded is a job without a submission, a start or (in scope account) an account, or that started before it was
    submitted. This is an approximation of what a scheduler decides: a job that never started overtakes nobody and is
    not overtaken, nor is it known whether a job that waited could have run (quota, GPUs, a request to wait for a time
    or another job). One sort and a running maximum: O(n log n).
    """
    every = jobs.select("account", "submit_s", "start_s", bucket=bucket_of())
    # By submission, once for both scopes; starts as ranks, so that account and start fit one number.
    in_time = every.filter((pl.col("start_s") >= pl.col("submit_s")).fill_null(False)).sort("submit_s")
    names = in_time["account"].drop_nulls().unique().sort()
    kind = pl.Int16 if names.len() < 2**15 else pl.Int64
    place_of = {"old": names, "new": range(names.len()), "default": None, "return_dtype": kind}
    in_time = in_time.with_columns(
        pl.col("account").replace_strict(**place_of), pl.col("start_s").rank("dense").cast(pl.Int64)
    )
    rows = []
    for scope in SCOPES:
        known = in_time.filter(pl.col("account").is_not_null()) if scope == ACCOUNT else in_time
        group = known["account"].to_numpy() if scope == ACCOUNT else np.zeros(known.height, dtype=np.int64)
        ahead, passed = _overtaking(group, known["submit_s"].to_numpy(), known["start_s"].to_numpy())
        flagged = known.select("bucket", ahead=pl.Series(ahead), passed=pl.Series(passed))
        for place, name in enumerate(BUCKETS, start=-1):
            chosen = flagged if name == ALL else flagged.filter(pl.col("bucket") == place)
            whole = every.height if name == ALL else int((every["bucket"] == place).sum())
            if not whole:
                continue
            n, first, second = chosen.height, int(chosen["ahead"].sum()), int(chosen["passed"].sum())
            row = {"scope": scope, "gpu_bucket": name, "n": n, "out_of_order": first, "overtaken": second}
            shares = {"out_of_order_share": first / n, "overtaken_share": second / n} if n else {"reason": NO_TIMES}
            rows.append(row | {"left_out": whole - n} | shares)
    return OUT_OF_ORDER.frame(rows)


def _overtaking(group: np.ndarray, submit: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each job: whether one of its group submitted before it started after it, and the other way round.

    group: whole numbers from 0 on; submit: ascending; start: ranks, from 0 to the number of jobs of the trace. Equal
    submissions and equal starts overtake nobody.
    """
    n = group.size
    if n == 0:
        return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
    order = np.argsort(group, kind="stable")
    owner, moment = group[order].astype(np.int64), submit[order]
    # The keys of a later group are all larger.
    key = owner * (int(start.max()) + 1) + start[order]
    is_new = np.empty(n, dtype=bool)
    is_new[0] = True
    is_new[1:] = (moment[1:] != moment[:-1]) | (owner[1:] != owner[:-1])
    first = np.flatnonzero(is_new)
    tie = np.cumsum(is_new) - 1
    latest = np.concatenate([[-1], np.maximum.accumulate(key)])[first][tie]
    earliest = np.concatenate([np.minimum.accumulate(key[::-1])[::-1], [np.iinfo(np.int64).max]])
    earliest = earliest[np.append(first[1:], n)][tie]
    ahead, passed = np.empty(n, dtype=bool), np.empty(n, dtype=bool)
    ahead[order] = latest > key
    passed[order] = earliest < key
    return ahead, passed

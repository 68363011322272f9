"""How long attempts wait: by account, size and nodes, first and later ones apart; and who starts before whom."""

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_attempts import DELAY_BY_NODES, DELAYS, OUT_OF_ORDER
from ttf.engine.counts import Counted, code
from ttf.engine.exact_sums import parts_of
from ttf.records.jobs import GPU_BUCKETS, gpu_bucket, whole_gpus
from ttf.records.runs import in_sequence
from ttf.stats.basics.order import first_of_each

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

_COUNT = pl.len().cast(pl.Int64)

NO_DELAY = "no delay is known"
NO_POSITIVE = "no delay above 0 is known"
NO_TIMES = "no job has the times it takes"


def bucket_of() -> pl.Expr:
    """The place in GPU_BUCKETS of a job's whole GPUs; -1 where it has none or nothing is known of them."""
    return gpu_bucket(whole_gpus()).fill_null(-1)


def placed(jobs: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """The attempts in order of jobs and in sequence, with `job`, the row of theirs in `jobs`, and what that says.

    attempts: with `job`. bucket: see `bucket_of`; job_gpu_milli: of all instances of the job.
    """
    about = jobs.select(
        "account",
        "user",
        "submit_s",
        "attempts",
        bucket=bucket_of(),
        job_gpu_milli=pl.col("gpu_milli") * pl.col("size"),
    )
    tries = attempts.select("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "nodes")
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


def counted_waits(waits: pl.DataFrame) -> pl.DataFrame:
    """How many waits there are of each kind: account, bucket, is_first, delay_s (-1 for all that are negative), n."""
    return waits.group_by("account", "bucket", "is_first", pl.col("delay_s").clip(lower_bound=-1)).agg(n=_COUNT)


def waits_by_nodes(waits: pl.DataFrame) -> pl.DataFrame:
    """The same of first attempts of BUCKETS_OF_NODES: bucket, nodes, delay_s, n."""
    places = [list(GPU_BUCKETS).index(name) for name in BUCKETS_OF_NODES]
    chosen = waits.filter(pl.col("is_first") & pl.col("bucket").is_in(places) & pl.col("nodes").is_not_null())
    return chosen.group_by("bucket", "nodes", pl.col("delay_s").clip(lower_bound=-1)).agg(n=_COUNT)


def busiest(jobs: pl.DataFrame) -> list[str]:
    """The MOST_ACCOUNTS accounts with the most jobs, most first; jobs: account and how many: n."""
    found = jobs.drop_nulls("account").group_by("account").agg(pl.col("n").sum())
    return found.sort("n", "account", descending=[True, False])["account"].head(MOST_ACCOUNTS).to_list()


def delays(waits: pl.DataFrame, accounts: list[str]) -> pl.DataFrame:
    """Queueing delay over all and by account x size of the job x which attempts (DELAYS); waits: of `counted_waits`.

    accounts: those that have rows. Every group with an attempt has a row with the delays of 0 and one without (as the
    notebook of the Philly trace has it). beside_180_s_share: the mean of the shares in the two spans around STEP_S, of
    the same width, so that a step at 3 minutes stands out. Percentiles are linear between ranks.
    """
    kind = ("place", "bucket", "is_first", "delay_s")
    placed = waits.select(*kind[1:], "n", place=code("account", accounts))
    # Of many blocks the same waits: far fewer are different, and fewer still without the accounts.
    of_accounts = placed.filter(pl.col("place") >= 0).group_by(kind).agg(pl.col("n").sum())
    of_all = placed.group_by(pl.lit(0).alias("place"), *kind[1:]).agg(pl.col("n").sum())
    found = {}
    for group_by, groups, rows in ((ALL, [ALL], of_all), ("account", accounts, of_accounts)):
        rows = rows.sort("delay_s", nulls_last=False)
        place, bucket, n = (rows[name].to_numpy().astype(np.int64) for name in ("place", "bucket", "n"))
        which = np.where(rows["is_first"].to_numpy(), 0, 1)
        delay = rows["delay_s"].fill_null(-2).to_numpy()
        nothing = np.zeros_like(place)
        for buckets, by_bucket in (([ALL], nothing), (list(GPU_BUCKETS), bucket)):
            for kinds, by_which in (([EVERY], nothing), ([FIRST, LATER], which)):
                cells = (place * len(buckets) + by_bucket) * len(kinds) + by_which
                for cell, part in parts_of(np.arange(n.size), np.where(by_bucket >= 0, cells, -1)):
                    rest, kind = divmod(cell, len(kinds))
                    group, size = divmod(rest, len(buckets))
                    unknown, negative = np.searchsorted(delay[part], (-1, 0)).tolist()
                    counted = {"unknown": int(n[part[:unknown]].sum())}
                    counted["negative"] = int(n[part[unknown:negative]].sum())
                    key = (group_by, groups[group], buckets[size], kinds[kind])
                    found[key] = _both(delay[part[negative:]], n[part[negative:]], counted)
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


def _both(ascending: np.ndarray, n: np.ndarray, counted: dict) -> list[dict]:
    """The rows of one group, with delays of 0 and without them; n: how many there are of each delay."""
    every = np.searchsorted(ascending, 0, side="right")
    zeros = int(n[:every].sum())
    rows = []
    for kept, first, reason in ((True, 0, NO_DELAY), (False, every, NO_POSITIVE)):
        part = Counted(ascending[first:], n[first:])
        row = {"zeros_kept": kept, "n": part.size, "zeros": zeros, **counted}
        if part.size:
            row |= {f"within_{limit}_s_share": part.between(0, limit) / part.size for limit in WITHIN_S}
            beside = sum(part.between(*span) for span in BESIDE_S)
            row |= {
                "step_180_s_share": part.between(*STEP_S) / part.size,
                "beside_180_s_share": beside / (2 * part.size),
            }
            row |= _times(part)
        else:
            row["reason"] = reason
        rows.append(row)
    return rows


def _times(delays: Counted) -> dict[str, float]:
    """Mean and PERCENTS of times, at least one."""
    return {"mean_s": delays.mean(), **{f"p{percent}_s": delays.percentile(percent) for percent in PERCENTS}}


def delay_by_nodes(waits: pl.DataFrame) -> pl.DataFrame:
    """Delay of the first attempt by the nodes it got, of jobs of 5 GPUs and more (DELAY_BY_NODES).

    waits: of `waits_by_nodes`.
    """
    rows = []
    for name in BUCKETS_OF_NODES:
        of_size = waits.filter(pl.col("bucket") == list(GPU_BUCKETS).index(name)).sort("nodes", "delay_s")
        for nodes, part in of_size.partition_by("nodes", maintain_order=True, as_dict=True).items():
            known = Counted.of(part.filter(pl.col("delay_s") >= 0), "delay_s")
            about = {"gpu_bucket": name, "nodes": nodes[0], "n": known.size}
            about["negative"] = part.filter(pl.col("delay_s") < 0)["n"].sum()
            about["unknown"] = part.filter(pl.col("delay_s").is_null())["n"].sum()
            about |= _times(known) | {"longest_s": int(known.values[-1])} if known.size else {"reason": NO_DELAY}
            rows.append(about)
    return DELAY_BY_NODES.frame(rows)


def out_of_order(jobs: pl.DataFrame) -> pl.DataFrame:
    """How many jobs started while one that was submitted before them still waited (OUT_OF_ORDER).

    Excluded is a job without a submission, a start or (in scope account) an account, or that started before it was
    submitted. This is an approximation of what a scheduler decides: a job that never started overtakes nobody and is
    not overtaken, nor is it known whether a job that waited could have run (quota, GPUs, a request to wait for a time
    or another job).
    """
    names = jobs["account"].drop_nulls().unique().to_list()
    every = jobs.select("submit_s", "start_s", account=code("account", names), bucket=bucket_of())
    in_time = every.filter((pl.col("start_s") >= pl.col("submit_s")).fill_null(False)).sort("submit_s")
    rows = []
    for scope in SCOPES:
        known = in_time.filter(pl.col("account") >= 0) if scope == ACCOUNT else in_time.with_columns(account=0)
        # As ranks, so that account and start fit one number.
        start = known["start_s"].rank("dense").cast(pl.Int64).to_numpy()
        ahead, passed = _overtaking(known["account"].to_numpy(), known["submit_s"].to_numpy(), start)
        for place, name in enumerate(BUCKETS, start=-1):
            whole = every.height if name == ALL else int((every["bucket"] == place).sum())
            if not whole:
                continue
            chosen = np.full(known.height, True) if name == ALL else (known["bucket"] == place).to_numpy()
            n, first, second = (int(flags.sum()) for flags in (chosen, ahead & chosen, passed & chosen))
            row = {"scope": scope, "gpu_bucket": name, "n": n, "out_of_order": first, "overtaken": second}
            shares = {"out_of_order_share": first / n, "overtaken_share": second / n} if n else {"reason": NO_TIMES}
            rows.append(row | {"left_out": whole - n} | shares)
    return OUT_OF_ORDER.frame(rows)


def _overtaking(group: np.ndarray, submit: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each job: whether one of its group submitted before it started after it, and the other way round.

    group: whole numbers from 0 on; submit: ascending; start: ranks. Equal submissions and equal starts overtake nobody.
    """
    order = np.argsort(group, kind="stable")
    owner, moment = group[order].astype(np.int64), submit[order]
    # The keys of a later group are all larger.
    key = owner * (int(start.max(initial=0)) + 1) + start[order]
    first = first_of_each(owner, moment)
    size = np.diff(first, append=key.size)
    latest = np.concatenate([[-1], np.maximum.accumulate(key)])[first]
    earliest = np.concatenate([np.minimum.accumulate(key[::-1])[::-1], [np.iinfo(np.int64).max]])[first + size]
    ahead, passed = np.empty((2, key.size), dtype=bool)
    ahead[order] = np.repeat(latest, size) > key
    passed[order] = np.repeat(earliest, size) < key
    return ahead, passed

"""Queueing delays by account, size and nodes, for first and later attempts; and jobs that start out of order."""

import numpy as np
import polars as pl

from ttf.analyses.queue.describe_attempts import DELAY_BY_NODES, DELAYS, OUT_OF_ORDER
from ttf.engine.counts import ValueCounts, text_codes
from ttf.engine.exact_sums import split_by_code
from ttf.records.jobs import GPU_BUCKETS, gpu_bucket, whole_gpus
from ttf.records.runs import sort_attempts
from ttf.stats.basics.order import run_starts

MOST_ACCOUNTS = 20
ALL = "all"
BUCKETS = (ALL, *GPU_BUCKETS)
# Which attempts of a job: all, the first, the later ones.
ALL_ATTEMPTS, FIRST, LATER = ATTEMPT_KINDS = ("every", "first", "later")
DELAY_LIMITS_S = (60, 600, 3_600, 6_000)
PERCENTS = (25, 50, 75, 90, 95)
# Philly's delays have a step at about 3 minutes: its first and last second, and spans of the same width around it.
STEP_S = (170, 200)
AROUND_STEP_S = ((139, 169), (201, 231))
# Sizes for which ATC'19 reports the number of servers.
NODE_BUCKETS = ("5-8", ">8")
ACCOUNT, CLUSTER = SCOPES = ("account", "cluster")

_COUNT = pl.len().cast(pl.Int64)

NO_DELAY = "no delay is known"
NO_POSITIVE = "no delay above 0 is known"
NO_TIMES = "no job has the times it takes"


def bucket_index() -> pl.Expr:
    """Return the index in GPU_BUCKETS of a job's whole GPUs; -1 for none or unknown."""
    return gpu_bucket(whole_gpus()).fill_null(-1)


def order_attempts(jobs: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """Order the attempts by job and sequence, with `job`, its row in `jobs`, and columns of the job.

    bucket: see `bucket_index`; job_gpu_milli: GPUs of all instances of the job.
    """
    job_columns = jobs.select(
        "account",
        "user",
        "submit_s",
        "attempts",
        bucket=bucket_index(),
        job_gpu_milli=pl.col("gpu_milli") * pl.col("size"),
    )
    rows = attempts.select("job", "attempt", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "nodes")
    rows = sort_attempts(rows).drop("attempt")
    return rows.hstack(job_columns[rows["job"]])


def compute_waits(attempts: pl.DataFrame) -> pl.DataFrame:
    """Compute the delay of each attempt of `order_attempts`: account, bucket, nodes, is_first, delay_s.

    The delay of a first attempt is its start minus the job's submission; of a later one, its start minus the end of the
    attempt before. It is negative if the clocks say so. It is null if one of the two times is unknown, or if the trace
    lacks earlier attempts of the job.
    """
    is_new = (pl.col("job") != pl.col("job").shift(1)).fill_null(True)
    index = pl.int_range(pl.len(), dtype=pl.Int64)
    # At the first row of a job: its number of rows.
    n_rows = pl.when(is_new).then(index).shift(-1, fill_value=pl.len()).backward_fill() - index
    reference_s = pl.when(is_new).then(pl.when(pl.col("attempts") <= n_rows).then("submit_s")).otherwise(
        pl.col("end_s").shift(1)
    )  # fmt: skip
    return attempts.select("account", "bucket", "nodes", is_first=is_new, delay_s=pl.col("start_s") - reference_s)


def count_waits(waits: pl.DataFrame) -> pl.DataFrame:
    """Count the waits of each kind: account, bucket, is_first, delay_s (-1 for all negative ones), n."""
    return waits.group_by("account", "bucket", "is_first", pl.col("delay_s").clip(lower_bound=-1)).agg(n=_COUNT)


def count_waits_by_nodes(waits: pl.DataFrame) -> pl.DataFrame:
    """Count the waits of first attempts in NODE_BUCKETS: bucket, nodes, delay_s, n."""
    indices = [list(GPU_BUCKETS).index(name) for name in NODE_BUCKETS]
    first_waits = waits.filter(pl.col("is_first") & pl.col("bucket").is_in(indices) & pl.col("nodes").is_not_null())
    return first_waits.group_by("bucket", "nodes", pl.col("delay_s").clip(lower_bound=-1)).agg(n=_COUNT)


def largest_accounts(job_counts: pl.DataFrame) -> list[str]:
    """Return the names of the MOST_ACCOUNTS accounts with most jobs. job_counts: account, n."""
    counts = job_counts.drop_nulls("account").group_by("account").agg(pl.col("n").sum())
    return counts.sort("n", "account", descending=[True, False])["account"].head(MOST_ACCOUNTS).to_list()


def build_delays(waits: pl.DataFrame, accounts: list[str]) -> pl.DataFrame:
    """Build DELAYS in total and by account, size of the job and kind of attempt, from `count_waits`.

    accounts: those that get rows. Every group with an attempt has a row with delays of 0 and a row without (as in the
    notebook of the Philly trace). beside_180_s_share: mean of the shares in the two spans around STEP_S, of the same
    width, so that a step at 3 minutes stands out. Percentiles are linear between ranks.
    """
    keys = ("owner", "bucket", "is_first", "delay_s")
    coded = waits.select(*keys[1:], "n", owner=text_codes("account", accounts))
    # Blocks repeat the same waits, so summing leaves far fewer rows, and fewer still without the accounts.
    account_waits = coded.filter(pl.col("owner") >= 0).group_by(keys).agg(pl.col("n").sum())
    all_waits = coded.group_by(pl.lit(0).alias("owner"), *keys[1:]).agg(pl.col("n").sum())
    rows_by_group = {}
    for group_by, groups, rows in ((ALL, [ALL], all_waits), ("account", accounts, account_waits)):
        rows = rows.sort("delay_s", nulls_last=False)
        owner, bucket, n = (rows[name].to_numpy().astype(np.int64) for name in ("owner", "bucket", "n"))
        is_later = np.where(rows["is_first"].to_numpy(), 0, 1)
        delay = rows["delay_s"].fill_null(-2).to_numpy()
        zeros = np.zeros_like(owner)
        for buckets, bucket_codes in (([ALL], zeros), (list(GPU_BUCKETS), bucket)):
            for kinds, kind_codes in (([ALL_ATTEMPTS], zeros), ([FIRST, LATER], is_later)):
                cells = (owner * len(buckets) + bucket_codes) * len(kinds) + kind_codes
                for cell, part in split_by_code(np.arange(n.size), np.where(bucket_codes >= 0, cells, -1)):
                    quotient, kind = divmod(cell, len(kinds))
                    group, size = divmod(quotient, len(buckets))
                    unknown, negative = np.searchsorted(delay[part], (-1, 0)).tolist()
                    excluded = {"unknown": int(n[part[:unknown]].sum())}
                    excluded["negative"] = int(n[part[unknown:negative]].sum())
                    key = (group_by, groups[group], buckets[size], kinds[kind])
                    rows_by_group[key] = _zeros_rows(delay[part[negative:]], n[part[negative:]], excluded)
    table = [
        dict(zip(("group_by", "group", "gpu_bucket", "which"), key, strict=True)) | row
        for group_by, groups in ((ALL, [ALL]), ("account", accounts))
        for group in groups
        for bucket_name in BUCKETS
        for kind in ATTEMPT_KINDS
        if (key := (group_by, group, bucket_name, kind)) in rows_by_group
        for row in rows_by_group[key]
    ]
    return DELAYS.frame(table)


def _zeros_rows(delays: np.ndarray, n: np.ndarray, excluded: dict) -> list[dict]:
    """Return the rows of one group with and without delays of 0. delays: ascending; n: their counts."""
    n_zeros = np.searchsorted(delays, 0, side="right")
    zeros = int(n[:n_zeros].sum())
    rows = []
    for zeros_kept, start, reason in ((True, 0, NO_DELAY), (False, n_zeros, NO_POSITIVE)):
        shown = ValueCounts(delays[start:], n[start:])
        row = {"zeros_kept": zeros_kept, "n": shown.size, "zeros": zeros, **excluded}
        if shown.size:
            row |= {f"within_{limit}_s_share": shown.between(0, limit) / shown.size for limit in DELAY_LIMITS_S}
            row |= {
                "step_180_s_share": shown.between(*STEP_S) / shown.size,
                "beside_180_s_share": sum(shown.between(*span) for span in AROUND_STEP_S) / (2 * shown.size),
            }
            row |= _time_cells(shown)
        else:
            row["reason"] = reason
        rows.append(row)
    return rows


def _time_cells(delays: ValueCounts) -> dict[str, float]:
    return {"mean_s": delays.mean(), **{f"p{percent}_s": delays.percentile(percent) for percent in PERCENTS}}


def build_delay_by_nodes(waits: pl.DataFrame) -> pl.DataFrame:
    """Build DELAY_BY_NODES from `count_waits_by_nodes`: first attempts of jobs of 5 GPUs or more."""
    rows = []
    for name in NODE_BUCKETS:
        size_waits = waits.filter(pl.col("bucket") == list(GPU_BUCKETS).index(name)).sort("nodes", "delay_s")
        for nodes, part in size_waits.partition_by("nodes", maintain_order=True, as_dict=True).items():
            delays = ValueCounts.from_frame(part.filter(pl.col("delay_s") >= 0), "delay_s")
            row = {"gpu_bucket": name, "nodes": nodes[0], "n": delays.size}
            row["negative"] = part.filter(pl.col("delay_s") < 0)["n"].sum()
            row["unknown"] = part.filter(pl.col("delay_s").is_null())["n"].sum()
            row |= _time_cells(delays) | {"longest_s": int(delays.values[-1])} if delays.size else {"reason": NO_DELAY}
            rows.append(row)
    return DELAY_BY_NODES.frame(rows)


def build_out_of_order(jobs: pl.DataFrame) -> pl.DataFrame:
    """Build OUT_OF_ORDER: jobs that start while a job submitted earlier waits.

    Jobs without a submission, a start or (in scope account) an account are excluded, as are jobs that started before
    their submission. This only approximates the decisions of a scheduler: a job that never started neither overtakes
    nor is overtaken, and whether a waiting job could have run is unknown (quota, GPUs, a request to wait for a time or
    another job).
    """
    names = jobs["account"].drop_nulls().unique().to_list()
    all_jobs = jobs.select("submit_s", "start_s", account=text_codes("account", names), bucket=bucket_index())
    started = all_jobs.filter((pl.col("start_s") >= pl.col("submit_s")).fill_null(False)).sort("submit_s")
    rows = []
    for scope in SCOPES:
        ranked = started.filter(pl.col("account") >= 0) if scope == ACCOUNT else started.with_columns(account=0)
        # Ranks, so that account and start fit into one number.
        start = ranked["start_s"].rank("dense").cast(pl.Int64).to_numpy()
        is_ahead, is_behind = _find_overtaking(ranked["account"].to_numpy(), ranked["submit_s"].to_numpy(), start)
        for index, name in enumerate(BUCKETS, start=-1):
            if not (all_jobs.height if name == ALL else (all_jobs["bucket"] == index).any()):
                continue
            is_size = np.full(ranked.height, True) if name == ALL else (ranked["bucket"] == index).to_numpy()
            n, n_ahead, n_behind = (int(flags.sum()) for flags in (is_size, is_ahead & is_size, is_behind & is_size))
            row = {"scope": scope, "gpu_bucket": name, "n": n}
            shares = {"out_of_order_share": n_ahead / n, "overtaken_share": n_behind / n} if n else {"reason": NO_TIMES}
            rows.append(row | shares)
    return OUT_OF_ORDER.frame(rows)


def _find_overtaking(group: np.ndarray, submit: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each job, whether it starts before an earlier submission of its group, and whether it is overtaken.

    group: whole numbers from 0; submit: ascending; start: ranks. Equal submissions and equal starts overtake nobody.
    """
    order = np.argsort(group, kind="stable")
    ordered_group, ordered_submit = group[order].astype(np.int64), submit[order]
    # All keys of a later group are larger.
    key = ordered_group * (int(start.max(initial=0)) + 1) + start[order]
    first = run_starts(ordered_group, ordered_submit)
    size = np.diff(first, append=key.size)
    latest = np.concatenate([[-1], np.maximum.accumulate(key)])[first]
    earliest = np.concatenate([np.minimum.accumulate(key[::-1])[::-1], [np.iinfo(np.int64).max]])[first + size]
    is_ahead, is_behind = np.empty((2, key.size), dtype=bool)
    is_ahead[order] = np.repeat(latest, size) > key
    is_behind[order] = np.repeat(earliest, size) < key
    return is_ahead, is_behind

"""In which states jobs end, how they share out over sizes, and the summary row of a cluster.

After Kokolis et al. (HPCA 2025), their figures 3 and 6, and the summary tables of Hu et al. (SC'21, NSDI'24). Shares of
GPU time are quotients of exact integers.
"""

import polars as pl

from ttf.analyses.outcomes.describe_states import CLUSTER_SUMMARY, SIZE_MIX, STATES
from ttf.engine.counts import Counted, counts
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.records.jobs import TIME_LIMITS, Frame, gpu_seconds_milli, whole_gpus
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.shares import part_of

# A status is text of the trace: no more of them than anybody reads.
MOST_STATES = 20
OTHER = "other"
_MILLI_S_AN_HOUR = 3_600_000

WITH_GPU = (pl.col("gpu_milli") > 0).fill_null(False)
# Which jobs are in it: those with a GPU, those without.
POPULATIONS = {"all": [True, False], "gpu": [True], "no_gpu": [False]}


_JOBS = ["status_raw", "outcome", "gpu_milli", "size", "runtime_s", "queue_s", "submit_s", "start_s", "trace_end_s"]
_LIVES = ["state", "gpu_milli", "duration_s", "event", "basis"]
_LACKING = {"runtime": "no run time is known", "queue": "no queueing delay is known"}


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    jobs = given.scan("jobs", _JOBS)
    return {
        "states": states(jobs, given.scan("lives_infra", _LIVES), given.settings.attempts),
        "size_mix": size_mix(jobs),
        "cluster_summary": cluster_summary(jobs),
    }


def states(jobs: Frame, infra_lives: Frame, of_attempts: bool) -> pl.DataFrame:
    """Jobs, and attempts where the trace has them, by the state they ended in: STATES.

    A row per status word, the most frequent first, those beyond MOST_STATES together as `other`, those without a word
    at the end; then one row of kind `infra`. GPU time of a job: as in outcomes.csv.
    """
    of_jobs = jobs.select(
        state="status_raw", gpu=(pl.col("gpu_milli") * pl.col("size")).fill_null(0), time=gpu_seconds_milli()
    )
    of_lives = infra_lives.select(
        "state",
        gpu="gpu_milli",
        time=pl.col("gpu_milli").cast(pl.Int128) * pl.col("duration_s"),
        infra=(pl.col("event") == EVENT).fill_null(False),
    )
    basis = infra_lives.lazy().head(1).select(pl.col("basis").first()).collect().item()
    of_infra = of_lives.filter("infra")
    if not of_attempts:
        return STATES.frame(_counted("job", of_jobs, of_infra, basis))
    return STATES.frame(_counted("job", of_jobs, None, None) + _counted("attempt", of_lives, of_infra, basis))


def _counted(unit: str, units: Frame, infra: Frame | None, basis: str | None) -> list[dict]:
    sums = [pl.len(), (pl.col("gpu") > 0).sum().alias("with_gpu"), pl.col("time").sum()]
    words = units.lazy().group_by("state").agg(sums).collect(engine="streaming")
    words = words.sort("len", "state", descending=[True, False], nulls_last=True).to_dicts()
    n, n_with_gpu, total = (sum(word[name] for word in words) for name in ("len", "with_gpu", "time"))
    timeouts = sum(word["len"] for word in words if word["state"] in TIME_LIMITS)
    named = [word for word in words if word["state"] is not None]
    shown, rest = named[:MOST_STATES], named[MOST_STATES:]
    if rest:
        together = {name: sum(word[name] for word in rest) for name in ("len", "with_gpu", "time")}
        shown.append({"state": OTHER, "why": f"{len(rest)} more states"} | together)
    shown += [word | {"why": "the trace does not say"} for word in words if word["state"] is None]
    shown = [word | {"kind": "state"} for word in shown]
    if infra is not None:
        attributed = infra.lazy().select(sums).collect(engine="streaming").row(0, named=True)
        shown.append({"kind": "infra", "infra_basis": basis} | attributed)
    return [
        word
        | {
            "unit": unit,
            "count": word["len"],
            "n": n,
            "timeouts": timeouts,
            "count_share": part_of(word["len"], n),
            "n_with_gpu": n_with_gpu,
            "with_gpu_share": part_of(word["with_gpu"], n_with_gpu),
            "gpu_hours": word["time"] / _MILLI_S_AN_HOUR,
            "gpu_hours_share": part_of(word["time"], total),
            "reason": "; ".join(filter(None, [word.get("why"), None if total else "no GPU time was seen"])) or None,
        }
        for word in shown
    ]


def size_mix(jobs: Frame) -> pl.DataFrame:
    """Jobs and GPU time by GPUs of the job, SIZE_MIX: every bucket up to the largest has a row.

    *_at_least_share: of jobs of gpus_high GPUs or more, so that "256 GPUs or more" includes those of 256. Jobs of no or
    an unknown number of GPUs are in the row of 0, and in no share.
    """
    sized = jobs.lazy().select(gpus=whole_gpus().fill_null(0), time=gpu_seconds_milli())
    sums = sized.group_by("gpus").agg(jobs=pl.len().cast(pl.Int64), time=pl.col("time").sum()).sort("gpus")
    rows = sums.collect(engine="streaming").to_dicts()
    without = next((row for row in rows if row["gpus"] <= 0), None)
    rows = [row for row in rows if row["gpus"] > 0]
    n, total = sum(row["jobs"] for row in rows), sum(row["time"] for row in rows)
    found = []
    if without:
        found.append({"gpus_low": 0, "gpus_high": 0, "jobs": without["jobs"], "n": n, "reason": "no GPU: in no share"})
    low, high = 1, 1
    while rows and low <= rows[-1]["gpus"]:
        parts = {
            "": [row for row in rows if low <= row["gpus"] <= high],
            "up_to_": [row for row in rows if row["gpus"] <= high],
            "at_least_": [row for row in rows if row["gpus"] >= high],
        }
        mix = {"gpus_low": low, "gpus_high": high, "n": n, "jobs": sum(row["jobs"] for row in parts[""])}
        mix["gpu_hours"] = sum(row["time"] for row in parts[""]) / _MILLI_S_AN_HOUR
        for name, part in parts.items():
            mix[f"jobs_{name}share"] = part_of(sum(row["jobs"] for row in part), n)
            mix[f"gpu_hours_{name}share"] = part_of(sum(row["time"] for row in part), total)
        found.append(mix | {"reason": None if total else "no GPU time was seen"})
        low, high = high + 1, 2 * high
    return SIZE_MIX.frame(found)


def cluster_summary(jobs: Frame) -> pl.DataFrame:
    """How many jobs, how long, how large: CLUSTER_SUMMARY. Sums are there so that clusters can be put together."""
    jobs = jobs.lazy()
    came, milli = pl.coalesce("submit_s", "start_s"), pl.col("gpu_milli").cast(pl.Int128) * pl.col("size")
    sums = jobs.group_by(with_gpu=WITH_GPU).agg(
        jobs=pl.len(),
        first_s=came.min(),
        last_s=came.max(),
        time=gpu_seconds_milli().sum(),
        sized=milli.count(),
        milli=milli.sum(),
        gpus_max=whole_gpus().max(),
    )
    sums = {row["with_gpu"]: row for row in sums.collect(engine="streaming").iter_rows(named=True)}
    moments = [row[name] for row in sums.values() for name in ("first_s", "last_s") if row[name] is not None]
    days = (max(moments) - min(moments)) / SECONDS_A_DAY if moments else None
    times = {time: counts(jobs, time=pl.col(f"{time}_s"), with_gpu=WITH_GPU) for time in ("runtime", "queue")}
    rows = []
    for population, members in POPULATIONS.items():
        mine = [sums[with_gpu] for with_gpu in members if with_gpu in sums]
        n = sum(of["jobs"] for of in mine)
        row = {"population": population, "jobs": n, "days": days}
        row["jobs_per_day"] = n / days if days else None
        row["gpu_hours"] = sum(of["time"] for of in mine) / _MILLI_S_AN_HOUR
        if True in members and True in sums and (sized := sums[True]["sized"]):
            gpus = sums[True]["milli"]
            row |= {"gpus_mean": gpus / (1000 * sized), "gpus_sum": gpus / 1000, "gpus_max": sums[True]["gpus_max"]}
        for time, of_all in times.items():
            known = of_all.filter(pl.col("with_gpu").is_in([int(with_gpu) for with_gpu in members]))
            counted = Counted.of(known, "time")
            row[f"{time}_n"] = counted.size
            if counted.size:
                total = known.select((pl.col("time").cast(pl.Int128) * pl.col("n")).sum()).item()
                row |= {f"{time}_sum_s": total, f"{time}_mean_s": total / counted.size}
                row |= {f"{time}_median_s": counted.median(), f"{time}_max_s": known["time"][-1]}
        lacking = "; ".join(why for time, why in _LACKING.items() if not row[f"{time}_n"])
        rows.append(row | {"reason": (lacking or None) if n else "no such job"})
    return CLUSTER_SUMMARY.frame(rows)

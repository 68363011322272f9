"""States in which jobs end, jobs by size, and the summary of a cluster.

After Kokolis et al. (HPCA 2025), their figures 3 and 6, and the summary tables of Hu et al. (SC'21, NSDI'24). Shares of
GPU time are quotients of exact integers.
"""

import polars as pl

from ttf.analyses.outcomes.describe_states import CLUSTER_SUMMARY, SIZE_MIX, STATES
from ttf.engine.counts import ValueCounts, count_rows
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.records.jobs import TIME_LIMITS, Frame, gpu_seconds_milli, whole_gpus
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.shares import divide

# Number of states with a row; a status is free text of the trace.
MOST_STATES = 20
REMAINING = "other"
_MILLI_S_AN_HOUR = 3_600_000

HAS_GPU = (pl.col("gpu_milli") > 0).fill_null(False)
# Values of HAS_GPU in each population.
POPULATIONS = {"all": [True, False], "gpu": [True], "no_gpu": [False]}


_JOBS = ["status_raw", "outcome", "gpu_milli", "size", "runtime_s", "queue_s", "submit_s", "start_s", "trace_end_s"]
_DURATIONS = ["state", "gpu_milli", "duration_s", "event", "basis"]
_MISSING = {"runtime": "no run time is known", "queue": "no queueing delay is known"}


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    jobs = inputs.scan("jobs", _JOBS)
    return {
        "states": build_states(jobs, inputs.scan("durations_infra", _DURATIONS), inputs.settings.attempts),
        "size_mix": build_size_mix(jobs),
        "cluster_summary": summarise_cluster(jobs),
    }


def build_states(jobs: Frame, infra_durations: Frame, has_attempts: bool) -> pl.DataFrame:
    """Build STATES: jobs, and attempts if the trace has them, by the state in which they ended.

    There is a row per status word, the most frequent first. Words beyond MOST_STATES share the row `other`; jobs
    without a word come last, then one row of kind `infra`. GPU time of a job: as in outcomes.csv.
    """
    job_rows = jobs.select(
        state="status_raw", gpu=(pl.col("gpu_milli") * pl.col("size")).fill_null(0), time=gpu_seconds_milli()
    )
    attempts = infra_durations.select(
        "state",
        gpu="gpu_milli",
        time=pl.col("gpu_milli").cast(pl.Int128) * pl.col("duration_s"),
        infra=(pl.col("event") == EVENT).fill_null(False),
    )
    basis = infra_durations.lazy().head(1).select(pl.col("basis").first()).collect().item()
    infra = attempts.filter("infra")
    if not has_attempts:
        return STATES.frame(_state_rows("job", job_rows, infra, basis))
    return STATES.frame(_state_rows("job", job_rows, None, None) + _state_rows("attempt", attempts, infra, basis))


def _state_rows(unit: str, units: Frame, infra: Frame | None, basis: str | None) -> list[dict]:
    """Return the rows of STATES of a unit, job or attempt. infra: those ended by infrastructure; None: no such row."""
    sums = [pl.len(), (pl.col("gpu") > 0).sum().alias("with_gpu"), pl.col("time").sum()]
    state_sums = units.lazy().group_by("state").agg(sums).collect(engine="streaming")
    states = state_sums.sort("len", "state", descending=[True, False], nulls_last=True).to_dicts()
    n, n_with_gpu, total = (sum(state[name] for state in states) for name in ("len", "with_gpu", "time"))
    timeouts = sum(state["len"] for state in states if state["state"] in TIME_LIMITS)
    named_states = [state for state in states if state["state"] is not None]
    rows, merged = named_states[:MOST_STATES], named_states[MOST_STATES:]
    if merged:
        merged_sums = {name: sum(state[name] for state in merged) for name in ("len", "with_gpu", "time")}
        rows.append({"state": REMAINING, "cause": f"{len(merged)} more states"} | merged_sums)
    rows += [state | {"cause": "the trace does not say"} for state in states if state["state"] is None]
    rows = [state | {"kind": "state"} for state in rows]
    if infra is not None:
        infra_sums = infra.lazy().select(sums).collect(engine="streaming").row(0, named=True)
        rows.append({"kind": "infra", "infra_basis": basis} | infra_sums)
    return [
        state
        | {
            "unit": unit,
            "count": state["len"],
            "n": n,
            "timeouts": timeouts,
            "count_share": divide(state["len"], n),
            "n_with_gpu": n_with_gpu,
            "with_gpu_share": divide(state["with_gpu"], n_with_gpu),
            "gpu_hours": state["time"] / _MILLI_S_AN_HOUR,
            "gpu_hours_share": divide(state["time"], total),
            "reason": "; ".join(filter(None, [state.get("cause"), None if total else "no GPU time was seen"])) or None,
        }
        for state in rows
    ]


def build_size_mix(jobs: Frame) -> pl.DataFrame:
    """Build SIZE_MIX: jobs and GPU time by GPUs of the job, with a row for every bucket up to the largest.

    gpu_hours_at_least_share is of jobs of gpus_high GPUs or more, so that "256 GPUs or more" includes those of 256.
    Jobs of no or an unknown number of GPUs are in the row of 0, and in no share.
    """
    sized = jobs.lazy().select(gpus=whole_gpus().fill_null(0), time=gpu_seconds_milli())
    sums = sized.group_by("gpus").agg(jobs=pl.len().cast(pl.Int64), time=pl.col("time").sum()).sort("gpus")
    rows = sums.collect(engine="streaming").to_dicts()
    unsized = next((row for row in rows if row["gpus"] <= 0), None)
    rows = [row for row in rows if row["gpus"] > 0]
    n, total = sum(row["jobs"] for row in rows), sum(row["time"] for row in rows)
    mixes = []
    if unsized:
        mixes.append({"gpus_low": 0, "gpus_high": 0, "jobs": unsized["jobs"], "n": n, "reason": "no GPU: in no share"})
    low, high = 1, 1
    while rows and low <= rows[-1]["gpus"]:
        rows_by_part = {
            "": [row for row in rows if low <= row["gpus"] <= high],
            "up_to_": [row for row in rows if row["gpus"] <= high],
            "at_least_": [row for row in rows if row["gpus"] >= high],
        }
        mix = {"gpus_low": low, "gpus_high": high, "n": n, "jobs": sum(row["jobs"] for row in rows_by_part[""])}
        mix["gpu_hours"] = sum(row["time"] for row in rows_by_part[""]) / _MILLI_S_AN_HOUR
        for name, part_rows in rows_by_part.items():
            mix[f"jobs_{name}share"] = divide(sum(row["jobs"] for row in part_rows), n)
            mix[f"gpu_hours_{name}share"] = divide(sum(row["time"] for row in part_rows), total)
        mixes.append(mix | {"reason": None if total else "no GPU time was seen"})
        low, high = high + 1, 2 * high
    return SIZE_MIX.frame(mixes)


def summarise_cluster(jobs: Frame) -> pl.DataFrame:
    """Build CLUSTER_SUMMARY: number, duration and size of jobs. It includes sums, so that clusters can be merged."""
    arrival_s, job_milli = pl.coalesce("submit_s", "start_s"), pl.col("gpu_milli").cast(pl.Int128) * pl.col("size")
    part_sums = (
        jobs.lazy()
        .group_by(has_gpu=HAS_GPU)
        .agg(
            jobs=pl.len(),
            first_s=arrival_s.min(),
            last_s=arrival_s.max(),
            time=gpu_seconds_milli().sum(),
            sized=job_milli.count(),
            milli=job_milli.sum(),
            gpus_max=whole_gpus().max(),
        )
    )
    sums = {row["has_gpu"]: row for row in part_sums.collect(engine="streaming").iter_rows(named=True)}
    times_s = [row[name] for row in sums.values() for name in ("first_s", "last_s") if row[name] is not None]
    days = (max(times_s) - min(times_s)) / SECONDS_A_DAY if times_s else None
    counts_by_time = {
        time: count_rows(jobs, time=pl.col(f"{time}_s"), has_gpu=HAS_GPU) for time in ("runtime", "queue")
    }
    rows = []
    for population, values in POPULATIONS.items():
        parts = [sums[has_gpu] for has_gpu in values if has_gpu in sums]
        n = sum(part["jobs"] for part in parts)
        row = {"population": population, "jobs": n, "days": days}
        row["jobs_per_day"] = n / days if days else None
        row["gpu_hours"] = sum(part["time"] for part in parts) / _MILLI_S_AN_HOUR
        if True in values and True in sums and (sized := sums[True]["sized"]):
            milli = sums[True]["milli"]
            row |= {"gpus_mean": milli / (1000 * sized), "gpus_sum": milli / 1000, "gpus_max": sums[True]["gpus_max"]}
        for time, time_counts in counts_by_time.items():
            selected = time_counts.filter(pl.col("has_gpu").is_in([int(has_gpu) for has_gpu in values]))
            durations = ValueCounts.from_frame(selected, "time")
            row[f"{time}_n"] = durations.size
            if durations.size:
                total = selected.select((pl.col("time").cast(pl.Int128) * pl.col("n")).sum()).item()
                row |= {f"{time}_sum_s": total, f"{time}_mean_s": total / durations.size}
                row |= {f"{time}_median_s": durations.median(), f"{time}_max_s": selected["time"][-1]}
        missing = "; ".join(reason for time, reason in _MISSING.items() if not row[f"{time}_n"])
        rows.append(row | {"reason": (missing or None) if n else "no such job"})
    return CLUSTER_SUMMARY.frame(rows)

import polars as pl

from ttf.analyses.measure_losses.lost_work import loss_sums, lost_work, lost_work_by_month
from ttf.analyses.measure_losses.owners import OWNERS, concentration, failures_by_owner, owner_counts
from ttf.analyses.measure_losses.repeats import repeats
from ttf.analyses.measure_losses.what_if import what_if
from ttf.clusters import READ_OF_JOBS
from ttf.inputs import Inputs
from ttf.partitions import partitions_of
from ttf.runs import runs, with_reasons

JOBS = (
    *("user", "account", "recurrence_group", "outcome", "gpu_milli", "size"),
    *("submit_s", "start_s", "end_s", "runtime_s", "trace_end_s"),
)
# Jobs looked at together for how failures repeat.
PARTITION_ROWS = 1 << 21


def compute(given: Inputs) -> dict:
    settings = given.settings.lost_work
    attempts = given.read("attempts") if "attempts" in given else None
    # Nothing but attempts and reasons is found by the names of jobs.
    jobs = given.scan("jobs", [*JOBS, *(["job_id", "task"] if "attempts" in given or "reasons" in given else [])])
    if "reasons" in given:
        jobs, attempts = with_reasons(jobs.collect(), attempts, given.read("reasons"))
        jobs = jobs.lazy()
    of_jobs = runs(jobs, attempts, given.scan("lives_infra", ["event", "state", "basis"]))
    owners = owner_counts(jobs, of_jobs)
    begin_s = pl.min_horizontal(pl.col("submit_s").min(), pl.col("start_s").min())
    begin_s, end_s = jobs.select(begin_s, pl.col("trace_end_s").max()).collect(engine="streaming").row(0)
    sums = loss_sums(of_jobs, settings["checkpoint_interval_s"], settings["preemption_window_s"], begin_s)
    with given.scratch() as spilled:
        of_repeats = repeats(jobs, of_jobs, partitions_of([jobs], PARTITION_ROWS, spilled))
    alike = given.scan("jobs", ["outcome", *OWNERS, *READ_OF_JOBS])
    return {
        "lost_work": lost_work(sums),
        "lost_work_by_month": lost_work_by_month(sums, begin_s, end_s),
        "failures_by_owner": failures_by_owner(owners, settings["owners"], alike),
        "failure_concentration": concentration(owners),
        "repeats": of_repeats,
        "what_if": what_if(of_jobs, [60 * minutes for minutes in settings["trial_minutes"]]),
    }

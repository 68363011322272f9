"""In which states do jobs end, and how large are they?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import REASON, count, number, seconds, share, table, whole_seconds, words

STATES = table(
    "states",
    "Jobs or attempts by the state in which they end, the most frequent first, and those attributed to infrastructure.",
    unit=words("Unit", "attempt if the trace records attempts, else job (by its last state)."),
    kind=words("Kind", "state, or infra: failures attributed to infrastructure, which the states include too."),
    state=words("State", "Raw status word of the trace.", blank="the trace gives none, or the row has kind infra"),
    count=count("Number", "Jobs or attempts with this state.", unit="ends"),
    n=count("n", "All jobs or attempts.", unit="ends"),
    timeouts=count("at a time limit", "Jobs or attempts that a time limit ended.", unit="ends"),
    count_share=share("Share", "count over n.", blank=REASON),
    with_gpu=count("With a GPU", "Jobs or attempts of count that requested a GPU."),
    n_with_gpu=count("n with a GPU", "All jobs or attempts that requested a GPU."),
    with_gpu_share=share("Share", "with_gpu over n_with_gpu.", blank=REASON),
    gpu_hours=number("GPU-hours", "Sum of GPUs requested times run time.", unit="h"),
    gpu_hours_share=share("Share", "Share of the GPU-hours of all jobs or attempts.", blank=REASON),
    infra_basis=words(
        "Basis", "Rule for infrastructure failures; proxy: every failure counts.", "of kind state, or no duration"
    ),
)
SIZE_MIX = table(
    "size_mix",
    "Jobs by number of GPUs: 0, 1, 2, 3 to 4, 5 to 8 and so on; a share of one GPU counts as 1.",
    gpus_low=count("GPUs from", "Fewest GPUs of the row.", unit="GPUs"),
    gpus_high=count("GPUs to", "Most GPUs of the row.", unit="GPUs"),
    jobs=count("Number", "Jobs of this size.", unit="jobs"),
    n=count("n", "All jobs that requested a GPU.", unit="jobs"),
    jobs_share=share("Share", "jobs over n.", blank=REASON),
    jobs_up_to_share=share("up to here", "Share of jobs with up to gpus_high GPUs.", blank=REASON),
    gpu_hours=number("GPU-hours", "GPUs requested times run time, summed.", blank=REASON, unit="h"),
    gpu_hours_share=share("Share", "Share of all GPU-hours.", blank=REASON),
    gpu_hours_up_to_share=share("up to here", "Share of GPU-hours in jobs with up to gpus_high GPUs.", REASON),
    gpu_hours_at_least_share=share("from here on", "Share of GPU-hours in jobs with gpus_high GPUs or more.", REASON),
)
_NO_SPAN = "no submission or start is known"
_NO_GPUS = "no job of the row has a known number of GPUs"
CLUSTER_SUMMARY = table(
    "cluster_summary",
    "Summary of all jobs, of those that requested a GPU, and of those that did not.",
    population=words("Which", "all, gpu or no_gpu."),
    jobs=count("Number", "Jobs of the row.", unit="jobs"),
    days=number("Days", "From the first submission (or start) of the trace to the last.", blank=_NO_SPAN, unit="days"),
    jobs_per_day=number(
        "a day", "jobs divided by days.", blank=f"{_NO_SPAN}, or all are at one moment", unit="jobs a day"
    ),
    gpu_hours=number("GPU-hours", "GPUs requested times run time, summed.", unit="h"),
    gpus_mean=number(
        "GPUs, mean", "Mean number of GPUs of jobs with a GPU or a share of one.", blank=_NO_GPUS, unit="GPUs"
    ),
    gpus_max=count("most", "Whole GPUs of the largest job.", blank=_NO_GPUS, unit="GPUs"),
    gpus_sum=number("GPUs, sum", "Sum over jobs with a GPU.", blank=_NO_GPUS, unit="GPUs"),
    runtime_n=count("n of run times", "Jobs with a known run time.", unit="jobs"),
    runtime_sum_s=whole_seconds("Run time, sum", "Sum over runtime_n jobs.", blank=REASON),
    runtime_mean_s=seconds("Run time, mean", "Mean over runtime_n jobs.", blank=REASON, n="runtime_n"),
    runtime_median_s=seconds("median", "Median run time.", blank=REASON, n="runtime_n"),
    runtime_max_s=whole_seconds("longest", "Longest run time.", blank=REASON, n="runtime_n"),
    queue_n=count("n of delays", "Jobs with a known queueing delay.", unit="jobs"),
    queue_mean_s=seconds("Delay, mean", "Mean over queue_n jobs.", blank=REASON),
    queue_median_s=seconds("median", "Median queueing delay.", blank=REASON),
)

ANALYSIS = Analysis(
    question="In which states do jobs end, and how large are they?",
    theme="outcomes",
    rank=20,
    needs=["jobs", "durations_infra"],
    settings={"attempts": lambda trace: "attempts" in trace.products},
    tables=[STATES, SIZE_MIX, CLUSTER_SUMMARY],
    charts={"size_mix": "size_mix"},
    sections=["states"],
    in_size_unit=True,
    memory_mb=260,
    mb_per_gb={"pai2020": 10, "sacct": 560},
)

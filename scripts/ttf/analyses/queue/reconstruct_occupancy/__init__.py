"""How full was the cluster, and does that explain the waits?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns, wilson_columns
from ttf.engine.contract import REASON, count, number, share, table, whole_seconds, words

# Shorter waits are the scheduler's own pace.
LONGEST_PLAIN_WAIT_S = 60
# Reasons for waiting that the page shows; the others do not explain a wait.
RECOGNISED = ("full", "fragmentation")

_LOAD = words("GPUs in use", "Load (share of GPUs in use) by tenths, or all for the whole time.")
_TIME = whole_seconds("Time", "Time at this load.")
_STRETCHES = count("n", "Intervals in which no placement starts or ends.")

OCCUPANCY = table(
    "occupancy",
    "One row per tenth of the load: time-weighted means of servers and free GPUs.",
    load=_LOAD,
    time_s=_TIME,
    time_share=share("Share of time", "Share of the whole time."),
    n=_STRETCHES,
    gpus_in_use_share=share("GPUs in use", "Share of all GPUs.", blank=REASON),
    servers_empty_share=share("Servers empty", "Share of servers with no GPU in use.", blank=REASON),
    servers_partly_share=share("partly used", "Share of servers with some GPUs in use.", blank=REASON),
    servers_full_share=share("full", "Share of servers with all GPUs in use.", blank=REASON),
    free_gpus=number("Free GPUs", "GPUs not in use.", blank=REASON, unit="GPUs"),
    largest_free_gpus=number("Most free on one", "Whole free GPUs of the server with the most.", REASON, unit="GPUs"),
)
OCCUPANCY_BASIS = table(
    "occupancy_basis",
    "One row: the data behind the occupancy.",
    servers=count("Servers", "Servers of the trace.", unit="servers"),
    servers_by_use=count("by use", "Servers with a size inferred from use.", blank=REASON, unit="servers"),
    gpus=count("GPUs", "Whole GPUs of all servers.", unit="GPUs"),
    placements=count("Placements", "Placements that hold a GPU.", unit="placements"),
    left_out=count("Left out", "Placements excluded because their time is unknown.", unit="placements"),
    spread=count("Spread", "Placements assumed to hold an even share of the attempt's GPUs.", unit="placements"),
    above_capacity_share=share(
        "Above capacity", "Share of GPU time that exceeds the size of its server and is cut off.", blank=REASON
    ),
    peak_share=share("Peak", "Largest share of all GPUs in use at once.", blank=REASON),
    start_s=whole_seconds("From", "First time that a GPU was held.", blank=REASON),
    end_s=whole_seconds("To", "Last time that a GPU was held.", blank=REASON),
)
FRAGMENTATION = table(
    "fragmentation",
    "One row per tenth of the load and number of free GPUs: whether servers have that many.",
    load=_LOAD,
    free_at_least=words("Free on a server", "1, 2, 4 or 8 GPUs, or the whole server."),
    time_s=_TIME,
    n=_STRETCHES,
    free_gpus_share=share("Share of free GPUs", "Share of free GPUs on servers with at least this many free.", REASON),
    placeable_time_share=share(
        "Share of time", "Share of time at this load in which some server has that many free.", REASON
    ),
)
LOAD_OVER_TIME = table(
    "load_over_time",
    "One row per step of time: GPUs in use.",
    start_s=whole_seconds("From", "Start of the step."),
    time_s=whole_seconds("Length", "Length of the step."),
    gpus=count("GPUs", "GPUs of all servers.", unit="GPUs"),
    gpus_in_use_mean=number("In use, mean", "Mean number of GPUs in use in the step.", unit="GPUs"),
    gpus_in_use_max=number("In use, most", "Most GPUs in use at once in the step.", unit="GPUs"),
    gpus_in_use_share=share("GPUs in use", "Mean share of all GPUs."),
)
SERVER_SHARING = table(
    "server_sharing",
    "One row per size of multi-GPU attempts: GPU time on servers without another attempt.",
    group=words("GPUs", "GPUs of the attempt; all: two or more."),
    attempts=count("Attempts", "Attempts of this size."),
    gpu_hours=number("GPU-hours", "GPU time of the attempts of the row.", unit="GPU-hours"),
    dedicated_share=share("on servers to themselves", "Share of GPU time on servers without another attempt.", REASON),
)
DELAY_CAUSES = table(
    "delay_causes",
    "One row per size of jobs and inferred reason of waiting, from the GPUs in use when the wait began.",
    group=words("GPUs", "GPUs of the job; all: any number."),
    cause=words("Reason", "First condition that holds: fair_share, full, fragmentation or room.", blank=REASON),
    started=count("Started", "Jobs with an account and a known wait.", blank=REASON, unit="jobs"),
    n=count("Waited", "Jobs that waited longer than the scheduler's pace.", blank=REASON, unit="jobs"),
    jobs=count("Jobs", "Jobs that waited for this reason.", blank=REASON, unit="jobs"),
    jobs_share=share("Share", "Jobs divided by n.", blank=REASON),
    **wilson_columns(blank=REASON),
    **clustered_columns(share),
    wait_s=whole_seconds("Waiting time", "Waiting time of the jobs with this reason.", blank=REASON),
    wait_share=share("Share of waiting time", "Share of the waiting time of all jobs that waited.", blank=REASON),
    unrecognised_share=share(
        "not recognised", "Share of waiting jobs whose reason is fair_share or room.", blank=REASON
    ),
    unrecognised_wait_share=share(
        "their waiting time",
        "Share of the waiting time that jobs with these reasons (fair_share, room) had.",
        blank=REASON,
    ),
)

ANALYSIS = Analysis(
    question="How full was the cluster, and does that explain the waits?",
    theme="queue",
    rank=20,
    needs=["placements", "jobs", "nodes"],
    uses=["attempts"],
    tables=(OCCUPANCY, OCCUPANCY_BASIS, FRAGMENTATION, LOAD_OVER_TIME, SERVER_SHARING, DELAY_CAUSES),
    settings={"clock": lambda trace: trace.clock},
    charts={
        "gpus_in_use": ["load_over_time", "occupancy_basis"],
        "delay_causes": "delay_causes",
    },
    main=["gpus_in_use"],
    sections=["occupancy"],
    memory_mb=450,
    mb_per_gb={"pai2020": 10, "philly": 260, "sacct": 600},
)

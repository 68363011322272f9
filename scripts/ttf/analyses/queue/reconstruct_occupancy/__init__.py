"""How full was the cluster, and what does that say of waits?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered, wilson
from ttf.engine.contract import REASON, count, number, share, table, whole_seconds, words

# A shorter wait is what a scheduler takes to come by.
LONGEST_PLAIN_WAIT_S = 60
# Of the reasons for waiting what the page says and draws; the others do not show why a job waited.
RECOGNISED = ("full", "fragmentation")

_LOAD = words("GPUs in use", "Tenth of the load: GPUs in use as a share of all; all: all the time.")
_TIME = whole_seconds("Time", "How long the load was there.")
_STRETCHES = count("n", "Stretches of time in which no placement starts or ends.")

OCCUPANCY = table(
    "occupancy",
    "A tenth of the load: servers and free GPUs, as means weighted by time.",
    load=_LOAD,
    time_s=_TIME,
    time_share=share("Share of time", "Of all the time."),
    n=_STRETCHES,
    gpus_in_use_share=share("GPUs in use", "Of all GPUs.", blank=REASON),
    servers_empty_share=share("Servers empty", "Servers with no GPU in use, of all.", blank=REASON),
    servers_partly_share=share("partly used", "Servers with some GPUs in use, of all.", blank=REASON),
    servers_full_share=share("full", "Servers with all GPUs in use, of all.", blank=REASON),
    free_gpus=number("Free GPUs", "GPUs not in use.", blank=REASON, unit="GPUs"),
    largest_free_gpus=number("Most free on one", "Whole free GPUs of a server.", blank=REASON, unit="GPUs"),
)
OCCUPANCY_BASIS = table(
    "occupancy_basis",
    "What the occupancy rests on; one row.",
    servers=count("Servers", "Servers of the trace.", unit="servers"),
    servers_by_use=count("by use", "Those whose GPUs are known by use alone.", blank=REASON, unit="servers"),
    gpus=count("GPUs", "Whole GPUs of all servers.", unit="GPUs"),
    placements=count("Placements", "Placements that hold a GPU.", unit="placements"),
    left_out=count("Left out", "Those without a known time.", unit="placements"),
    spread=count("Spread", "Those whose GPUs are their attempt's, spread evenly over its servers.", unit="placements"),
    above_capacity_share=share("Above capacity", "GPU time beyond what servers hold, which is cut off.", blank=REASON),
    peak_share=share("Peak", "Most GPUs in use at any moment, of all.", blank=REASON),
    start_s=whole_seconds("From", "The first moment that a GPU was held.", blank=REASON),
    end_s=whole_seconds("To", "The last moment that a GPU was held.", blank=REASON),
)
FRAGMENTATION = table(
    "fragmentation",
    "A tenth of the load and a number of free GPUs: whether servers have so many.",
    load=_LOAD,
    free_at_least=words("Free on a server", "1, 2, 4 or 8 GPUs, or the whole server."),
    time_s=_TIME,
    n=_STRETCHES,
    free_gpus_share=share("Share of free GPUs", "Free GPUs on servers with at least so many free.", blank=REASON),
    placeable_time_share=share("Share of time", "Time with such a server, of the time at this load.", blank=REASON),
)
LOAD_OVER_TIME = table(
    "load_over_time",
    "A step of time: GPUs in use, and jobs with GPUs that run and wait.",
    start_s=whole_seconds("From", "Start of the step."),
    time_s=whole_seconds("Length", "Length of the step."),
    gpus=count("GPUs", "GPUs of all servers.", unit="GPUs"),
    gpus_in_use_mean=number("In use, mean", "Over the time of the step.", unit="GPUs"),
    gpus_in_use_max=number("In use, most", "At any moment of the step.", unit="GPUs"),
    gpus_in_use_share=share("GPUs in use", "Mean over all GPUs."),
    running_mean=number("Running", "Jobs from first start to last end, mean over the step.", unit="jobs"),
    waiting_mean=number("Waiting", "Jobs from submission to first start, mean over the step.", unit="jobs"),
)
SERVER_SHARING = table(
    "server_sharing",
    "Attempts on several GPUs of one size: GPU time on servers that they have to themselves.",
    group=words("GPUs", "GPUs of the attempt; all: two or more."),
    attempts=count("Attempts", "Attempts of this size."),
    gpu_hours=number("GPU-hours", "Their GPU time.", unit="GPU-hours"),
    dedicated_share=share("on servers to themselves", "GPU time while no other held a GPU there.", blank=REASON),
)
DELAY_CAUSES = table(
    "delay_causes",
    "Jobs of one size whose wait has one inferred reason: from what was in use when it began.",
    group=words("GPUs", "GPUs of the job; all: any number."),
    cause=words("Reason", "fair_share, full, fragmentation or room: the first that holds.", blank=REASON),
    started=count("Started", "Jobs with an account and a known wait.", blank=REASON, unit="jobs"),
    n=count("Waited", "Those that waited longer than a scheduler takes.", blank=REASON, unit="jobs"),
    jobs=count("Jobs", "Jobs with this reason.", blank=REASON, unit="jobs"),
    jobs_share=share("Share", "Jobs over n.", blank=REASON),
    **wilson(blank=REASON),
    **clustered(share),
    wait_s=whole_seconds("Waiting time", "Of the jobs with this reason.", blank=REASON),
    wait_share=share("Share of waiting time", "Of that of the jobs that waited.", blank=REASON),
    unrecognised_share=share("not recognised", "Of n: fair_share and room together.", blank=REASON),
    unrecognised_wait_share=share("their waiting time", "The same of the waiting time.", blank=REASON),
)

ANALYSIS = Analysis(
    question="How full was the cluster, and what does that say of waits?",
    theme="queue",
    rank=20,
    needs=["placements", "jobs", "nodes"],
    uses=["attempts"],
    keeps_freed_memory=True,
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

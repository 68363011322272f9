"""How full was the cluster, and what does that say of waits?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, share, table, text, whole_seconds

OCCUPANCY = table(
    "occupancy",
    "TODO",
    load=text("Load", "TODO"),
    time_s=whole_seconds("Time", "TODO"),
    time_share=share("Time share", "TODO"),
    n=count("N", "TODO"),
    gpus_in_use_share=share("Gpus in use share", "TODO", blank="TODO"),
    servers_empty_share=share("Servers empty share", "TODO", blank="TODO"),
    servers_partly_share=share("Servers partly share", "TODO", blank="TODO"),
    servers_full_share=share("Servers full share", "TODO", blank="TODO"),
    free_gpus=number("Free gpus", "TODO", blank="TODO"),
    largest_free_gpus=number("Largest free gpus", "TODO", blank="TODO"),
    reason=reason(),
)
OCCUPANCY_BASIS = table(
    "occupancy_basis",
    "TODO",
    servers=count("Servers", "TODO"),
    servers_by_use=count("Servers by use", "TODO"),
    gpus=count("Gpus", "TODO"),
    placements=count("Placements", "TODO"),
    left_out=count("Left out", "TODO"),
    spread=count("Spread", "TODO"),
    above_capacity_share=share("Above capacity share", "TODO"),
    start_s=whole_seconds("Start", "TODO"),
    end_s=whole_seconds("End", "TODO"),
    reason=reason(),
)
FRAGMENTATION = table(
    "fragmentation",
    "TODO",
    load=text("Load", "TODO"),
    free_at_least=text("Free at least", "TODO"),
    time_s=whole_seconds("Time", "TODO"),
    n=count("N", "TODO"),
    free_gpus_share=share("Free gpus share", "TODO", blank="TODO"),
    placeable_time_share=share("Placeable time share", "TODO", blank="TODO"),
    reason=reason(),
)
LOAD_OVER_TIME = table(
    "load_over_time",
    "TODO",
    start_s=whole_seconds("Start", "TODO"),
    time_s=whole_seconds("Time", "TODO"),
    gpus=count("Gpus", "TODO"),
    gpus_in_use_mean=number("Gpus in use mean", "TODO"),
    gpus_in_use_max=number("Gpus in use max", "TODO"),
    gpus_in_use_share=share("Gpus in use share", "TODO"),
    running_mean=number("Running mean", "TODO"),
    waiting_mean=number("Waiting mean", "TODO"),
)
SERVER_SHARING = table(
    "server_sharing",
    "TODO",
    group=text("Group", "TODO"),
    attempts=count("Attempts", "TODO"),
    gpu_hours=number("Gpu hours", "TODO"),
    dedicated_share=share("Dedicated share", "TODO"),
    reason=reason(),
)
DELAY_CAUSES = table(
    "delay_causes",
    "TODO",
    group=text("Group", "TODO"),
    cause=text("Cause", "TODO", blank="TODO"),
    started=count("Started", "TODO", blank="TODO"),
    n=count("N", "TODO", blank="TODO"),
    jobs=count("Jobs", "TODO", blank="TODO"),
    jobs_share=share("Jobs share", "TODO", blank="TODO"),
    ci_low=number("Ci low", "TODO", blank="TODO"),
    ci_high=number("Ci high", "TODO", blank="TODO"),
    wait_s=whole_seconds("Wait", "TODO", blank="TODO"),
    wait_share=share("Wait share", "TODO", blank="TODO"),
    reason=reason(),
)

ANALYSIS = Analysis(
    question="How full was the cluster, and what does that say of waits?",
    theme="use",
    rank=40,
    needs=["placements", "jobs", "nodes"],
    uses=["attempts"],
    keeps_freed_memory=True,
    tables=(
        OCCUPANCY,
        OCCUPANCY_BASIS,
        FRAGMENTATION,
        LOAD_OVER_TIME,
        SERVER_SHARING,
        DELAY_CAUSES,
    ),
    charts={"load_over_time": "load_over_time", "servers_by_load": "occupancy", "delay_causes": "delay_causes"},
    sections=["occupancy"],
    memory_mb=450,
    mb_per_gb={"pai2020": 10, "philly": 260, "sacct": 3970},
)

"""How busy were GPUs and hosts?"""

from ttf.analysis import Analysis
from ttf.contract import count, reason, share, table, text, truth

GPU_USE = table(
    "gpu_use",
    "TODO",
    job_gpus=text("Job gpus", "TODO"),
    outcome=text("Outcome", "TODO"),
    servers=count("Servers", "TODO", blank="TODO"),
    dedicated=truth("Dedicated", "TODO", blank="TODO"),
    jobs=count("Jobs", "TODO"),
    n=count("N", "TODO"),
    mean_share=share("Mean share", "TODO", blank="TODO"),
    zero_share=share("Zero share", "TODO", blank="TODO"),
    p25_share=share("P25 share", "TODO", blank="TODO"),
    p50_share=share("P50 share", "TODO", blank="TODO"),
    p75_share=share("P75 share", "TODO", blank="TODO"),
    p90_share=share("P90 share", "TODO", blank="TODO"),
    p95_share=share("P95 share", "TODO", blank="TODO"),
    held_gpu_minutes=count("Held gpu minutes", "TODO"),
    coverage_share=share("Coverage share", "TODO", blank="TODO"),
    held_gpu_minutes_in_span=count("Held gpu minutes in span", "TODO"),
    coverage_in_span_share=share("Coverage in span share", "TODO", blank="TODO"),
    reason=reason(),
)
HOST_USE = table(
    "host_use",
    "TODO",
    resource=text("Resource", "TODO"),
    machine_minutes=text("Machine minutes", "TODO"),
    n=count("N", "TODO"),
    mean_share=share("Mean share", "TODO"),
    zero_share=share("Zero share", "TODO"),
    p25_share=share("P25 share", "TODO"),
    p50_share=share("P50 share", "TODO"),
    p75_share=share("P75 share", "TODO"),
    p90_share=share("P90 share", "TODO"),
    p95_share=share("P95 share", "TODO"),
    out_of_range=count("Out of range", "TODO"),
    reason=reason(),
)

TELEMETRY = {"gpu_util", "cpu_util", "mem_util"}

ANALYSIS = Analysis(
    question="How busy were GPUs and hosts?",
    theme="use",
    rank=50,
    needs=["raw"],
    applies=lambda trace: TELEMETRY & set(trace.raw_files),
    settings={"tables": lambda trace: sorted({"job_log", *TELEMETRY} & set(trace.raw_files))},
    tables=(
        GPU_USE,
        HOST_USE,
    ),
    charts={"gpu_use": "gpu_use", "gpu_use_by_servers": "gpu_use", "host_use": "host_use"},
    sections=["utilisation"],
    memory_mb=230,
    mb_per_gb={"philly": 1580},
)

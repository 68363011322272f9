"""In which states do jobs end, and how large are they?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, seconds, share, table, text, whole_seconds

STATES = table(
    "states",
    "TODO",
    unit=text("Unit", "TODO"),
    kind=text("Kind", "TODO"),
    state=text("State", "TODO", blank="TODO"),
    count=count("Count", "TODO"),
    n=count("N", "TODO"),
    count_share=share("Count share", "TODO"),
    with_gpu=count("With gpu", "TODO"),
    n_with_gpu=count("N with gpu", "TODO"),
    with_gpu_share=share("With gpu share", "TODO"),
    gpu_hours=number("Gpu hours", "TODO"),
    gpu_hours_share=share("Gpu hours share", "TODO"),
    infra_basis=text("Infra basis", "TODO", blank="TODO"),
    reason=reason(),
)
SIZE_MIX = table(
    "size_mix",
    "TODO",
    gpus_low=count("Gpus low", "TODO"),
    gpus_high=count("Gpus high", "TODO"),
    jobs=count("Jobs", "TODO"),
    n=count("N", "TODO"),
    jobs_share=share("Jobs share", "TODO", blank="TODO"),
    jobs_up_to_share=share("Jobs up to share", "TODO", blank="TODO"),
    jobs_at_least_share=share("Jobs at least share", "TODO", blank="TODO"),
    gpu_hours=number("Gpu hours", "TODO", blank="TODO"),
    gpu_hours_share=share("Gpu hours share", "TODO", blank="TODO"),
    gpu_hours_up_to_share=share("Gpu hours up to share", "TODO", blank="TODO"),
    gpu_hours_at_least_share=share("Gpu hours at least share", "TODO", blank="TODO"),
    reason=reason(),
)
CLUSTER_SUMMARY = table(
    "cluster_summary",
    "TODO",
    population=text("Population", "TODO"),
    jobs=count("Jobs", "TODO"),
    days=number("Days", "TODO"),
    jobs_per_day=number("Jobs per day", "TODO"),
    gpu_hours=number("Gpu hours", "TODO"),
    gpus_mean=number("Gpus mean", "TODO", blank="TODO"),
    gpus_max=count("Gpus max", "TODO", blank="TODO"),
    gpus_sum=number("Gpus sum", "TODO", blank="TODO"),
    runtime_n=count("Runtime n", "TODO"),
    runtime_sum_s=whole_seconds("Runtime sum", "TODO", blank="TODO"),
    runtime_mean_s=seconds("Runtime mean", "TODO", blank="TODO"),
    runtime_median_s=seconds("Runtime median", "TODO", blank="TODO"),
    runtime_max_s=whole_seconds("Runtime max", "TODO", blank="TODO"),
    queue_n=count("Queue n", "TODO"),
    queue_sum_s=whole_seconds("Queue sum", "TODO", blank="TODO"),
    queue_mean_s=seconds("Queue mean", "TODO", blank="TODO"),
    queue_median_s=seconds("Queue median", "TODO", blank="TODO"),
    queue_max_s=whole_seconds("Queue max", "TODO", blank="TODO"),
    reason=reason(),
)

ANALYSIS = Analysis(
    question="In which states do jobs end, and how large are they?",
    theme="outcomes",
    rank=20,
    needs=["jobs", "lives_infra"],
    settings={"attempts": lambda trace: "attempts" in trace.products},
    tables=(
        STATES,
        SIZE_MIX,
        CLUSTER_SUMMARY,
    ),
    charts={"states": "states", "size_mix": "size_mix"},
    sections=["states"],
    memory_mb=260,
    mb_per_gb={"pai2020": 10, "sacct": 560},
)

"""What is to be expected of a job run at every size?"""

from ttf.analysis import Analysis
from ttf.contract import count, number, reason, seconds, share, table, text, truth

ETTR = table(
    "ettr",
    "TODO",
    gpus=count("Gpus", "TODO", blank="TODO"),
    nodes=count("Nodes", "TODO"),
    failure_rate_per_node_day=number("Failure rate per node day", "TODO", blank="TODO"),
    checkpoint_interval_s=seconds("Checkpoint interval", "TODO"),
    checkpoint_write_s=seconds("Checkpoint write", "TODO"),
    restart_s=seconds("Restart", "TODO"),
    queue_s=seconds("Queue", "TODO"),
    productive_s=seconds("Productive", "TODO"),
    mttf_s=seconds("Mttf", "TODO", blank="TODO"),
    ettr_v1=number("Ettr v1", "TODO", blank="TODO"),
    ettr_v2=number("Ettr v2", "TODO", blank="TODO"),
    ettr_combined=number("Ettr combined", "TODO", blank="TODO"),
    ettr_renewal=number("Ettr renewal", "TODO", blank="TODO"),
    ettr_simulated=number("Ettr simulated", "TODO", blank="TODO"),
    ettr_simulated_se=number("Ettr simulated se", "TODO", blank="TODO"),
    optimal_interval_s=seconds("Optimal interval", "TODO", blank="TODO"),
    rate=text("Rate", "TODO"),
    approximation_valid=truth("Approximation valid", "TODO", blank="TODO"),
    reason=reason(),
)
ETTR_OUTLOOK = table(
    "ettr_outlook",
    "TODO",
    gpus=count("Gpus", "TODO", blank="TODO"),
    nodes=count("Nodes", "TODO"),
    failure_rate_per_node_day=number("Failure rate per node day", "TODO", blank="TODO"),
    checkpoint_interval_s=seconds("Checkpoint interval", "TODO"),
    checkpoint_write_s=seconds("Checkpoint write", "TODO"),
    restart_s=seconds("Restart", "TODO"),
    queue_s=seconds("Queue", "TODO"),
    productive_s=seconds("Productive", "TODO"),
    rate=text("Rate", "TODO"),
    ettr_long_run=number("Ettr long run", "TODO", blank="TODO"),
    expected_interruptions=number("Expected interruptions", "TODO", blank="TODO"),
    expected_wall_s=seconds("Expected wall", "TODO", blank="TODO"),
    scheduled_share=share("Scheduled share", "TODO", blank="TODO"),
    simulated_runs=count("Simulated runs", "TODO", blank="TODO"),
    simulated_interruptions_p05=number("Simulated interruptions p05", "TODO", blank="TODO"),
    simulated_interruptions_p95=number("Simulated interruptions p95", "TODO", blank="TODO"),
    simulated_wall_p05_s=seconds("Simulated wall p05", "TODO", blank="TODO"),
    simulated_wall_p95_s=seconds("Simulated wall p95", "TODO", blank="TODO"),
    daly_young_interval_s=seconds("Daly young interval", "TODO", blank="TODO"),
    optimal_interval_s=seconds("Optimal interval", "TODO", blank="TODO"),
    ettr_at_optimum=number("Ettr at optimum", "TODO", blank="TODO"),
    reason=reason(),
)
MITIGATIONS = table(
    "mitigations",
    "TODO",
    gpus=count("Gpus", "TODO", blank="TODO"),
    nodes=count("Nodes", "TODO"),
    mitigation=text("Mitigation", "TODO", blank="TODO"),
    failure_rate_per_node_day=number("Failure rate per node day", "TODO", blank="TODO"),
    checkpoint_interval_s=seconds("Checkpoint interval", "TODO", blank="TODO"),
    checkpoint_write_s=seconds("Checkpoint write", "TODO", blank="TODO"),
    restart_s=seconds("Restart", "TODO", blank="TODO"),
    queue_s=seconds("Queue", "TODO", blank="TODO"),
    productive_s=seconds("Productive", "TODO", blank="TODO"),
    ettr_before=number("Ettr before", "TODO", blank="TODO"),
    ettr_after=number("Ettr after", "TODO", blank="TODO"),
    node_hours_saved_per_productive_week=number("Node hours saved per productive week", "TODO", blank="TODO"),
    gpu_hours_saved_per_productive_week=number("Gpu hours saved per productive week", "TODO", blank="TODO"),
    reason=reason(),
)
ETTR_ASSUMPTIONS = table(
    "ettr_assumptions",
    "TODO",
    assumption=text("Assumption", "TODO"),
    amount=number("Amount", "TODO"),
    unit=text("Unit", "TODO"),
    n=count("N", "TODO", blank="TODO"),
    source=text("Source", "TODO"),
    reason=reason(),
)
ETTR_CONTOUR = table(
    "ettr_contour",
    "TODO",
    gpus=count("Gpus", "TODO", blank="TODO"),
    nodes=count("Nodes", "TODO"),
    ettr=number("Ettr", "TODO"),
    checkpoint_interval_s=seconds("Checkpoint interval", "TODO"),
    checkpoint_write_s=seconds("Checkpoint write", "TODO"),
    restart_s=seconds("Restart", "TODO"),
    queue_s=seconds("Queue", "TODO"),
    productive_s=seconds("Productive", "TODO"),
    failures_per_1000_node_days=number("Failures per 1000 node days", "TODO", blank="TODO"),
    reason=reason(),
)

# Of the settings of effective training time those that are of runs already done.
OF_DONE_RUNS = ("run_key", "run_at_least_s")

ANALYSIS = Analysis(
    question="What is to be expected of a job run at every size: its effective training time, its interruptions?",
    theme="training",
    rank=10,
    needs=["lives_infra", "node_failure_rate", "mttf_by_gpus"],
    settings={
        "ettr": lambda trace: {key: value for key, value in trace.settings["ettr"].items() if key not in OF_DONE_RUNS}
    },
    tables=(
        ETTR,
        ETTR_OUTLOOK,
        MITIGATIONS,
        ETTR_ASSUMPTIONS,
        ETTR_CONTOUR,
    ),
    charts={
        "ettr_by_gpus": ["ettr", "node_failure_rate"],
        "ettr_contour": ["ettr_contour", "node_failure_rate", "mttf_by_gpus", "ettr_assumptions"],
        "ettr_planner": ["node_failure_rate", "mttf_by_gpus", "ettr_assumptions"],
    },
    sections=["ettr"],
    memory_mb=220,
    mb_per_gb={"pai2020": 20},
)

"""Why do jobs fail, as far as log texts, reasons, exit codes or states say?"""

from ttf.analysis import Analysis
from ttf.contract import count, parquet, reason, seconds, share, table, text, truth, whole_seconds

TAXONOMY = table(
    "taxonomy",
    "TODO",
    by=text("By", "TODO"),
    reason=reason(),
    domain=text("Domain", "TODO", blank="TODO"),
    category=text("Category", "TODO", blank="TODO"),
    deterministic=truth("Deterministic", "TODO", blank="TODO"),
    evidence=text("Evidence", "TODO", blank="TODO"),
    trials=count("Trials", "TODO"),
    trials_share=share("Trials share", "TODO"),
    jobs=count("Jobs", "TODO"),
    users=count("Users", "TODO"),
    n=count("N", "TODO"),
    rtf_p50_s=seconds("Rtf p50", "TODO"),
    rtf_p90_s=seconds("Rtf p90", "TODO"),
    rtf_p95_s=seconds("Rtf p95", "TODO"),
    rtf_total_s=whole_seconds("Rtf total", "TODO"),
    rtf_total_share=share("Rtf total share", "TODO"),
    gpu_none=count("Gpu none", "TODO"),
    gpu_1=count("Gpu 1", "TODO"),
    gpu_2_4=count("Gpu 2 4", "TODO"),
    gpu_gt4=count("Gpu gt4", "TODO"),
    rtf_x_demand_gpu_s=seconds("Rtf x demand gpu", "TODO"),
    rtf_x_demand_share=share("Rtf x demand share", "TODO"),
    note=text("Note", "TODO", blank="TODO"),
)
UNMATCHED = table(
    "unmatched",
    "TODO",
    source=text("Source", "TODO"),
    line=text("Line", "TODO"),
    trials=count("Trials", "TODO"),
    trials_share=share("Trials share", "TODO"),
    jobs=count("Jobs", "TODO"),
    users=count("Users", "TODO"),
)
LOG_TAILS = table(
    "log_tails",
    "TODO",
    code=text("Code", "TODO"),
    severity=text("Severity", "TODO"),
    rows=count("Rows", "TODO"),
    share=share("Share", "TODO"),
    first_lines=text("First lines", "TODO"),
    sentence=text("Sentence", "TODO"),
)
REASONS = parquet(
    "reasons",
    "TODO",
    "reasons.parquet",
    job_id=text("Job id", "TODO", blank="TODO"),
    attempt=count("Attempt", "TODO", blank="TODO"),
    reason=reason(),
    domain=text("Domain", "TODO", blank="TODO"),
    deterministic=truth("Deterministic", "TODO", blank="TODO"),
    task=text("Task", "TODO", blank="TODO"),
    evidence=text("Evidence", "TODO", blank="TODO"),
)

ANALYSIS = Analysis(
    question="Why do jobs fail, as far as log texts, reasons, exit codes or states say?",
    theme="failure",
    rank=30,
    needs=["jobs"],
    uses=["attempts", "tails"],
    applies=lambda trace: trace.tells_reasons,
    settings={"taxonomy": lambda trace: trace.taxonomy},
    tables=(
        TAXONOMY,
        UNMATCHED,
        LOG_TAILS,
        REASONS,
    ),
    charts={"taxonomy": "taxonomy"},
    sections=["taxonomy"],
    memory_mb=190,
    mb_per_gb={"sacct": 3150},
)

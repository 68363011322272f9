"""Why do jobs fail, as far as log texts, reasons, exit codes or states say?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import count, number, parquet, seconds, share, table, text, truth, whole_seconds, words

_OF_NONE = "no rule matches, or the row is of another grouping"
_KINDS = {
    "trials": count("Failed attempts", "How many.", unit="attempts"),
    "trials_share": share("Share", "Of all failed attempts."),
    "jobs": count("Jobs", "Jobs that these are of.", unit="jobs"),
    "users": count("Users", "Users that these are of.", "no user is known"),
}
_NO_TIME = "no run time is known"

TAXONOMY = table(
    "taxonomy",
    "Failed attempts of one reason, domain, evidence or kind; RTF is the run time until the failure.",
    by=words("By", "reason, domain, evidence, deterministic, or all."),
    reason=words("Reason", "By the taxonomy; unmatched: no rule matches.", "the row is of another grouping"),
    domain=words("Domain", "Where the cause lies; several joined by or.", _OF_NONE),
    category=words("ATC'19", "Category in the Philly study: IF, AE or U.", "it has none, or another grouping"),
    deterministic=truth("Deterministic", "Whether a retry would fail again.", "not said, or of another grouping"),
    evidence=words("Evidence", "What decided: event, text, reason, exit_code or state.", _OF_NONE),
    **_KINDS,
    n=count("n", "Attempts with a known run time.", unit="attempts"),
    rtf_p50_s=seconds("RTF: median", "Of the run times, linear between ranks.", _NO_TIME),
    rtf_p90_s=seconds("90%", "90th percentile of the RTF.", _NO_TIME),
    rtf_p95_s=seconds("95%", "95th percentile of the RTF.", _NO_TIME),
    rtf_total_s=whole_seconds("RTF, total", "Of all of them.", _NO_TIME),
    rtf_total_share=share("Share of RTF", "Of that of all failed attempts.", "no run time above 0 s is known"),
    gpu_none=count("No GPU", "Attempts on no GPU, or on an unknown number.", unit="attempts"),
    gpu_1=count("1 GPU", "Attempts on one GPU or a share of one.", unit="attempts"),
    gpu_2_4=count("2 to 4", "Attempts on 2 to 4 GPUs.", unit="attempts"),
    gpu_gt4=count("more", "Attempts on more than 4 GPUs.", unit="attempts"),
    rtf_x_demand_gpu_s=number("RTF × GPUs", "Run time times GPUs.", "no GPU demand is known", unit="GPU s"),
    rtf_x_demand_share=share("of RTF × GPUs", "Of that of all failed attempts.", "no GPU time above 0 s is known"),
    note=words("Note", "Why cells of the row are blank.", "nothing is amiss"),
)
FAILURE_KINDS = table(
    "failure_kinds",
    "Failed attempts by what ended them.",
    kind=words("Kind", "limit, infra (the cause is in system software or hardware alone), other, or none: no reason."),
    trials=_KINDS["trials"],
    n=count("n", "All failed attempts.", unit="attempts"),
    trials_share=share("Share", "Of n."),
    gpu_share=share("of RTF × GPUs", "Of that of all failed attempts.", "no GPU time above 0 s is known"),
)
_NO_LOG = "no end of a log is given"
TAXONOMY_SUMMARY = table(
    "taxonomy_summary",
    "All failed attempts, and the lines of the ends of their logs.",
    trials=count("Failed attempts", "How many.", unit="attempts"),
    matched=count("with a reason", "Those of them that a rule matches.", unit="attempts", n="trials"),
    matched_share=share("Share", "Of all failed attempts.", "no attempt failed", n="trials"),
    unmatched_share=share("without", "Share of those that no rule matches.", "no attempt failed", n="trials"),
    lines=count("Lines", "Lines of logs that are not blank.", _NO_LOG, "lines"),
    wrong_lines=count("unused", "Those of them that could not be used.", _NO_LOG, "lines", n="lines"),
)
UNMATCHED = table(
    "unmatched",
    "A line that attempts have in common which no rule matches; the commonest.",
    source=words("From", "log: the line that says most; record: state, exit code and reason."),
    line=text("Line", "With # for numbers."),
    **(_KINDS | {"trials_share": share("Share of unmatched", "Of the attempts that no rule matches.")}),
)
LOG_TAILS = table(
    "log_tails",
    "What became of the lines of the ends of logs; no rows where none are given.",
    code=words("Code", "lines: all that are not blank; else what is the matter."),
    severity=words("Severity", "info or error."),
    rows=count("Lines", "Lines of which this is so.", unit="lines"),
    share=share("Share", "Of the lines that are not blank.", "the row is of all lines"),
    first_lines=words("First", "Numbers of the first of them.", "the row is of all lines"),
    sentence=words("What is the matter", "The code in words."),
)
REASONS = parquet(
    "reasons",
    "A failed attempt, or a failed job where the trace has no attempts, with its reason.",
    "reasons.parquet",
    job_id=text("Job", "As the trace names it."),
    attempt=count("Attempt", "Number of the attempt, 0 where the trace has none."),
    reason=words("Reason", "By the first rule of the taxonomy that matches.", "no rule matches"),
    domain=words("Domain", "Where the cause lies; several joined by or.", "no rule matches"),
    deterministic=truth("Deterministic", "Whether a retry would fail again.", "no rule matches, or it is not said"),
    task=words("Task", "Part of the job that failed.", "jobs have no parts"),
    evidence=words("Evidence", "What decided: event, text, reason, exit_code or state.", "no rule matches"),
)

ANALYSIS = Analysis(
    question="Why do jobs fail, as far as log texts, reasons, exit codes or states say?",
    theme="causes",
    rank=10,
    needs=["jobs"],
    uses=["attempts", "tails", "lives_infra"],
    applies=lambda trace: trace.tells_reasons,
    settings={"taxonomy": lambda trace: trace.taxonomy},
    tables=(TAXONOMY, FAILURE_KINDS, TAXONOMY_SUMMARY, UNMATCHED, LOG_TAILS, REASONS),
    charts={"failed_attempts_by_reason": "taxonomy"},
    main=("failed_attempts_by_reason",),
    sections=["taxonomy"],
    in_size_unit=True,
    memory_mb=250,
    mb_per_gb={"sacct": 600},
)

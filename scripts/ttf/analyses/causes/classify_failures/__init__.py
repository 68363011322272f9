"""Why do jobs fail, according to log texts, reasons, exit codes and states?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import count, parquet, seconds, share, table, text, truth, words

_NO_REASON = "no rule matches, or the row has another grouping"
_KINDS = {
    "trials": count("Failed attempts", "Number of failed attempts.", unit="attempts"),
    "trials_share": share("Share", "Share of all failed attempts."),
    "jobs": count("Jobs", "Jobs of the failed attempts.", unit="jobs"),
    "users": count("Users", "Users of the failed attempts.", "no user is known"),
}
_NO_TIME = "no run time is known"

TAXONOMY = table(
    "taxonomy",
    "Failed attempts by reason, domain or evidence. RTF is the run time until the failure.",
    by=words("By", "reason, domain, evidence, deterministic, or all."),
    reason=words("Reason", "Reason by the taxonomy, or unmatched if no rule matches.", "the row has another grouping"),
    domain=words("Domain", "Domains in which the cause can lie.", _NO_REASON),
    category=words("ATC'19", "Category in the Philly study: IF, AE or U.", "there is none, or another grouping"),
    deterministic=truth("Deterministic", "Whether a retry would fail again.", "not known, or another grouping"),
    evidence=words("Evidence", "Deciding evidence: event, node_log, text, reason, exit_code or state.", _NO_REASON),
    **_KINDS,
    n=count("n", "Attempts with a known run time.", unit="attempts"),
    rtf_p50_s=seconds("RTF: median", "Median of the run times, linear between ranks.", _NO_TIME),
    rtf_p90_s=seconds("90%", "90th percentile of the run times, linear between ranks.", _NO_TIME),
    rtf_p95_s=seconds("95%", "95th percentile of the run times, linear between ranks.", _NO_TIME),
    rtf_total_share=share(
        "Share of RTF", "Share of the run time of all failed attempts.", "no run time above 0 s is known"
    ),
    gpu_none=count("No GPU", "Attempts on no GPU, or on an unknown number.", unit="attempts"),
    gpu_1=count("1 GPU", "Attempts on one GPU or a share of one.", unit="attempts"),
    gpu_2_4=count("2 to 4", "Attempts on 2 to 4 GPUs.", unit="attempts"),
    gpu_gt4=count("more", "Attempts on more than 4 GPUs.", unit="attempts"),
    rtf_x_demand_share=share("of RTF × GPUs", "Share of all failed attempts.", "no GPU time above 0 s is known"),
    note=words("Note", "Why cells are blank.", "no cell is blank for a reason"),
)
FAILURE_KINDS = table(
    "failure_kinds",
    "Failed attempts by what ended them.",
    kind=words("Kind", "limit, infra (cause in system software or hardware alone), other, or none (no reason)."),
    trials=_KINDS["trials"],
    n=count("n", "All failed attempts.", unit="attempts"),
    trials_share=share("Share", "Share of n."),
    gpu_share=share("of RTF × GPUs", "Share of all failed attempts.", "no GPU time above 0 s is known"),
)
_NO_LOG = "the trace has no log tails"
TAXONOMY_SUMMARY = table(
    "taxonomy_summary",
    "Totals of the failed attempts, and of the lines of log tails.",
    trials=count("Failed attempts", "Number of failed attempts.", unit="attempts"),
    matched=count("with a reason", "Failed attempts that a rule matches.", unit="attempts", n="trials"),
    matched_share=share("Share", "Share of all failed attempts.", "no attempt failed", n="trials"),
    unmatched_share=share("without", "Share of failed attempts that no rule matches.", "no attempt failed", n="trials"),
    lines=count("Lines", "Log lines that are not blank.", _NO_LOG, "lines"),
    wrong_lines=count("unused", "Lines that could not be used.", _NO_LOG, "lines", n="lines"),
)
UNMATCHED = table(
    "unmatched",
    "The most common lines of attempts that no rule matches.",
    source=words("From", "log: the most informative line; record: state, exit code and reason."),
    line=text("Line", "The log line, with # in place of numbers."),
    **(_KINDS | {"trials_share": share("Share of unmatched", "Share of the attempts that no rule matches.")}),
)
LOG_TAILS = table(
    "log_tails",
    "Lines of log tails by how they were used; no rows if the trace has none.",
    code=words("Code", "lines: all that are not blank; otherwise the problem."),
    severity=words("Severity", "info or error."),
    rows=count("Lines", "Lines with this code.", unit="lines"),
    share=share("Share", "Share of the lines that are not blank.", "the row is the total"),
    first_lines=words("First", "Numbers of the first lines.", "the row is the total"),
    sentence=words("Problem", "The code in words."),
)
REASONS = parquet(
    "reasons",
    "A failed attempt with its reason, or a failed job if the trace has no attempts.",
    "reasons.parquet",
    job_id=text("Job", "Id of the job in the trace."),
    attempt=count("Attempt", "Number of the attempt, 0 where the trace has none."),
    reason=words("Reason", "Reason by the first matching rule of the taxonomy.", "no rule matches"),
    domain=words("Domain", "Domains in which the cause can lie.", "no rule matches"),
    deterministic=truth("Deterministic", "Whether a retry would fail again.", "no rule matches, or it is not known"),
    task=words("Task", "Part of the job that failed.", "jobs have no parts"),
    evidence=words(
        "Evidence", "Deciding evidence: event, node_log, text, reason, exit_code or state.", "no rule matches"
    ),
)

ANALYSIS = Analysis(
    question="Why do jobs fail, according to log texts, reasons, exit codes and states?",
    theme="causes",
    rank=10,
    needs=["jobs"],
    uses=["attempts", "tails", "durations_infra", "error_attributions"],
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

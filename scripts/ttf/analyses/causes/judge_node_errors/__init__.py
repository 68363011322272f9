"""Which errors in the logs of nodes precede failures, how many failures do they explain, and what do they announce?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns, interval_columns, wilson_columns
from ttf.engine.contract import (
    REASON,
    count,
    name,
    number,
    parquet,
    row_number,
    share,
    table,
    text,
    truth,
    whole_seconds,
    words,
)

_NO_GPUS = "the GPUs of a watched node are unknown"
_NO_OUTAGES = "outages are not recorded, or an application can cause the code"
_NO_HIT = "no running attempt was hit"
_CODE = words("Code", "Code of the error, such as XID 79; all: every code that precedes failures.")
_COMPONENT = words("Component", "Likely component, by the rule that matched the line.", "no rule names one")
_ERRORS = count("Errors", "Errors in service; repeats within the merge window are one.", unit="errors")
_PER_1000 = {"unit": "per 1000 GPU-days"}
_RATE = {
    "gpu_days": number("GPU-days", "Days for which the log was written, times GPUs of the node.", _NO_GPUS, "GPU-days"),
    "node_days": number("Node-days", "Days for which the logs were written.", unit="node-days"),
    "errors_per_1000_gpu_days": number("Per 1,000 GPU-days", "Errors over GPU-days.", REASON, **_PER_1000),
    **interval_columns(number, "Garwood's 95% CI of the rate", REASON, "rate_"),
    **clustered_columns(number),
}

ERROR_CODES = table(
    "error_codes",
    "A code of errors: how often it occurs, and how often running attempts fail soon after it.",
    code=_CODE,
    component=_COMPONENT,
    application=truth("Application", "Whether an application can cause it, by the maker's catalogue."),
    errors=_ERRORS,
    lines=count("Lines", "Lines of the logs behind the errors."),
    nodes=count("Nodes", "Nodes with such an error.", unit="nodes"),
    **_RATE,
    attempts_hit=count("Attempts hit", "Attempts that ran on the node at an error.", unit="attempts"),
    failed=count("Failed", "Attempts that failed within the window after it.", unit="attempts", n="attempts_hit"),
    failed_share=share("Failed share", "Share of the attempts hit that failed.", _NO_HIT, n="attempts_hit"),
    expected=number("By chance", "Failures expected of attempts of that age, user and node.", REASON, "attempts"),
    ratio=number("Ratio", "Failed attempts over those expected by chance.", REASON, n="attempts_hit"),
    **interval_columns(number, "95% CI of the ratio, clustered by node, user and week", REASON),
    effective_nodes=number("Effective nodes", "Kish's effective number of nodes with attempts hit.", _NO_HIT),
    p_value=number("p", "One-sided p-value of at least this number of failures.", REASON),
    p_adjusted=number("p, adjusted", "P-value adjusted for the number of codes (Holm).", REASON),
    verdict=words("Verdict", "precedes failures, comes with ends, application, does not, or too few to tell."),
    repeats_on=name(
        "Repeats on",
        "Node on which an application's code repeats for several users.",
        "there is none",
        name_kind="node",
    ),
    outages=count("Outages", "Unplanned outages of watched nodes.", _NO_OUTAGES, unit="outages"),
    announced=count("Announced", "Outages that it announced in time.", _NO_OUTAGES, unit="outages", n="outages"),
    false_alarms_per_week=number("False alarms", "False alarms a week.", _NO_OUTAGES),
    alarm=truth("Alarm", "Whether it announces more outages in time than chance.", _NO_OUTAGES),
)
ERROR_SUMMARY = table(
    "error_summary",
    "All errors together, and the failures that they explain.",
    window_s=whole_seconds("Window", "Longest time from an error to the end of an attempt."),
    lead_s=whole_seconds("Lead", "An alarm this long before an outage comes in time."),
    errors=_ERRORS,
    codes=count("Codes", "Codes of errors."),
    codes_preceding=count("precede failures", "Codes that precede failures.", n="codes"),
    codes_too_few=count("too few to tell", "Codes with too few attempts hit to tell.", n="codes"),
    nodes_watched=count("Nodes", "Nodes with a log.", unit="nodes"),
    failures=count("Failures", "Failed attempts on at least one watched node.", unit="attempts"),
    attributed=count("Attributed", "Failures attributed to an error.", unit="attempts", n="failures"),
    application=count(
        "Application", "Failures with an error that an application can cause.", unit="attempts", n="failures"
    ),
    expected_false=number("By chance", "Attributions expected by chance.", unit="attempts", n="attributed"),
    most_false=count("at most", "Upper 95% limit of attributions by chance.", unit="attempts", n="attributed"),
    clocks=words("Clocks", "Of logs and jobs, by errors and failures: agree, corrected or not checked."),
    nodes_corrected=count("Corrected", "Nodes whose errors were moved to the clock of the jobs.", unit="nodes"),
    clock_offset_s=whole_seconds(
        "Offset", "The most frequent time of the log minus that of the jobs.", "none is moved"
    ),
    nodes_with_excess=count("Excess", "Nodes with significantly more days with errors.", unit="nodes"),
)
ERROR_RATES_BY_MONTH = table(
    "error_rates_by_month",
    "Errors of a code in a month for which logs were written.",
    code=_CODE,
    month=words("Month", "Month in the time zone of the trace."),
    errors=_ERRORS,
    **_RATE,
)
FAILURES_BY_COMPONENT = table(
    "failures_by_component",
    "Failed attempts by the component to which the records, and then also the logs, attribute them.",
    component=words("Component", "Component; infrastructure: cause recorded, component not; or unknown."),
    failures_before=count("Failures without logs", "Failed attempts by the records alone.", unit="attempts"),
    failures_before_share=share("Share without", "Share of all failed attempts."),
    failures=count("Failures", "Failed attempts by records and logs.", unit="attempts"),
    failures_share=share("Share", "Share of all failed attempts."),
    gpu_hours_before=number("GPU-hours without logs", "GPU time by the records alone.", unit="GPU-hours"),
    gpu_hours=number("GPU-hours", "GPU time of the failed attempts.", unit="GPU-hours"),
    gpu_hours_share=share("Share", "Share of the GPU time of all failed attempts.", "their GPU time is 0 or unknown"),
)
ERROR_NODES = table(
    "error_nodes",
    "A watched node with errors that no application causes, against the other nodes of its fleet.",
    node=name("Node", "Name of the node.", name_kind="node"),
    fleet=words("Fleet", "GPU type of the nodes with which it is compared."),
    errors=_ERRORS,
    codes=words("Codes", "The three most frequent codes, with their errors."),
    gpu=text("GPU", "GPU with the most errors.", "no line names a GPU"),
    counted=count("Days with errors", "Days with at least one error; the test counts these.", unit="days"),
    expected=number("Expected", "Days with errors expected at the rate of its fleet.", REASON, "days"),
    rate_ratio=number("Ratio", "Rate of the node over that of the rest of its fleet.", REASON, n="counted"),
    **interval_columns(number, "95% CI of the ratio", REASON),
    p_value=number("p", "One-sided p-value, the larger of equal nodes and of ordinary nodes that differ.", REASON),
    q_value=number("q", "The p-value adjusted for the number of nodes (Benjamini-Hochberg).", REASON),
    excess=truth("Excess", "Whether q is at most the configured false-discovery rate.", REASON),
)
ERROR_LEAD_TIMES = table(
    "error_lead_times",
    "Unplanned outages that errors of a code announced on the node, and alarms without an outage.",
    code=_CODE,
    lead_s=whole_seconds("Lead", "An error counts if it is at least this long before the outage."),
    horizon_s=whole_seconds("Horizon", "An error announces outages within this time after it."),
    outages=count("Outages", "Unplanned outages that began on a watched node.", unit="outages"),
    announced=count("Announced", "Outages with an error before them.", unit="outages", n="outages"),
    share=share("Share", "Share of the outages that errors announced in time.", blank=REASON, n="outages"),
    **wilson_columns(REASON),
    **clustered_columns(share),
    expected=share("By chance", "Share expected if each node's errors are shifted at random.", REASON, n="outages"),
    median_lead_s=number(
        "Median lead", "Median time from the first such error to the outage.", REASON, "s", "announced"
    ),
    alarms=count("Alarms", "Errors on a node with none in the horizon before.", unit="alarms"),
    false_alarms=count("False alarms", "Alarms without an outage in the horizon after.", unit="alarms", n="alarms"),
    false_alarms_per_week=number("A week", "False alarms over the weeks for which logs were written.", REASON),
    useful=truth("Useful", "Whether the interval of the share lies above chance.", REASON),
)
ERROR_ATTRIBUTIONS = parquet(
    "error_attributions",
    "A failed attempt with the error of a log to which its end is attributed.",
    "error_attributions.parquet",
    attempt_id=row_number("Row of the attempt", "Row in attempts.parquet; without attempts, in jobs.parquet."),
    node=name("Node", "Node of the error.", name_kind="node"),
    gpu=text("GPU", "GPU of the error.", "the line names none"),
    code=words("Code", "Code of the error."),
    component=_COMPONENT,
    application=truth(
        "Application", "Whether an application can cause the error: then it is no infrastructure failure."
    ),
    error_s=whole_seconds("Error", "Time of the error, on the clock of the trace."),
    apart_s=whole_seconds("Apart", "Time from the error to the end of the attempt."),
)

ANALYSIS = Analysis(
    question="Which errors in the logs of nodes precede failures, and what do they announce?",
    theme="causes",
    rank=20,
    needs=["node_errors", "node_log_watch", "placements", "nodes", "jobs"],
    uses=["attempts", "outages"],
    settings={
        "window_s": "node_logs/window_s",
        "lead_s": "node_logs/lead_s",
        "false_discovery": "lemons/false_discovery",
        "block_days": "inference/block_days",
        "clock": lambda trace: trace.clock,
    },
    tables=(
        *(ERROR_CODES, ERROR_SUMMARY, ERROR_RATES_BY_MONTH, FAILURES_BY_COMPONENT),
        *(ERROR_NODES, ERROR_LEAD_TIMES, ERROR_ATTRIBUTIONS),
    ),
    sections=["node_errors", "nodes/error_nodes", "outages/error_lead_times"],
    memory_mb=500,
    mb_per_gb={"sacct": 900},
)

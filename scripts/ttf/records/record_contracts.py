"""The contracts of the common records: jobs, attempts, placements, durations, outages, and the unit of sizes."""

from ttf.engine.contract import (
    REASON,
    count,
    name,
    parquet,
    row_number,
    seconds,
    share,
    table,
    text,
    truth,
    whole_seconds,
    words,
)

# Slurm's words for a run ended by its time limit or deadline.
TIME_LIMITS = ("TIMEOUT", "DEADLINE")

RUNTIME_AGREEMENT = table(
    "runtime_agreement",
    "A time that successful jobs have from two sources, with the differences between the two.",
    time=words("Time", "start, end or run time."),
    n=count("n", "Successful jobs with times in both sources.", unit="jobs"),
    equal=count("Equal", "Jobs with the same time in both sources.", unit="jobs", blank=REASON),
    equal_share=share("Equal", "Share of jobs with the same time in both sources.", blank=REASON),
    difference_p01_s=seconds("1st percentile", "First source minus second source.", blank=REASON),
    difference_p05_s=seconds("5th percentile", "First source minus second source.", blank=REASON),
    difference_median_s=seconds("Median", "First source minus second source.", blank=REASON),
    difference_p95_s=seconds("95th percentile", "First source minus second source.", blank=REASON),
    difference_p99_s=seconds("99th percentile", "First source minus second source.", blank=REASON),
    difference_mean_s=seconds("Mean", "First source minus second source.", blank=REASON),
)
SIZE_UNIT = table(
    "size_unit",
    "A possible unit of the sizes of jobs, in order of preference, with the number of jobs with a size in it.",
    unit=words("Unit", "GPU, node, core or job (each counts 1)."),
    jobs=count("Jobs", "Started jobs with a size above 0 in the unit.", unit="jobs"),
    jobs_share=share("Share", "Jobs with a size in the unit, of the started jobs.", blank="none started"),
    used=truth("Used", "Whether the unit is used; the first unit that enough jobs have is used."),
)
_UNKNOWN = "the trace does not record it"
_JOB_ID = {"trace": words("Trace", "Name of the trace."), "job_id": text("Job", "Id of the job in the trace.")}
_TASK = words("Task", "Distinguishes jobs with the same id.", blank="the id alone is unique")
_USER = name("User", "User who submitted the job.", blank=_UNKNOWN, name_kind="user")
_OWNER = name("Account", "Account whose quota the job uses.", blank=_UNKNOWN, name_kind="account")
_ATTEMPT = count("Attempt", "Number of the attempt within its job, from 0.")
_GPU_TYPE = words("GPU type", "As written in the trace.", blank=_UNKNOWN)
_CPU_AND_MEMORY = {
    "cpu_milli": count("Cores", "Thousandths of a core.", blank=_UNKNOWN, unit="milli-core"),
    "mem_mib": count("Memory", "Main memory.", blank=_UNKNOWN, unit="MiB"),
}
_SUBMISSION = whole_seconds("Submission", "Start of waiting, on the clock of the trace.", blank=_UNKNOWN)
_START = whole_seconds("Start", "On the clock of the trace.", blank=f"it has not started, or {_UNKNOWN}")
_END = whole_seconds("End", "On the trace's clock; while running, when last seen.", f"it has not ended, or {_UNKNOWN}")
_RUNTIME = whole_seconds("Run time", "Run time of the attempt.", "it has not ended, or its start or end is not known")
_NODES = count("Nodes", "Machines of the job or the attempt.", blank=_UNKNOWN, unit="nodes")

_NO_CLUSTER = "the trace has neither users nor other clusters"
_NO_BLOCK = "the trace has no times, or the unit is at risk for longer than a block"
_CLUSTERS = {
    "cluster_by": words("Clustered by", "Kind of clusters: user, request profile or system.", blank=_NO_CLUSTER),
    "cluster": row_number("Cluster", "Number of its cluster, such as its user.", blank=_NO_CLUSTER),
    "group_by": words("Grouped by", "Kind of groups within a cluster: recurrence group, node ...", blank=_NO_CLUSTER),
    "group": row_number("Group", "Number of its group, such as its recurrence group.", blank=_NO_CLUSTER),
    "block_by": words("Block of time", "Length of the blocks, such as week.", f"{_NO_BLOCK}, or blocks are too few"),
    "block": count("Block", "Number of the block of time in which it ended or was last seen.", blank=_NO_BLOCK),
}

JOBS = parquet(
    "jobs",
    "A job with its outcome. Requests are of one instance as requested; size multiplies them.",
    "jobs.parquet",
    open=True,
    **_JOB_ID,
    task=_TASK,
    user=_USER,
    account=_OWNER,
    submit_s=_SUBMISSION,
    start_s=_START,
    end_s=_END,
    queue_s=whole_seconds(
        "Queueing delay",
        "First start minus submission.",
        blank="one is unknown, it is negative, or no start in the trace is later than its submission",
    ),
    runtime_s=_RUNTIME,
    outcome=words("Outcome", "success, failure, cancelled, unknown (ended without a result), running or waiting."),
    status_raw=words("Status", "Raw status word.", blank=_UNKNOWN),
    gpu_type=_GPU_TYPE,
    gpu_milli=count("GPUs", "Thousandths of a GPU.", blank=f"none was requested, or {_UNKNOWN}", unit="milli-GPU"),
    **_CPU_AND_MEMORY,
    size=count("Size", "Instances or processes.", blank=_UNKNOWN),
    nodes=_NODES,
    attempts=count("Attempts", "Number of starts.", blank=f"it has not started, or {_UNKNOWN}"),
    runtime_max_s=whole_seconds(
        "Longest run time",
        "Longest possible run time of a failure without a recorded end.",
        blank="run time and end are recorded, or only the end of the trace is known",
    ),
    trace_end_s=whole_seconds("End of the trace", "Last moment in any row.", blank="no row has a time"),
    **_CLUSTERS,
)
NODES = parquet(
    "nodes",
    "A machine.",
    "nodes.parquet",
    open=True,
    node=name("Node", "Name of the machine.", name_kind="node"),
    gpu_type=_GPU_TYPE,
    gpu_count=count("GPUs", "GPUs of the machine.", blank=_UNKNOWN),
    **_CPU_AND_MEMORY,
)
ATTEMPTS = parquet(
    "attempts",
    "An attempt of a job, sorted by job and sequence. `node_list`: its machines, a list or a text with commas.",
    "attempts.parquet",
    open=True,
    **_JOB_ID,
    attempt=_ATTEMPT,
    start_s=_START,
    end_s=_END,
    runtime_s=_RUNTIME,
    outcome=words("Outcome", "One of the outcomes of jobs.", blank="the trace does not record how it ended"),
    gpu_milli=count("GPUs", "Thousandths of a GPU, over all machines.", blank=_UNKNOWN, unit="milli-GPU"),
    nodes=_NODES,
    job=row_number("Row of the job", "Row in jobs.parquet."),
)
PLACEMENTS = parquet(
    "placements",
    "A part of an attempt on one machine; the parts run in parallel.",
    "placements.parquet",
    open=True,
    **_JOB_ID,
    task=_TASK,
    attempt=_ATTEMPT,
    placement=count("Part", "Number among the parts of the attempt, from 0 on."),
    node=name("Node", "Name of the machine.", name_kind="node"),
    start_s=_START,
    end_s=_END,
    runtime_s=_RUNTIME,
    gpu_milli=count("GPUs", "Thousandths of a GPU of this part.", blank=_UNKNOWN, unit="milli-GPU"),
    outcome=words("Outcome", "Outcome of this part if the format has it, else of the attempt.", blank=_UNKNOWN),
    nodes=_NODES,
    infra_failure=truth(
        "Infra failure",
        "Whether hardware or system software ended it, by records and health events; durations_infra also has logs.",
        "the cause is not recorded",
    ),
    own_outcome=truth("Own outcome", "Whether this part has an outcome of its own."),
    attempt_id=row_number("Row of the attempt", "Row in attempts.parquet; without attempts, in jobs.parquet."),
)
_COMPONENT = "the unit is a component"
_DURATION = {
    "trace": words("Trace", "Name of the trace."),
    "unit_id": text("Unit", "Id of the job, component or node."),
    "duration_id": count("Duration", "Number among those of the unit, from 0 on."),
    "entry_s": whole_seconds("Entry", "Age at which observation began."),
    "duration_s": whole_seconds("Duration", "Time at risk.", blank="its end is not recorded, or it never started"),
    "event": words("Event", "Event that ended it.", blank="it is right-censored"),
    "gpu_count": count("GPUs", "Whole GPUs, a share of one rounded up.", blank=_COMPONENT),
    "gpu_milli": count("GPUs", "Thousandths of a GPU, over all instances.", blank=_COMPONENT, unit="milli-GPU"),
    "cpu_milli": count("Cores", "Thousandths of a core, all instances.", f"{_UNKNOWN}, or {_COMPONENT}", "milli-core"),
    "nodes": _NODES,
    "account": _OWNER,
    "gpu_type": _GPU_TYPE,
    **_CLUSTERS,
    "duration_max_s": whole_seconds("Longest", "Longest possible duration.", blank="it is known, or it never started"),
}
DURATIONS = parquet("durations", "Exposure of a unit, and what ended it.", "durations.parquet", open=True, **_DURATION)
DURATIONS_INFRA = parquet(
    "durations_infra",
    "A duration per attempt, ended by an infrastructure failure or censored.",
    "durations_infra.parquet",
    open=True,
    **_DURATION,
    user=_USER,
    submit_s=_SUBMISSION,
    start_s=_START,
    end_s=_END,
    state=words("State", "Status word of the attempt; else, for the last attempt, of the job.", blank=_UNKNOWN),
    cause=words("Cause", "Cause that attributes the end to infrastructure.", "there is none, or none is recorded"),
    basis=words("Basis", "Rule that attributes ends to infrastructure: state, event, proxy or component."),
    attempt_id=row_number("Row of the attempt", "attempt_id of its rows in placements.parquet.", blank=_COMPONENT),
    failed_node=name("Failed node", "Node to which the failure is attributed.", "none is known", name_kind="node"),
    incident=row_number("Incident", "attempt_id of the failed attempt.", "no infrastructure failure, or no cause"),
)
_UNIT = {
    "trace": words("Trace", "Name of the trace."),
    "unit_id": name("Unit", "Unique name of the node or component.", name_kind="node"),
    "node": name("Node", "Node of the unit.", _UNKNOWN, name_kind="node"),
    "rack": words("Rack", "Rack of the node.", blank=_UNKNOWN),
    "group": words("Group", "Group of the unit: system, partition, machine room or model.", blank=_UNKNOWN),
}
_NO_CAUSE = "the record has no cause"
_CAUSE = {
    "level": words("Level", "Most general word for the cause, such as hardware.", blank=_NO_CAUSE),
    "class": words("Class", "Failed component, or kind of maintenance.", blank=_NO_CAUSE),
    "cause": text("Cause", "Cause as written in the trace.", blank=_NO_CAUSE),
    "domain": words("Domain", "Possible domain, by the rules of outage causes.", blank="no rule assigns one"),
    "planned": truth("Planned", "Whether it was scheduled, by the rules of outage causes."),
}
_NO_END = "it was still down, or its end is not recorded"
_OUTAGE_START = whole_seconds("Start", "Begin of the outage, on the clock of the trace.")
OUTAGES = parquet(
    "outages",
    "An outage: a maximal interval in which a unit could not be used. Overlapping or touching records are merged.",
    "outages.parquet",
    open=True,
    **_UNIT,
    kind=words("Kind", "Kind of unit, such as model and application; units of one kind fail together.", blank=_UNKNOWN),
    start_s=_OUTAGE_START,
    end_s=whole_seconds("End", "Repair: the time when the unit was usable again.", blank=_NO_END),
    duration_s=whole_seconds("Duration", "End minus start.", blank=_NO_END),
    seen_until_s=whole_seconds("Seen until", "End, or the last moment at which the unit was still down."),
    **_CAUSE,
    counted=truth("Counted", "Whether the outage began while the unit was observed."),
    flagged=words("Flagged", "Oddities, separated by semicolons.", blank="there are none"),
    records=count("Records", "Records merged into it."),
)
OUTAGE_RECORDS = parquet(
    "outage_records",
    "A record of an outage in the trace, with its cause.",
    "outage_records.parquet",
    open=True,
    **_UNIT,
    start_s=_OUTAGE_START,
    end_s=whole_seconds("End", "End of the outage, on the clock of the trace.", blank=_NO_END),
    **_CAUSE,
    outage=row_number("Outage", "Row of its outage in outages.parquet."),
)
EXPOSURE = parquet(
    "exposure",
    "A period in which a unit was in service and watched, up or down, with or without an outage.",
    "exposure.parquet",
    open=True,
    **_UNIT,
    from_s=whole_seconds("From", "Start of observation, on the clock of the trace."),
    until_s=whole_seconds("To", "End of observation, on the clock of the trace."),
)

NODE_ERRORS = parquet(
    "node_errors",
    "An error in a node's log. Repeats of one code on one GPU within a short time are one error.",
    "node_errors.parquet",
    node=name("Node", "Name of the node in the trace.", name_kind="node"),
    gpu=text("GPU", "Its PCI address or number, as the log names it.", blank="the line names none"),
    code=words("Code", "Such as XID 79, OOM or IB LINK; a monitor's own code as written."),
    component=words("Component", "Component that probably caused it, by the rules of node logs."),
    severity=words("Severity", "error, warning or info."),
    application=truth("Application", "Whether an application can cause the code, by the rules of node logs."),
    time_s=whole_seconds("Time", "Its first line, in seconds since 1970."),
    last_s=whole_seconds("Last line", "Its last line, in seconds since 1970."),
    lines=count("Lines", "Lines that it stands for.", unit="lines"),
    at_boot=truth("At a start", "Whether it is shortly after a start of the node, so not in service."),
)
NODE_LOG_WATCH = parquet(
    "node_log_watch",
    "A span in which a node's log was written; a long silence ends one.",
    "node_log_watch.parquet",
    node=name("Node", "Name of the node in the trace.", name_kind="node"),
    start_s=whole_seconds("From", "First line, in seconds since 1970."),
    end_s=whole_seconds("To", "Last line, in seconds since 1970."),
    clock_offset_s=whole_seconds(
        "Clock", "Time of the log minus that of the jobs, by starts of jobs.", "fewer than three starts are in the log"
    ),
)
NODE_LOG_LINES = table(
    "node_log_lines",
    "Lines of nodes' logs by how they were used.",
    code=words("Code", "lines: all that are not blank; otherwise how they were used."),
    severity=words("Severity", "info, warning or error."),
    rows=count("Lines", "Lines with this code.", unit="lines"),
    share=share("Share", "Share of the lines that are not blank.", "the row is the total"),
    first_lines=text("First", "Files and numbers of the first lines.", "the row is a total"),
    sentence=words("Meaning", "The code in words."),
)

_NO_CLOCK = "the line has no clock"
_NOT_TOLD = "the line does not say"
TRAINING_EVENTS = parquet(
    "training_events",
    "A line of a training log that tells progress. Times are in microseconds.",
    "training_events.parquet",
    log=text("Log", "Name of the log."),
    line=count("Line", "Number of the line in the log."),
    kind=words("Kind", "launch, start, step, save, saved, load, loaded, evaluation, evaluated, end, error ..."),
    profile=words("Profile", "Profile of config/training_log_profiles.yaml that read the line."),
    time_us=count("Time", "Time of the line since 1970.", blank=_NO_CLOCK, unit="us"),
    before_us=count(
        "Before", "Last time in an earlier line, since 1970.", blank="no earlier line has a clock", unit="us"
    ),
    step=count("Step", "Number of the step.", blank=_NOT_TOLD),
    total=count("Last step", "Last step that is planned.", blank=_NOT_TOLD),
    samples=count("Samples", "Samples used up to the step.", blank=_NOT_TOLD),
    span_us=count("Duration", "A duration that the line names.", blank=_NOT_TOLD, unit="us"),
    span_kind=words("Duration of", "mean, interval, one or total time of steps, or own: of the event.", _NOT_TOLD),
    rank=count("Rank", "Rank of the process.", blank=_NOT_TOLD),
    text=words("Text", "Cause of an error, or id of a job.", "the event has neither"),
)
TRAINING_LOG_LINES = table(
    "training_log_lines",
    "Lines of training logs by what they told.",
    log=text("Log", "Name of the log."),
    code=words("Code", "lines: all that are not blank; otherwise what they told."),
    rows=count("Lines", "Lines with this code.", unit="lines"),
    first_lines=text("First", "Numbers of the first lines.", "there is none"),
    sentence=words("Meaning", "The code in words."),
)

TABLES = (RUNTIME_AGREEMENT, SIZE_UNIT, NODE_LOG_LINES, TRAINING_LOG_LINES)
# What a trace has where its format gives it; analyses ask for it by name (ttf.analyses.declaration.PRODUCTS).
OF_TRACES = (
    JOBS,
    NODES,
    ATTEMPTS,
    PLACEMENTS,
    DURATIONS,
    DURATIONS_INFRA,
    OUTAGES,
    OUTAGE_RECORDS,
    EXPOSURE,
    NODE_ERRORS,
    NODE_LOG_WATCH,
    TRAINING_EVENTS,
)

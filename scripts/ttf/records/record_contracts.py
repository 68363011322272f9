"""The contracts of the common records: jobs, attempts, placements, lives, outages, and the unit of sizes."""

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

RUNTIME_AGREEMENT = table(
    "runtime_agreement",
    "A time that successful jobs have from two sources, and by how much the two differ.",
    time=words("Time", "start, end or run time."),
    n=count("n", "Successful jobs with both.", unit="jobs"),
    equal=count("Equal", "Those to which both give the same second.", unit="jobs", blank=REASON),
    equal_share=share("Equal", "Of n.", blank=REASON),
    difference_p01_s=seconds("1st percentile", "First source less the second.", blank=REASON),
    difference_p05_s=seconds("5th percentile", "As above.", blank=REASON),
    difference_median_s=seconds("Median", "As above.", blank=REASON),
    difference_p95_s=seconds("95th percentile", "As above.", blank=REASON),
    difference_p99_s=seconds("99th percentile", "As above.", blank=REASON),
    difference_mean_s=seconds("Mean", "As above.", blank=REASON),
)
SIZE_UNIT = table(
    "size_unit",
    "A unit in which sizes of jobs may be told, in the order of preference, and how many jobs have a size in it.",
    unit=words("Unit", "GPU, node, core, or job: each counts 1."),
    jobs=count("Jobs", "Jobs that started with a size in the unit above 0.", unit="jobs"),
    jobs_share=share("Share", "Of the jobs that started.", blank="none started"),
    used=truth("Used", "Whether sizes and times are told in it: the first that enough of the jobs have."),
)
_NOT_SAID = "the trace does not say"
_JOB_ID = {"trace": words("Trace", "Name of the trace."), "job_id": text("Job", "Id of the job in the trace.")}
_TASK = words("Task", "What tells the jobs of one id apart.", blank="the id alone is unique")
_USER = name("User", "Who submitted the job.", blank=_NOT_SAID, of="user")
_ACCOUNT_OF = name("Account", "Whose quota it counts against.", blank=_NOT_SAID, of="account")
_ATTEMPT = count("Attempt", "Its number among those of the job, from 0 on.")
_GPU_TYPE = words("GPU type", "As the trace writes it.", blank=_NOT_SAID)
_CPU_AND_MEMORY = {
    "cpu_milli": count("Cores", "Thousandths of a core.", blank=_NOT_SAID, unit="milli-core"),
    "mem_mib": count("Memory", "Main memory.", blank=_NOT_SAID, unit="MiB"),
}
_SUBMISSION = whole_seconds("Submission", "When it began to wait, on the clock of the trace.", blank=_NOT_SAID)
_START = whole_seconds("Start", "On the clock of the trace.", blank=f"it has not started, or {_NOT_SAID}")
_END = whole_seconds(
    "End", "On the clock of the trace; of what runs, when it was last seen.", blank=f"it has not ended, or {_NOT_SAID}"
)
_RUNTIME = whole_seconds(
    "Run time", "Time in which it ran.", blank="it has not ended, or its start or end is not known"
)
_NODES = count("Nodes", "Machines that the job or the attempt was on.", blank=_NOT_SAID, unit="nodes")

_ALL_APART = "the trace names neither users nor anything else that they have in common"
_NO_BLOCK = "the trace has no times, or the unit is at risk for longer than a block"
_CLUSTERS = {
    "cluster_by": words("Clustered by", "What fails alike: user, request profile or system.", blank=_ALL_APART),
    "cluster": row_number("Cluster", "Number of its user, or of what cluster_by names.", blank=_ALL_APART),
    "group_by": words("Grouped by", "What repeats within a cluster: recurrence group, node ...", blank=_ALL_APART),
    "group": row_number("Group", "Number of its recurrence group, or of what group_by names.", blank=_ALL_APART),
    "block_by": words("Block of time", "week, or how long the blocks are.", blank=_NO_BLOCK),
    "block": count("Block", "Number of the block in which it ended, or was last seen.", blank=_NO_BLOCK),
}

JOBS = parquet(
    "jobs",
    "A job with its outcome. Requests are of one instance as requested; size multiplies them.",
    "jobs.parquet",
    open=True,
    **_JOB_ID,
    task=_TASK,
    user=_USER,
    account=_ACCOUNT_OF,
    submit_s=_SUBMISSION,
    start_s=_START,
    end_s=_END,
    queue_s=whole_seconds(
        "Queueing delay",
        "First start less submission.",
        blank="one is not known, it is negative, or in the whole trace no start is later than its submission",
    ),
    runtime_s=_RUNTIME,
    outcome=words("Outcome", "success, failure, cancelled, unknown (ended, no result recorded), running or waiting."),
    status_raw=words("Status", "In the words of the trace.", blank=_NOT_SAID),
    gpu_type=_GPU_TYPE,
    gpu_milli=count("GPUs", "Thousandths of a GPU.", blank=f"none was requested, or {_NOT_SAID}", unit="milli-GPU"),
    **_CPU_AND_MEMORY,
    size=count("Size", "Instances or processes.", blank=_NOT_SAID),
    nodes=_NODES,
    attempts=count("Attempts", "Times that it started.", blank=f"it has not started, or {_NOT_SAID}"),
    runtime_max_s=whole_seconds(
        "Longest run time",
        "The longest that it can have run, of a failure whose own end is not written.",
        blank="run time and end are its own, or the end of the trace is all that is known",
    ),
    trace_end_s=whole_seconds("End of the trace", "The last moment that any row names.", blank="no row names a time"),
    **_CLUSTERS,
)
NODES = parquet(
    "nodes",
    "A machine.",
    "nodes.parquet",
    open=True,
    node=name("Node", "Its name.", of="node"),
    gpu_type=_GPU_TYPE,
    gpu_count=count("GPUs", "GPUs in it.", blank=_NOT_SAID),
    **_CPU_AND_MEMORY,
)
ATTEMPTS = parquet(
    "attempts",
    "A try at a job, by job and in sequence. `node_list`: its machines, a list, or a text with commas between.",
    "attempts.parquet",
    open=True,
    **_JOB_ID,
    attempt=_ATTEMPT,
    start_s=_START,
    end_s=_END,
    runtime_s=_RUNTIME,
    outcome=words("Outcome", "In the words of a job's.", blank="the trace does not say how it ended"),
    gpu_milli=count("GPUs", "Thousandths of a GPU, of all its machines.", blank=_NOT_SAID, unit="milli-GPU"),
    nodes=_NODES,
    job=row_number("Row of the job", "In jobs.parquet."),
)
PLACEMENTS = parquet(
    "placements",
    "A part of an attempt on one machine, in parallel with the others.",
    "placements.parquet",
    open=True,
    **_JOB_ID,
    task=_TASK,
    attempt=_ATTEMPT,
    placement=count("Part", "Its number among the parts of the attempt, from 0 on."),
    node=name("Node", "Name of the machine.", of="node"),
    start_s=_START,
    end_s=_END,
    runtime_s=_RUNTIME,
    gpu_milli=count("GPUs", "Thousandths of a GPU, of this part.", blank=_NOT_SAID, unit="milli-GPU"),
    outcome=words("Outcome", "Of this part where the format tells it, else of the attempt.", blank=_NOT_SAID),
    nodes=_NODES,
    infra_failure=truth(
        "Infra failure",
        "Whether hardware or system software ended it.",
        blank="the format cannot tell what, or on which machine, it was",
    ),
    own_outcome=truth("Own outcome", "Whether the outcome is that of this part, as it also is of the only one."),
    attempt_id=row_number(
        "Row of the attempt", "In attempts.parquet, or in jobs.parquet where the format tells no attempts apart."
    ),
)
_OF_COMPONENT = "the unit is a component"
_LIFE = {
    "trace": words("Trace", "Name of the trace."),
    "unit_id": text("Unit", "The job, or the component or node, whose life it is."),
    "life_id": count("Life", "Its number among those of the unit, from 0 on."),
    "entry_s": whole_seconds("Entry", "Age at which it came under watch."),
    "duration_s": whole_seconds("Duration", "Time at risk.", blank="nobody wrote when it ended, or it never started"),
    "event": words("Event", "What ended it.", blank="nothing did: right-censored"),
    "gpu_count": count("GPUs", "Whole GPUs, a share of one rounded up.", blank=_OF_COMPONENT),
    "gpu_milli": count("GPUs", "Thousandths of a GPU, of all instances.", blank=_OF_COMPONENT, unit="milli-GPU"),
    "cpu_milli": count(
        "Cores", "Thousandths of a core, of all instances.", f"{_NOT_SAID}, or the unit is a component", "milli-core"
    ),
    "nodes": _NODES,
    "account": _ACCOUNT_OF,
    "gpu_type": _GPU_TYPE,
    **_CLUSTERS,
    "duration_max_s": whole_seconds(
        "Longest", "The longest it can have lasted.", blank="the duration is known, or it never started"
    ),
}
LIVES = parquet("lives", "Exposure of one unit, and what ended it.", "lives.parquet", open=True, **_LIFE)
LIVES_INFRA = parquet(
    "lives_infra",
    "A life per attempt, ended by infra_failure where hardware or system software ended it.",
    "lives_infra.parquet",
    open=True,
    **_LIFE,
    user=_USER,
    submit_s=_SUBMISSION,
    start_s=_START,
    end_s=_END,
    state=words("State", "Status word of the attempt, else of the job's last one.", blank=_NOT_SAID),
    cause=words("Cause", "What attributes the end to infrastructure.", blank="nothing does, or no cause is recorded"),
    basis=words("Basis", "Why an end counts as one by infrastructure: state, event, proxy or component."),
    attempt_id=row_number("Row of the attempt", "As in placements.parquet.", blank=_OF_COMPONENT),
    failed_node=name("Failed node", "The node that the failure is attributed to.", "none is named", of="node"),
    incident=row_number(
        "Incident", "attempt_id of the attempt that the failure hit.", blank="no infra failure, or no cause is recorded"
    ),
)
_UNIT = {
    "trace": words("Trace", "Name of the trace."),
    "unit_id": name("Unit", "The node or component, one name each.", of="node"),
    "node": name("Node", "The node that the unit is, or is in.", _NOT_SAID, of="node"),
    "rack": words("Rack", "Where the node stands.", blank=_NOT_SAID),
    "group": words("Group", "What divides the units: system, partition, machine room or model.", blank=_NOT_SAID),
}
_NO_CAUSE = "the record names no cause"
_CAUSE = {
    "level": words("Level", "The widest word for the cause, such as hardware.", blank=_NO_CAUSE),
    "class": words("Class", "The part that failed, or the kind of work.", blank=_NO_CAUSE),
    "cause": text("Cause", "The cause in the words of the trace.", blank=_NO_CAUSE),
    "domain": words("Domain", "Where the cause can lie, by the rules of outage causes.", blank="no rule names one"),
    "planned": truth("Planned", "Somebody scheduled it, by the rules of outage causes."),
}
_NO_END = "it was still down, or nobody wrote when it ended"
_OUTAGE_START = whole_seconds("Start", "When the unit could no longer be used, on the clock of the trace.")
OUTAGES = parquet(
    "outages",
    "An outage: a maximal interval in which a unit could not be used. Records that overlap or touch are one.",
    "outages.parquet",
    open=True,
    **_UNIT,
    kind=words("Kind", "What units fail alike by beside their place, such as model and application.", blank=_NOT_SAID),
    start_s=_OUTAGE_START,
    end_s=whole_seconds("End", "The repair: when the unit could be used again.", blank=_NO_END),
    duration_s=whole_seconds("Duration", "End less start.", blank=_NO_END),
    seen_until_s=whole_seconds("Seen until", "Its end, or the last moment at which the unit was still down."),
    **_CAUSE,
    counted=truth("Counted", "It began while the unit was watched; down when the watch began is no failure seen."),
    flagged=words("Flagged", "What is odd about it, in words with semicolons between.", blank="nothing is"),
    records=count("Records", "Records that it was merged of."),
)
OUTAGE_RECORDS = parquet(
    "outage_records",
    "A record of an outage as the trace has it, with its cause.",
    "outage_records.parquet",
    open=True,
    **_UNIT,
    start_s=_OUTAGE_START,
    end_s=whole_seconds("End", "When it ended.", blank=_NO_END),
    **_CAUSE,
    outage=row_number("Outage", "The row in outages.parquet that it is part of."),
)
EXPOSURE = parquet(
    "exposure",
    "Time in which a unit was in service and watched, down or up; of units without an outage too.",
    "exposure.parquet",
    open=True,
    **_UNIT,
    from_s=whole_seconds("From", "When the watch began, on the clock of the trace."),
    until_s=whole_seconds("To", "When it ended."),
)

TABLES = (RUNTIME_AGREEMENT, SIZE_UNIT)
# What a trace has where its format gives it; analyses ask for it by name (ttf.analyses.declaration.PRODUCTS).
OF_TRACES = (JOBS, NODES, ATTEMPTS, PLACEMENTS, LIVES, LIVES_INFRA, OUTAGES, OUTAGE_RECORDS, EXPOSURE)

"""What do users request and submit, and how long do jobs wait and run?"""

from dataclasses import replace

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns, owner_columns, percentile_columns, wilson_columns
from ttf.engine.contract import REASON, count, name, number, seconds, share, table, whole_seconds, words

_GROUP = {
    "group_by": words("By", "Property by which jobs are grouped."),
    "group": name("Group", "Value of the property, or all for every job.", by="group_by", sorted=True),
}
_JOBS = {
    "jobs": count("Jobs", "Jobs of the row.", unit="jobs"),
    "n": count("n", "Denominator of the share.", unit="jobs"),
    "jobs_share": share("Share of jobs", "Jobs divided by n."),
}

PERCENTILES = table(
    "percentiles",
    "Mean and percentiles (linear between ranks) of a time, of jobs of one group and outcome.",
    quantity=words("Quantity", "runtime_s, queue_s, or wall_s: from the first start to the last end."),
    outcome_set=words("Outcome", "all, success, failure or cancelled."),
    **_GROUP,
    n=count("n", "Jobs of the row with a known time.", unit="jobs"),
    mean_s=seconds("Mean", "Mean of the time."),
    **percentile_columns(seconds, "_s", {p: f"{p}th percentile." for p in (25, 50, 75, 80, 90, 95, 99)}),
)
GPU_REQUESTS = replace(
    table(
        "gpu_requests",
        "Jobs whose request per instance lies in one range of GPU shares, for all jobs or for one GPU type.",
        **_GROUP,
        gpu_request=words("GPU per instance", "Request of each instance, in percent of a GPU."),
        jobs=_JOBS["jobs"],
        n=count("n", "Jobs of the group that request a GPU.", unit="jobs"),
        jobs_share=_JOBS["jobs_share"],
    ),
    is_in_gpus=True,
)
REQUEST_USE = table(
    "request_use",
    "For a resource, the jobs that request more than they use and those that use more.",
    resource=words("Resource", "cpu, gpu or memory, each per instance."),
    n=count("n", "Jobs with a request and a measured use.", unit="jobs"),
    requested_more_share=share("Share", "Share of n.", blank=REASON),
    used_more_share=share("Share", "Share of n.", blank=REASON),
    used_median_share=number(
        "Used, median", "Median of measured use divided by request.", "nobody requested it", unit="share"
    ),
)
RECURRENCE = table(
    "recurrence",
    "Groups with at least a given number of jobs, and the jobs in them.",
    group_by=words("By", "recurrence_group (submissions of the same job) or user."),
    at_least=count("Jobs, at least", "Minimum number of jobs in a group.", unit="jobs"),
    groups=count("Groups", "Groups with at least this number of jobs.", unit="groups"),
    jobs=count("Jobs", "Jobs in the groups of the row.", unit="jobs"),
    n=count("n", "Jobs with a known group or user.", unit="jobs"),
    jobs_share=_JOBS["jobs_share"],
)
SUBMISSIONS = table(
    "submissions",
    "Jobs submitted in one hour of the day, or on one weekday.",
    by=words("By", "hour or weekday."),
    value=words("Hour or day", "0 to 23, or the weekday in English.", blank=REASON),
    zone=words("Zone", "Time zone of the clock.", blank=REASON),
    jobs=count("Jobs", "Jobs submitted in this hour or on this day.", unit="jobs"),
    n=count("n", "Jobs with a time of submission.", unit="jobs"),
    jobs_share=share("Share of jobs", "Jobs divided by n.", blank=REASON),
    clock_hours=count("Clock hours", "Number of such hours from the first submission to the last.", REASON, unit="h"),
    jobs_per_hour=number("Jobs an hour", "Jobs divided by clock hours.", blank=REASON, unit="jobs/h", n="jobs"),
    first_submit_s=whole_seconds("First", "First of these submissions, in seconds since 1970.", blank=REASON),
)
ROLES = table(
    "roles",
    "A role: the name of a task in its job. If a trace has more than 100 roles, the most frequent.",
    role=words("Role", "Name of the task in the trace."),
    jobs=count("Jobs", "Jobs with this role.", unit="jobs"),
    n=count("n", "Jobs with any role.", unit="jobs"),
    roles=count("Roles", "Distinct roles in the trace.", unit="roles"),
    jobs_share=_JOBS["jobs_share"],
    ended=count("Ended", "Jobs that ended in success or failure.", unit="jobs"),
    failures=count("Failures", "Jobs that failed.", unit="jobs"),
    failure_share=share("Failed", "Failures divided by ended jobs.", blank=REASON),
    **wilson_columns(blank=REASON),
    **clustered_columns(share),
)
ACTIVITY = table(
    "activity",
    "The most active users, with their share of jobs and of GPU time.",
    **owner_columns("jobs (users with the most jobs first) or gpu_hours (users with the most GPU time first)."),
    jobs=count("Jobs", "Jobs of the users of the row.", unit="jobs"),
    n=count("n", "Jobs with a known user.", unit="jobs"),
    jobs_share=_JOBS["jobs_share"],
    gpu_hours=number("GPU-hours", "GPU time of the jobs of the row.", unit="GPU-hours"),
    gpu_hours_share=share("Share of GPU-hours", "Share of the GPU-hours of all users.", blank=REASON),
)
GANGS = table(
    "gangs",
    "Jobs with at least a given number of instances, and the instances in them.",
    at_least=count("Instances, at least", "Minimum number of instances in a job."),
    jobs=count("Jobs", "Jobs with at least this number of instances.", unit="jobs"),
    n=count("n", "Jobs with a known number of instances.", unit="jobs"),
    jobs_share=_JOBS["jobs_share"],
    instances=count("Instances", "Instances of the jobs of the row."),
    instances_share=share("Share of instances", "Share of the instances of all jobs.", n="instances"),
    instances_failed_share=share("Share failed", "Failed instances divided by ended instances.", blank=REASON),
)
REQUEST_PERCENTILES = table(
    "request_percentiles",
    "Requests of a resource. A percentile is the smallest value that this percentage does not exceed.",
    resource=words("Resource", "cpu, gpu or memory per instance; gpus: whole GPUs of a job."),
    unit=words("Unit", "Unit of the values."),
    weighted_by=words("Counted", "What is counted: jobs or instances."),
    n=count("n", "Jobs, or instances, that request the resource."),
    **percentile_columns(number, "", {p: f"{p}th percentile, in `unit`." for p in (50, 75, 90, 95, 99)}, REASON),
    largest=number("Largest", "The largest request, in `unit`.", blank=REASON),
)
WAIT_SHARE = table(
    "wait_share",
    "For jobs of one group, the share of the time to completion (delay plus run time) spent waiting.",
    group_by=words("By", "all or run_length."),
    group=name("Group", "all; short: run time up to the limit; long: above it.", by="group_by"),
    limit_s=seconds("Limit", "Median run time.", blank="the row is of all jobs"),
    n=count("n", "Jobs whose delay and run time are known and not both 0.", unit="jobs"),
    over_half_share=share("Share", "Share of n."),
)
MACHINES = replace(
    table(
        "machines",
        "The machines of one GPU type.",
        gpu_type=words("GPU type", "Name of the type in the trace.", blank="the machines have no known type"),
        nodes=count("Machines", "Machines of the type."),
        gpus=count("GPUs", "GPUs of those machines whose number of GPUs is known.", unit="GPUs"),
    ),
    is_in_gpus=True,
)
JOB_STATUS = table(
    "job_status",
    "A status in the trace's table of whole jobs; no rows if the trace has no such table.",
    status=words("Status", "Status word in the trace."),
    **_JOBS,
    with_start=count("With a start", "Jobs with a recorded start.", unit="jobs"),
    with_end=count("With an end", "Jobs with a recorded end.", unit="jobs"),
)
MACHINE_LOAD = table(
    "machine_load",
    "A measure over all machines. Readings are weighted by the run time of their instance.",
    quantity=words("Quantity", "Quantity measured."),
    unit=words("Unit", "Unit of the values."),
    n=count("n", "Readings with a value and a run time above 0 s."),
    nodes=count("Machines", "Machines with such readings.", unit="machines"),
    mean=number("Mean", "Mean over the measured seconds, in `unit`.", blank=REASON),
    p95=number("95%", "Value not exceeded in 95% of the measured seconds.", blank=REASON),
)

ANALYSIS = Analysis(
    question="What do users request and submit, and how long do jobs wait and run?",
    theme="queue",
    rank=30,
    needs=["jobs", "nodes"],
    uses=["raw"],
    settings={
        "zone": lambda trace: trace.clock,
        "tables": lambda trace: sorted({"job", "machine_metric", "machine_spec"} & set(trace.raw_files)),
    },
    tables=(
        PERCENTILES,
        GPU_REQUESTS,
        REQUEST_USE,
        RECURRENCE,
        SUBMISSIONS,
        ROLES,
        ACTIVITY,
        GANGS,
        REQUEST_PERCENTILES,
        WAIT_SHARE,
        MACHINES,
        JOB_STATUS,
        MACHINE_LOAD,
    ),
    charts={
        "queue_by_gpus": "percentiles",
        "request_use": "request_use",
        "roles": "roles",
    },
    main=["queue_by_gpus"],
    sections=["workload"],
    in_size_unit=True,
    memory_mb=390,
    mb_per_gb={"pai2020": 20, "philly": 20, "sacct": 720},
)

"""What was requested, when, by whom and what for, and how long did it wait and run?"""

from dataclasses import replace

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered, percentiles, top_owners, wilson
from ttf.engine.contract import REASON, count, name, number, seconds, share, table, whole_seconds, words

_GROUP = {
    "group_by": words("By", "What jobs are divided by."),
    "group": name("Group", "The kind of jobs; all: every job.", by="group_by", sorted=True),
}
_JOBS = {
    "jobs": count("Jobs", "Jobs of the row.", unit="jobs"),
    "n": count("n", "Jobs of which the share is.", unit="jobs"),
    "jobs_share": share("Share of jobs", "Jobs over n."),
}

PERCENTILES = table(
    "percentiles",
    "A time of the jobs of one kind and outcome: its mean and percentiles, linear between ranks.",
    quantity=words("Quantity", "runtime_s, queue_s, or wall_s: from the first start to the last end."),
    outcome_set=words("Outcome", "all, success, failure or cancelled."),
    **_GROUP,
    n=count("n", "Jobs of the row with a known time.", unit="jobs"),
    mean_s=seconds("Mean", "Mean of the time."),
    **percentiles(seconds, "_s", {p: f"{p}th percentile." for p in (25, 50, 75, 80, 90, 95, 99)}),
)
GPU_REQUESTS = replace(
    table(
        "gpu_requests",
        "Jobs that request one range of GPU shares per instance, of all jobs or of those of one GPU type.",
        **_GROUP,
        gpu_request=words("GPU per instance", "What each instance requests, in percent of a GPU."),
        jobs=_JOBS["jobs"],
        n=count("n", "Jobs of the group that request a GPU.", unit="jobs"),
        jobs_share=_JOBS["jobs_share"],
    ),
    of_gpus=True,
)
REQUEST_USE = table(
    "request_use",
    "A resource: how many jobs request more than they use, and how many use more.",
    resource=words("Resource", "cpu, gpu or memory, each per instance."),
    n=count("n", "Jobs with a request and a measured use.", unit="jobs"),
    asked_more=count("Requested more", "Jobs that use less than they request.", blank=REASON, unit="jobs"),
    asked_more_share=share("Share", "Those over n.", blank=REASON),
    used_more=count("Used more", "Jobs that use more than they request.", blank=REASON, unit="jobs"),
    used_more_share=share("Share", "Those over n.", blank=REASON),
    used_median_share=number("Used, median", "Median of use over request.", "nobody requested it", unit="share"),
)
RECURRENCE = table(
    "recurrence",
    "Groups of at least so many jobs, and the jobs in them.",
    group_by=words("By", "recurrence_group (jobs that are one job sent again) or user."),
    at_least=count("Jobs, at least", "Jobs of each of the groups counted.", unit="jobs"),
    groups=count("Groups", "Groups with at least so many jobs.", unit="groups"),
    jobs=count("Jobs", "Jobs of these groups.", unit="jobs"),
    n=count("n", "Jobs with a known group or user.", unit="jobs"),
    jobs_share=_JOBS["jobs_share"],
)
SUBMISSIONS = table(
    "submissions",
    "Jobs submitted in one hour of the day, or on one weekday.",
    by=words("By", "hour or weekday."),
    value=words("Hour or day", "0 to 23, or the weekday in English.", blank=REASON),
    zone=words("Zone", "Time zone of the clock.", blank=REASON),
    jobs=count("Jobs", "Jobs submitted then.", unit="jobs"),
    n=count("n", "Jobs with a time of submission.", unit="jobs"),
    jobs_share=share("Share of jobs", "Jobs over n.", blank=REASON),
    clock_hours=count("Such hours", "From the first submission to the last.", blank=REASON, unit="h"),
    jobs_per_hour=number("Jobs an hour", "Jobs over such hours.", blank=REASON, unit="jobs/h", n="jobs"),
    first_submit_s=whole_seconds("First", "The first of these submissions, since 1970.", blank=REASON),
)
ROLES = table(
    "roles",
    "A role, the name of a task within its job; of a trace with very many the most frequent.",
    role=words("Role", "As the trace names the task."),
    jobs=count("Jobs", "Jobs with this role.", unit="jobs"),
    n=count("n", "Jobs with any role.", unit="jobs"),
    roles=count("Roles", "Different roles of the trace.", unit="roles"),
    jobs_share=_JOBS["jobs_share"],
    ended=count("Ended", "Jobs with success or failure.", unit="jobs"),
    failures=count("Failures", "Jobs that failed.", unit="jobs"),
    failure_share=share("Failed", "Failures over the jobs that ended.", blank=REASON),
    **wilson(blank=REASON),
    **clustered(share),
    failures_share=share("Of all failures", "Failures over those of all roles.", blank=REASON),
)
ACTIVITY = table(
    "activity",
    "The most active users, and what they have of jobs and of GPU time.",
    **top_owners("jobs (users with the most jobs first) or gpu_hours (with the most GPU time)."),
    jobs=count("Jobs", "Their jobs.", unit="jobs"),
    n=count("n", "Jobs with a known user.", unit="jobs"),
    jobs_share=_JOBS["jobs_share"],
    gpu_hours=number("GPU-hours", "GPU time of their jobs.", unit="GPU-hours"),
    gpu_hours_share=share("Share of GPU-hours", "Of that of all users.", blank=REASON),
)
GANGS = table(
    "gangs",
    "Jobs of at least so many instances, and the instances in them.",
    at_least=count("Instances, at least", "Instances of each of the jobs counted."),
    jobs=count("Jobs", "Jobs with at least so many instances.", unit="jobs"),
    n=count("n", "Jobs with a known number of instances.", unit="jobs"),
    jobs_share=_JOBS["jobs_share"],
    instances=count("Instances", "Instances of these jobs."),
    instances_share=share("Share of instances", "Of the instances of all jobs.", n="instances"),
    instances_ended=count("Ended", "Instances of jobs with success or failure."),
    instances_failed=count("Failed", "Instances of jobs that failed."),
    instances_failed_share=share("Share failed", "Of the instances that ended.", blank=REASON),
)
REQUEST_PERCENTILES = table(
    "request_percentiles",
    "What is requested of a resource; a percentile is the smallest value that so many per cent do not exceed.",
    resource=words("Resource", "cpu, gpu or memory per instance; gpus: whole GPUs of a job."),
    unit=words("Unit", "Of the values."),
    weighted_by=words("Counted", "jobs or instances."),
    n=count("n", "Jobs, or instances, that request some."),
    **percentiles(number, "", {p: f"{p}th percentile, in `unit`." for p in (50, 75, 90, 95, 99)}, REASON),
    largest=number("Largest", "The largest request, in `unit`.", blank=REASON),
)
WAIT_SHARE = table(
    "wait_share",
    "Jobs of one kind, and how much of their time to completion (delay and run time) is waiting.",
    group_by=words("By", "all or run_length."),
    group=name("Group", "all; short: ran no longer than the limit; long: ran longer.", by="group_by"),
    limit_s=seconds("Limit", "Median run time.", blank="the row is of all jobs"),
    n=count("n", "Jobs with a known delay and run time, not both 0.", unit="jobs"),
    over_half=count("Waited longer", "Jobs that wait for longer than they run.", unit="jobs"),
    over_half_share=share("Share", "Those over n."),
    wait_median_share=share("Waiting, median", "Median of the delay over the time to completion."),
)
MACHINES = replace(
    table(
        "machines",
        "The machines of one GPU type.",
        gpu_type=words("GPU type", "As the trace names it.", blank="the machines have no known type"),
        nodes=count("Machines", "Machines of the type."),
        nodes_share=share("Share of machines", "Of all machines."),
        gpus=count("GPUs", "GPUs of these machines, as far as known.", unit="GPUs"),
        gpus_share=share("Share of GPUs", "Of the GPUs of all machines.", blank=REASON),
    ),
    of_gpus=True,
)
JOB_STATUS = table(
    "job_status",
    "A status in the trace's own table of whole jobs; no rows where it has none.",
    status=words("Status", "As the trace writes it."),
    **_JOBS,
    with_start=count("With a start", "Jobs of which a start is written.", unit="jobs"),
    with_end=count("With an end", "Jobs of which an end is written.", unit="jobs"),
)
MACHINE_LOAD = table(
    "machine_load",
    "A measure of all machines or of one GPU type; each reading weighs as the life of its instance is long.",
    quantity=words("Quantity", "What is measured."),
    unit=words("Unit", "Of the values."),
    group_by=words("By", "all or gpu_type."),
    group=name("Group", "all, or the GPU type.", by="group_by"),
    n=count("n", "Readings with a value and a life above 0 s."),
    nodes=count("Machines", "Machines among them.", unit="machines"),
    measured_s=whole_seconds("Measured", "Time at risk of all readings together."),
    mean=number("Mean", "Over the seconds measured, in `unit`.", blank=REASON),
    **percentiles(
        number,
        "",
        {p: f"Value that {'half' if p == 50 else f'{p}%'} of the seconds do not exceed." for p in (25, 50, 75, 90, 95)},
        REASON,
    ),
)

ANALYSIS = Analysis(
    question="What was requested, when, by whom and what for, and how long did it wait and run?",
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

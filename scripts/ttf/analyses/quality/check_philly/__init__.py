"""Does the Philly log use the assumed time zone, and how wrong is its list of machines?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.contract import count, table, whole_seconds

ZONE_EVIDENCE = table(
    "zone_evidence",
    "A start of the resource manager. None of its jobs can have been submitted before it.",
    manager_start_s=whole_seconds("Start", "Seconds since 1970 UTC, from the ids of its jobs."),
    jobs=count("Jobs", "Jobs whose ids name this start.", unit="jobs"),
    first_submit_after_s=whole_seconds(
        "First submission after, if Pacific", "Time from start to first submission; below 0 excludes Pacific time."
    ),
    first_submit_after_if_utc_s=whole_seconds("if UTC", "Time from start to first submission; below 0 excludes UTC."),
)
LISTED_MACHINES = table(
    "listed_machines",
    "Machines by their number of GPUs in the list, and in the telemetry or the log.",
    listed_gpus=count("GPUs in the list", "GPUs of each machine.", blank="not in the list", unit="GPUs"),
    observed_gpus=count("GPUs observed", "GPUs of each machine.", blank="in neither telemetry nor log", unit="GPUs"),
    nodes=count("Machines", "Number of machines.", unit="nodes"),
)
_NO_START, _NO_MACHINE = "no id of a job names a start", "no machine is in both"
PHILLY_SUMMARY = table(
    "philly_summary",
    "Totals of zone_evidence.csv and of listed_machines.csv.",
    jobs=count("Jobs", "Jobs whose ids name a start.", unit="jobs"),
    starts=count("Starts", "Starts of the resource manager.", blank=_NO_START, unit="starts", n="jobs"),
    pacific_ruled_out=count(
        "Pacific ruled out", "Starts that rule out this time zone.", blank=_NO_START, unit="starts", n="starts"
    ),
    utc_ruled_out=count("UTC ruled out", "Starts that rule out this time zone.", _NO_START, unit="starts", n="starts"),
    listed=count("Listed", "Machines in the list.", unit="nodes"),
    listed_gpus=count("GPUs in the list", "GPUs of the listed machines.", unit="GPUs", n="listed"),
    observed=count("Observed", "Machines in telemetry or log.", unit="nodes"),
    observed_gpus=count("GPUs observed", "GPUs of the machines observed.", unit="GPUs", n="observed"),
    compared=count("Compared", "Machines in both sources.", blank=_NO_MACHINE, unit="nodes"),
    agree=count(
        "Agree", "Machines with the same number of GPUs in both.", blank=_NO_MACHINE, unit="nodes", n="compared"
    ),
)

ANALYSIS = Analysis(
    question="Does the Philly log use the assumed time zone, and how wrong is its list of machines?",
    theme="quality",
    rank=30,
    needs=["jobs", "nodes"],
    applies=lambda trace: trace.entry["format"] == "philly",
    tables=[ZONE_EVIDENCE, LISTED_MACHINES, PHILLY_SUMMARY],
    sections=["philly_checks"],
    memory_mb=250,
)

"""Do jobs fail when their nodes go down, and what happens to jobs in an outage?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered_columns, wilson_columns
from ttf.engine.contract import REASON, count, seconds, share, table, whole_seconds, words

OUTAGE_MATCHES = table(
    "outage_matches",
    "A measure of how failures of jobs coincide with outages of their nodes.",
    measure=words("Measure", "failure_near_outage, or effect of an outage: job_failed, job_ended, job_ran_on, no_job."),
    kind=words("Outages", "unplanned or planned."),
    basis=words("Basis", "How failures are attributed to infrastructure; proxy: any failure, cause unknown."),
    before_s=whole_seconds("Outage from", "An outage counts if it begins within this time before the attempt's end."),
    after_s=whole_seconds("to", "An outage counts if it begins within this time after the attempt's end."),
    n=count("n", "Infrastructure failures of attempts on an observed node, or outages."),
    events=count("Events", "Failures near an outage, or outages with this effect."),
    share=share("Share", "Share of failures near an outage, or of outages with this effect.", REASON),
    **wilson_columns(REASON),
    **clustered_columns(share),
    expected=share("Expected", "Expected share if each node's outages are shifted at random.", REASON),
    median_s=seconds(
        "Median time to the outage", "Median time from failure to outage; below 0, the outage came first.", REASON
    ),
)

ANALYSIS = Analysis(
    question="Do jobs fail when their nodes go down, and what happens to jobs in an outage?",
    theme="outages",
    rank=50,
    needs=["outages", "exposure", "durations_infra", "placements"],
    tables=[OUTAGE_MATCHES],
    sections=["outage_matches"],
    memory_mb=450,
    mb_per_gb={"sacct": 900},
)

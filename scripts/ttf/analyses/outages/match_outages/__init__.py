"""Do jobs fail when their nodes go down, and what do outages end?"""

from ttf.analyses.declaration import Analysis
from ttf.engine.columns import clustered, wilson
from ttf.engine.contract import REASON, count, seconds, share, table, whole_seconds, words

OUTAGE_MATCHES = table(
    "outage_matches",
    "A measure of how failures of jobs and outages of their nodes go together.",
    measure=words("Measure", "failure_near_outage, or what an outage did: job_failed, job_ended, job_ran_on, no_job."),
    kind=words("Outages", "unplanned or planned."),
    basis=words("Basis", "How infrastructure failures are known; proxy: any failure, cause unknown."),
    before_s=whole_seconds("Outage from", "So long before the end of the attempt the outage may begin."),
    after_s=whole_seconds("to", "And so long after it."),
    n=count("n", "Infrastructure failures of attempts with a watched node, or outages."),
    events=count("Events", "Those of them of which the measure holds."),
    share=share("Share", "Events of n.", blank=REASON),
    **wilson(REASON),
    **clustered(share),
    expected=share("Expected", "The share if each node's outages were shifted by a random time.", blank=REASON),
    median_s=seconds("Median time to the outage", "From the failure; below 0 the outage was first.", blank=REASON),
)

ANALYSIS = Analysis(
    question="Do jobs fail when their nodes go down, and what do outages end?",
    theme="outages",
    rank=50,
    needs=["outages", "exposure", "lives_infra", "placements"],
    tables=[OUTAGE_MATCHES],
    sections=["outage_matches"],
    memory_mb=450,
    mb_per_gb={"sacct": 900},
)

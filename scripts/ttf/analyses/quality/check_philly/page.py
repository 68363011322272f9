"""The tables on what the Philly trace leaves open."""

from ttf.analyses.quality.check_philly import LISTED_MACHINES, ZONE_EVIDENCE
from ttf.display.report_tables import Shown
from ttf.display.report_trace import Trace
from ttf.engine import words

# Whole seconds, as the smallest difference decides.
_ZONES = {
    "manager_start_s": ("Start (s since 1970)", words.count),
    "jobs": None,
    "first_submit_after_s": ("First submission after (s), if Pacific", words.count),
    "first_submit_after_if_utc_s": ("if UTC", words.count),
}


def tables(trace: Trace) -> dict[str, Shown]:
    """`zones` and `machines`."""
    machines = trace.table("listed_machines")
    found = {"zones": Shown(trace.table("zone_evidence").head(12), _ZONES, ZONE_EVIDENCE)}
    if machines["listed_gpus"].count():
        found["machines"] = Shown(machines, list(LISTED_MACHINES.columns), LISTED_MACHINES)
    return found

"""Tables of the checks of the Philly trace."""

from ttf.analyses.quality.check_philly import LISTED_MACHINES, ZONE_EVIDENCE
from ttf.display.report_tables import PageTable
from ttf.display.report_trace import Trace
from ttf.engine import words

# Whole seconds, because one second can rule out a zone.
_ZONES = {
    "manager_start_s": ("Start (s since 1970)", words.count),
    "jobs": None,
    "first_submit_after_s": ("First submission after (s), if Pacific", words.count),
    "first_submit_after_if_utc_s": ("if UTC", words.count),
}


def tables(trace: Trace) -> dict[str, PageTable]:
    machines = trace.table("listed_machines")
    shown = {"zones": PageTable(trace.table("zone_evidence").head(12), _ZONES, ZONE_EVIDENCE)}
    if machines["listed_gpus"].count():
        shown["machines"] = PageTable(machines, list(LISTED_MACHINES.columns), LISTED_MACHINES)
    return shown

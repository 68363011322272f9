"""The tables on what the Philly trace leaves open."""

from collections.abc import Callable

from ttf.analyses.check_philly import LISTED_MACHINES, ZONE_EVIDENCE
from ttf.report import words
from ttf.report.tables import html_table
from ttf.report.trace import Trace

# Whole seconds, as the smallest difference decides.
_ZONES = {
    "manager_start_s": ("Start (s since 1970)", words.count),
    "jobs": None,
    "first_submit_after_s": ("First submission after (s), if Pacific", words.count),
    "first_submit_after_if_utc_s": ("if UTC", words.count),
}


def tables(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """`zones` and `machines`, each where it has a row."""
    zones, machines = trace.table("zone_evidence").head(12), trace.table("listed_machines")
    found = {}
    if zones.height:
        found["zones"] = html_table(zones, _ZONES, identifier("zones"), contract=ZONE_EVIDENCE)
    if machines["listed_gpus"].count():
        columns = list(LISTED_MACHINES.columns)
        found["machines"] = html_table(machines, columns, identifier("machines"), contract=LISTED_MACHINES)
    return found

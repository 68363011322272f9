"""The report's tables on what the Philly trace leaves open."""

from collections.abc import Callable

from ttf.report import words
from ttf.report.tables import html_table
from ttf.report.trace import Trace


def philly_checks(trace: Trace, identifier: Callable[[str], str]) -> dict[str, str]:
    """`zones` and `machines`, each where it has a row."""
    zones, machines = trace.table("zone_evidence").head(12), trace.table("listed_machines")
    tables = {}
    if zones.height:
        columns = {
            "manager_start_s": ("Start (s since 1970)", words.count),
            "jobs": ("Jobs", words.count),
            "first_submit_after_s": ("First submission after (s), if Pacific", words.count),
            "first_submit_after_if_utc_s": ("if UTC", words.count),
        }
        tables["zones"] = html_table(zones, columns, identifier("zones"))
    if machines["listed_gpus"].count():
        columns = {
            "listed_gpus": ("GPUs in the list", words.count),
            "found_gpus": ("GPUs found", words.count),
            "nodes": ("Machines", words.count),
        }
        tables["machines"] = html_table(machines, columns, identifier("machines"))
    return tables

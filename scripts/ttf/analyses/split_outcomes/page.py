"""The table of outcomes."""

from ttf.analyses.split_outcomes import OUTCOMES
from ttf.report.tables import Mean, Shown
from ttf.report.trace import Trace


def tables(trace: Trace) -> dict[str, Shown]:
    outcomes = trace.table("outcomes")
    columns = {
        **dict.fromkeys(("outcome", "jobs", "jobs_share", "gpu_hours", "gpu_hours_share", "n")),
        "jobs": f"{trace.about['unit'].capitalize()}s",
        "runtime_mean_s": Mean(of="n"),
        **dict.fromkeys(("runtime_median_s", "runtime_p90_s")),
    }
    if outcomes["at_time_limit"].sum():
        columns["at_time_limit"] = None
    return {"outcomes": Shown(outcomes, columns, OUTCOMES)}

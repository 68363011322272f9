"""The annual failure rate leads the section on times to failure; its table: all drives, and the largest models."""

import polars as pl

from ttf.analyses.time_to_failure.annual_failure_rate import AFR
from ttf.display.phrases import of_trace, with_numbers
from ttf.display.report_tables import WITH_INTERVAL, Shown
from ttf.display.report_trace import MOST_STRATA, Trace
from ttf.display.section_head import Head, Key
from ttf.display.trace_numbers import Numbers
from ttf.engine import words


def tables(trace: Trace) -> dict[str, Shown]:
    afr = trace.table("afr").sort(pl.col("stratum_by") != "all", -pl.col("drive_days"), "stratum").head(1 + MOST_STRATA)
    columns = dict.fromkeys(("stratum", "drives", "drive_days", "failures", "afr")) | {"afr": WITH_INTERVAL}
    return {"afr": Shown(afr, columns, AFR)}


@with_numbers
def head(trace: Trace, m: Numbers) -> Head | None:
    """The rate of all, and of the models with the lowest and the highest that can be told."""
    if not m.has("afr.afr"):
        return None
    unit = trace.about["unit"]
    failures = "[afr.failures failure]"
    keys = [Key("Annual failure rate", "[afr.afr]%", f"{m.interval('afr.ci_{}')}; {failures}")]
    for end in ("lowest", "highest") if m.has("afr.highest.afr") else ():
        name = of_trace(m[f"afr.{end}.model"], 24)
        keys.append(Key(f"{words.capital(end)}, {name}", f"[afr.{end}.afr]%", _told(m, end)))
    share, seen = "[afr.afr]%", f"by {failures}"
    if not m["afr.failures"]:
        share, seen = "Fewer than [afr.ci_high]%", "by none"
    return Head(
        claim=f"{share} of {words.many(unit)} fail in a year, {seen} in [afr.drive_days] {unit}-days",
        charts=("afr",),
        keys=tuple(keys),
        details="rates by model, survival, hazard by age",
    )


def _told(m: Numbers, end: str) -> str:
    return f"{m.interval(f'afr.{end}.ci_{{}}')}; [afr.{end}.failures failure]"

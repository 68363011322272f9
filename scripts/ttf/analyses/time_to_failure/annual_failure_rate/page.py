"""Head of the section on times to failure, and the table of annual failure rates."""

import polars as pl

from ttf.analyses.time_to_failure.annual_failure_rate import AFR
from ttf.display.phrases import quote_trace_text
from ttf.display.report_tables import WITH_INTERVAL, PageTable
from ttf.display.report_trace import MOST_STRATA, Trace
from ttf.display.section_head import Head, Key
from ttf.display.trace_numbers import Numbers
from ttf.engine import words


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return the rates of all drives and of the models with the most drive-days."""
    afr = trace.table("afr").sort(pl.col("stratum_by") != "all", -pl.col("drive_days"), "stratum").head(1 + MOST_STRATA)
    columns = dict.fromkeys(("stratum", "drives", "drive_days", "failures", "afr")) | {"afr": WITH_INTERVAL}
    return {"afr": PageTable(afr, columns, AFR)}


def head(trace: Trace, m: Numbers) -> Head | None:
    """Return the rate of all drives, and of the models with the lowest and the highest rate, if they are known."""
    if "afr.afr" not in m:
        return None
    unit = trace.info["unit"]
    failures = "[afr.failures failure]"
    keys = [Key("Annual failure rate", "[afr.afr]%", f"[afr.afr:interval]; {failures}")]
    for extreme in ("lowest", "highest") if "afr.highest.afr" in m else ():
        name = quote_trace_text(m[f"afr.{extreme}.model"], 24)
        interval = f"[afr.{extreme}.afr:interval]; [afr.{extreme}.failures failure]"
        keys.append(Key(f"{words.capitalise(extreme)}, {name}", f"[afr.{extreme}.afr]%", interval))
    rate_text, count_text = "[afr.afr]%", f"by {failures}"
    if not m["afr.failures"]:
        rate_text, count_text = "Fewer than [afr.ci_high]%", "by none"
    return Head(
        claim=f"{rate_text} of {words.plural_noun(unit)} fail in a year, {count_text} in [afr.drive_days] {unit}-days",
        charts=("afr",),
        keys=tuple(keys),
        details="rates by model, survival, hazard by age",
    )

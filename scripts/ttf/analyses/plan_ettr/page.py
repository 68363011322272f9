"""The tables of planned effective training time in the report."""

import polars as pl

from ttf.analyses.plan_ettr import ETTR, ETTR_ASSUMPTIONS, MITIGATIONS
from ttf.report import words
from ttf.report.tables import Shown, texts, yes_or_no
from ttf.report.trace import Trace
from ttf.stats.plans import RATE_UNIT

# Sizes of the table of mitigations: that of the run asked for, and so many larger ones.
LARGER_SIZES = 2
LONGEST_REASON = 160
_RATIOS = ("ettr_v1", "ettr_v2", "ettr_combined", "ettr_renewal")
_BASES = {
    "state": "the trace: states that name infrastructure",
    "event": "the trace: states and health events",
    "proxy": "the trace, a proxy: every failure counts",
    "component": "the trace: failures of the machines",
}
_WORDED = {
    "s": words.duration,
    RATE_UNIT: lambda rate: f"{words.number(rate)} per 1000 node-days",
    "GPUs": lambda count: words.plural(count, "GPU"),
    "nodes": lambda count: words.plural(count, "node"),
}


def tables(trace: Trace) -> dict[str, Shown]:
    assumed, ettr = trace.table("ettr_assumptions"), trace.table("ettr")
    values = dict(assumed.select("assumption", "amount").iter_rows())
    size, size_of = values["size of the run"], pl.coalesce("gpus", "nodes")
    found = {"ettr-assumptions": _assumptions(assumed)}
    known = ettr.filter(pl.col("ettr_renewal").is_not_null(), rate="estimate")
    rows = known.filter(checkpoint_interval_s=values["checkpoint interval"])
    if rows.height:
        columns = dict.fromkeys(("gpus" if ettr["gpus"].count() else "nodes", "mttf_s", *_RATIOS))
        columns |= {"ettr_simulated": ("Simulated", str), "optimal_interval_s": None, "approximation_valid": None}
        with_error = texts(rows, ("ettr_simulated", "ettr_simulated_se"), _with_error)
        rows = rows.with_columns(yes_or_no("approximation_valid"), ettr_simulated=with_error)
        found["ettr"] = Shown(rows, columns, ETTR)
    gains = trace.table("mitigations").filter(pl.col("ettr_after").is_not_null() & (size_of >= size))
    if gains.height:
        sizes = gains.select(size_of.unique().sort().head(1 + LARGER_SIZES)).to_series()
        unit = "GPU" if gains["gpus"].count() else "node"
        gains = gains.filter(size_of.is_in(sizes.implode())).with_columns(
            group=pl.format(f"{{}} {unit}s", size_of.map_elements(words.count, return_dtype=pl.String))
        )
        columns = ["mitigation", "ettr_before", "ettr_after", f"{unit.lower()}_hours_saved_per_productive_week"]
        found["mitigations"] = Shown(gains, columns, MITIGATIONS, "group")
    return found


def _with_error(ratio: float, error: float | None) -> str:
    return words.share(ratio) + ("" if error is None else f" ± {words.number(100 * error, 1)}")


def _assumptions(assumed: pl.DataFrame) -> Shown:
    amounts = texts(assumed, ("amount", "unit"), lambda amount, unit: _WORDED[unit](amount))
    assumed = assumed.with_columns(amount=amounts, source=pl.col("source").replace(_BASES))
    columns = {"assumption": None, "amount": ("Value", str), "n": None, "source": None, "reason": "Note"}
    return Shown(assumed, columns, ETTR_ASSUMPTIONS, longest=LONGEST_REASON)

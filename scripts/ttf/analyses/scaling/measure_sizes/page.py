"""The section on scaling with job size: its visible part and its table."""

from collections.abc import Iterator

import polars as pl

from ttf.analyses.scaling.measure_sizes import MTTF_BY_GPUS
from ttf.display.metrics import FEWEST_FAILURES
from ttf.display.report_tables import Interval, PageTable, add_size_labels
from ttf.display.report_trace import Trace, list_nonempty_charts
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return measured and projected MTTF, a row per size bucket; none without GPUs or time at risk."""
    has_value = pl.col("ci_low_s").is_not_null() | pl.col("projected_mttf_s").is_not_null()
    sizes = trace.table("mttf_by_gpus").filter(has_value)
    columns = {
        "gpus": ("GPUs", None),
        "jobs": "Runs" if trace.has_jobs else "At risk",
        "failures": None,
        "mttf_s": Interval(low="ci_low_clustered_s", high="ci_high_clustered_s"),
        "projected_mttf_s": Interval(low="projected_low_s", high="projected_high_s"),
    }
    if not sizes["projected_mttf_s"].count():
        del columns["projected_mttf_s"]
    return {"sizes": PageTable(add_size_labels(sizes), columns, MTTF_BY_GPUS)}


# Label of the mean time to failure, by the basis.
_MTTF = {"proxy": "MTTF (any cause)", "component": "MTTF"}
_ANY_CAUSE = "Causes are not recorded: every failure counts, user errors included."
TITLE = "Scaling with job size"


def head(trace: Trace, m: Numbers) -> Head | Line | None:
    """Return the finding on MTTF by size, or a line with the reason why there is none."""
    unit, basis = trace.info["unit"], m.value("sizes.basis", "state")
    if not trace.has_jobs or not ("sizes.rate.ci_high" in m or "sizes.law.slope" in m):
        reason = m.value("sizes.rate.reason", f"no {unit} requested a GPU")
        reason = reason if trace.has_jobs else f"lifetimes of {words.plural_noun(unit)}, no jobs"
        return Line(TITLE, reason, checked=False)
    mttf = _MTTF.get(basis, "Infrastructure MTTF")
    return Head(
        claim=_format_claim(m, mttf, unit),
        charts=list_nonempty_charts(trace, "mttf_by_gpus"),
        keys=tuple(_iterate_key_figures(m, mttf)),
        text=(_ANY_CAUSE,) if basis == "proxy" else (),
        callout=_choose_callout(m),
        details="MTTF by size, regression",
    )


def _format_claim(m: Numbers, mttf_label: str, unit: str) -> str:
    largest = "sizes.largest_run.gpus"
    if not m.value("sizes.rate.failures"):
        kind = f"{mttf_label.removesuffix(' MTTF').lower()} " if "Infra" in mttf_label else ""
        return f"No {kind}failure in [sizes.rate.node_days] node-days"
    if "sizes.law.slope" not in m:
        if m["sizes.law.reason"] == "one size only" and largest in m:
            return f"No {unit} used more than [{largest} GPU], so scaling with size cannot be tested"
        return f"{words.plural(m['sizes.rate.failures'], 'failure')} cannot tell how MTTF falls with size"
    slope, verdict = m["sizes.law.slope"], m["sizes.law.verdict"]
    slope_text = "[sizes.law.slope:2]"
    if "sizes.law.no_clusters" in m or verdict not in ("agrees", "rejected"):
        return f"{mttf_label} has slope {slope_text} in size; the data are too few to confirm 1/N"
    if verdict == "agrees":
        gpus = _target_size(m)
        if gpus and f"sizes.projected.{gpus}.mttf_s" in m:
            return (
                f"{mttf_label} falls in proportion to GPUs, to [sizes.projected.{gpus}.mttf_s] at "
                f"[sizes.projected.{gpus}.gpus GPU] (projected)"
            )
        return f"{mttf_label} falls in proportion to GPUs: slope {slope_text}, where 1/N gives −1"
    trend = "falls faster than 1/N" if slope < -1 else "falls more slowly than 1/N"
    if m["sizes.law.ci_high"] >= 0:
        trend = "shows no significant fall with size"
    return f"{mttf_label} {trend}: pooled slope {slope_text}, where 1/N gives −1"


def _target_size(m: Numbers) -> int | None:
    """Return the size of the planned run, as the keys of sizes name it; None if no key is that large."""
    planned_size = m.value("ettr.assumed.size_of_the_run", 1024)
    sizes = {int(key.split(".")[2]) for key in m if key.startswith(("sizes.projected.", "sizes.measured."))}
    return min((size for size in sizes if size >= planned_size), default=None)


def _iterate_key_figures(m: Numbers, mttf_label: str) -> Iterator[Key]:
    if "sizes.law.slope" in m:
        low, high = (words.number(m[f"sizes.law.ci_{bound}"], 2) for bound in ("low", "high"))
        if "sizes.law.no_clusters" in m:
            slope_note = "too few clusters for an interval"
        else:
            assumption = "" if "sizes.law.cluster_by" in m else " if independent"
            slope_note = f"95% CI {words.join_range(low, high)}{assumption}; 1/N is −1"
        yield Key("Pooled slope of log MTTF on log nodes", "[sizes.law.slope:2]", slope_note)
    gpus = _target_size(m)
    projected, measured = f"sizes.projected.{gpus}", f"sizes.measured.{gpus}"
    if f"{projected}.mttf_s" in m:
        span = words.time_range(m[f"{projected}.low_s"], m[f"{projected}.high_s"], m[f"{projected}.mttf_s"])
        yield Key(f"{mttf_label} at [{projected}.gpus GPU], projected", f"[{projected}.mttf_s]", f"90% CI {span}")
    if f"{measured}.mttf_s" not in m and "sizes.largest.mttf_s" in m:
        measured = "sizes.largest"
    if f"{measured}.mttf_s" in m and m[f"{measured}.failures"] >= FEWEST_FAILURES:
        size = "[sizes.largest.gpus_low]–" if measured == "sizes.largest" else "up to "
        size += "[sizes.largest.gpus_high GPU]" if measured == "sizes.largest" else f"{gpus:,} GPUs"
        note = f"[{measured}.mttf_s:interval90], [{measured}.failures failure]"
        yield Key(f"{mttf_label} at {size}, measured", f"[{measured}.mttf_s]", note)
    # Otherwise the MTTF is shown, and the rate is in a tile of the first screen.
    elif "sizes.rate.failures_per_1000_node_days" in m:
        rate = "[sizes.rate.failures_per_1000_node_days]"
        any_cause = ", any cause" if m["sizes.basis"] == "proxy" else ""
        yield Key(
            f"Failures per 1,000 node-days{any_cause}", rate, "[sizes.rate.failures_per_1000_node_days:interval90]"
        )


def _choose_callout(m: Numbers) -> Callout | None:
    """Return a warning if measurement and projection disagree, else why nothing larger is projected."""
    if m.value("sizes.check.p_value", 1) < 0.05 and f"sizes.projected.{_target_size(m)}.mttf_s" in m:
        observed, expected = "[sizes.check.observed]", "[sizes.check.expected]"
        lead = "Projection and measurement disagree at [ettr.assumed.size_of_the_run GPU]."
        return Callout("care", lead, f"{observed} failures seen, {expected} expected from the other sizes.")
    if m.value("sizes.projects_to_nodes", 0) == 0 and "sizes.no_projection" in m:
        text = f"{words.capitalise(m['sizes.no_projection'])}."
        return Callout("stop", "MTTF at larger sizes cannot be estimated.", text)
    return None

"""Report section on waits and GPUs in use: its finding, and the table of waits and run times."""

import polars as pl

from ttf.analyses.queue.describe_workload import PERCENTILES
from ttf.display.report_tables import Mean, PageTable, format_range
from ttf.display.report_trace import Trace, list_nonempty_charts
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.records.jobs import bucket_label

SHOWN = ("p25_s", "p50_s", "p75_s", "p90_s", "p95_s")
# If more of the GPU time exceeds the capacity of the machines, placements and machines are of different clusters.
MOST_ABOVE = 0.05
_USE, _WAIT = "occupancy.all.gpus_in_use_share", "workload.queue.all"


def head(trace: Trace, m: Numbers) -> Head | None:
    """Return GPUs in use and waits of jobs; None if neither is known."""
    unit, has_use, has_wait = trace.info["unit"], m.size.is_gpu and _USE in m, f"{_WAIT}.median_s" in m
    if not has_use and not has_wait:
        return None
    keys = []
    if has_use:
        period = "mean over [occupancy.all.time_s]"
        peak = "; peak [occupancy.peak_share]" if "occupancy.peak_share" in m else ""
        keys.append(Key("GPUs in use", f"[{_USE}]", period + peak))
    if has_wait:
        keys.append(_make_wait_key(m, "Median wait", _WAIT, unit))
    largest = "workload.queue.largest"
    if has_wait and f"{largest}.median_s" in m:
        keys.append(_make_wait_key(m, f"Median wait, {bucket_label(m[f'{largest}.gpus'])}", largest, unit))
    if m.size.is_gpu and "use.gpu.all.mean_share" in m:
        keys.append(Key("GPU activity", "[use.gpu.all.mean_share]", "mean while held"))
    charts = ("gpus_in_use", "queue_by_gpus")[not m.size.is_gpu :]
    return Head(
        _format_claim(m, unit, has_use, has_wait),
        charts=list_nonempty_charts(trace, *charts)[:1],
        keys=tuple(keys[:4]),
        text=_explain_waits(m, unit) if m.size.is_gpu else (),
        callout=_make_capacity_callout(m) if m.size.is_gpu else None,
        details="waits, retries, requests",
    )


def lines(trace: Trace, m: Numbers) -> list[Line]:
    """List what the trace does not record about queue and utilisation."""
    no_wait = m.value("queue.reason", "no submission with a later start is recorded")
    reason_by_item = {"Waits in the queue": None if f"{_WAIT}.median_s" in m else no_wait}
    # Utilisation is reported in GPUs only.
    if m.size.is_gpu:
        has_activity = "use.gpu.all.mean_share" in m or "workload.machines.gpu.mean" in m
        reason_by_item |= {
            "GPUs in use": None if _USE in m else m.value("occupancy.reason", "no placements on nodes are recorded"),
            "Reasons for waiting": m.value("occupancy.causes.reason"),
            "GPU activity": None if has_activity else "this data has no GPU-activity readings",
        }
    return [
        Line(item, f"{words.capitalise(reason)}.", checked=False) for item, reason in reason_by_item.items() if reason
    ]


def _format_claim(m: Numbers, unit: str, has_use: bool, has_wait: bool) -> str:
    use_text = f"[{_USE}] of GPUs were in use" if has_use else ""
    if not has_wait:
        return f"{use_text} on average"
    if m[f"{_WAIT}.p90_s"] == 0:
        wait_text = f"nine in ten {unit}s started at once"
    elif m[f"{_WAIT}.median_s"] == 0:
        wait_text = f"half of {unit}s started at once, nine in ten within [{_WAIT}.p90_s]"
    else:
        wait_text = f"the median {unit} waited [{_WAIT}.median_s]"
        wait_text += "" if has_use else f", one in ten longer than [{_WAIT}.p90_s]"
    return f"{use_text}; {wait_text}" if has_use else words.capitalise(wait_text)


def _make_wait_key(m: Numbers, label: str, key: str, unit: str) -> Key:
    n = f"[{key}.median_s:n {unit}]"
    return Key(label, f"[{key}.median_s]", f"90th percentile [{key}.p90_s]; n = {n}")


def _explain_waits(m: Numbers, unit: str) -> tuple[str, ...]:
    """Say whether jobs waited for capacity, as far as it can be inferred."""
    free_key, full_key = "occupancy.causes.unrecognised.jobs_share", "occupancy.causes.full.jobs_share"
    if free_key not in m:
        return ()
    if m[free_key] > 0.5:
        sentence = (
            f"Of [{free_key}:n {unit}] that waited over a minute, [{free_key}] had enough "
            "free GPUs (inferred). Priorities or limits are likelier reasons than capacity."
        )
    else:
        sentence = f"For [{full_key}] of waits over a minute, too few GPUs were free (inferred)."
    return (sentence,)


def _make_capacity_callout(m: Numbers) -> Callout | None:
    if m.value("occupancy.above_capacity_share", 0) > MOST_ABOVE:
        return Callout(
            "care",
            "Placements exceed the machines.",
            "[occupancy.above_capacity_share] of GPU time exceeds capacity and is excluded.",
        )
    return None


def tables(trace: Trace) -> dict[str, PageTable]:
    table = trace.table("percentiles").filter(
        (pl.col("outcome_set") == "all") & pl.col("group_by").is_in(["all", "gpu_type", "gpus"])
    )
    names = {"runtime_s": "run time", "queue_s": "wait", "wall_s": "first start to last end"}
    table = table.with_columns(
        quantity=pl.col("quantity").replace_strict(names),
        kind=pl.concat_str(
            pl.col("group_by").replace_strict({"all": "", "gpu_type": "GPU type ", "gpus": "GPUs: "}),
            pl.when(group_by="gpus").then(format_range("group")).otherwise("group"),
        ),
    )
    unit = f"{trace.info['unit'].capitalize()}s"
    columns = {"kind": (unit, None), "n": None, "mean_s": Mean(count_column="n")} | dict.fromkeys(SHOWN)
    return {"percentiles": PageTable(table, columns, PERCENTILES, "quantity")}

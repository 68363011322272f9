"""Tables of jobs by state and by size, and the line on causes that are not recorded."""

import polars as pl

from ttf.analyses.outcomes.describe_states import CLUSTER_SUMMARY, SIZE_MIX, STATES
from ttf.display.report_tables import Mean, PageTable, add_size_labels
from ttf.display.report_trace import Trace
from ttf.display.section_head import Line
from ttf.display.trace_numbers import Numbers

_KINDS = {"job": "By job, its last state", "attempt": "By attempt"}
_POPULATIONS = {"all": "All", "gpu": "With a GPU", "no_gpu": "Without"}
_STATES = ("state", "count", "count_share", "with_gpu", "with_gpu_share", "gpu_hours", "gpu_hours_share")
_MIX = ("jobs", "jobs_share", "jobs_up_to_share", "gpu_hours", "gpu_hours_share", "gpu_hours_up_to_share")
_SUMMARY = dict.fromkeys(
    (
        *("population", "jobs", "jobs_per_day", "runtime_mean_s", "runtime_median_s", "runtime_max_s"),
        *("queue_mean_s", "queue_median_s", "gpus_mean", "gpus_max"),
    )
) | {"runtime_mean_s": Mean(count_column="runtime_n"), "queue_mean_s": Mean(count_column="queue_n")}


def lines(trace: Trace, m: Numbers) -> list[Line]:
    if "taxonomy.trials" in m:
        return []
    text = f"no state, exit code or reason in this trace tells why a {trace.info['unit']} failed"
    return [Line("Causes of failures", text, "states", checked=False)]


def tables(trace: Trace) -> dict[str, PageTable]:
    proxy_label = pl.lit("any failure, cause unknown")
    infra_label = pl.when(infra_basis="proxy").then(proxy_label).otherwise(pl.lit("attributed to infrastructure"))
    states = trace.table("states").with_columns(
        state=pl.when(kind="infra").then(infra_label).otherwise(pl.col("state").fill_null("none given")),
        unit=pl.col("unit").replace_strict(_KINDS),
    )
    mix = add_size_labels(trace.table("size_mix"))
    summary = trace.table("cluster_summary").filter(pl.col("jobs") > 0)
    summary = summary.with_columns(population=pl.col("population").replace_strict(_POPULATIONS))
    return {
        "states": PageTable(states, _STATES, STATES, "unit"),
        "size-mix": PageTable(mix, {"gpus": ("GPUs", str)} | dict.fromkeys(_MIX), SIZE_MIX),
        "cluster-summary": PageTable(summary, _SUMMARY, CLUSTER_SUMMARY),
    }

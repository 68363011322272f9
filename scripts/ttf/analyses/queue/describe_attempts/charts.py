"""Charts of the waits of first and later attempts, and of the run time of failed attempts, by GPUs of their job."""

import polars as pl

from ttf.analyses.queue.describe_attempts.delays import ALL, FIRST, LATER
from ttf.analyses.queue.describe_attempts.retries import PROXY
from ttf.display.charts.figure import Figure, Study, empty_figure
from ttf.display.charts.time_ranges import draw_ranges, make_range_row
from ttf.engine.words import plural
from ttf.records.inputs import Inputs
from ttf.records.jobs import GPU_BUCKETS, bucket_label

_PROXY_NOTE = " Any failure, cause unknown: an attempt that was followed by another counts as failed."
ATTEMPT_LABELS = {FIRST: "first attempt", LATER: "later attempt"}


def delay_first_later(inputs: Inputs, study: Study) -> Figure:
    """Draw ranges of queueing delay by size of the job, for first and later attempts."""
    title = "Wait of first and later attempts by job size"
    is_shown = pl.col("which").is_in(ATTEMPT_LABELS)
    delays = inputs["delays"].filter(is_shown, pl.col("n") > 0, group_by=ALL, zeros_kept=True)
    if not delays.height:
        return empty_figure(title, "no delay is known")
    sizes = delays.filter(pl.col("gpu_bucket") != ALL)
    names = {bucket: study.size.worded(bucket_label(bucket)) for bucket in GPU_BUCKETS} | {ALL: f"all {study.units}"}
    shown_rows = (sizes if sizes.height else delays).iter_rows(named=True)
    rows = [make_range_row(row, names[row["gpu_bucket"]], ATTEMPT_LABELS[row["which"]]) for row in shown_rows]
    n = delays.filter(gpu_bucket=ALL)["n"].sum()
    return draw_ranges(
        rows,
        list(names.values()),
        study,
        "Wait",
        f"GPUs of the {study.unit}",
        title=title,
        caption=f"n = {plural(n, 'known wait')}. First: from submission to start; later: from the end of the attempt "
        "before. Waits below 1 s are drawn at 1 s.",
        alt_text=f"Ranges on a logarithmic time axis by {study.unit} size, of first and of later attempts.",
    )


def runtime_to_failure(inputs: Inputs, study: Study) -> Figure:
    """Draw the median, 90th and 95th percentile of the run time of failed attempts, by GPUs of the job."""
    table, title = inputs["runtime_to_failure"], "Run time of failed attempts (RTF) by job size"
    nonempty = table.filter(pl.col("n") > 0)
    if not nonempty.height:
        return empty_figure(title, "no attempt failed after a known run time")
    names = {ALL: f"all {study.units}"} | {bucket: study.size.worded(bucket_label(bucket)) for bucket in GPU_BUCKETS}
    times = ("p50_s", "p90_s", "p95_s")
    rows = [make_range_row(row, names[row["gpu_bucket"]], times=times) for row in nonempty.iter_rows(named=True)]
    return draw_ranges(
        rows,
        list(names.values()),
        study,
        "Run time",
        f"GPUs of the {study.unit}",
        times=times,
        title=title,
        subtitle="Line: median; circles: 90th and 95th percentile",
        caption=f"n = {plural(nonempty['n'][0], 'failed attempt')}.{_PROXY_NOTE if PROXY in table['basis'] else ''}",
        alt_text=f"Ranges on a logarithmic time axis for {plural(len(rows), 'group')} of failed attempts.",
    )


CHARTS = {"delay_first_later": delay_first_later, "runtime_to_failure": runtime_to_failure}

"""Waits of first and later attempts, and how long failed attempts ran, by GPUs of their job."""

import polars as pl

from ttf.analyses.queue.describe_attempts.delays import ALL, FIRST, LATER
from ttf.analyses.queue.describe_attempts.retries import PROXY
from ttf.display.charts.figure import Figure, Study, nothing_to_draw
from ttf.display.charts.time_ranges import placed, ranges
from ttf.engine.words import plural
from ttf.records.inputs import Inputs
from ttf.records.jobs import GPU_BUCKETS, gpus_of

_BY_PROXY = " Any failure, cause unknown: an attempt that was followed by another counts as failed."
KINDS = {FIRST: "first attempt", LATER: "later attempt"}


def delay_first_later(given: Inputs, study: Study) -> Figure:
    """Ranges of queueing delay by size of the job, first attempts beside later ones."""
    what = "Wait of first and later attempts by job size"
    known = given["delays"].filter(pl.col("which").is_in(KINDS), pl.col("n") > 0, group_by=ALL, zeros_kept=True)
    if not known.height:
        return nothing_to_draw(what, "no delay is known")
    sizes = known.filter(pl.col("gpu_bucket") != ALL)
    names = {bucket: study.size.worded(gpus_of(bucket)) for bucket in GPU_BUCKETS} | {ALL: f"all {study.units}"}
    drawn = (sizes if sizes.height else known).iter_rows(named=True)
    rows = [placed(row, names[row["gpu_bucket"]], KINDS[row["which"]]) for row in drawn]
    n = known.filter(gpu_bucket=ALL)["n"].sum()
    return ranges(
        rows,
        list(names.values()),
        study,
        "Wait",
        f"GPUs of the {study.unit}",
        title=what,
        caption=f"n = {plural(n, 'known wait')}. First: from submission to start; later: from the end of the attempt "
        "before. Waits below 1 s stand at 1 s.",
        alt_text=f"Ranges on a logarithmic time axis by {study.unit} size, of first and of later attempts.",
    )


def runtime_to_failure(given: Inputs, study: Study) -> Figure:
    """Median, 90th and 95th percentile of the run time of failed attempts, by GPUs of the job."""
    table, what = given["runtime_to_failure"], "Run time of failed attempts (RTF) by job size"
    known = table.filter(pl.col("n") > 0)
    if not known.height:
        return nothing_to_draw(what, "no attempt failed after a known run time")
    names = {ALL: f"all {study.units}"} | {bucket: study.size.worded(gpus_of(bucket)) for bucket in GPU_BUCKETS}
    times = ("p50_s", "p90_s", "p95_s")
    rows = [placed(row, names[row["gpu_bucket"]], times=times) for row in known.iter_rows(named=True)]
    return ranges(
        rows,
        list(names.values()),
        study,
        "Run time",
        f"GPUs of the {study.unit}",
        times=times,
        title=what,
        subtitle="Line: median; circles: 90th and 95th percentile",
        caption=f"n = {plural(known['n'][0], 'failed attempt')}.{_BY_PROXY if PROXY in table['basis'] else ''}",
        alt_text=f"Ranges on a logarithmic time axis for {plural(len(rows), 'group')} of failed attempts.",
    )


CHARTS = {"delay_first_later": delay_first_later, "runtime_to_failure": runtime_to_failure}

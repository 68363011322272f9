"""Failures without a recorded end: the range of the mean that they allow, and the estimates that they withhold."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.engine.contract import REAL, REASON, TRUTH, Column
from ttf.records.jobs import Frame
from ttf.stats.durations.strata import ALL, sum_by_stratum, sum_equal_durations

# Above these shares, unknown ends change a mean time to failure more than random variation does: failures without an
# end or jobs that ended with no result recorded; time at risk of jobs still running.
MOST_WITHOUT_END, MOST_RUNNING = 0.05, 0.5
RANGE = ("mttf_low_s", "mttf_high_s")
# Missing ends withhold no sizes, no counts, no times at risk, and no bounds that allow for them.
_KEPT = {"gpus_low", "gpus_high", "gpus_mean", "failures", "exposure_s", "gpu_days", "node_days"}
_KEPT |= {*RANGE, "incidence_low", "incidence_high"}
_STRATUM = ("stratum_by", "stratum")


def failures_without_end(durations: Frame, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """Return the effect of failures without a recorded end on the mean time to failure, by stratum.

    durations: duration_s, event, duration_max_s (Int64 s from the start to the trace's end) and the strata's columns.
    event: value of the column event. strata: columns, or `all`.

    failures: durations that the event ended; without_end: those of unknown duration. With k known and m unknown
    failures and exposure T: mttf_s = T / k, as in `mean_time_to_failure`, excludes the m. It is blank, with a reason,
    if m is more than MOST_WITHOUT_END of k + m. mttf_low_s = T / (k + m): they failed at once. mttf_high_s =
    (T + their duration_max_s) / (k + m): they lasted to the trace's end. A failure with unknown duration_max_s adds no
    time to mttf_high_s, which is then no true bound.
    """
    is_event = (pl.col("event") == event).fill_null(False)
    is_unrecorded = is_event & pl.col("duration_s").is_null()
    sums = {
        "failures": is_event.sum().cast(pl.Int64),
        "without_end": is_unrecorded.sum().cast(pl.Int64),
        "exposure_s": pl.col("duration_s").cast(pl.Int64).sum(),
        "longest_s": pl.col("duration_max_s").cast(pl.Int64).filter(is_unrecorded).sum(),
        "begun": (is_unrecorded & pl.col("duration_max_s").is_not_null()).sum().cast(pl.Int64),
    }
    groups = sum_equal_durations(durations, [name for name in strata if name != ALL], **sums)
    totals = {name: pl.col(name).sum() for name in sums}
    rows = pl.concat(
        sum_by_stratum(groups, stratum_by, **totals).select(
            pl.lit(stratum_by).alias("stratum_by"), pl.col("stratum").cast(pl.String), *sums
        )
        for stratum_by in strata
    )
    failures, exposure_s = pl.when(pl.col("failures") > 0).then("failures"), pl.col("exposure_s")
    share = pl.col("without_end") / failures
    is_known, none = share <= MOST_WITHOUT_END, "no failures" if event == "failure" else f"no {event}"
    # Without a beginning, as of nodes of which only errors are known, more than the end is missing.
    missing = pl.when(pl.col("begun") > 0).then(pl.lit("recorded end")).otherwise(pl.lit("known time at risk"))
    text = pl.format("{}% of the failures have no {}", (100 * share).round(1), missing)
    return rows.with_columns(
        share_without_end=share,
        mttf_s=pl.when(is_known).then(exposure_s / (failures - pl.col("without_end"))),
        mttf_low_s=exposure_s / failures,
        mttf_high_s=(exposure_s + pl.col("longest_s")) / failures,
        reason=pl.when(~is_known).then(text).when(failures.is_null()).then(pl.lit(none)),
    ).drop("exposure_s", "longest_s", "begun")


def withhold_without_ends(frame: pl.DataFrame, columns: Mapping[str, Column], ends: pl.DataFrame) -> pl.DataFrame:
    """Blank the estimates of strata in which more than MOST_WITHOUT_END of the failures have no recorded end.

    A row without a stratum compares or covers all of them, so all failures decide. Cells that may be blank become
    blank, except counts, times at risk and bounds; other truth values become false. The range of the mean time to
    failure and the reason are those of `ends`.

    frame: a table with the contract `columns`. ends: `failures_without_end` of the same durations.
    """
    withheld = ends.filter(pl.col("share_without_end") > MOST_WITHOUT_END).select(*_STRATUM, *RANGE, why="reason")
    if "stratum" in frame.columns:
        rows = frame.drop(RANGE, strict=False).join(withheld, on=_STRATUM, how="left", maintain_order="left")
    else:
        total = withheld.filter(stratum_by=ALL).drop(_STRATUM)
        rows = frame.join(total, how="cross") if total.height else frame.with_columns(why=pl.lit(None, pl.String))
    is_shown = pl.col("why").is_null()
    estimates = [
        name
        for name, column in columns.items()
        if name not in _KEPT and (column.blank == REASON or (column.kind == REAL and column.blank))
    ]
    truths = [name for name, column in columns.items() if column.kind == TRUTH and column.blank is None]
    return rows.with_columns(
        pl.when(is_shown).then(pl.col(estimates)), pl.col(truths) & is_shown, reason=pl.coalesce("why", "reason")
    ).select(frame.columns)

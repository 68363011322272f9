from collections.abc import Iterator, Sequence

import polars as pl

from ttf.analyses.time_to_failure.fit_mttf import (
    AGES,
    FAILURES_WITHOUT_END,
    FAR_GROUPS,
    LIVES_SUMMARY,
    STEP,
    SURVIVAL_AT,
    SURVIVAL_STEPS,
)
from ttf.analyses.time_to_failure.fit_mttf.lifetimes import lifetime_models
from ttf.display.metrics import FEWEST_FAILURES
from ttf.records.clusters import CLUSTER_COLUMNS, DAY_S
from ttf.records.inputs import Inputs
from ttf.records.jobs import Frame, at_time_limit, observed_s
from ttf.records.lives import by_cause, strata_in
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.strata import ALL, CountedLives, alike, by_stratum
from ttf.stats.durations.survival import survival_blocks, thin

# Whole intervals of mean times to failure so many times apart are of groups that one mean does not describe.
FAR_APART = 5
YEAR_S = 365 * DAY_S
JOBS = ("outcome", "status_raw", "runtime_s", "start_s", "trace_end_s")
LIVES = ("start_s", "duration_s", "duration_max_s", "event", "gpu_milli", "nodes", *CLUSTER_COLUMNS)


def compute(given: Inputs) -> Iterator[tuple]:
    settings = given.settings
    lives = given.scan("lives", [*LIVES, *CLUSTER_COLUMNS, *settings.strata, *settings.causes])
    strata = strata_in(lives, settings.strata)
    # Failure of any kind first, then each cause that the trace distinguishes.
    events = {"failure": lives} | {cause: by_cause(lives, cause) for cause in settings.causes}
    counted = {event: CountedLives(of, [event]) for event, of in events.items()}
    thinned, summaries, of_all = [], [], []

    def whole_curves() -> Iterator[pl.DataFrame]:
        for event, of in counted.items():
            for curves, summary in survival_blocks(of, event, strata):
                thinned.append(thin(curves, settings.max_steps))
                summaries.append(summary)
                of_all.append(curves.filter(event="failure", stratum_by="all"))
                yield curves

    # Written as they come: all of them would not fit memory with ten million lives.
    yield "survival_curves", whole_curves()
    yield "survival", pl.concat(thinned)
    yield "survival_summary", pl.concat(summaries)
    jobs = (
        given.scan("jobs", ["outcome", "status_raw", "runtime_s", "start_s", "trace_end_s"])
        if "jobs" in given
        else None
    )
    curve = pl.concat(of_all)
    yield "survival_at", survival_at(curve)
    yield "survival_steps", survival_steps(curve, jobs)
    mttf = pl.concat(
        [mean_time_to_failure(of, event, strata, block_days=settings.block_days) for event, of in events.items()]
    )
    yield "mttf", mttf
    summary = LIVES_SUMMARY.frame([]) if "jobs" in given else summarise_lives(given.scan("lives"))
    yield "lives_summary", summary
    # Units that fail but once: a mean of all describes no group of them.
    once = summary.filter(pl.col("units") == pl.col("lives")).height
    yield "far_groups", far_groups(mttf, pl.concat(thinned), settings.strata[:1] if once else [])
    yield "failures_without_end", failures_without_end(lives, "failure", strata)
    yield "lifetime_models", pl.concat([lifetime_models(of, event, strata) for event, of in counted.items()])


def summarise_lives(lives: pl.LazyFrame) -> pl.DataFrame:
    """The one row of LIVES_SUMMARY; lives: unit_id, event, duration_s; start_s, end_s and repair_s where recorded."""
    names = lives.collect_schema().names()
    sums = {
        "units": pl.col("unit_id").n_unique(),
        "lives": pl.len(),
        "failures": (pl.col("event") == "failure").sum(),
        "exposure_s": pl.col("duration_s").sum(),
    }
    if "start_s" in names:
        ends = pl.col("end_s") if "end_s" in names else pl.col("start_s") + pl.col("duration_s")
        sums |= {"from_s": pl.col("start_s").min(), "to_s": ends.max()}
    row = lives.select(**sums).collect(engine="streaming").row(0, named=True)
    if None not in (row.get("from_s"), row.get("to_s")):
        row["days"] = -(-(row["to_s"] - row["from_s"]) // DAY_S)
    repairs = lives.select("repair_s").collect()["repair_s"].drop_nulls() if "repair_s" in names else pl.Series()
    if repairs.len():
        row["repair_mean_s"] = repairs.sum() / repairs.len()
        row |= {"repair_median_s": repairs.median(), "repair_p90_s": repairs.quantile(0.9, "linear")}
    return LIVES_SUMMARY.frame([row | {"repairs": repairs.len()}])


def far_groups(mttf: pl.DataFrame, survival: pl.DataFrame, strata: Sequence[str]) -> pl.DataFrame:
    """FAR_GROUPS, of the first of the strata in which groups are far apart; no row where none are."""
    for by in strata:
        rates = mttf.filter(pl.col("events") >= FEWEST_FAILURES, confidence=0.95, event="failure", stratum_by=by)
        rates = rates.sort("failures_per_1000_node_days", "stratum").drop_nulls("ci_low_clustered_s")
        if rates.height < 2:
            continue
        low, high = rates.row(0, named=True), rates.row(-1, named=True)
        curve = survival.filter(event="failure", stratum_by=by, stratum=high["stratum"]).sort("time_s")
        enough = curve.filter(pl.col("at_risk") >= 0.1 * high["n"])
        years = (enough["time_s"].max() or 0) // YEAR_S
        if not years or low["ci_low_clustered_s"] < FAR_APART * high["ci_high_clustered_s"]:
            continue
        survived = curve.filter(pl.col("time_s") <= years * YEAR_S)["survival"][-1]
        high |= {"end": "highest", "years": years, "failed_share": 1 - survived}
        return FAR_GROUPS.frame([high, low | {"end": "lowest"}])
    return FAR_GROUPS.frame([])


def survival_at(curve: pl.DataFrame) -> pl.DataFrame:
    """The curve of all (whole, of failure) at AGES, no further than it goes."""
    curve = curve.drop_nulls("survival").sort("time_s")
    last = curve["time_s"].max()
    ages = [age_s for age_s, _ in AGES.values() if last is not None and age_s <= last]
    at = pl.DataFrame({"time_s": ages}, schema={"time_s": curve.schema["time_s"]})
    curve = curve.with_columns(n=pl.col("at_risk").max())
    return SURVIVAL_AT.typed(at.join_asof(curve, on="time_s").select(*SURVIVAL_AT.columns))


def survival_steps(curve: pl.DataFrame, jobs: Frame | None) -> pl.DataFrame:
    """The steps of the curve of all (whole, of failure) above STEP, and its largest; how many failures limits made.

    jobs: outcome, status_raw and times; None where the lives are of components, which have no time limits.
    """
    drop = pl.col("survival").shift(1, fill_value=1.0) - pl.col("survival")
    steps = curve.sort("time_s").filter(pl.col("events") > 0 if curve.height else pl.lit(True))
    steps = steps.select("time_s", "survival", failures="events", drop=drop)
    steps = steps.filter((pl.col("drop") > STEP) | (pl.int_range(pl.len()) == pl.col("drop").arg_max()))
    limits = steps.select("time_s", time_limits=pl.lit(0, pl.Int64))
    if jobs is not None:
        failed = jobs.lazy().filter((pl.col("outcome") == "failure") & at_time_limit("status_raw"))
        found = failed.group_by(time_s=observed_s()).agg(time_limits=pl.len().cast(pl.Int64))
        limits = limits.select("time_s").lazy().join(found, on="time_s", how="left").collect(engine="streaming")
    steps = steps.join(limits, on="time_s", how="left").with_columns(pl.col("time_limits").fill_null(0))
    steps = steps.with_columns(timeout_share=pl.col("time_limits") / pl.col("failures"))
    return SURVIVAL_STEPS.typed(steps.sort("time_s"))


def failures_without_end(lives: Frame, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """What the failures whose end was never written could do to the mean time to failure, by stratum.

    lives: duration_s, event, duration_max_s (Int64 s from the start to the trace's end) and the strata's columns;
    errors: see `by_stratum`. failures: all lives that ended by the event, without_end those of them of unknown
    duration. With k failures of known duration, m without, and exposure T: mttf_s = T / k, as in
    `mean_time_to_failure`, leaves the m out; mttf_low_s = T / (k + m) has them fail at once; mttf_high_s =
    (T + their duration_max_s) / (k + m) has them last to the trace's end. A failure of which even
    duration_max_s is unknown is among the m but adds no time to mttf_high_s, which is then no true bound.
    """
    hit = (pl.col("event") == event).fill_null(False)
    lost = hit & pl.col("duration_s").is_null()
    sums_of = {
        "failures": hit.sum(),
        "without_end": lost.sum(),
        "exposure_s": pl.col("duration_s").cast(pl.Int64).sum(),
        "longest_s": pl.col("duration_max_s").cast(pl.Int64).filter(lost).sum(),
    }
    summed = alike(lives, [name for name in strata if name != ALL], **sums_of)
    rows = []
    for stratum_by in strata:
        sums = by_stratum(summed, stratum_by, **{name: pl.col(name).sum() for name in sums_of})
        for stratum, *of_stratum in sums.with_columns(pl.col("stratum").cast(pl.String)).iter_rows():
            rows.append({"stratum_by": stratum_by, "stratum": stratum, **_without_end(*of_stratum, event)})
    return FAILURES_WITHOUT_END.frame(rows)


def _without_end(failures: int, without_end: int, exposure: int, longest: int, event: str) -> dict:
    row = {"failures": failures, "without_end": without_end}
    if failures == 0:
        return row | {"reason": "no failures" if event == "failure" else f"no {event}"}
    row |= {
        "share_without_end": without_end / failures,
        "mttf_low_s": exposure / failures,
        "mttf_high_s": (exposure + longest) / failures,
    }
    if failures == without_end:
        return row | {"reason": "no failure has an end: no mean without them"}
    return row | {"mttf_s": exposure / (failures - without_end)}

"""Survival curves, mean time to failure and lifetime models."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from ttf.analyses.time_to_failure.fit_mttf import (
    AGES,
    DURATIONS_SUMMARY,
    FAR_GROUPS,
    LEAST_LIMIT_SHARE,
    LIFETIME_MODELS,
    MOSTLY,
    STEP,
    SURVIVAL_AT,
    SURVIVAL_STEPS,
)
from ttf.display.metrics import FEWEST_FAILURES
from ttf.engine import columns
from ttf.engine.contract import Column
from ttf.records.clusters import CLUSTER_COLUMNS, DAY_S
from ttf.records.durations import find_strata, select_cause
from ttf.records.inputs import Inputs
from ttf.records.jobs import Frame, is_at_time_limit, observed_s
from ttf.stats.durations.missing_ends import failures_without_end, withhold_without_ends
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.strata import CountedDurations, Durations, iterate_times
from ttf.stats.durations.survival import survival_blocks, thin_curves
from ttf.stats.lifetimes.lifetime_models import fit_models

# If the intervals of two groups' mean times to failure differ by this factor, one mean does not describe both.
FAR_APART = 5
YEAR_S = 365 * DAY_S
JOBS = ("outcome", "status_raw", "runtime_s", "start_s", "trace_end_s")
DURATIONS = ("start_s", "duration_s", "duration_max_s", "event", "gpu_milli", "nodes", *CLUSTER_COLUMNS)


def compute(inputs: Inputs) -> Iterator[tuple]:
    """Yield (name, frame) of each table of the analysis; the frames of survival_curves come block by block."""
    settings = inputs.settings
    durations = inputs.scan("durations", [*DURATIONS, *CLUSTER_COLUMNS, *settings.strata, *settings.causes])
    strata = find_strata(durations, settings.strata)
    # Failure of any kind first, then each cause that the trace distinguishes.
    events = {"failure": durations} | {cause: select_cause(durations, cause) for cause in settings.causes}
    counts = {event: CountedDurations(rows, [event]) for event, rows in events.items()}
    ends = failures_without_end(durations, "failure", strata)

    def withhold(frame: pl.DataFrame, contract: Mapping[str, Column]) -> pl.DataFrame:
        return withhold_without_ends(frame, contract, ends)

    thinned, summaries, total_curves = [], [], []

    def iterate_curves() -> Iterator[pl.DataFrame]:
        """Yield the curves, and keep what the later tables need of them."""
        for event, rows in counts.items():
            for curves, summary in survival_blocks(rows, event, strata):
                curves, summary = withhold(curves, columns.CURVES), withhold(summary, columns.SUMMARY)
                thinned.append(thin_curves(curves, settings.max_steps))
                summaries.append(summary)
                total_curves.append(curves.filter(event="failure", stratum_by="all"))
                yield curves

    # Written block by block: all curves of ten million durations would not fit memory.
    yield "survival_curves", iterate_curves()
    yield "survival", pl.concat(thinned)
    yield "survival_summary", pl.concat(summaries)
    jobs = inputs.scan("jobs", JOBS) if "jobs" in inputs else None
    curve = pl.concat(total_curves)
    yield "survival_at", survival_at(curve)
    yield "survival_steps", survival_steps(curve, jobs)
    days = settings.block_days
    mttf = pl.concat([mean_time_to_failure(rows, event, strata, block_days=days) for event, rows in events.items()])
    mttf = withhold(mttf, columns.MTTF)
    yield "mttf", mttf
    summary = DURATIONS_SUMMARY.frame([]) if "jobs" in inputs else summarise_durations(inputs.scan("durations"))
    yield "durations_summary", summary
    # Units that fail only once: the mean over all may describe no group of them.
    fails_once = summary.filter(pl.col("units") == pl.col("durations")).height
    yield "far_groups", far_groups(mttf, pl.concat(thinned), settings.strata[:1] if fails_once else [])
    yield "failures_without_end", ends
    models = pl.concat([lifetime_models(rows, event, strata) for event, rows in counts.items()])
    yield "lifetime_models", withhold(models, LIFETIME_MODELS.columns)


def lifetime_models(durations: Durations, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """Fit every model of `MODELS` to every stratum, a row each.

    durations: see `CountedDurations`. event: value of the column event. strata: columns, or `all`.

    Returns LIFETIME_MODELS. Estimates are of maximum likelihood with right-censoring, standard errors from the observed
    information. The exponential has scale_s = exposure / events; the Weibull survival exp(-(t / scale_s)^shape), so
    shape < 1 is a decreasing hazard (Kalbfleisch & Prentice 1980, chapter 3). Under the lognormal, log seconds are
    normal with mean mu_log_s and standard deviation sigma. The gamma has a density proportional to t^(shape - 1) e^(-t
    / scale_s). A parameter that the model lacks is blank. loglik is of the continuous density in seconds; aic = 2p - 2
    loglik, bic = p ln(n) - 2 loglik with n durations. Durations of 0 s are 0.5 s in the fits; exposure_s is the exact
    sum. mean_s, median_s: blank, with a reason, beyond FARTHEST times the longest duration, except the exponential's
    mean, which is exposure / events. best: the lowest aic of the converged models of the stratum (the simpler on a
    tie). A model that cannot be fitted is blank and not converged, with a reason.
    """
    rows: list[dict] = []
    for stratum_by in strata:
        for stratum, times in iterate_times(durations, event, stratum_by):
            keys = {"event": event, "stratum_by": stratum_by, "stratum": stratum}
            rows.extend(keys | fit for fit in fit_models(times))
    return LIFETIME_MODELS.frame(rows)


def summarise_durations(durations: pl.LazyFrame) -> pl.DataFrame:
    """Return the row of DURATIONS_SUMMARY. durations: unit_id, event, duration_s; times and repair_s if recorded."""
    names = durations.collect_schema().names()
    sums = {
        "units": pl.col("unit_id").n_unique(),
        "durations": pl.len(),
        "failures": (pl.col("event") == "failure").sum(),
        "exposure_s": pl.col("duration_s").sum(),
    }
    if "start_s" in names:
        ends = pl.col("end_s") if "end_s" in names else pl.col("start_s") + pl.col("duration_s")
        sums |= {"from_s": pl.col("start_s").min(), "to_s": ends.max()}
        times = durations.select("event", "start_s", end_s=ends).drop_nulls(["start_s", "end_s"]).collect()
    row = durations.select(**sums).collect(engine="streaming").row(0, named=True)
    if None not in (row.get("from_s"), row.get("to_s")):
        row["days"] = -(-(row["to_s"] - row["from_s"]) // DAY_S)
        row["silence_s"] = find_silence(times)
    repairs = durations.select("repair_s").collect()["repair_s"].drop_nulls() if "repair_s" in names else pl.Series()
    if repairs.len():
        row["repair_mean_s"] = repairs.sum() / repairs.len()
        row |= {"repair_median_s": repairs.median(), "repair_p90_s": repairs.quantile(0.9, "linear")}
    return DURATIONS_SUMMARY.frame([row | {"repairs": repairs.len()}])


def find_silence(times: pl.DataFrame) -> int | None:
    """Return the longest time without a start or an end, if one wrong time may have made it; None if not.

    It is over half of all the time, and of ten failures or more at most one in a hundred (or one) lies on one side of
    it. times: event, start_s, end_s.
    """
    moments = np.unique(times.select("start_s", "end_s").to_numpy())
    gaps, failures = np.diff(moments), times.filter(event="failure")["end_s"].to_numpy()
    if failures.size < FEWEST_FAILURES or 2 * gaps.max() <= moments[-1] - moments[0]:
        return None
    n_after = int((failures > moments[gaps.argmax()]).sum())
    return int(gaps.max()) if min(n_after, failures.size - n_after) <= max(1, failures.size // 100) else None


def far_groups(mttf: pl.DataFrame, survival: pl.DataFrame, strata: Sequence[str]) -> pl.DataFrame:
    """Return FAR_GROUPS of the first stratification whose groups differ by FAR_APART; no row if none does."""
    for name in strata:
        rates = mttf.filter(pl.col("events") >= FEWEST_FAILURES, confidence=0.95, event="failure", stratum_by=name)
        rates = rates.sort("failures_per_1000_node_days", "stratum").drop_nulls("ci_low_clustered_s")
        if rates.height < 2:
            continue
        low, high = rates.row(0, named=True), rates.row(-1, named=True)
        curve = survival.filter(event="failure", stratum_by=name, stratum=high["stratum"]).sort("time_s")
        reliable_steps = curve.filter(pl.col("at_risk") >= 0.1 * high["n"])
        years = (reliable_steps.select(pl.col("time_s").max()).item() or 0) // YEAR_S
        if not years or low["ci_low_clustered_s"] < FAR_APART * high["ci_high_clustered_s"]:
            continue
        survival_at_years = curve.filter(pl.col("time_s") <= years * YEAR_S)["survival"][-1]
        high |= {"end": "highest", "years": years, "failed_share": 1 - survival_at_years}
        return FAR_GROUPS.frame([high, low | {"end": "lowest"}])
    return FAR_GROUPS.frame([])


def survival_at(curve: pl.DataFrame) -> pl.DataFrame:
    """Return the curve of failure over all units at AGES, up to its last age. curve: not thinned."""
    curve = curve.drop_nulls("survival").sort("time_s")
    last = curve.select(pl.col("time_s").max()).item()
    ages = [age_s for age_s, _ in AGES.values() if last is not None and age_s <= last]
    age_rows = pl.DataFrame({"time_s": ages}, schema={"time_s": curve.schema["time_s"]})
    curve = curve.with_columns(n=pl.col("at_risk").max())
    return SURVIVAL_AT.conform(age_rows.join_asof(curve, on="time_s").select(*SURVIVAL_AT.columns))


def survival_steps(curve: pl.DataFrame, jobs: Frame | None) -> pl.DataFrame:
    """Return the steps above STEP of the failure curve over all units, and its largest, with failures at time limits.

    curve: not thinned. jobs: outcome, status_raw and times; None for components, which have no time limits. A late step
    is large with one failure if few jobs last so long, so a limit also needs a number and a share of all jobs.
    """
    drop = pl.col("survival").shift(1, fill_value=1.0) - pl.col("survival")
    steps = curve.sort("time_s").filter(pl.col("events") > 0 if curve.height else pl.lit(True))
    steps = steps.select("time_s", "survival", failures="events", drop=drop)
    steps = steps.filter((pl.col("drop") > STEP) | (pl.int_range(pl.len()) == pl.col("drop").arg_max()))
    limits = steps.select("time_s", time_limits=pl.lit(0, pl.Int64))
    if jobs is not None:
        failures = jobs.lazy().filter((pl.col("outcome") == "failure") & is_at_time_limit("status_raw"))
        limit_counts = failures.group_by(time_s=observed_s()).agg(time_limits=pl.len().cast(pl.Int64))
        limits = limits.select("time_s").lazy().join(limit_counts, on="time_s", how="left").collect(engine="streaming")
    steps = steps.join(limits, on="time_s", how="left").with_columns(pl.col("time_limits").fill_null(0))
    steps = steps.with_columns(timeout_share=pl.col("time_limits") / pl.col("failures"))
    fewest = max(FEWEST_FAILURES, LEAST_LIMIT_SHARE * (curve.select(pl.col("at_risk").max()).item() or 0))
    is_limit = (pl.col("drop") > STEP) & (pl.col("timeout_share") > MOSTLY) & (pl.col("time_limits") >= fewest)
    steps = steps.with_columns(is_limit=is_limit)
    return SURVIVAL_STEPS.conform(steps.sort("time_s"))

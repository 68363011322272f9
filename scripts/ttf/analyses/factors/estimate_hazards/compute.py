"""Hazard ratios, log-rank tests and cumulative incidence."""

from collections.abc import Iterable, Iterator

import polars as pl

from ttf.analyses.factors.estimate_hazards import (
    COX,
    COX_SUMMARY,
    CUMULATIVE_INCIDENCE,
    INCIDENCE_AT,
    JOB_SIZE,
    LOGRANK,
    MTTF_DELAYED_ENTRY,
    SURVIVAL_SUMMARY_DELAYED_ENTRY,
)
from ttf.analyses.factors.estimate_hazards.hazard_ratios import hazard_ratios
from ttf.analyses.factors.estimate_hazards.incidence_tables import cumulative_incidence, exclusive_causes, incidence_at
from ttf.analyses.factors.estimate_hazards.logrank_table import logrank
from ttf.analyses.factors.estimate_hazards.total import SIGNIFICANCE, total_ratios
from ttf.engine.contract import Table
from ttf.engine.size_unit import NODE
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.durations import find_ends, find_strata, select_cause
from ttf.records.inputs import Inputs
from ttf.stats.durations.missing_ends import failures_without_end, withhold_without_ends
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.strata import CountedDurations, durations_since_entry
from ttf.stats.durations.survival import survival_summary, thin_curves

DURATIONS = ("entry_s", "duration_s", "duration_max_s", "event", "gpu_milli", "nodes")


def compute(inputs: Inputs) -> Iterator[tuple[str, pl.DataFrame]]:
    settings = inputs.settings
    durations = inputs.scan(
        "durations", [*DURATIONS, *CLUSTER_COLUMNS, *settings.strata, *settings.causes, *settings.covariates]
    )
    strata = find_strata(durations, settings.strata)
    # Failure of any kind first, then each cause that the trace distinguishes.
    events = {"failure": durations} | {cause: select_cause(durations, cause) for cause in settings.causes}
    covariates = [name for name in settings.covariates if name in durations.collect_schema()]
    if inputs.unit == NODE:
        covariates.remove("nodes")  # they are the size
    missing = failures_without_end(durations, "failure", strata)

    def join_withheld(frames: Iterable[pl.DataFrame], table: Table) -> pl.DataFrame:
        return withhold_without_ends(pl.concat(frames), table.columns, missing)

    cox = join_withheld((hazard_ratios(rows, event, covariates) for event, rows in events.items()), COX)
    yield "cox", cox
    yield "cox_summary", summarise_ratios(cox)
    ends = find_ends(durations)
    counts = {event: CountedDurations(rows, ends if event == "failure" else [event]) for event, rows in events.items()}
    competing = counts["failure"]
    if settings.causes:
        exclusive, ends = exclusive_causes(durations, settings.causes)
        competing = CountedDurations(exclusive, ends)
    strata_incidence = cumulative_incidence(competing, ends, strata[1:], settings.max_steps)
    # Not thinned: needed for the incidence at given ages.
    total_incidence = cumulative_incidence(competing, ends, ["all"])
    incidence = [thin_curves(total_incidence, settings.max_steps), strata_incidence]
    yield "cumulative_incidence", join_withheld(incidence, CUMULATIVE_INCIDENCE)
    yield "incidence_at", join_withheld([incidence_at(competing, ends, total_incidence)], INCIDENCE_AT)
    tests = join_withheld((logrank(rows, event, strata) for event, rows in counts.items()), LOGRANK)
    yield "logrank", with_pair_counts(tests)
    summaries = [survival_summary(rows, event, strata, delayed_entry=True) for event, rows in counts.items()]
    yield "survival_summary_delayed_entry", join_withheld(summaries, SURVIVAL_SUMMARY_DELAYED_ENTRY)
    # Durations by cluster take most of the memory; the next step reads the durations again.
    del counts, competing, total_incidence
    mttf = [mean_time_to_failure(durations_since_entry(rows), event, strata) for event, rows in events.items()]
    yield "mttf_delayed_entry", join_withheld(mttf, MTTF_DELAYED_ENTRY)


def summarise_ratios(cox: pl.DataFrame) -> pl.DataFrame:
    """Count the ratios of COX: significant, untested and changing with age, as the row of COX_SUMMARY. cox: COX."""
    ratios = cox.drop_nulls("hazard_ratio").filter(pl.col("covariate") != JOB_SIZE, event="failure")
    shown_ratios = total_ratios(cox)
    changing = ratios.filter(pl.col("proportionality_p") < SIGNIFICANCE)["covariate"].n_unique()
    row: dict[str, int | None] = {"ratios": ratios.height, "covariates": ratios["covariate"].n_unique()}
    # 0 is certain only if all ratios were tested.
    row["changing"] = changing if changing or not ratios["proportionality_p"].null_count() else None
    for name, p in (("clear", "p_adjusted_clustered"), ("significant_if_independent", "p_adjusted")):
        row[name] = ratios.filter(pl.col(p) < SIGNIFICANCE).height
    row |= {"untested": ratios["p_adjusted_clustered"].null_count(), "total_untested": shown_ratios["p"].null_count()}
    row |= {"total_ratios": shown_ratios.height, "total_clear": int(shown_ratios["significant"].sum())}
    return COX_SUMMARY.frame([row])


def with_pair_counts(tests: pl.DataFrame) -> pl.DataFrame:
    """Add to the overall tests of LOGRANK the number of pairs of strata that differ."""
    keys = ["event", "stratum_by"]
    p = pl.col("p_adjusted_clustered")
    counts = {"pairs": pl.len(), "different_pairs": (p < SIGNIFICANCE).sum(), "untested_pairs": p.null_count()}
    pairs = tests.filter(kind="pairwise").drop_nulls("p_adjusted").group_by(keys).agg(**counts)
    joined = tests.drop(counts).join(pairs, on=keys, how="left", maintain_order="left")
    is_overall = pl.col("kind") == "overall"
    return LOGRANK.conform(joined.with_columns(pl.when(is_overall).then(pl.col(name).fill_null(0)) for name in counts))

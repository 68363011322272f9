"""Hazard ratios, log-rank tests and cumulative incidence."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

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
from ttf.analyses.factors.estimate_hazards.total import SIGNIFICANCE, total_ratios
from ttf.engine.contract import Table
from ttf.engine.size_unit import NODE
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.durations import find_ends, find_strata, select_cause
from ttf.records.inputs import Inputs
from ttf.stats.basics.holm import add_adjusted_p
from ttf.stats.durations.logrank import compare_strata
from ttf.stats.durations.missing_ends import failures_without_end, withhold_without_ends
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.strata import (
    CountedDurations,
    Durations,
    count_durations,
    durations_since_entry,
    iterate_times,
)
from ttf.stats.durations.survival import survival_summary, thin_curves

DURATIONS = ("entry_s", "duration_s", "duration_max_s", "event", "gpu_milli", "nodes")
# The number of pairs grows with the square of the strata, and the adjustment of each p-value with it.
MOST_STRATA = 12


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


def logrank(durations: Durations, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """Run the log-rank test (Mantel 1966; Peto & Peto 1972) for each stratification and each pair of its strata.

    durations: see `CountedDurations`. event: value of the column event. strata: columns; `all`, one
    stratum, is skipped. At most MOST_STRATA strata are compared, those with the most durations; the reason says so.

    Returns LOGRANK: a row of kind `overall` per stratification, then one of kind `pairwise` per pair, in the order of
    the strata. strata, n, events: of the strata compared. statistic: chi-squared with df degrees of freedom under equal
    hazards, from the hypergeometric variance with its factor for ties. p_adjusted: Holm's, over the overall tests of
    all stratifications and over the pairs of each. What cannot be tested is blank, with a reason.

    p_clustered holds if clusters differ. The difference of observed and expected events is a sum of martingale
    residuals over durations (Lin & Wei 1989). Its covariance V is that of the sums by cluster, whether a cluster is in
    one stratum or in several, plus that which different clusters share in time (`ttf.stats.clustered`). If each stratum
    is one cluster (a system), the sums are by group (its nodes). The
    statistic is the exact one with the first two moments that V gives it (Rao & Scott 1984; Satterthwaite); with one
    degree of freedom it is the square of the difference over its clustered variance. Sums by cluster under the null
    hypothesis include the pull of their cluster, so with few clusters the test rejects too seldom rather than too
    often. True nulls (log SD of users 1, sizes by Zipf's law) are rejected at .05 in .03 to .07 of simulations with two
    strata and .01 to .05 with four; the exact test rejects .5 to .98. Dividing by 1 - h, or F with the effective
    clusters, would make it .00 to .03.
    """
    durations = count_durations(durations, [event])
    code = durations.events.index(event) + 1
    overall_rows, rows = [], []
    for stratum_by in strata:
        if stratum_by == "all":
            continue
        by_cluster = durations.by_cluster(stratum_by)
        all_strata = [
            (label, (times, by_cluster.get(label)))
            for label, times in iterate_times(durations, event, stratum_by)
            if times.durations
        ]
        largest = sorted(range(len(all_strata)), key=lambda index: (-all_strata[index][1][0].durations, index))
        selected_strata = [all_strata[index] for index in sorted(largest[:MOST_STRATA])]
        keys = {"event": event, "stratum_by": stratum_by}
        overall_row = keys | {"kind": "overall"} | compare_strata([stratum for _, stratum in selected_strata], code)
        if len(all_strata) > len(selected_strata):
            selection = f"of {len(all_strata)} strata the {len(selected_strata)} with most units at risk"
            overall_row["reason"] = "; ".join(filter(None, (selection, overall_row["reason"])))
        pairs = [
            keys
            | {"kind": "pairwise", "stratum_a": label_a, "stratum_b": label_b}
            | compare_strata([times_a, times_b], code)
            for (label_a, times_a), (label_b, times_b) in combinations(selected_strata, 2)
        ]
        _add_adjusted_p(pairs)
        overall_rows.append(overall_row)
        rows += [overall_row, *pairs]
    _add_adjusted_p(overall_rows)
    return LOGRANK.frame(rows)


def _add_adjusted_p(rows: list[dict]) -> None:
    add_adjusted_p(rows)
    add_adjusted_p(rows, "p_clustered", "p_adjusted_clustered")


def with_pair_counts(tests: pl.DataFrame) -> pl.DataFrame:
    """Add to the overall tests of LOGRANK the number of pairs of strata that differ."""
    keys = ["event", "stratum_by"]
    p = pl.col("p_adjusted_clustered")
    counts = {"pairs": pl.len(), "different_pairs": (p < SIGNIFICANCE).sum(), "untested_pairs": p.null_count()}
    pairs = tests.filter(kind="pairwise").drop_nulls("p_adjusted").group_by(keys).agg(**counts)
    joined = tests.drop(counts).join(pairs, on=keys, how="left", maintain_order="left")
    is_overall = pl.col("kind") == "overall"
    return LOGRANK.conform(joined.with_columns(pl.when(is_overall).then(pl.col(name).fill_null(0)) for name in counts))

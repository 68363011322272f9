"""Table of log-rank tests: of all strata together, and of each pair."""

from collections.abc import Sequence
from itertools import combinations

import polars as pl

from ttf.analyses.factors.estimate_hazards import LOGRANK
from ttf.stats.basics.holm import add_adjusted_p
from ttf.stats.durations.logrank import compare_strata
from ttf.stats.durations.strata import Durations, count_durations, iterate_times

# The number of pairs grows with the square of the strata, and the adjustment of each p-value with it.
MOST_STRATA = 12


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

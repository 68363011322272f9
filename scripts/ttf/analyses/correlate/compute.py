"""What goes with run time and failure, by feature of the jobs."""

from collections.abc import Sequence

import polars as pl

from ttf.analyses.correlate import FAILURE_SHARE
from ttf.analyses.correlate.correlations import groups_and_correlations
from ttf.inputs import Inputs
from ttf.stats.counts import Rows
from ttf.stats.features import Feature, features_of
from ttf.stats.shares import ENDED, failure_shares


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    jobs, settings = given.scan("jobs"), given.settings
    groups, table = groups_and_correlations(jobs, [None, *settings.cutoffs_s], settings.significance)
    return {"failure_share": failure_share(jobs), "runtime_by_group": groups, "correlations": table}


def failure_share(jobs: Rows, features: Sequence[Feature] | None = None) -> pl.DataFrame:
    """Failures among the ended jobs (success or failure), with FAILURE_SHARE.

    jobs: `outcome` and the features' columns. features: those to report, in that order; by default all that
    the table has. Jobs without the value form no group. Values ascend, numbers as numbers.
    Raises Polars' ColumnNotFoundError when a column is missing.
    """
    chosen = features_of(jobs) if features is None else features
    parts = [_share_of(jobs, feature) for feature in chosen]
    return pl.concat([FAILURE_SHARE.frame([]), *parts])


def _share_of(jobs: Rows, feature: Feature) -> pl.DataFrame:
    counts = (
        jobs.lazy()
        .select(feature.group_key().alias("key"), "outcome")
        .drop_nulls("key")
        .group_by("key")
        .agg(jobs=pl.len().cast(pl.Int64), **ENDED)
        .collect(engine="streaming")
        .sort("key")
    )
    counts = counts.with_columns(
        feature=pl.lit(feature.name),
        value=feature.labels(counts["key"]),
        **failure_shares(counts),
        reason=pl.when(ended=0).then(pl.lit("no job with this value ended")),
    )
    return FAILURE_SHARE.typed(counts)

"""Which interval a chart draws: the clustered one, and where there is none the exact one, marked as such."""

import altair as alt
import polars as pl

from ttf.charts.text import clustering

# Of a mark whose interval holds only if jobs are independent.
DASHED = alt.condition("datum.independent", alt.value([3, 3]), alt.value([1, 0]))


def shown(frame: pl.DataFrame, suffix: str = "", prefix: str = "") -> pl.DataFrame:
    """The frame with `low` and `high`, and whether they are `independent`: exact, for want of a clustered interval."""
    is_clustered = pl.col(f"{prefix}ci_low_clustered{suffix}").is_not_null()
    ends = {
        end: pl.when(is_clustered).then(f"{prefix}ci_{end}_clustered{suffix}").otherwise(f"{prefix}ci_{end}{suffix}")
        for end in ("low", "high")
    }
    return frame.with_columns(**ends, independent=~is_clustered)


def by_what(frame: pl.DataFrame, what: str = "failures") -> str:
    """A sentence for the caption on what the intervals of `shown` take as clusters."""
    frame = frame.drop_nulls("low")
    named = frame.filter(~pl.col("independent"))["cluster_by"].unique().drop_nulls().sort().to_list()
    only_if = f"only if {what} are independent"
    if not named:
        return f"The intervals hold {only_if}: too few clusters to tell."
    said = f"Intervals are clustered by {clustering(named)}."
    return f"{said} Dashed: too few clusters, or too much alike; {only_if}." if frame["independent"].any() else said

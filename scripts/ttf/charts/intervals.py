"""Which interval a chart draws: the clustered one, and where there is none the exact one, marked as such."""

import polars as pl

# Of a mark whose interval holds only if jobs are independent.
INDEPENDENT_DASH = [3, 3]


def shown(frame: pl.DataFrame, suffix: str = "") -> pl.DataFrame:
    """The frame with `low` and `high`, and whether they are `independent`: exact, for want of a clustered interval."""
    is_clustered = pl.col(f"ci_low_clustered{suffix}").is_not_null()
    ends = {
        end: pl.when(is_clustered).then(f"ci_{end}_clustered{suffix}").otherwise(f"ci_{end}{suffix}")
        for end in ("low", "high")
    }
    return frame.with_columns(**ends, independent=~is_clustered)


def by_what(frame: pl.DataFrame) -> str:
    """A sentence for the caption on what the intervals of `shown` take as clusters."""
    named = frame.filter(~pl.col("independent"))["cluster_by"].unique().drop_nulls().sort().to_list()
    if not named:
        return "The intervals hold only if failures are independent: too few clusters to tell."
    said = f"Intervals are clustered by {' or '.join(named)}."
    return said + (" Dashed: too few clusters; only if failures are independent." if frame["independent"].any() else "")

"""Intervals of charts: the clustered one is drawn, and where there is none the exact one, marked as such."""

from collections.abc import Callable

import altair as alt
import polars as pl

from ttf.display.charts.theme import FAINT
from ttf.engine.words import clustering

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


def draw_intervals(base: alt.Chart, low: alt.X | alt.Y, high: str = "high:Q", **mark: object) -> alt.Chart:
    """Rules from the field of the channel `low` to the field `high`, dashed where the row is `independent`."""
    along = "x" if isinstance(low, alt.X) else "y"
    return base.mark_rule(**mark).encode(**{along: low, f"{along}2": high, "strokeDash": DASHED})


def draw_bounds(base: alt.Chart, side: str, size: int = 80, **channels: object) -> alt.Chart:
    """Open triangles for one-sided bounds, where there is no estimate. side: where they point to."""
    mark = base.mark_point(shape=f"triangle-{side}", size=size, filled=False, strokeWidth=1.5, color=FAINT)
    return mark.encode(**channels)


def draw_estimates(base: alt.Chart, at: Callable[[str], alt.X], size: int, **colour: object) -> list[alt.Chart]:
    """The layers of estimates with a 90% and a 95% interval, thick and thin. at: a field -> its channel.

    The rows have mttf, low90, high90, low95, high95 and independent; only clustered intervals are drawn thick.
    """
    clustered = base.transform_filter("!datum.independent")
    return [
        draw_intervals(base, at("low95:Q"), "high95:Q", strokeWidth=1.5, **colour),
        clustered.mark_rule(strokeWidth=4.5, opacity=0.55, **colour).encode(x=at("low90:Q"), x2="high90:Q"),
        base.mark_point(filled=True, size=size, opacity=1, **colour).encode(x=at("mttf:Q")),
    ]


def draw_lower_bounds(base: alt.Chart, low: alt.X, size: int) -> list[alt.Chart]:
    """The layers of bounds from below: a triangle, and a dashed line from it to the edge of the plot."""
    line = base.mark_rule(strokeDash=[2, 3], color=FAINT).encode(x=low, x2=alt.X2Value("width"))
    return [line, draw_bounds(base, "right", size, x=low)]

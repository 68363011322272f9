"""Intervals of charts: clustered ones, else exact ones, which are marked."""

from collections.abc import Callable

import altair as alt
import polars as pl
from altair.utils.schemapi import UndefinedType

from ttf.display.charts.theme import ACCENT, FAINT
from ttf.engine.words import clustering_words

# Dashes mark an interval that holds only if jobs are independent.
DASHED = alt.condition("datum.independent", alt.value([3, 3]), alt.value([1, 0]))


def add_bounds(frame: pl.DataFrame, suffix: str = "", prefix: str = "") -> pl.DataFrame:
    """Add `low` and `high` of the clustered interval, else of the exact one; `independent` tells which."""
    is_clustered = pl.col(f"{prefix}ci_low_clustered{suffix}").is_not_null()
    bounds = {
        side: pl.when(is_clustered).then(f"{prefix}ci_{side}_clustered{suffix}").otherwise(f"{prefix}ci_{side}{suffix}")
        for side in ("low", "high")
    }
    return frame.with_columns(**bounds, independent=~is_clustered)


def clustering_note(frame: pl.DataFrame, events: str = "failures") -> str:
    """Return a caption sentence about the clusters of the intervals of `add_bounds`."""
    frame = frame.drop_nulls("low")
    cluster_names = frame.filter(~pl.col("independent"))["cluster_by"].unique().drop_nulls().sort().to_list()
    condition = f"only if {events} are independent"
    if not cluster_names:
        return f"The intervals are valid {condition}: there are too few clusters."
    clause = f"Intervals are clustered by {clustering_words(cluster_names)}."
    if not frame["independent"].any():
        return clause
    return f"{clause} Dashed intervals are valid {condition}: clusters are too few, or do not differ."


def draw_intervals(
    base: alt.Chart,
    low: alt.X | alt.Y,
    high: str = "high:Q",
    *,
    strokeWidth: float,
    color: str | UndefinedType = alt.Undefined,
    opacity: float | UndefinedType = alt.Undefined,
) -> alt.Chart:
    """Draw rules from the field of the channel `low` to the field `high`, dashed for `independent` rows."""
    rules = base.mark_rule(strokeWidth=strokeWidth, color=color, opacity=opacity).encode(strokeDash=DASHED)
    return rules.encode(x=low, x2=high) if isinstance(low, alt.X) else rules.encode(y=low, y2=high)


def draw_bounds(base: alt.Chart, side: str, bound: alt.X | alt.Y) -> alt.Chart:
    """Draw open triangles for one-sided bounds without an estimate. side: direction of the triangle."""
    mark = base.mark_point(shape=f"triangle-{side}", size=80, filled=False, strokeWidth=1.5, color=FAINT)
    return mark.encode(x=bound) if isinstance(bound, alt.X) else mark.encode(y=bound)


def draw_estimates(base: alt.Chart, x: Callable[[str], alt.X]) -> list[alt.Chart]:
    """Return the layers of estimates with a 90% and a 95% interval, thick and thin. x: a field -> its channel.

    The rows have mttf, low90, high90, low95, high95 and independent; only clustered intervals are thick.
    """
    clustered_base = base.transform_filter("!datum.independent")
    return [
        draw_intervals(base, x("low95:Q"), "high95:Q", strokeWidth=1.5, color=ACCENT),
        clustered_base.mark_rule(strokeWidth=4.5, opacity=0.55, color=ACCENT).encode(x=x("low90:Q"), x2="high90:Q"),
        base.mark_point(filled=True, size=60, opacity=1, color=ACCENT).encode(x=x("mttf:Q")),
    ]


def draw_lower_bounds(base: alt.Chart, low: alt.X) -> list[alt.Chart]:
    """Return the layers of lower bounds: a triangle, and a dashed line from it to the edge of the plot."""
    line = base.mark_rule(strokeDash=[2, 3], color=FAINT).encode(x=low, x2=alt.X2Value("width"))
    return [line, draw_bounds(base, "right", low)]

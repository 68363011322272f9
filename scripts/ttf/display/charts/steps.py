"""Step curves with bands, for survival and incidence."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.display.charts.encodings import pick_columns, tooltips

CLUSTERED = {"l": "ci_low_clustered", "h": "ci_high_clustered"}
INDEPENDENT = {"l": "ci_low", "h": "ci_high"}


def choose_bands(curves: pl.DataFrame, units: str) -> tuple[dict[str, str], str]:
    """Return the limits of these curves' bands, for `step_rows`, and a sentence about them.

    Clustered limits; a curve without them has no band. If no curve has any, those of independent units.
    """
    cluster_names = curves.drop_nulls("ci_low_clustered")["cluster_by"].unique().sort().to_list()
    if not cluster_names:
        cause = "there are too few clusters" if curves["cluster_by"].count() else "the trace records no users"
        return INDEPENDENT, f"The 95% bands are valid only if {units} end independently: {cause}."
    estimated = curves.filter(pl.col("ci_low").is_not_null())
    limit_counts = estimated.group_by("event", "stratum").agg(pl.col(*CLUSTERED.values()).count())
    note = " A curve with too few clusters has no interval." if (limit_counts["ci_low_clustered"] == 0).any() else ""
    return CLUSTERED, f"The 95% bands are clustered by {' or '.join(cluster_names)}.{note}"


def step_rows(
    curve: pl.DataFrame, name: str, estimate: str, begin: int, tooltips: int, limits: Mapping[str, str] = INDEPENDENT
) -> list[dict]:
    """Return chart rows of a curve (s, x, v, `limits`) from age `begin` (s); about `tooltips` have a tooltip."""
    tooltip_step = max(1, curve.height // tooltips)
    rows = []
    for number, row in enumerate(curve.iter_rows(named=True)):
        drawn = {"s": name, "x": max(row["time_s"], begin)} | pick_columns(row, v=estimate, **limits)
        if number % tooltip_step == 0 or number == curve.height - 1:
            drawn |= pick_columns(row, t="time_s", r="at_risk")
        rows.append(drawn)
    return rows


def step_curves(
    base: alt.Chart, scale: alt.Scale, axis: alt.Axis, curve: str, estimate: str, units: str
) -> alt.LayerChart:
    """Draw lines, 95 % bands and tooltips of rows s (curve), t (s), v, l, h (shares) and r (at risk, or blank).

    base: chart with x and colour. curve, estimate: names of s and v in a tooltip. units: name of those at risk.
    """
    y = {name: alt.Y(f"{name}:Q", scale=scale, axis=axis) for name in "lv"}
    bands = (
        base.transform_filter("isValid(datum.l) && isValid(datum.h)")
        .mark_area(interpolate="step-after", opacity=0.18, line=False)
        .encode(y=y["l"], y2="h:Q")
    )
    lines = base.mark_line(interpolate="step-after", strokeWidth=1.8).encode(y=y["v"])
    spots = (
        base.transform_filter("isValid(datum.r)")
        .mark_point(opacity=0, size=60)
        .encode(
            y="v:Q",
            tooltip=[
                *tooltips(s=curve),
                *tooltips(form=",", t="time (s)"),
                *tooltips(form=".1%", v=estimate, l="95% from", h="95% to"),
                *tooltips(form=",", r=f"{units} at risk"),
            ],
        )
    )
    return (bands + lines + spots).properties(width=640, height=320)

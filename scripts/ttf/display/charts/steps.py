"""Step curves with their bands: survival and incidence are drawn alike."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.display.charts.encodings import picked, tips

CLUSTERED = {"l": "ci_low_clustered", "h": "ci_high_clustered"}
INDEPENDENT = {"l": "ci_low", "h": "ci_high"}


def bands(curves: pl.DataFrame, units: str) -> tuple[dict[str, str], str]:
    """(which limits the bands of these curves have, as `step_rows` takes them; the sentence about them).

    Clustered ones, and none where a curve has no such limits; where no curve has any, those of independent units.
    """
    by = curves.drop_nulls("ci_low_clustered")["cluster_by"].unique().sort().to_list()
    if not by:
        why = "nothing tells whether they do" if curves["cluster_by"].count() else "the trace names nothing in common"
        return INDEPENDENT, f"Bands: 95% if {units} end independently; {why}."
    lacks = (
        curves.filter(pl.col("ci_low").is_not_null())
        .group_by("event", "stratum")
        .agg(pl.col(*CLUSTERED.values()).count())
    )
    without = " A curve with too few clusters has none." if (lacks["ci_low_clustered"] == 0).any() else ""
    return CLUSTERED, f"Bands: 95%, clustered by {' or '.join(by)}.{without}"


def step_rows(
    curve: pl.DataFrame, name: str, estimate: str, begin: int, tooltips: int, limits: Mapping[str, str] = INDEPENDENT
) -> list[dict]:
    """The rows of one curve, none before `begin` (s), about so many with a tooltip; in short names."""
    every = max(1, curve.height // tooltips)
    rows = []
    for number, row in enumerate(curve.iter_rows(named=True)):
        drawn = {"s": name, "x": max(row["time_s"], begin)} | picked(row, v=estimate, **limits)
        if number % every == 0 or number == curve.height - 1:
            drawn |= picked(row, t="time_s", r="at_risk")
        rows.append(drawn)
    return rows


def step_curves(
    base: alt.Chart, scale: alt.Scale, axis: alt.Axis, curve: str, estimate: str, units: str
) -> alt.LayerChart:
    """Lines, 95 % bands and tooltips of rows s (which curve), t (s), v, l, h (shares) and r (at risk, or blank).

    base: with its x and its colour. curve, estimate: what s and v are called in a tooltip; units: who is at risk.
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
                *tips(s=curve),
                *tips(form=",", t="time (s)"),
                *tips(form=".1%", v=estimate, l="95% from", h="95% to"),
                *tips(form=",", r=f"{units} at risk"),
            ],
        )
    )
    return (bands + lines + spots).properties(width=640, height=320)

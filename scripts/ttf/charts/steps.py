"""Step curves with their bands: survival and incidence are drawn alike."""

import altair as alt


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
    tips = (
        base.transform_filter("isValid(datum.r)")
        .mark_point(opacity=0, size=60)
        .encode(
            y="v:Q",
            tooltip=[
                alt.Tooltip("s:N", title=curve),
                alt.Tooltip("t:Q", title="time (s)", format=","),
                alt.Tooltip("v:Q", title=estimate, format=".1%"),
                alt.Tooltip("l:Q", title="95 % from", format=".1%"),
                alt.Tooltip("h:Q", title="95 % to", format=".1%"),
                alt.Tooltip("r:Q", title=f"{units} at risk", format=","),
            ],
        )
    )
    return (bands + lines + tips).properties(width=680, height=320)

"""The one look of every chart: colours that colour-blind readers can tell apart, readable sizes."""

import altair as alt

# The width of the report's text column; a chart with its axes stays within it.
PAGE_WIDTH = 760

# Okabe & Ito 2008. One colour per outcome, wherever an outcome is drawn.
OUTCOME_COLOURS = {
    "success": "#009E73",
    "failure": "#D55E00",
    "cancelled": "#CC79A7",
    "running": "#56B4E9",
    "waiting": "#999999",
}
# For things without an order, such as GPU types.
CATEGORY_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
# For things with an order, such as numbers of GPUs: viridis without its pale end.
ORDER_COLOURS = ("#440154", "#443983", "#31688E", "#21918C", "#35B779", "#B5A800")
INK = "#222222"
FAINT = "#666666"
ACCENT = "#0072B2"

FONT = '"DejaVu Sans", Verdana, sans-serif'


@alt.theme.register("time_to_failure", enable=True)
def time_to_failure() -> alt.theme.ThemeConfig:
    """Sizes are in pixels of a page with text of 16."""
    axis = {
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": INK,
        "titleColor": INK,
        "labelLimit": 150,
        "gridColor": "#E6E6E6",
        "domainColor": "#888888",
        "tickColor": "#888888",
        "titlePadding": 8,
    }
    return {
        "config": {
            "background": "white",
            "font": FONT,
            # The figure's alternative text speaks for the chart: a label on each of a thousand points would not.
            "mark": {"aria": False, "tooltip": None},
            "axis": axis,
            "legend": {
                "labelFontSize": 11,
                "titleFontSize": 11,
                "titleFontWeight": "normal",
                "labelLimit": 220,
                "labelColor": INK,
                "titleColor": INK,
                "symbolStrokeWidth": 2.5,
            },
            "header": {
                "labelFontSize": 12,
                "labelFontWeight": "bold",
                "labelColor": INK,
                "titleFontSize": 12,
                "labelLimit": 200,
            },
            "title": {
                "anchor": "start",
                "frame": "bounds",
                "fontSize": 14,
                "lineHeight": 18,
                "color": INK,
                "subtitleFontSize": 12,
                "subtitleLineHeight": 16,
                "subtitleColor": FAINT,
                "subtitlePadding": 6,
                "offset": 14,
            },
            "view": {"stroke": "#DDDDDD"},
        }
    }

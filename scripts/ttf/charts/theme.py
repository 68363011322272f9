"""The one look of every chart: colours that colour-blind readers can tell apart, readable sizes.

Without Altair, which takes as long to import as the report takes to write: it learns of it in ttf/charts/figure.py.
"""

# The width of the report's text column; a chart with its axes stays within it.
PAGE_WIDTH = 760

# Okabe & Ito 2008. One colour per outcome, wherever an outcome is drawn.
OUTCOME_COLOURS = {
    "success": "#009E73",
    "failure": "#D55E00",
    "cancelled": "#CC79A7",
    "unknown": "#E69F00",
    "running": "#56B4E9",
    "waiting": "#999999",
}
# For things without an order, such as GPU types.
CATEGORY_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
# For things with an order, such as numbers of GPUs: viridis without its pale end.
ORDER_COLOURS = ("#440154", "#443983", "#31688E", "#21918C", "#35B779", "#B5A800")
INK = "#222222"
FAINT = "#666666"
# A text on a coloured bar, on a dark page too.
ON_COLOUR = "#111111"
ACCENT = "#0072B2"

# What stands for a colour of the charts on a dark page, whose background is DARK_PAGE: the drawing stays the same, so
# that paper and files are light. Colours that are not here do for both.
DARK_PAGE = "#16181C"
ON_DARK = {
    INK: "#E8E6E3",
    FAINT: "#A9ADB3",
    "black": "#F2F2F2",
    "#000000": "#F2F2F2",
    "white": DARK_PAGE,
    "#E6E6E6": "#2E3238",  # grid
    "#DDDDDD": "#3A3F46",  # frames of plots
    "#888888": "#7F858D",  # axes
    "#888": "#7F858D",
    "#D9D9D9": "#5F656E",
    ACCENT: "#2E8BC9",
    **dict(zip(ORDER_COLOURS, ("#A276CF", "#8C8FE0", "#5FA3D0", "#35B5AE", "#5FD38D", "#E0D23A"), strict=True)),
}

# The one that the converter to SVG carries itself, and others of the same widths: a picture is the same whatever fonts
# a machine has. (A font of the machine is opened anew for each text that is measured: half of the time of a picture.)
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def time_to_failure() -> dict:
    """The theme, as Vega-Lite. Sizes are in pixels of a page with text of 16."""
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


def page_config() -> dict:
    """The look for charts that stand in the page, on whose background they are drawn."""
    return time_to_failure()["config"] | {"background": None}


def dark_style() -> str:
    """CSS for a dark page: by the reader's system, or by Quarto's switch. Never on paper."""

    def rules(page: str) -> str:
        return "\n".join(
            f'  {page} .chart svg [{paint}="{light}"] {{ {paint}: {dark}; }}'
            for light, dark in ON_DARK.items()
            for paint in ("fill", "stroke")
        )

    return (
        "<style>\n"
        f"@media screen and (prefers-color-scheme: dark) {{\n{rules('body:not(.quarto-light)')}\n}}\n"
        f"@media screen {{\n{rules('body.quarto-dark')}\n}}\n"
        "</style>\n"
    )

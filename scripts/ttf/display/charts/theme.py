"""Theme of all charts: colours that colour-blind readers can distinguish, and readable sizes.

This module does not import Altair, whose import takes as long as writing the report.
ttf.display.charts.figure registers the theme.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from altair.theme import AxisConfigKwds, ThemeConfig

# Width of a chart with its axes, in px: on a wide screen, and on a phone, for which main charts are drawn again.
WIDE, NARROW = 720, 340

# Colours of the page by name, light and dark. report/page.html has CSS variables of the same names. Charts use only
# light colours; a drawing in the page replaces them with the variables.
TOKENS = {
    "bg": ("#f6f7f9", "#0e1217"),
    "surface": ("#ffffff", "#161b22"),
    "sunken": ("#eef1f4", "#1e252d"),
    "ink": ("#14181d", "#e8ecf1"),
    "ink-2": ("#46505b", "#b4bec9"),
    "ink-3": ("#626d79", "#95a0ac"),
    "line": ("#dfe4ea", "#29313a"),
    "control": ("#808b97", "#75818d"),
    "accent": ("#0a5aa8", "#7db9f5"),
    "accent-soft": ("#e6f0fa", "#152a40"),
    "warn-ink": ("#8a4b00", "#f2c27a"),
    "warn-bg": ("#fff4e0", "#2b2213"),
    "stop-ink": ("#5c4b77", "#cbb8ec"),
    "stop-bg": ("#f3effa", "#221c2e"),
    "c-success": ("#4a8fd0", "#6aaeea"),
    "c-failure": ("#b03a0c", "#f0804f"),
    "c-infra": ("#7b3fb0", "#be93f2"),
    "c3": ("#b5790a", "#e0ac48"),
    "c4": ("#2a8a86", "#5fc2bd"),
    "c-cancelled": ("#87919c", "#7f8b97"),
    "c-open": ("#dfe5ea", "#333d47"),
    "c-open-line": ("#87919d", "#7f8b98"),
    "grid": ("#e7ebef", "#29313b"),
    "axis": ("#9aa4af", "#5f6975"),
    # Text on a coloured bar.
    "on-light": ("#14181e", "#0e1218"),
    "on-dark": ("#fffffe", "#0e1219"),
    # Ordered colours, for up to six steps.
    **{
        f"o{step}": pair
        for step, pair in enumerate(
            zip(
                ("#9fc3e6", "#74a5d6", "#4d87c3", "#2f6aa9", "#1b4e86", "#0d3461"),
                ("#2f5f92", "#4479b3", "#5f94cf", "#80b0e4", "#a6caf2", "#cfe3fa"),
                strict=True,
            ),
            start=1,
        )
    },
}
LIGHT = {name: light for name, (light, _) in TOKENS.items()}
INK, FAINT, ACCENT, GRID, AXIS = (LIGHT[name] for name in ("ink", "ink-3", "accent", "grid", "axis"))
SUCCESS, FAILURE, INFRA = (LIGHT[name] for name in ("c-success", "c-failure", "c-infra"))
CANCELLED, OPEN, OPEN_LINE = (LIGHT[name] for name in ("c-cancelled", "c-open", "c-open-line"))
THIRD, FOURTH, SUNKEN = (LIGHT[name] for name in ("c3", "c4", "sunken"))
ON_LIGHT, ON_DARK_BAR = LIGHT["on-light"], LIGHT["on-dark"]
# One colour per outcome in all charts.
OUTCOME_COLOURS = {
    "success": SUCCESS,
    "failure": FAILURE,
    "cancelled": CANCELLED,
    "unknown": THIRD,
    "running": OPEN,
    "waiting": OPEN,
}
# For unordered categories, such as GPU types; for ordered ones, such as numbers of GPUs.
CATEGORY_COLOURS = (SUCCESS, FAILURE, INFRA, THIRD, FOURTH, CANCELLED)
ORDER_COLOURS = tuple(LIGHT[f"o{step}"] for step in range(1, 7))

# The font in the converter to SVG, then others of the same widths: a picture does not depend on installed fonts. (An
# installed font is opened for each measured text: half of the time of a picture.)
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def time_to_failure() -> "ThemeConfig":
    """Return the theme, as Vega-Lite. Sizes are in pixels of a page with text of 16."""
    axis: AxisConfigKwds = {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelColor": LIGHT["ink-2"],
        "titleColor": LIGHT["ink-2"],
        "labelLimit": 150,
        "gridColor": GRID,
        "domainColor": AXIS,
        "tickColor": AXIS,
        "titlePadding": 8,
    }
    return {
        "config": {
            "background": "white",
            "font": FONT,
            # The figure has an alternative text; a label on each of a thousand points would not help.
            "mark": {"aria": False, "tooltip": None},
            # Marks without a colour would be black.
            "rule": {"color": INK},
            "text": {"color": INK, "fontSize": 12},
            "tick": {"color": INK},
            "axis": axis,
            "legend": {
                "labelFontSize": 12,
                "titleFontSize": 12,
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
            "view": {"stroke": None},
        }
    }


def tokens_style() -> str:
    """Return CSS of the light and dark tokens, and of the replacement of light colours in a drawing."""

    def css_variables(theme_index: int) -> str:
        return ";".join(f"--{name}:{pair[theme_index]}" for name, pair in TOKENS.items())

    paints = "\n".join(
        f'svg [{paint}="{light}"]{{{paint}:var(--{name})}}'
        for name, light in LIGHT.items()
        for paint in ("fill", "stroke")
    )
    return (
        f":root{{color-scheme:light;{css_variables(0)}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{css_variables(1)}}}}}\n"
        "@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{color-scheme:dark;{css_variables(1)}}}}}\n"
        f"{paints}\n"
    )

"""Parts of many charts: tooltips, colours, and notes next to the rows."""

from collections.abc import Mapping

import altair as alt

from ttf.display.charts.theme import FAINT


def tooltips(*fields: str, form: str | None = None, **titles: str) -> list[alt.Tooltip]:
    """Return tooltips of texts, or of numbers in one format: fields by their own names, then field=title."""
    kind, options = ("N", {}) if form is None else ("Q", {"format": form})
    untitled = [alt.Tooltip(f"{field}:{kind}", **options) for field in fields]
    return untitled + [alt.Tooltip(f"{field}:{kind}", title=title, **options) for field, title in titles.items()]


def colour_by(field: str, colours: Mapping[str, str], ordered: bool = False, **legend: object) -> alt.Color:
    """Return the colour channel of value -> colour, in the order of the legend, and of stacking if `ordered`.

    Without legend options there is no legend.
    """
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    order = {"sort": list(colours)} if ordered else {}
    return alt.Color(f"{field}:N", scale=scale, legend=alt.Legend(**legend) if legend else None, **order)


def side_notes(base: alt.Chart, x_px: float, size: float = 12, **style: object) -> alt.Chart:
    """Return the field `note` of each row as text, x_px from the left: next to the plot."""
    return base.mark_text(align="left", fontSize=size, color=FAINT, **style).encode(x=alt.value(x_px), text="note:N")


def pick_columns(row: Mapping, *names: str, **renamed: str) -> dict:
    """Return the columns of a row that a chart needs: columns by their own names, then name=column."""
    return {name: row[name] for name in names} | {name: row[column] for name, column in renamed.items()}

"""Parts of many charts: tooltips, colours, and notes next to the rows."""

from collections.abc import Mapping
from typing import Literal

import altair as alt
from altair.utils.schemapi import Undefined, UndefinedType

from ttf.display.charts.theme import FAINT, INK

Align = Literal["left", "center", "right"]


def tooltips(*fields: str, form: str | None = None, **titles: str) -> list[alt.Tooltip]:
    """Return tooltips of texts, or of numbers in one format: fields by their own names, then field=title."""
    kind, number_format = ("N", alt.Undefined) if form is None else ("Q", form)
    titled = [(field, alt.Undefined) for field in fields] + list(titles.items())
    return [alt.Tooltip(f"{field}:{kind}", title=title, format=number_format) for field, title in titled]


def colour_by(
    field: str, colours: Mapping[str, str], legend: alt.Legend | None = None, ordered: bool = False
) -> alt.Color:
    """Return the colour channel of value -> colour, in the order of the legend, and of stacking if `ordered`."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", scale=scale, legend=legend, sort=list(colours) if ordered else alt.Undefined)


def side_notes(
    base: alt.Chart, x_px: float, size: float = 12, baseline: Literal["middle"] | UndefinedType = alt.Undefined
) -> alt.Chart:
    """Return the field `note` of each row as text, x_px from the left: next to the plot."""
    mark = base.mark_text(align="left", baseline=baseline, fontSize=size, color=FAINT)
    return mark.encode(x=alt.value(x_px), text="note:N")


def bold_labels(base: alt.Chart, align: Align, dy: float, dx: float | UndefinedType = Undefined) -> alt.Chart:
    """Return the field `label` of each row in bold, shifted by dx and dy px."""
    texts = base.mark_text(align=align, dx=dx, dy=dy, fontSize=12, fontWeight="bold", color=INK)
    return texts.encode(text="label:N")


def pick_columns(row: Mapping, *names: str, **renamed: str) -> dict:
    """Return the columns of a row that a chart needs: columns by their own names, then name=column."""
    return {name: row[name] for name in names} | {name: row[column] for name, column in renamed.items()}

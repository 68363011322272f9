"""What many charts are made of: tooltips, colours, and notes beside the rows."""

from collections.abc import Mapping

import altair as alt

from ttf.display.charts.theme import FAINT


def tips(*fields: str, form: str | None = None, **titles: str) -> list[alt.Tooltip]:
    """Tooltips of texts, or of numbers in one format: of fields by their own names, then field=title."""
    kind, options = ("N", {}) if form is None else ("Q", {"format": form})
    untitled = [alt.Tooltip(f"{field}:{kind}", **options) for field in fields]
    return untitled + [alt.Tooltip(f"{field}:{kind}", title=title, **options) for field, title in titles.items()]


def coloured(field: str, colours: Mapping[str, str], ordered: bool = False, **legend: object) -> alt.Color:
    """Value -> its colour, in the order of the legend (if `ordered`, of what is stacked or drawn too).

    Without options of a legend there is none.
    """
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    order = {"sort": list(colours)} if ordered else {}
    return alt.Color(f"{field}:N", scale=scale, legend=alt.Legend(**legend) if legend else None, **order)


def side_notes(base: alt.Chart, at: float, size: float = 12, **style: object) -> alt.Chart:
    """The field note of each row, `at` pixels from the left: beside the plot."""
    return base.mark_text(align="left", fontSize=size, color=FAINT, **style).encode(x=alt.value(at), text="note:N")


def picked(row: Mapping, *names: str, **renamed: str) -> dict:
    """Of a row of a table what a chart is drawn from: columns by their own names, then name=column."""
    return {name: row[name] for name in names} | {name: row[column] for name, column in renamed.items()}

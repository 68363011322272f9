"""What encodings of many charts are made of: tooltips, colours and logarithmic axes."""

from collections.abc import Mapping, Sequence

import altair as alt

from ttf.charts.figure import log_ticks, time_axis, time_domain
from ttf.charts.theme import FAINT


def tips(*fields: str, form: str | None = None, **titles: str) -> list[alt.Tooltip]:
    """Tooltips of texts, or of numbers in one format: of fields by their own names, then field=title."""
    kind, options = ("N", {}) if form is None else ("Q", {"format": form})
    untitled = [alt.Tooltip(f"{field}:{kind}", **options) for field in fields]
    return untitled + [alt.Tooltip(f"{field}:{kind}", title=title, **options) for field, title in titles.items()]


def coloured(field: str, colours: Mapping[str, str], **legend: object) -> alt.Color:
    """Value -> its colour, in the order of the legend; without options of a legend there is none."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", scale=scale, legend=alt.Legend(**legend) if legend else None)


def log_scale(domain: Sequence[float]) -> alt.Scale:
    return alt.Scale(type="log", domain=list(domain), nice=False)


def log_axis(domain: Sequence[float], title: str | None, **options: object) -> alt.Axis:
    return alt.Axis(values=log_ticks(domain), format=",.6~g", title=title, **options)


def log_time(seconds: Sequence[float], title: str, headroom: float = 1.0) -> alt.X:
    """The axis of the field x, seconds of 1 or more."""
    return alt.X("x:Q", scale=log_scale(time_domain(seconds, headroom)), axis=time_axis(title))


def side_notes(base: alt.Chart, at: float, size: float = 10, **style: object) -> alt.Chart:
    """The field note of each row, `at` pixels from the left: beside the plot."""
    return base.mark_text(align="left", fontSize=size, color=FAINT, **style).encode(x=alt.value(at), text="note:N")

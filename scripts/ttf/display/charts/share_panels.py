"""Bars of several shares of the same rows: a panel for each share, with names next to the first."""

from collections.abc import Mapping, Sequence

import altair as alt

from ttf.display.charts.encodings import colour_by
from ttf.display.charts.figure import Study, make_chart
from ttf.display.charts.theme import INK
from ttf.engine import words
from ttf.engine.words import join_list, plural_noun

# px: height of a row of bars, width of the names on a phone, and of the percentages at the bars' ends.
_STEP, _NAMES_NARROW, _LABEL = 27, 136, 40


def add_percentages(rows: Sequence[Mapping], measures: Mapping[str, str]) -> list[dict]:
    """Add each share as text, as `draw_share_panels` shows it."""
    return [{**row} | {f"{measure}_label": words.share(row[measure]) for measure in measures} for row in rows]


def draw_share_panels(
    name: str,
    rows: Sequence[Mapping],
    measures: Mapping[str, str],
    colours: Mapping[str, str],
    study: Study,
    names_width: int,
    bold_names: bool = False,
) -> alt.HConcatChart:
    """Draw the panels of rows of `add_percentages`; the dataset's name is the plural of `name`.

    The rows have their names in the field `name`, and in `kind` a key of `colours`. measures: column of a share ->
    heading of its panel. names_width: px for the names on a wide screen.
    """
    names = _NAMES_NARROW if study.narrow else names_width
    width = (study.width - names - _LABEL * len(measures) - 16 * (len(measures) - 1)) // len(measures)
    largest = max(row[measure] for row in rows for measure in measures) or 1
    axis = alt.Axis(
        domain=False,
        ticks=False,
        labelColor=INK,
        labelFontWeight="bold" if bold_names else alt.Undefined,
        labelLimit=names - 10,
        labelPadding=8,
        minExtent=names,
        maxExtent=names,
    )
    panels: list[alt.LayerChart] = []
    for measure, heading in measures.items():
        base = make_chart(plural_noun(name)).encode(
            x=alt.X(f"{measure}:Q", scale=alt.Scale(domain=[0, largest], nice=False), axis=None),
            y=alt.Y(f"{name}:N", sort=[row[name] for row in rows], title=None, axis=None if panels else axis),
        )
        bars = base.mark_bar(height=17, cornerRadius=1).encode(color=colour_by("kind", colours))
        shares = base.mark_text(align="left", dx=5, fontSize=12, color=INK).encode(text=f"{measure}_label:N")
        title = alt.TitleParams(heading, fontSize=12, fontWeight="normal", anchor="start", frame="group", offset=6)
        panels.append((bars + shares).properties(width=width, height=_STEP * len(rows), title=title))
    return alt.hconcat(*panels, spacing=16 + _LABEL, bounds="flush")


def describe_shares(name: str, rows: Sequence[Mapping], measures: Mapping[str, str]) -> str:
    """Return the rows in words, as alternative text of the bars."""
    shares = [" and ".join(row[f"{measure}_label"] for measure in measures) for row in rows]
    return join_list([f"{row[name]} {share}" for row, share in zip(rows, shares, strict=True)])

"""A chart with the words that belong to it, and the shared parts that charts are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl
from altair.utils.schemapi import disable_debug_mode

from ttf.display.charts.text import wrapped
from ttf.display.charts.theme import FAINT, NARROW, WIDE, time_to_failure
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.engine.words import many

alt.theme.register("time_to_failure", enable=True)(time_to_failure)
# Or Altair checks each part of a chart as it is put together. The tests check charts as wholes (`Figure.spec`).
disable_debug_mode()

TITLE_CHARACTERS = 84
SUBTITLE_CHARACTERS = 104
# How high a drawing for a phone is, of that for a desk.
LOWER = 0.72


@dataclass(frozen=True)
class Study:
    """What the words of a chart need to know about a trace.

    unit: what a job is called, in the singular. synthetic: whether the trace is made up. narrow: whether it is drawn
    for a phone. life: what its lives are, the unit unless it says otherwise. size: the unit in which sizes of jobs are
    told.
    """

    unit: str = "job"
    synthetic: bool = False
    narrow: bool = False
    life: str = ""
    size: SizeUnit = GPU

    def __post_init__(self) -> None:
        object.__setattr__(self, "life", self.life or self.unit)

    @property
    def width(self) -> int:
        """Of the chart with its axes, in px."""
        return NARROW if self.narrow else WIDE

    @property
    def units(self) -> str:
        return many(self.unit)

    @property
    def lives(self) -> str:
        return many(self.life)


@dataclass(frozen=True)
class Figure:
    """A chart, its title (what is plotted), subtitle (method and interval), caption (n) and text for who cannot see it.

    datasets: the rows behind the chart, by the names it knows them by. empty: why there is nothing to draw, or None.
    """

    chart: alt.TopLevelMixin
    datasets: dict[str, list[dict]]
    title: str
    subtitle: str
    caption: str
    alt: str
    empty: str | None = None
    size: SizeUnit = GPU

    def spec(self, validate: bool = False) -> dict:
        """The whole Vega-Lite specification, with its data.

        The data come in here, not in the chart, because Altair copies and checks a chart's data value by value.
        Checking the chart itself takes a third of the time that drawing it does, so only the tests ask for it.
        """
        return _with_titles(self.chart.to_dict(validate=validate), self.size) | {"datasets": self.datasets}


def figure(
    chart: alt.TopLevelMixin,
    datasets: Mapping[str, Sequence[Mapping]],
    study: Study,
    *,
    title: str,
    subtitle: str,
    caption: str,
    alt_text: str,
) -> Figure:
    """The chart under its title. Trace text in the words has to be a label (`ttf.display.charts.text.labels`)."""
    title, subtitle, caption, alt_text = map(study.size.worded, (title, subtitle, caption, alt_text))
    lines = wrapped(subtitle, SUBTITLE_CHARACTERS)
    if study.synthetic:
        lines.append("Synthetic sample: no finding about a real cluster.")
    heading = alt.TitleParams(text=wrapped(title, TITLE_CHARACTERS), subtitle=lines)
    drawn = {name: [_drawn(row) for row in rows] for name, rows in datasets.items()}
    chart = chart.properties(title=heading, description=alt_text)
    return Figure(chart, drawn, title, subtitle, caption, alt_text, size=study.size)


def _with_titles(spec: Any, size: SizeUnit) -> Any:
    """A specification with the titles of axes, legends and tooltips in the unit of sizes."""
    if size == GPU or not isinstance(spec, dict | list):
        return spec
    if isinstance(spec, list):
        return [_with_titles(part, size) for part in spec]
    return {
        name: _worded(part, size) if name in ("title", "description") else _with_titles(part, size)
        for name, part in spec.items()
    }


def _worded(title: Any, size: SizeUnit) -> Any:
    """A title: a text, or texts with how they look."""
    if isinstance(title, list):
        return [_worded(part, size) for part in title]
    if isinstance(title, dict):
        return {name: _worded(part, size) for name, part in title.items()}
    return size.worded(title) if isinstance(title, str) else title


def nothing_to_draw(what: str, reason: str) -> Figure:
    """A chart that says why it is empty. what: what would have been drawn; reason: a clause without a stop."""
    title, sentence = f"{what}: nothing to draw", f"Nothing to draw: {reason}."
    chart = (
        chart_of("reason")
        .mark_text(fontSize=12, color=FAINT, lineBreak="\n", baseline="middle")
        .encode(text="text:N")
        .properties(width=680, height=70, title=alt.TitleParams(title), description=sentence)
    )
    datasets = {"reason": [{"text": "\n".join(wrapped(sentence, 90))}]}
    return Figure(chart, datasets, title, "", sentence, f"{what}. {sentence}", reason)


def one_for_all(table: pl.DataFrame, stratum_by: str) -> bool:
    """Whether all lives are of one stratum, so that a chart by strata would be that of the whole once more.

    table: stratum_by, stratum, n; other rows of a stratum have the same n.
    """
    known = table.filter(pl.col("n") > 0).select("stratum_by", "stratum", "n").unique(maintain_order=True)
    mine, whole = (known.filter(pl.col("stratum_by") == kind)["n"].to_list() for kind in (stratum_by, "all"))
    return stratum_by != "all" and len(mine) == 1 and mine == whole


class _Chart(alt.Chart):
    """One that is put together in a third of the time.

    Altair copies every part of a chart, each with some hundred options that are not set, at each step; and it goes
    through all its classes for the one that a shorthand, a value or a datum stands for. Parts are never edited here.
    """

    def __deepcopy__(self, memo: object) -> "_Chart":
        return self.copy(deep=False)

    def encode(self, *channels: object, **named: object) -> "_Chart":
        return super().encode(*channels, **{name: _channel(name, given) for name, given in named.items()})


def _channel(name: str, given: object) -> object:
    """What Altair makes of `x="field:Q"`, `x=alt.value(0)` or `x=alt.datum(0)`."""
    channel = name[0].upper() + name[1:]
    if isinstance(given, str):
        return getattr(alt, channel)(given)
    if isinstance(given, dict):
        kind = next((kind for kind in ("Value", "Datum") if kind.lower() in given), "")
        return getattr(alt, channel + kind)(**given)
    return given


def chart_of(dataset: str) -> alt.Chart:
    """An unmarked chart of the rows that `Figure.datasets` holds under that name."""
    return _Chart(alt.NamedData(name=dataset))


def fitted(chart: alt.TopLevelMixin, study: Study, height: int) -> alt.TopLevelMixin:
    """A chart of one view, or of layers, as wide with its axes as the page has room for; on a phone lower too."""
    return chart.properties(
        width=study.width,
        height=round(LOWER * height) if study.narrow else height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    )


def _drawn(row: Mapping) -> dict:
    """Floats to 6 significant digits, so that pages stay small; integers as they are."""
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}

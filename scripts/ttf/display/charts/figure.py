"""A chart with its title and texts, and the shared parts of charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl
from altair.utils.schemapi import disable_debug_mode

from ttf.display.charts.text import wrap_lines
from ttf.display.charts.theme import FAINT, NARROW, WIDE, time_to_failure
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.engine.words import plural_noun

alt.theme.register("time_to_failure", enable=True)(time_to_failure)
# Otherwise Altair checks each part of a chart as it is built. The tests check whole charts (`Figure.spec`).
disable_debug_mode()

TITLE_CHARACTERS = 84
SUBTITLE_CHARACTERS = 104
# Height of a drawing for a phone, relative to that for a wide screen.
NARROW_HEIGHT = 0.72


@dataclass(frozen=True)
class Study:
    """Words of a trace for its charts.

    unit: name of a job, in the singular. synthetic: whether the trace is simulated. narrow: whether the chart is for a
    phone. subject: name of a duration's subject; default: the unit. size: unit of the sizes of jobs.
    """

    unit: str = "job"
    synthetic: bool = False
    narrow: bool = False
    subject: str = ""
    size: SizeUnit = GPU

    def __post_init__(self) -> None:
        object.__setattr__(self, "subject", self.subject or self.unit)

    @property
    def width(self) -> int:
        """Return the width of the chart with its axes, in px."""
        return NARROW if self.narrow else WIDE

    @property
    def units(self) -> str:
        """Plural name of the jobs."""
        return plural_noun(self.unit)

    @property
    def durations(self) -> str:
        """Plural name of the subjects of durations."""
        return plural_noun(self.subject)


@dataclass(frozen=True)
class Figure:
    """A chart, its title (quantity), subtitle (method and interval), caption (n) and alternative text.

    datasets: rows of the chart, by dataset name. empty: why there is nothing to draw, or None.
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
        """Return the complete Vega-Lite specification, with its data.

        The data are added here, because Altair copies and checks the data of a chart value by value. Validating the
        chart takes a third of the time of drawing it, so only the tests do.
        """
        return _convert_title_units(self.chart.to_dict(validate=validate), self.size) | {"datasets": self.datasets}


def make_figure(
    chart: alt.TopLevelMixin,
    datasets: Mapping[str, Sequence[Mapping]],
    study: Study,
    *,
    title: str,
    subtitle: str,
    caption: str,
    alt_text: str,
) -> Figure:
    """Return the chart under its title. Trace text in words must be a label (`ttf.display.charts.text`)."""
    title, subtitle, caption, alt_text = map(study.size.worded, (title, subtitle, caption, alt_text))
    lines = wrap_lines(subtitle, SUBTITLE_CHARACTERS)
    if study.synthetic:
        lines.append("Synthetic sample: no finding about a real cluster.")
    heading = alt.TitleParams(text=wrap_lines(title, TITLE_CHARACTERS), subtitle=lines)
    rounded = {name: [_round_floats(row) for row in rows] for name, rows in datasets.items()}
    chart = chart.properties(title=heading, description=alt_text)
    return Figure(chart, rounded, title, subtitle, caption, alt_text, size=study.size)


def _convert_title_units(spec: Any, size: SizeUnit, is_title: bool = False) -> Any:
    """Return the specification with its titles and descriptions in a size unit. is_title: `spec` is part of one."""
    if size == GPU:
        return spec
    if isinstance(spec, dict):
        titles = ("title", "description")
        return {name: _convert_title_units(part, size, is_title or name in titles) for name, part in spec.items()}
    if isinstance(spec, list):
        return [_convert_title_units(part, size, is_title) for part in spec]
    return size.worded(spec) if is_title and isinstance(spec, str) else spec


def empty_figure(subject: str, reason: str) -> Figure:
    """Return a chart that explains why it is empty. subject: missing chart; reason: clause without a full stop."""
    title, sentence = f"{subject}: nothing to draw", f"Nothing to draw: {reason}."
    chart = (
        make_chart("reason")
        .mark_text(fontSize=12, color=FAINT, lineBreak="\n", baseline="middle")
        .encode(text="text:N")
        .properties(width=680, height=70, title=alt.TitleParams(title), description=sentence)
    )
    datasets = {"reason": [{"text": "\n".join(wrap_lines(sentence, 90))}]}
    return Figure(chart, datasets, title, "", sentence, f"{subject}. {sentence}", reason)


def has_single_stratum(table: pl.DataFrame, stratum_by: str) -> bool:
    """Return whether all durations are of one stratum, so that a chart by strata would repeat that of the whole.

    table: stratum_by, stratum, n; rows of a stratum have the same n.
    """
    counts = table.filter(pl.col("n") > 0).select("stratum_by", "stratum", "n").unique(maintain_order=True)
    part, whole = (counts.filter(pl.col("stratum_by") == kind)["n"].to_list() for kind in (stratum_by, "all"))
    return stratum_by != "all" and len(part) == 1 and part == whole


class _Chart(alt.Chart):
    """A chart that is built in a third of the time.

    At each step Altair copies every part of a chart, each with a hundred unset options. It also searches all its
    classes for the one that a shorthand, a value or a datum stands for. Parts are never edited here.
    """

    def __deepcopy__(self, memo: object) -> "_Chart":
        return self.copy(deep=False)

    def encode(self, *channels: object, **options: object) -> "_Chart":
        return super().encode(*channels, **{name: _channel(name, value) for name, value in options.items()})


def _channel(name: str, value: Any) -> Any:  # the name decides the type
    """Return the Altair channel of `x="field:Q"`, `x=alt.value(0)` or `x=alt.datum(0)`."""
    channel = name[0].upper() + name[1:]
    if isinstance(value, str):
        return getattr(alt, channel)(value)
    if isinstance(value, dict):
        kind = next((kind for kind in ("Value", "Datum") if kind.lower() in value), "")
        return getattr(alt, channel + kind)(**value)
    return value


def make_chart(dataset: str) -> alt.Chart:
    """Return an unmarked chart of the dataset with this name in `Figure.datasets`."""
    return _Chart(alt.NamedData(name=dataset))


def fit_width(chart: alt.TopLevelMixin, study: Study, height: int) -> alt.TopLevelMixin:
    """Return a chart of one view, or of layers, with the page's width including axes; lower on a phone."""
    return chart.properties(
        width=study.width,
        height=round(NARROW_HEIGHT * height) if study.narrow else height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    )


def _round_floats(row: Mapping) -> dict:
    return {name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in row.items()}

"""What charts of several traces are made of: a row for each trace, a panel below the other, one axis."""

from collections.abc import Callable, Mapping, Sequence

import altair as alt
import polars as pl

from ttf.analyses.compare_traces.labels import OF_THE_WHOLE, reasons, trace_labels
from ttf.charts.axes import log_scale, on_log_time, time_axis, time_domain
from ttf.charts.encodings import side_notes, tips
from ttf.charts.figure import Figure, Study, chart_of, figure
from ttf.charts.text import count, listed
from ttf.charts.theme import FAINT

MOST_TRACES = 8
LABEL_WIDTH = 250
PANEL_WIDTH = 330
# base chart of a panel's rows, whether it is the last panel -> its marks
Layers = Callable[[alt.Chart, bool], alt.LayerChart]
# A fixed expression: made-up traces are grey.
_SYNTHETIC = "datum.synthetic"


class Traces:
    """The traces of a table that have something to draw, at most MOST_TRACES, with their labels."""

    def __init__(self, table: pl.DataFrame, known: pl.DataFrame) -> None:
        self.names = trace_labels(table.select("trace", "synthetic").iter_rows())
        traces = list(dict.fromkeys(known["trace"]))
        self.shown = traces[:MOST_TRACES]
        self.left_out = len(traces) - len(self.shown)
        self.made_up = [
            name
            for name, synthetic in dict(table.select("trace", "synthetic").iter_rows()).items()
            if synthetic and name in self.shown
        ]
        self._reasons = reasons(table)
        self._any = table.height > 0

    def rows(self, table: pl.DataFrame) -> list[dict]:
        return [row for row in table.iter_rows(named=True) if row["trace"] in self.shown]

    def labels(self) -> list[str]:
        return [self.names[trace] for trace in self.shown]

    def nothing(self, what: str) -> str:
        return f"no trace of the study has {what}" if self._any else "no trace of the study has jobs"

    def caption(self) -> str:
        """What is not drawn, and why: blanks of whole traces and of outcomes that a format does not have."""
        text = ""
        absent: dict[str, list[str]] = {}
        for trace, reason in self._reasons:
            if trace not in self.shown or reason.startswith(OF_THE_WHOLE):
                absent.setdefault(reason, []).append(self.names[trace])
        for reason, names in absent.items():
            # One clause for all the traces with the same reason, as many as can be read.
            shown = (
                names
                if len(names) <= MOST_TRACES
                else [*names[: MOST_TRACES - 1], f"{len(names) - MOST_TRACES + 1} more"]
            )
            text += f" {listed(shown)}: {reason}."
        if self.left_out:
            text += f" The first {MOST_TRACES} traces of the study; {count(self.left_out, 'other')} in the table only."
        return text


def figure_of(
    study: Study,
    chart: alt.TopLevelMixin,
    datasets: Mapping[str, Sequence[Mapping]],
    drawn: Traces,
    *,
    title: str,
    subtitle: str,
    caption: str,
    alt_text: str,
) -> Figure:
    """`figure` with what every comparison says: which traces are made up, which are not drawn and why."""
    if drawn.made_up:
        made_up = listed([drawn.names[trace].removesuffix(" (synthetic)") for trace in drawn.made_up])
        are = "is" if len(drawn.made_up) == 1 else "are"
        subtitle += f" {made_up} {are} synthetic: no finding about a real cluster."
    return figure(
        chart,
        datasets,
        study,
        title=title,
        subtitle=subtitle,
        caption=caption + drawn.caption(),
        alt_text=f"{alt_text}. {title}.",
    )


def span(drawn: Traces, rows: Sequence[dict], column: str, worded: Callable[[float], str], of: str = "") -> str:
    """`3 % of jobs in a`, or `3 % of jobs in a to 9 % in b`: from the lowest to the highest, with their traces."""
    low, high = min(rows, key=lambda row: row[column]), max(rows, key=lambda row: row[column])
    first = f"{worded(low[column])}{of} in {drawn.names[low['trace']]}"
    if len(rows) == 1:
        return first
    if worded(low[column]) == worded(high[column]):
        return f"{worded(low[column])}{of} in each trace"
    return f"{first} to {worded(high[column])} in {drawn.names[high['trace']]}"


def quantiles(row: dict, prefix: str, name: str, panel: str) -> dict:
    """A row of a distribution; without a known time only its note."""
    one = {"panel": panel, "trace": name, "synthetic": row["synthetic"], "n": row["n"], "note": f"n = {row['n']:,}"}
    if not row["n"]:
        return one | {"note": "no time known"}
    times = {"q05": "p05", "q25": "p25", "q50": "median", "q75": "p75", "q95": "p95"}
    for short, long in times.items():
        seconds = row[f"{prefix}_{long}_s"]
        one |= {short: on_log_time(seconds), f"{short}_s": seconds}
    return one


def ranges(
    rows: list[dict], panels: list[str], drawn: Traces, colour: alt.SchemaBase, axis_title: str, what: str
) -> tuple[alt.VConcatChart, dict[str, list[Mapping]]]:
    """Panels of medians, middle halves and middle nine tenths on a logarithmic time axis."""
    ends = [row[name] for row in rows for name in ("q05", "q95") if name in row]
    scale = log_scale(time_domain(ends, 1.2))
    tooltip = [*tips("trace", panel="jobs"), *tips("n", form=",")]
    tooltip += tips(form=",", **{f"q{q}_s": f"{what}, {int(q)} % at most (s)" for q in ("05", "25", "50", "75", "95")})

    def layers(base: alt.Chart, last: bool) -> alt.LayerChart:
        axis = time_axis(axis_title if last else None, labels=last, ticks=last)
        known = base.transform_filter("isValid(datum.q50)").encode(color=colour, tooltip=tooltip)

        def at(field: str) -> alt.X:
            return alt.X(f"{field}:Q", scale=scale, axis=axis)

        return (
            known.mark_rule(strokeWidth=1.5).encode(x=at("q05"), x2="q95:Q")
            + known.mark_rule(strokeWidth=5, opacity=0.5).encode(x=at("q25"), x2="q75:Q")
            + known.mark_point(filled=True, size=55, opacity=1).encode(x=at("q50"))
            + notes(base)
        )

    return panels_of(rows, panels, drawn.labels(), layers)


def rows_of(dataset: str, order: list[str]) -> alt.Chart:
    return chart_of(dataset).encode(y=alt.Y("trace:N", title=None, sort=order, axis=trace_axis()))


def trace_axis(lines: bool = False) -> alt.Axis:
    options = {"labelExpr": "split(datum.label, '\\n')", "labelLineHeight": 13, "labelOffset": -6} if lines else {}
    return alt.Axis(labelLimit=LABEL_WIDTH, labelOverlap=False, ticks=False, **options)


def one_colour(colour: str) -> alt.SchemaBase:
    """One colour for all traces, grey for made-up ones."""
    return alt.condition(_SYNTHETIC, alt.value(FAINT), alt.value(colour))


def notes(base: alt.Chart) -> alt.Chart:
    """What stands behind each row, at the right of the panel."""
    return side_notes(base, PANEL_WIDTH + 8, 10.5)


def panels_of(
    rows: Sequence[Mapping], panels: Sequence[str], order: list[str], layers: Layers
) -> tuple[alt.VConcatChart, dict[str, list[Mapping]]]:
    """A panel below the other, each with its own traces only, and their rows by dataset.

    layers(base, last) draws on the rows of one panel; the panels share one axis, below the last. They are no facets:
    Vega-Lite can not be sure of the size of facets with rows of their own, and says so in the reader's console.
    """
    charts, datasets = [], {}
    for number, panel in enumerate(panels):
        name = f"panel{number}"
        datasets[name] = [row for row in rows if row["panel"] == panel]
        drawn = layers(rows_of(name, order), panel == panels[-1])
        heading = alt.TitleParams(panel, fontSize=12, anchor="start", frame="group", offset=5)
        charts.append(drawn.properties(width=PANEL_WIDTH, height=alt.Step(18), title=heading))
    # Flush, so that the panels stand exactly below each other however long the names are; their titles need the space.
    return alt.vconcat(*charts, bounds="flush", spacing=32), datasets

"""Building blocks of charts that compare traces: a row per trace, panels below each other, one axis."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.comparison.compare_traces.trace_labels import TRACE_REASONS, list_reasons, trace_labels
from ttf.display.charts.axes import log_scale, log_time_position, time_axis, time_domain
from ttf.display.charts.encodings import pick_columns, side_notes, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.theme import FAINT
from ttf.engine.words import capitalise, join_list, plural

MOST_TRACES = 8
LABEL_WIDTH = 230
PANEL_WIDTH = 330
_PERCENTS = ("25", "50", "75", "95")
# (base chart of a panel, whether it is the last panel) -> marks
Layers = Callable[[alt.Chart, bool], alt.LayerChart | alt.FacetChart]


class Traces:
    """At most MOST_TRACES traces of a table that have something to draw, with their labels.

    has_data: condition for such rows; rows: all rows of these traces; synthetic: by trace.
    """

    def __init__(self, table: pl.DataFrame, study: Study, has_data: pl.Expr) -> None:
        self.table, self._study = table, study
        self.synthetic = dict(table.select("trace", "synthetic").iter_rows())
        self.names = trace_labels(self.synthetic.items())
        traces = list(dict.fromkeys(table.filter(has_data)["trace"]))
        self.shown = traces[:MOST_TRACES]
        self._n_omitted = len(traces) - len(self.shown)
        self.rows = [row for row in table.iter_rows(named=True) if row["trace"] in self.shown]

    def labels(self) -> list[str]:
        return [self.names[trace] for trace in self.shown]

    def empty_figure(self, title: str, missing: str) -> Figure:
        return empty_figure(title, f"no trace of the study has {missing if self.table.height else 'jobs'}")

    def figure(
        self, chart: alt.TopLevelMixin, datasets: Mapping, title: str, subtitle: str, caption: str, alt_text: str
    ) -> Figure:
        caption += self._omission_note()
        return make_figure(
            chart, datasets, self._study, title=title, subtitle=subtitle, caption=caption, alt_text=alt_text
        )

    def _omission_note(self) -> str:
        """Return which traces are not drawn and why, including outcomes that a format does not have."""
        text = ""
        traces_by_reason: dict[str, list[str]] = {}
        for trace, reason in list_reasons(self.table):
            if trace not in self.shown or reason.startswith(TRACE_REASONS):
                traces_by_reason.setdefault(reason, []).append(self.names[trace])
        for reason, names in traces_by_reason.items():
            # One clause for all traces with the same reason; a long list is cut.
            if len(names) > MOST_TRACES:
                names = [*names[: MOST_TRACES - 1], f"{len(names) - MOST_TRACES + 1} more"]
            text += f" {join_list(names)}: {reason}."
        if self._n_omitted:
            text += (
                f" The first {MOST_TRACES} traces of the study; {plural(self._n_omitted, 'other')} in the table only."
            )
        return text


def quantile_row(row: dict, name: str, panel: str) -> dict:
    """Return the chart row of a distribution; only a note if no time is known."""
    chart_row: dict[str, object] = {"panel": panel, "trace": name}
    chart_row["note"] = f"n = {row['n']:,}" if row["n"] else "no time known"
    for percent in _PERCENTS if row["n"] else ():
        time_s = row[f"p{percent}_s"]
        chart_row |= {f"q{percent}_s": time_s, f"q{percent}": log_time_position(time_s)}
    return chart_row | pick_columns(row, "synthetic", "n")


def draw_ranges(
    rows: list[dict], panels: list[str], traces: Traces, colour: alt.Color, quantity: str
) -> tuple[alt.VConcatChart, dict[str, list[Mapping]]]:
    """Draw medians, middle halves and 95th percentiles on a logarithmic time axis."""
    bounds = [row[name] for row in rows for name in ("q25", "q95") if name in row]
    scale = log_scale(time_domain(bounds, 1.2))
    tooltip = [*tooltips("trace", panel="jobs"), *tooltips("n", form=",")]
    tooltip += tooltips(form=",", **{f"q{q}_s": f"{quantity}, {int(q)}% at most (s)" for q in _PERCENTS})

    def draw_panel(base: alt.Chart, is_last: bool) -> alt.LayerChart:
        axis = time_axis(f"{capitalise(quantity)} (logarithmic)" if is_last else None, labels=is_last, ticks=is_last)
        marks = base.transform_filter("isValid(datum.q50)").encode(color=colour, tooltip=tooltip)
        x_axis = partial(alt.X, scale=scale, axis=axis)
        return (
            marks.mark_rule(strokeWidth=1.5).encode(x=x_axis("q25:Q"), x2="q95:Q")
            + marks.mark_rule(strokeWidth=5, opacity=0.5).encode(x=x_axis("q25:Q"), x2="q75:Q")
            + marks.mark_point(filled=True, size=55, opacity=1).encode(x=x_axis("q50:Q"))
            + draw_notes(base)
        )

    return draw_panels(rows, panels, traces.labels(), draw_panel)


def trace_colour(colour: str) -> Mapping:
    return alt.condition("datum.synthetic", alt.value(FAINT), alt.value(colour))


def draw_notes(base: alt.Chart) -> alt.Chart:
    return side_notes(base, PANEL_WIDTH + 8)


def draw_panels(
    rows: Sequence[Mapping], panels: Sequence[str], order: list[str], draw_panel: Layers
) -> tuple[alt.VConcatChart, dict[str, list[Mapping]]]:
    """Draw panels below each other, each with its own traces only; return the chart and the rows by dataset.

    draw_panel(base, is_last) draws the rows of one panel; all panels share the axis below the last. They are not
    facets, because Vega-Lite cannot size facets with rows of their own, and warns in the reader's console.
    """
    charts, datasets = [], {}
    for number, panel in enumerate(panels):
        name = f"panel{number}"
        datasets[name] = [row for row in rows if row["panel"] == panel]
        axis = alt.Axis(labelLimit=LABEL_WIDTH, labelOverlap=False, ticks=False)
        base = make_chart(name).encode(y=alt.Y("trace:N", title=None, sort=order, axis=axis))
        panel_chart = draw_panel(base, panel == panels[-1])
        heading = alt.TitleParams(panel, fontSize=12, anchor="start", frame="group", offset=5)
        charts.append(panel_chart.properties(width=PANEL_WIDTH, height=alt.Step(18), title=heading))
    # Flush, so that the panels are aligned whatever the length of the names; the spacing is for their titles.
    return alt.vconcat(*charts, bounds="flush", spacing=32), datasets

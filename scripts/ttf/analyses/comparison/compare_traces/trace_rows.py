"""What charts of several traces are made of: a row for each trace, a panel below the other, one axis."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.comparison.compare_traces.trace_labels import OF_THE_WHOLE, reasons, trace_labels
from ttf.display.charts.axes import log_scale, on_log_time, time_axis, time_domain
from ttf.display.charts.encodings import picked, side_notes, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.display.charts.theme import FAINT
from ttf.engine.words import capital, listed, plural

MOST_TRACES = 8
LABEL_WIDTH = 230
PANEL_WIDTH = 330
# base chart of a panel's rows, whether it is the last panel -> its marks
Layers = Callable[[alt.Chart, bool], alt.LayerChart]


class Traces:
    """The traces of a table that have something to draw, at most MOST_TRACES, with their labels.

    known: which rows have. rows: those of these traces. synthetic: whether a trace is made up.
    """

    def __init__(self, table: pl.DataFrame, study: Study, known: pl.Expr) -> None:
        self.table, self._study = table, study
        self.synthetic = dict(table.select("trace", "synthetic").iter_rows())
        self.names = trace_labels(self.synthetic.items())
        traces = list(dict.fromkeys(table.filter(known)["trace"]))
        self.shown = traces[:MOST_TRACES]
        self._left_out = len(traces) - len(self.shown)
        self.rows = [row for row in table.iter_rows(named=True) if row["trace"] in self.shown]

    def labels(self) -> list[str]:
        return [self.names[trace] for trace in self.shown]

    def nothing(self, what: str, lacking: str) -> Figure:
        return nothing_to_draw(what, f"no trace of the study has {lacking if self.table.height else 'jobs'}")

    def figure(
        self, chart: alt.TopLevelMixin, datasets: Mapping, title: str, subtitle: str, caption: str, alt_text: str
    ) -> Figure:
        """`figure` with what every comparison says: which traces are not drawn and why."""
        caption += self._not_drawn()
        return figure(chart, datasets, self._study, title=title, subtitle=subtitle, caption=caption, alt_text=alt_text)

    def _not_drawn(self) -> str:
        """What is not drawn, and why: blanks of whole traces and of outcomes that a format does not have."""
        text = ""
        absent: dict[str, list[str]] = {}
        for trace, reason in reasons(self.table):
            if trace not in self.shown or reason.startswith(OF_THE_WHOLE):
                absent.setdefault(reason, []).append(self.names[trace])
        for reason, names in absent.items():
            # One clause for all the traces with the same reason, as many as can be read.
            if len(names) > MOST_TRACES:
                names = [*names[: MOST_TRACES - 1], f"{len(names) - MOST_TRACES + 1} more"]
            text += f" {listed(names)}: {reason}."
        if self._left_out:
            text += (
                f" The first {MOST_TRACES} traces of the study; {plural(self._left_out, 'other')} in the table only."
            )
        return text


def quantiles(row: dict, prefix: str, name: str, panel: str) -> dict:
    """A row of a distribution; without a known time only its note."""
    one = {"panel": panel, "trace": name, "note": f"n = {row['n']:,}" if row["n"] else "no time known"}
    times = {"q05": "p05", "q25": "p25", "q50": "median", "q75": "p75", "q95": "p95"} if row["n"] else {}
    for short, long in times.items():
        one[f"{short}_s"] = row[f"{prefix}_{long}_s"]
        one[short] = on_log_time(one[f"{short}_s"])
    return one | picked(row, "synthetic", "n")


def ranges(
    rows: list[dict], panels: list[str], drawn: Traces, colour: alt.SchemaBase, what: str
) -> tuple[alt.VConcatChart, dict[str, list[Mapping]]]:
    """Panels of medians, middle halves and middle nine tenths on a logarithmic time axis."""
    ends = [row[name] for row in rows for name in ("q05", "q95") if name in row]
    scale = log_scale(time_domain(ends, 1.2))
    tooltip = [*tips("trace", panel="jobs"), *tips("n", form=",")]
    tooltip += tips(form=",", **{f"q{q}_s": f"{what}, {int(q)}% at most (s)" for q in ("05", "25", "50", "75", "95")})

    def layers(base: alt.Chart, last: bool) -> alt.LayerChart:
        axis = time_axis(f"{capital(what)} (logarithmic)" if last else None, labels=last, ticks=last)
        known = base.transform_filter("isValid(datum.q50)").encode(color=colour, tooltip=tooltip)
        at = partial(alt.X, scale=scale, axis=axis)
        return (
            known.mark_rule(strokeWidth=1.5).encode(x=at("q05:Q"), x2="q95:Q")
            + known.mark_rule(strokeWidth=5, opacity=0.5).encode(x=at("q25:Q"), x2="q75:Q")
            + known.mark_point(filled=True, size=55, opacity=1).encode(x=at("q50:Q"))
            + notes(base)
        )

    return panels_of(rows, panels, drawn.labels(), layers)


def one_colour(colour: str) -> alt.SchemaBase:
    """One colour for all traces, grey for made-up ones."""
    return alt.condition("datum.synthetic", alt.value(FAINT), alt.value(colour))


def notes(base: alt.Chart) -> alt.Chart:
    """What stands behind each row, at the right of the panel."""
    return side_notes(base, PANEL_WIDTH + 8)


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
        axis = alt.Axis(labelLimit=LABEL_WIDTH, labelOverlap=False, ticks=False)
        base = chart_of(name).encode(y=alt.Y("trace:N", title=None, sort=order, axis=axis))
        drawn = layers(base, panel == panels[-1])
        heading = alt.TitleParams(panel, fontSize=12, anchor="start", frame="group", offset=5)
        charts.append(drawn.properties(width=PANEL_WIDTH, height=alt.Step(18), title=heading))
    # Flush, so that the panels stand exactly below each other however long the names are; their titles need the space.
    return alt.vconcat(*charts, bounds="flush", spacing=32), datasets

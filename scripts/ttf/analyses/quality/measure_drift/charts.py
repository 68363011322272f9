"""Draw changes between windows, or between two traces, by the size of the effect."""

import math
import re

import altair as alt
import polars as pl

from ttf.display.charts.encodings import pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import FAILURE, FAINT, INK, SUCCESS, SUNKEN
from ttf.engine import words
from ttf.engine.words import duration, plural, share
from ttf.records.inputs import Inputs

MOST_MEASURES = 18
MOST_WINDOWS = 40
SIGNIFICANCE = 0.05
FALL, NEUTRAL, RISE = SUCCESS, SUNKEN, FAILURE
_WIDTH = 520

_COLUMN_LABELS = {
    "runtime_s": "run time",
    "queue_s": "queueing delay",
    "gpu_milli": "GPU request",
    "cpu_milli": "CPU request",
    "mem_mib": "memory request",
    "size": "size",
}


def drift_chart(inputs: Inputs, study: Study) -> Figure:
    """Draw the effects: a row for each share and median that changed most, a column for each window.

    Each window is compared with the one before it. A single comparison, such as that of two traces, is drawn as bars.
    """
    title, drift = "Drift", inputs["drift"]
    if not drift.height:
        return empty_figure(title, "there is one window only, or none is configured")
    steps = drift.filter((pl.col("against") != "all before") & pl.col("effect").is_not_null())
    steps = steps.filter(pl.col("statistic") != "distribution")
    if not steps.height:
        return empty_figure(title, f"no two windows have enough {study.units} to be compared")
    # The names of windows in time have a space, those of traces have none.
    trend = steps.filter(pl.col("window").str.contains(" ", literal=True))
    n_trace_comparisons = steps.height - trend.height if trend.height else 0
    steps = trend if trend.height else steps
    all_windows = steps["window"].unique().to_list()
    windows = sorted(all_windows, key=_window_order)[-MOST_WINDOWS:]
    steps = steps.filter(pl.col("window").is_in(windows)).with_columns(
        measure=pl.concat_str("statistic", "column", pl.col("value").fill_null(""), separator="\x1f")
    )
    # The table is sorted by the size of the effect, so a measure's first row is its largest.
    measures = steps["measure"].unique(maintain_order=True).head(MOST_MEASURES).to_list()
    # Their number is unknown: the table holds only the largest effects.
    is_cut = steps["measure"].n_unique() > len(measures)
    comparisons = [row for row in steps.iter_rows(named=True) if row["measure"] in measures]
    names = _label_measures(comparisons, measures)
    labels_by_name = make_labels([*windows, *(row["against"] for row in comparisons)])
    rows = [
        {"measure": names[row["measure"]]}
        | {side: labels_by_name[row[side]] for side in ("window", "against")}
        | {side: _format_value(row, row[side]) for side in ("before", "after")}
        | _significance_cells(row["p_adjusted_clustered"])
        | pick_columns(row, "effect", "n_before", "n_after")
        for row in comparisons
    ]
    order = [names[measure] for measure in measures]
    columns = [labels_by_name[window] for window in windows]
    is_single = len({(row["window"], row["against"]) for row in comparisons}) == 1
    chart = _draw_bars(rows, order, study) if is_single else _draw_cells(rows, order, columns, study)
    n_changed = sum(row["moved"] for row in rows)
    test = f"adjusted p < {SIGNIFICANCE}, {_format_cluster_note(drift)}"
    caption = f"n = {plural(len(rows), 'comparison')}, {n_changed} significant ({test})."
    if n_trace_comparisons:
        caption += " The comparison with the other trace is in drift.csv."
    if is_cut:
        caption += f" The {MOST_MEASURES} measures that moved most."
    if len(all_windows) > len(windows):
        caption += f" The last {MOST_WINDOWS} windows."
    comparison_label = f"{rows[0]['window']} against {rows[0]['against']}; strong"
    if not is_single:
        comparison_label = f"Each {'part' if windows[0].startswith('part ') else 'window'} against the one before; dots"
    return make_figure(
        chart,
        {"drift": rows},
        study,
        title="Change of shares and medians over time" if trend.height else "Shares and medians against another trace",
        subtitle=f"{comparison_label}: significant; Cohen's h of shares, Cliff's delta of medians",
        caption=caption,
        alt_text=f"Effect sizes of {plural(len(order), 'measure')}.",
    )


def _significance_cells(p: float | None) -> dict:
    return {"p": "no test" if p is None else f"{p:.2g}", "moved": p is not None and p < SIGNIFICANCE}


def _format_cluster_note(drift: pl.DataFrame) -> str:
    cluster_by = drift["cluster_by"].drop_nulls().first()
    return "not tested, as no clusters are known" if cluster_by is None else f"clustered by {cluster_by}"


def _window_order(window: str) -> tuple[int, str]:
    """Return a key that sorts `week 10` after `week 9`, `part 10: name` after `part 9: name`, and traces by name."""
    number = re.match(r"(?:day|week|month|part) ([0-9]+)\b", window)
    return (int(number[1]) if number else 0), window


def _label_measures(rows: list[dict], measures: list[str]) -> dict[str, str]:
    """Return the label of each measure. Values of a trace are untrusted."""
    texts = {}
    for row in rows:
        share_label = f"{row['value']} (share)" if row["column"] == "outcome" else f"on {row['value']} (share)"
        label_by_statistic = {"median": f"median {_COLUMN_LABELS.get(row['column'], row['column'])}"}
        label_by_statistic["failure_share"] = "failures among the ended"
        texts[row["measure"]] = label_by_statistic.get(row["statistic"], share_label)
    short_labels = make_labels([texts[measure] for measure in measures])
    return {measure: short_labels[texts[measure]] for measure in measures}


def _format_value(row: dict, value: float | None) -> str:
    if value is None:
        return "–"
    if row["statistic"] != "median":
        return share(value)
    if row["column"].endswith("_s"):
        return duration(value)
    if row["column"] == "mem_mib":
        return f"{words.number(value / 1024)} GiB"
    return f"{words.number(value / 10)}%" if row["column"].endswith("_milli") else words.number(value)


def _make_colour_scale(rows: list[dict]) -> alt.Scale:
    bound = float(f"{max(0.2, *(abs(row['effect']) for row in rows)):.2g}")
    return alt.Scale(domain=[-bound, 0, bound], range=[FALL, NEUTRAL, RISE], type="linear", clamp=True)


def _list_tooltips(study: Study) -> list[alt.Tooltip]:
    return [
        *tooltips("measure", "window", "against", "before", "after"),
        *tooltips("effect", form=".2f"),
        *tooltips(p="adjusted p"),
        *tooltips(form=",", n_before=f"{study.units} before", n_after=f"{study.units} after"),
    ]


def _draw_cells(rows: list[dict], order: list[str], windows: list[str], study: Study) -> alt.LayerChart:
    base = make_chart("drift").encode(
        x=alt.X("window:N", sort=windows, title=None, scale=alt.Scale(domain=windows), axis=alt.Axis(labelAngle=-60)),
        y=alt.Y("measure:N", sort=order, title=None, axis=alt.Axis(labelLimit=190)),
    )
    legend = alt.Legend(title="effect (fell, rose)", orient="bottom", format=".1f")
    cells = base.mark_rect(stroke=SUNKEN, strokeWidth=1).encode(
        color=alt.Color("effect:Q", scale=_make_colour_scale(rows), legend=legend), tooltip=_list_tooltips(study)
    )
    dots = base.transform_filter("datum.moved").mark_circle(size=14, color=INK, opacity=1)
    return (cells + dots).properties(width=_WIDTH, height=alt.Step(18))


def _draw_bars(rows: list[dict], order: list[str], study: Study) -> alt.LayerChart:
    bound = math.ceil(10 * max(abs(row["effect"]) for row in rows) + 0.5) / 10
    base = make_chart("drift").encode(y=alt.Y("measure:N", sort=order, title=None, axis=alt.Axis(labelLimit=190)))
    bars = base.mark_bar(height=10).encode(
        x=alt.X("effect:Q", title="Effect (fell, rose)", scale=alt.Scale(domain=[-bound, bound])),
        color=alt.condition("datum.effect < 0", alt.value(FALL), alt.value(RISE)),
        opacity=alt.condition("datum.moved", alt.value(1), alt.value(0.35)),
        tooltip=_list_tooltips(study),
    )
    zero = make_chart("drift").mark_rule(color=FAINT).encode(x=alt.datum(0))
    return (bars + zero).properties(width=_WIDTH, height=alt.Step(18))


CHARTS = {"drift": drift_chart}

"""What moved from window to window, or between two traces, by the size of the effect."""

import math
import re

import altair as alt
import polars as pl

from ttf.display.charts.encodings import picked, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.display.charts.text import labels
from ttf.display.charts.theme import FAILURE, FAINT, INK, SUCCESS, SUNKEN
from ttf.engine import words
from ttf.engine.words import duration, plural, share
from ttf.records.inputs import Inputs

MOST_MEASURES = 18
MOST_WINDOWS = 40
SIGNIFICANCE = 0.05
FELL, NOTHING, ROSE = SUCCESS, SUNKEN, FAILURE
_WIDTH = 520

_NUMBERS = {
    "runtime_s": "run time",
    "queue_s": "queueing delay",
    "gpu_milli": "GPU request",
    "cpu_milli": "CPU request",
    "mem_mib": "memory request",
    "size": "size",
}


def drift_chart(given: Inputs, study: Study) -> Figure:
    """The effects: a row for each share and median that moved most, a column for each window.

    Each window is drawn against the one before; a single comparison, as of two traces, as bars.
    """
    what, drift = "Drift", given["drift"]
    if not drift.height:
        return nothing_to_draw(what, "there is one window only, or none is configured")
    steps = drift.filter((pl.col("against") != "all before") & pl.col("effect").is_not_null())
    steps = steps.filter(pl.col("statistic") != "distribution")
    if not steps.height:
        return nothing_to_draw(what, f"no two windows have enough {study.units} to be compared")
    # The names of windows in time have a space, those of traces have none.
    timed = steps.filter(pl.col("window").str.contains(" ", literal=True))
    others = steps.height - timed.height if timed.height else 0
    steps = timed if timed.height else steps
    every = steps["window"].unique().to_list()
    windows = sorted(every, key=_place)[-MOST_WINDOWS:]
    steps = steps.filter(pl.col("window").is_in(windows)).with_columns(
        measure=pl.concat_str("statistic", "column", pl.col("value").fill_null(""), separator="\x1f")
    )
    # The table is sorted by the size of the effect, so a measure's first row is its largest.
    kept = steps["measure"].unique(maintain_order=True).head(MOST_MEASURES).to_list()
    # Not how many: the table holds the largest effects only.
    left_out = steps["measure"].n_unique() > len(kept)
    drawn = [row for row in steps.iter_rows(named=True) if row["measure"] in kept]
    names = _names(drawn, kept)
    shown = labels([*windows, *(row["against"] for row in drawn)])
    rows = [
        {"measure": names[row["measure"]]}
        | {side: shown[row[side]] for side in ("window", "against")}
        | {side: _worded(row, row[side]) for side in ("before", "after")}
        | _tested(row["p_adjusted_clustered"])
        | picked(row, "effect", "n_before", "n_after")
        for row in drawn
    ]
    order = [names[measure] for measure in kept]
    columns = [shown[window] for window in windows]
    one = len({(row["window"], row["against"]) for row in drawn}) == 1
    chart = _bars(rows, order, study) if one else _cells(rows, order, columns, study)
    moved = sum(row["moved"] for row in rows)
    caption = f"n = {plural(len(rows), 'comparison')}, {moved} significant (adjusted p < {SIGNIFICANCE}, {_by(drift)})."
    if others:
        caption += " The comparison with the other trace is in drift.csv."
    if left_out:
        caption += f" The {MOST_MEASURES} measures that moved most."
    if len(every) > len(windows):
        caption += f" The last {MOST_WINDOWS} windows."
    against = f"{rows[0]['window']} against {rows[0]['against']}; strong"
    if not one:
        against = f"Each {'part' if windows[0].startswith('part ') else 'window'} against the one before; dots"
    return figure(
        chart,
        {"drift": rows},
        study,
        title="Change of shares and medians over time" if timed.height else "Shares and medians against another trace",
        subtitle=f"{against}: significant; Cohen's h of shares, Cliff's delta of medians",
        caption=caption,
        alt_text=f"Effect sizes of {plural(len(order), 'measure')}.",
    )


def _tested(p: float | None) -> dict:
    return {"p": "no test" if p is None else f"{p:.2g}", "moved": p is not None and p < SIGNIFICANCE}


def _by(drift: pl.DataFrame) -> str:
    by = drift["cluster_by"].drop_nulls().first()
    return "not tested, as no clusters are known" if by is None else f"clustered by {by}"


def _place(window: str) -> tuple[int, str]:
    """`week 10` after `week 9`, `part 10: name` after `part 9: name`; names of traces by themselves."""
    number = re.match(r"(?:day|week|month|part) ([0-9]+)\b", window)
    return (int(number[1]) if number else 0), window


def _names(rows: list[dict], measures: list[str]) -> dict[str, str]:
    """What each measure is called; the values of a trace are untrusted."""
    texts = {}
    for row in rows:
        of_value = f"{row['value']} (share)" if row["column"] == "outcome" else f"on {row['value']} (share)"
        named = {"median": f"median {_NUMBERS.get(row['column'], row['column'])}"}
        named["failure_share"] = "failures among the ended"
        texts[row["measure"]] = named.get(row["statistic"], of_value)
    short = labels([texts[measure] for measure in measures])
    return {measure: short[texts[measure]] for measure in measures}


def _worded(row: dict, value: float | None) -> str:
    if value is None:
        return "–"
    if row["statistic"] != "median":
        return share(value)
    if row["column"].endswith("_s"):
        return duration(value)
    if row["column"] == "mem_mib":
        return f"{words.number(value / 1024)} GiB"
    return f"{words.number(value / 10)}%" if row["column"].endswith("_milli") else words.number(value)


def _scale(rows: list[dict]) -> alt.Scale:
    end = float(f"{max(max(abs(row['effect']) for row in rows), 0.2):.2g}")
    return alt.Scale(domain=[-end, 0, end], range=[FELL, NOTHING, ROSE], type="linear", clamp=True)


def _tooltip(study: Study) -> list[alt.Tooltip]:
    return [
        *tips("measure", "window", "against", "before", "after"),
        *tips("effect", form=".2f"),
        *tips(p="adjusted p"),
        *tips(form=",", n_before=f"{study.units} before", n_after=f"{study.units} after"),
    ]


def _cells(rows: list[dict], order: list[str], windows: list[str], study: Study) -> alt.LayerChart:
    base = chart_of("drift").encode(
        x=alt.X("window:N", sort=windows, title=None, scale=alt.Scale(domain=windows), axis=alt.Axis(labelAngle=-60)),
        y=alt.Y("measure:N", sort=order, title=None, axis=alt.Axis(labelLimit=190)),
    )
    legend = alt.Legend(title="effect (fell, rose)", orient="bottom", format=".1f")
    cells = base.mark_rect(stroke=SUNKEN, strokeWidth=1).encode(
        color=alt.Color("effect:Q", scale=_scale(rows), legend=legend), tooltip=_tooltip(study)
    )
    dots = base.transform_filter("datum.moved").mark_circle(size=14, color=INK, opacity=1)
    return (cells + dots).properties(width=_WIDTH, height=alt.Step(18))


def _bars(rows: list[dict], order: list[str], study: Study) -> alt.LayerChart:
    end = math.ceil(10 * max(abs(row["effect"]) for row in rows) + 0.5) / 10
    base = chart_of("drift").encode(y=alt.Y("measure:N", sort=order, title=None, axis=alt.Axis(labelLimit=190)))
    bars = base.mark_bar(height=10).encode(
        x=alt.X("effect:Q", title="Effect (fell, rose)", scale=alt.Scale(domain=[-end, end])),
        color=alt.condition("datum.effect < 0", alt.value(FELL), alt.value(ROSE)),
        opacity=alt.condition("datum.moved", alt.value(1), alt.value(0.35)),
        tooltip=_tooltip(study),
    )
    zero = chart_of("drift").mark_rule(color=FAINT).encode(x=alt.datum(0))
    return (bars + zero).properties(width=_WIDTH, height=alt.Step(18))


CHARTS = {"drift": drift_chart}

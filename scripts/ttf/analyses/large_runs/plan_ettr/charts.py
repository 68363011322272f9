"""Effective training time ratio of planned runs by size, and the failure rate that a run can bear."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_axis, log_domain, log_scale, percent_axis, time_axis
from ttf.display.charts.encodings import coloured, picked
from ttf.display.charts.figure import Figure, Study, chart_of, figure, fitted, nothing_to_draw
from ttf.display.charts.theme import FAILURE, FAINT, INK, ORDER_COLOURS, SUCCESS, SUNKEN
from ttf.engine.size_unit import NODE
from ttf.engine.words import duration, number, plural, share
from ttf.records.inputs import Inputs
from ttf.stats.large_runs.plans import ESTIMATE, MEASURED, habits_of, node_rate, rate_row

WHAT = "Effective training time ratio (ETTR) by job size"
SCHEDULED, WALL = "scheduled time only", "wall-clock time, with the queue"
COLOURS = {SCHEDULED: SUCCESS, WALL: FAILURE}
# A rate of the size's own that differs by more than chance: in the words of the report, p < 0.05.
SIGNIFICANT = 0.05
# A ratio under which no text has room.
LOW = 0.1
_TICKS_S = (60, 300, 900, 3600, 14_400, 57_600)
_WIDTH, _HEIGHT = 560, 270


def ettr_by_gpus(given: Inputs, study: Study) -> Figure:
    """The ratio against the size at the first checkpoint interval: of scheduled time, and with the waits.

    A line where the failure rate of a node may be projected, with a band at the ends of its interval; else points of
    the sizes that have a rate of their own.
    """
    ettr, assumed, rates = given["ettr"], given["ettr_assumptions"], given["node_failure_rate"]
    habit, rate = habits_of(assumed), rate_row(rates)
    target = assumed.filter(assumption="size of the run")["amount"].item()
    known = ettr.with_columns(given["ettr_outlook"]["scheduled_share"], size=pl.coalesce("gpus", "nodes"))
    known = known.filter(pl.col("ettr_renewal").is_not_null(), checkpoint_interval_s=habit.interval_s)
    # A run on a part of a node takes the node.
    known = known.filter(pl.col("size") >= (rate["node_gpus"] or 1))
    projected = known.filter(rate=ESTIMATE[0]).height > 1
    names = ESTIMATE if projected else MEASURED
    rows = _with_ends(known, names)
    if len({row["size"] for row in rows}) < 2:
        return nothing_to_draw(WHAT, ettr.filter(pl.col("ettr_renewal").is_null())["reason"].first() or "one size only")
    unit = NODE if known["gpus"].null_count() else study.size
    largest = rate["largest_run_nodes"] * (rate["node_gpus"] or 1)
    at_target = [row for row in rows if row["size"] == target]
    texts = [_label(row, names[0], target, unit, study, max(known["size"])) for row in at_target]
    own = _own_rate(given, known, target) if projected else None
    if own is not None:
        words = f"{share(own)} at its measured rate"
        text = {"size": target, "ratio": own, "text": words, "series": WALL, "dy": -14, "align": "right"}
        texts.append(text | {"key": f"ettr.{MEASURED[0]}.ettr"})
    texts += _names(rows, study) if projected else []
    shade = [{"low": largest, "high": max(known["size"])}] if largest < max(known["size"]) else []
    datasets = {"lines": rows, "target": at_target, "texts": texts, "shade": shade}
    datasets["note"] = _note(rows, largest) if shade else []
    habits = f"{duration(habit.productive_s)} of work, a checkpoint every {duration(habit.interval_s)}"
    band = "90% band" if projected else "rates measured by size, 90% CI"
    datasets["own"] = [] if own is None else [{"size": target, "ratio": own, "series": WALL}]
    return figure(
        fitted(_by_size(datasets, unit, projected), study, 230),
        datasets,
        study,
        title=WHAT.replace("job", "run") if known["gpus"].null_count() else WHAT,
        subtitle=f"{habits}; {band}",
        caption=f"n = {plural(rate['failures'], 'failure')}",
        alt_text=f"Two lines of the effective training time ratio against the number of {unit}s: of scheduled time, "
        "and of wall-clock time with the queue.",
    )


def _with_ends(known: pl.DataFrame, names: Sequence[str]) -> list[dict]:
    """A row for each size and line: the ratio at the rate, and at the ends of its interval as low and high."""
    rows = []
    for (size,), mine in known.group_by("size", maintain_order=True):
        at = {row["rate"]: row for row in mine.iter_rows(named=True)}
        for series, column in ((SCHEDULED, "scheduled_share"), (WALL, "ettr_renewal")):
            # The higher the failure rate, the lower the ratio.
            ratio, high, low = (at.get(name, {}).get(column) for name in names)
            if ratio is not None and series == WALL:
                low, high = (at[names[0]][f"ettr_ci_{end}"] for end in ("low", "high"))
            if ratio is not None:
                ends = {} if low is None or high is None else {"low": low, "high": high}
                rows.append({"size": size, "ratio": ratio, "series": series} | ends)
    return rows


def _own_rate(given: Inputs, known: pl.DataFrame, target: float) -> float | None:
    """The ratio at the rate of the runs of the target's size, where that differs significantly from the others'."""
    mine = known.filter(size=target, rate=MEASURED[0])
    bucket = given["mttf_by_gpus"].filter((pl.col("gpus_low") <= target) & (target <= pl.col("gpus_high")))
    differs = (bucket["p_clustered"].fill_null(1) < SIGNIFICANT).any() if "p_clustered" in bucket.columns else False
    return mine["ettr_renewal"].item() if differs and mine.height else None


def _label(row: Mapping, rate: str, target: float, unit: str, study: Study, last: int) -> dict:
    above = row["series"] == SCHEDULED
    words = share(row["ratio"]) + (f" at {plural(int(target), unit)}" if above and not study.narrow else "")
    align, dy = "right" if target * 2 >= last else "center", -12 if above else 14
    if not above and row["ratio"] < LOW:
        align, dy = "beside", 0
    key = f"ettr.{rate}.{'scheduled_share' if above else 'ettr'}"
    return picked(row, "size", "ratio", "series") | {"text": words, "dy": dy, "align": align, "key": key}


def _names(rows: list[dict], study: Study) -> list[dict]:
    """The name of each line: over its left end, or under it where the other line is near."""
    sizes = sorted({row["size"] for row in rows})
    upper, lower = ({row["size"]: row for row in rows if row["series"] == series} for series in COLOURS)
    # So far reaches a text from the left end.
    beside = [size for size in sizes if size <= sizes[0] * (sizes[-1] / sizes[0]) ** (0.5 if study.narrow else 0.4)]
    text = {"size": sizes[0], "align": "left"}
    named = [text | {"ratio": upper[sizes[0]]["ratio"], "text": SCHEDULED, "series": SCHEDULED, "dy": -11}]
    apart = min(upper[size]["ratio"] for size in beside) - lower[sizes[0]]["ratio"] > 0.15
    under = min(lower[size].get("low", lower[size]["ratio"]) for size in beside)
    place = lower[sizes[0]]["ratio"] if apart else max(under, LOW)
    wall = "with the queue" if study.narrow else WALL
    return [*named, text | {"ratio": place, "text": wall, "series": WALL, "dy": -12 if apart else 14}]


def _note(rows: list[dict], largest: int) -> list[dict]:
    """What the shaded sizes are, where the lines leave most room."""
    beyond = [row for row in rows if row["size"] >= largest]
    top, bottom = ([row["ratio"] for row in beyond if row["series"] == series] or [0] for series in COLOURS)
    gaps = ((0, min(bottom)), (max(bottom), min(top)), (max(top), 1))
    room, middle = max((high - low, (low + high) / 2) for low, high in gaps)
    note = "no job this large:\nprojection only"
    return [{"size": max(row["size"] for row in rows), "ratio": middle, "text": note}] if room > 0.15 else []


def _by_size(datasets: Mapping[str, list], unit: str, projected: bool) -> alt.LayerChart:
    sizes = sorted({row["size"] for row in datasets["lines"]})
    ticks = [size for size in sizes if size & (size - 1) == 0] or sizes
    axis = alt.Axis(values=ticks, format=",", title=f"{unit}s of the run", labelOverlap=True, grid=False)
    scale = alt.Scale(type="log", base=2, domain=[sizes[0], max(sizes[-1], 2 * sizes[0])], nice=False)
    x = alt.X("size:Q", scale=scale, axis=axis)
    y = alt.Y("ratio:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(values=[0, 0.25, 0.5, 0.75, 1]))
    # Lines have their names at them, points a legend.
    colour = coloured("series", COLOURS, **({} if projected else {"title": None, "orient": "top"}))
    of_low = alt.Y("low:Q", scale=alt.Scale(domain=[0, 1]))
    layers = []
    if datasets["shade"]:
        shade = chart_of("shade").encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
        layers.append(shade.mark_rect(color=SUNKEN))
    lines = chart_of("lines").encode(x=x, color=colour)
    if projected:
        band = lines.mark_area(opacity=0.18).transform_filter("isValid(datum.low)")
        layers += [band.encode(y=of_low, y2="high:Q"), lines.mark_line(strokeWidth=2).encode(y=y)]
    else:
        rules = lines.mark_rule(strokeWidth=1.5).transform_filter("isValid(datum.low)")
        points = lines.mark_point(filled=True, size=60, opacity=1).encode(y=y)
        layers += [rules.encode(y=of_low, y2="high:Q"), points]
    if datasets["target"] and projected:
        points = chart_of("target").mark_point(filled=True, size=70, opacity=1)
        layers.append(points.encode(x=x, y=y, color=colour))
    if datasets["own"]:
        points = chart_of("own").mark_point(filled=False, size=70, strokeWidth=2)
        layers.append(points.encode(x=x, y=y, color=colour))
    if datasets["note"]:
        note = chart_of("note").mark_text(align="right", dx=-4, color=FAINT, fontSize=12, lineBreak="\n")
        layers.append(note.encode(x=x, y=y, text="text:N"))
    for dy, align in sorted({(text["dy"], text["align"]) for text in datasets["texts"]}):
        of_place = f"datum.dy == {dy} && datum.align == '{align}'"
        # Beside: at the left of the point.
        side, dx = ("right", -10) if align == "beside" else (align, {"left": 6, "right": 8}.get(align, 0))
        text = chart_of("texts").mark_text(align=side, dx=dx, dy=dy, fontSize=12, fontWeight="bold", color=INK)
        layers.append(text.transform_filter(of_place).encode(x=x, y=y, text="text:N"))
    return alt.layer(*layers)


def contour_chart(given: Inputs, study: Study) -> Figure:
    """Of ettr_contour.csv the size of the run: a line for each ratio.

    Dashed: the rate of the trace, where it may be projected to that size.
    """
    contour, assumed = given["ettr_contour"], given["ettr_assumptions"]
    rate, habit = node_rate(given["node_failure_rate"], given["mttf_by_gpus"]), habits_of(assumed)
    size = int(assumed.filter(assumption="size of the run")["amount"].item())
    mine = contour.filter(pl.coalesce("gpus", "nodes") == size)
    known = mine.filter(pl.col("failures_per_1000_node_days").is_not_null())
    what = "Highest failure rate of a node that a run can bear"
    if not known.height:
        return nothing_to_draw(what, mine["reason"][0])
    unit = study.size if known["gpus"].count() else NODE
    levels = known["ettr"].unique().sort().to_list()
    names = [f"{level:.0%}" for level in levels]
    rows = [
        {"level": names[levels.index(row["ettr"])]}
        | picked(row, interval="checkpoint_interval_s", rate="failures_per_1000_node_days")
        for row in known.iter_rows(named=True)
    ]
    own = 1000 * rate.estimate if rate.estimate and not rate.why_not(known["nodes"][0]) else None
    y_domain = log_domain([row["rate"] for row in rows] + ([own] if own else []), 1.5, 1.5)
    axis = time_axis("Work between two checkpoints", _TICKS_S, grid=False)
    x = alt.X("interval:Q", scale=log_scale([50, 75_000]), axis=axis)
    y_scale = log_scale(y_domain)
    y = alt.Y("rate:Q", scale=y_scale, axis=log_axis(y_domain, "Failures per 1,000 node-days"))
    colours = dict(zip(names, ORDER_COLOURS, strict=False))
    colour = coloured("level", colours, ordered=True, title="ETTR", orient="right")
    layers = [chart_of("contours").mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)]
    datasets = {"contours": rows}
    said = ""
    if own:
        datasets["own"] = [{"rate": own, "interval": habit.interval_s}]
        base = chart_of("own").encode(y=alt.Y("rate:Q", scale=y_scale))
        layers.append(base.mark_rule(color=FAINT, strokeDash=[5, 4]))
        layers.append(base.mark_point(filled=True, color=INK, size=60, opacity=1).encode(x=x))
        said = f" Dashed: the rate of this trace, {number(own)}; dot: the planned checkpoint interval."
    return figure(
        alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT),
        datasets,
        study,
        title=what,
        subtitle=f"By ETTR to keep and checkpoint interval, {plural(size, unit)}; exact renewal model",
        caption=f"Model alone, not data of the trace.{said}",
        alt_text=f"Contour lines over two logarithmic axes: {what.lower()}, of {plural(size, unit)}.",
    )


CHARTS = {"ettr_by_gpus": ettr_by_gpus, "ettr_contour": contour_chart}

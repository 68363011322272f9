"""Whether the lives follow a model: a plot for each in which they would lie on its straight line."""

import math
from collections.abc import Callable

import altair as alt
import numpy as np
import polars as pl
from scipy.special import gammaincinv, ndtri

from ttf.analyses.judge_lifetimes.compute import CURVES
from ttf.charts.axes import TIME_TICKS_S, log_domain, log_scale, log_ticks, time_axis
from ttf.charts.encodings import coloured, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw, one_for_all
from ttf.charts.text import capital, count, in_words, labels, listed, significant
from ttf.charts.theme import ACCENT, CATEGORY_COLOURS, INK
from ttf.inputs import Inputs
from ttf.jobs import Frame

NAMES = {"exponential": "exponential", "weibull": "Weibull", "lognormal": "lognormal", "gamma": "gamma"}
MOST_STRATA = 4
MOST_POINTS = 60  # of one stratum in one plot
FEWEST_POINTS = 3
_WIDTH, _HEIGHT = 265, 190
# Of the axis of shares: a fixed expression, so no text of a trace becomes part of one.
_SHARES = (0.0001, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999)
_SHARE_LABEL = "format(100 * {shares}[indexof({places}, datum.value)], ',.4~f') + ' %'"


def probability_plots(curves: Frame, models: pl.DataFrame, stratum_by: str, study: Study) -> Figure:
    """The four plots of the strata with the most failures, from `survival_curves` and `lifetime_models`.

    The points are the Kaplan-Meier estimate at the middle of its steps. Exponential and Weibull: the cumulative hazard
    by time, both logarithmic (straight where it is a power of time, of slope 1 for the exponential). Lognormal: the
    share failed as a normal quantile by the log of time. Gamma, whose shape no paper straightens: the time of the
    points by the time at which the fitted gamma has the same share failed.
    """
    by = f" by {in_words(stratum_by)}" if stratum_by != "all" else ""
    what = f"Probability plots{by}"
    of_failure = models.filter(event="failure")
    mine = of_failure.filter(stratum_by=stratum_by)
    fitted = mine.filter(pl.col("converged"), model="exponential")
    if one_for_all(of_failure, stratum_by):
        return nothing_to_draw(what, f"all lives have one {in_words(stratum_by)}")
    steps = {}
    for stratum in fitted.sort("events", descending=True, maintain_order=True)["stratum"]:
        curve = curves.lazy().filter(event="failure", stratum_by=stratum_by, stratum=stratum)
        found = _steps(curve.select("time_s", "events", "survival").collect(engine="streaming"))
        if found["t"].size >= FEWEST_POINTS:
            steps[stratum] = found
        if len(steps) == MOST_STRATA:
            break
    if not steps:
        return nothing_to_draw(what, f"no stratum has failures at {FEWEST_POINTS} times")
    kept = [stratum for stratum in fitted["stratum"] if stratum in steps]
    fits = {(row["stratum"], row["model"]): row for row in mine.iter_rows(named=True) if row["converged"]}
    short = labels(kept)
    whole = [fits[stratum, "exponential"] for stratum in kept]
    legend = {row["stratum"]: f"{short[row['stratum']]} ({count(row['events'], 'failure')})" for row in whole}
    panels, datasets = {}, {}
    for model in NAMES:
        points, lines = [], []
        for stratum in kept:
            if (stratum, model) in fits:
                own_points, own_lines = _PLOTS[model](steps[stratum], fits[stratum, model])
                points += [{"s": legend[stratum]} | row for row in own_points]
                lines += [{"s": legend[stratum]} | row for row in own_lines]
        if points:
            datasets |= {f"{model}_points": points, f"{model}_lines": lines}
            panels[model] = _panel(model, points, list(legend.values()), stratum_by, _heading(model, kept, fits))
    n, events = (sum(row[name] for row in whole) for name in ("n", "events"))
    caption = (
        f"n = {count(n, 'life')}, {count(events, 'failure')}. Points: Kaplan-Meier estimate at the middle of its "
        f"steps, at most {MOST_POINTS} of a curve, evenly over the log of time. Lines: fits by censored maximum "
        "likelihood. Exponential and Weibull: cumulative hazard by time; lognormal: share failed on a normal scale; "
        "gamma: time seen by time under the model."
    )
    if more := fitted.height - len(kept):
        caption += f" The strata with the most failures; {more:,} more in lifetime_models.csv."
    title = _title(kept, short, fits, stratum_by, study)
    return figure(
        # Flush, so that the plots stand in line; their axes and titles need the space.
        alt.concat(*panels.values(), columns=2, spacing=80, bounds="flush"),
        datasets,
        study,
        title=title,
        subtitle=f"Failures of {study.units}{by}: where a model holds, the points lie on its straight line.",
        caption=caption,
        alt_text=f"{count(len(panels), 'plot')} of points about straight lines. {title}.",
    )


def _steps(curve: pl.DataFrame) -> dict[str, np.ndarray]:
    """t: times of events (s; 0 s stands at half a second, as in the fits); f: the share failed, mid-step."""
    survival = curve["survival"].to_numpy()
    before = np.concatenate(([1.0], survival[:-1]))
    hit = (curve["events"] > 0).to_numpy()
    time = curve["time_s"].to_numpy()[hit].astype(np.float64)
    time[time == 0] = 0.5
    failed = 1 - (before[hit] + survival[hit]) / 2
    if not time.size:
        return {"t": time, "f": failed}
    # The last event in each of so many equal parts of the log of time.
    logs = np.log(time)
    span = max(float(logs[-1] - logs[0]), 1e-9)
    part = np.minimum((MOST_POINTS * (logs - logs[0]) / span).astype(np.int64), MOST_POINTS - 1)
    last = np.flatnonzero(np.append(part[1:] != part[:-1], True))
    return {"t": time[last], "f": failed[last]}


Rows = tuple[list[dict], list[dict]]


def _on_hazard(steps: dict, slope: float, scale: float) -> Rows:
    return _plotted(steps, steps["t"], -np.log1p(-steps["f"]), lambda t: (t / scale) ** slope)


def _on_normal(steps: dict, fit: dict) -> Rows:
    return _plotted(steps, steps["t"], ndtri(steps["f"]), lambda t: (math.log(t) - fit["mu_log_s"]) / fit["sigma"])


def _on_gamma(steps: dict, fit: dict) -> Rows:
    expected = fit["scale_s"] * gammaincinv(fit["shape"], steps["f"])
    shown = expected >= 1e-3  # a time that short is no place on the axis
    steps = {name: values[shown] for name, values in steps.items()}
    return _plotted(steps, expected[shown], steps["t"], lambda t: t)


_PLOTS: dict[str, Callable[[dict, dict], Rows]] = {
    "exponential": lambda steps, fit: _on_hazard(steps, 1.0, fit["scale_s"]),
    "weibull": lambda steps, fit: _on_hazard(steps, fit["shape"], fit["scale_s"]),
    "lognormal": _on_normal,
    "gamma": _on_gamma,
}


def _plotted(steps: dict, x: np.ndarray, y: np.ndarray, line: Callable[[float], float]) -> Rows:
    """The points, and the ends of the model's line along them."""
    columns = zip(x.tolist(), y.tolist(), steps["t"].tolist(), steps["f"].tolist(), strict=True)
    ends = (x[0].item(), x[-1].item()) if x.size else ()
    return [{"x": x, "y": y, "t": t, "f": f} for x, y, t, f in columns], [{"x": end, "y": line(end)} for end in ends]


def _panel(model: str, points: list[dict], names: list[str], stratum_by: str, heading: str) -> alt.LayerChart:
    xs, ys = [row["x"] for row in points], [row["y"] for row in points]
    if stratum_by == "all":
        colour = alt.value(ACCENT)
    else:
        legend = {"title": capital(in_words(stratum_by)), "orient": "bottom", "columns": 2, "symbolType": "circle"}
        colour = coloured("s", dict(zip(names, CATEGORY_COLOURS, strict=False)), ordered=True, **legend)
    # Of the gamma every stratum has the same line.
    line_colour = alt.value(INK) if stratum_by == "all" or model == "gamma" else colour
    x_domain = log_domain(xs)
    time_title = "Time by the fitted gamma" if model == "gamma" else "Time"
    x = alt.X("x:Q", scale=log_scale(x_domain), axis=time_axis(time_title, _time_ticks(x_domain)))
    if model == "lognormal":
        room = 0.05 * (max(ys) - min(ys)) or 1
        low, high = min(ys) - room, max(ys) + room
        shares = [share for share in _SHARES if low <= float(ndtri(share)) <= high]
        places = [float(f"{ndtri(share):.6g}") for share in shares]
        label = _SHARE_LABEL.format(shares=shares, places=places)
        axis = alt.Axis(values=places, labelExpr=label, title="Share failed (normal scale)")
        y = alt.Y("y:Q", scale=alt.Scale(domain=[low, high], nice=False, zero=False), axis=axis)
    else:
        domain = log_domain(ys)
        hazard = {"format": ",.4~f", "labelOverlap": True, "title": "Cumulative hazard"}
        of_time = model == "gamma"
        axis = time_axis("Time seen", _time_ticks(domain)) if of_time else alt.Axis(values=log_ticks(domain), **hazard)
        y = alt.Y("y:Q", scale=log_scale(domain), axis=axis)
    lines = chart_of(f"{model}_lines").mark_line(strokeWidth=1.6, clip=True).encode(x=x, y=y, color=line_colour)
    dots = (
        chart_of(f"{model}_points")
        .mark_circle(size=22, opacity=0.75, clip=True)
        .encode(
            x=x,
            y=y,
            color=colour,
            tooltip=[*tips(s=in_words(stratum_by)), *tips(form=",.0f", t="time (s)"), *tips(form=".2%", f="failed")],
        )
    )
    title = alt.TitleParams(heading, fontSize=12, anchor="start", frame="group", offset=5)
    return (lines + dots).properties(width=_WIDTH, height=_HEIGHT, title=title)


def _time_ticks(domain: list[float]) -> list[float]:
    return [tick for tick in (0.01, 0.1, *TIME_TICKS_S, 8.64e9, 8.64e10) if domain[0] <= tick <= domain[1]]


def _heading(model: str, kept: list[str], fits: dict) -> str:
    name = capital(NAMES[model])
    if len(kept) > 1:
        return name
    lowest = min(fit["aic"] for (stratum, _), fit in fits.items() if stratum == kept[0])
    above = fits[kept[0], model]["aic"] - lowest
    return f"{name}: lowest AIC" if above == 0 else f"{name}: AIC {significant(above)} above"


def _title(kept: list[str], short: dict[str, str], fits: dict, stratum_by: str, study: Study) -> str:
    best = {
        stratum: next(name for model, name in NAMES.items() if fits.get((stratum, model), {"best": False})["best"])
        for stratum in kept
    }
    if len(set(best.values())) == 1:
        name = best[kept[0]]
        end = "" if stratum_by == "all" else f" for every {in_words(stratum_by)} drawn"
        if len(kept) == 1 and stratum_by != "all":
            end = f" with {short[kept[0]]}"
        return f"Of the four models the {name} fits the failures of {study.units} best{end}"
    each = listed([f"the {name} for {short[stratum]}" for stratum, name in best.items()])
    return f"What fits the failures of {study.units} best: {each}"


def _of(given: Inputs, stratum_by: str, study: Study) -> Figure:
    return probability_plots(given.scan("survival_curves", CURVES), given["lifetime_models"], stratum_by, study)


CHARTS = {
    "probability_plots": lambda given, study: _of(given, "all", study),
    "probability_plots_by_stratum": lambda given, study: _of(given, given.settings.stratum_by, study),
}

"""Whether the lives follow a model: a plot for each in which they would lie on its straight line."""

import math
from collections.abc import Callable

import altair as alt
import numpy as np
import polars as pl
from scipy.special import gammaincinv, ndtri

from ttf.analyses.judge_lifetimes.compute import CURVES
from ttf.charts.axes import TIME_TICKS_S, log_domain, log_scale, log_ticks, time_axis
from ttf.charts.encodings import tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import capital, count, significant
from ttf.charts.theme import FAILURE, INK
from ttf.jobs import Frame

NAMES = {"exponential": "exponential", "weibull": "Weibull", "lognormal": "lognormal", "gamma": "gamma"}
MOST_POINTS = 60  # of one plot
FEWEST_POINTS = 3
_WIDTH, _HEIGHT = 265, 190
# Of the axis of shares: a fixed expression, so no text of a trace becomes part of one.
_SHARES = (0.0001, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999)
_SHARE_LABEL = "format(100 * {shares}[indexof({places}, datum.value)], ',.4~f') + '%'"


def probability_plots(curves: Frame, models: pl.DataFrame, study: Study) -> Figure:
    """The four plots of all lives, from `survival_curves` and `lifetime_models`.

    The points are the Kaplan-Meier estimate at the middle of its steps. Exponential and Weibull: the cumulative hazard
    by time, both logarithmic (straight where it is a power of time, of slope 1 for the exponential). Lognormal: the
    share failed as a normal quantile by the log of time. Gamma, whose shape no paper straightens: the time of the
    points by the time at which the fitted gamma has the same share failed.
    """
    what = f"Failures of {study.units} against four models of their lifetimes"
    of_all = {"event": "failure", "stratum_by": "all"}
    curve = curves.lazy().filter(**of_all).select("time_s", "events", "survival").collect(engine="streaming")
    steps = _steps(curve)
    fits = {row["model"]: row for row in models.filter("converged", **of_all).iter_rows(named=True)}
    if "exponential" not in fits or steps["t"].size < FEWEST_POINTS:
        return nothing_to_draw(what, f"there are failures at fewer than {FEWEST_POINTS} times")
    lowest = min(fit["aic"] for fit in fits.values())
    panels, datasets = [], {}
    for model, fit in fits.items():
        points, lines = _PLOTS[model](steps, fit)
        if points:
            datasets |= {f"{model}_points": points, f"{model}_lines": lines}
            panels.append(_panel(model, points, _heading(model, fit["aic"] - lowest)))
    n, events = (fits["exponential"][name] for name in ("n", "events"))
    return figure(
        # Flush, so that the plots stand in line; their axes and titles need the space.
        alt.concat(*panels, columns=2, spacing=80, bounds="flush"),
        datasets,
        study,
        title=what,
        subtitle="Points: Kaplan–Meier estimate; lines: maximum likelihood; where a model holds they agree",
        caption=f"n = {count(n, study.unit)}, {count(events, 'failure')}.",
        alt_text=f"{what}: {count(len(panels), 'plot')} of points about straight lines.",
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


def _panel(model: str, points: list[dict], heading: str) -> alt.LayerChart:
    xs, ys = [row["x"] for row in points], [row["y"] for row in points]
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
    lines = chart_of(f"{model}_lines").mark_line(strokeWidth=1.6, clip=True, color=INK).encode(x=x, y=y)
    dots = (
        chart_of(f"{model}_points")
        .mark_circle(size=22, opacity=0.75, clip=True, color=FAILURE)
        .encode(x=x, y=y, tooltip=[*tips(form=",.0f", t="time (s)"), *tips(form=".2%", f="failed")])
    )
    title = alt.TitleParams(heading, fontSize=12, anchor="start", frame="group", offset=5)
    return (lines + dots).properties(width=_WIDTH, height=_HEIGHT, title=title)


def _time_ticks(domain: list[float]) -> list[float]:
    return [tick for tick in (0.01, 0.1, *TIME_TICKS_S, 8.64e9, 8.64e10) if domain[0] <= tick <= domain[1]]


def _heading(model: str, above: float) -> str:
    name = capital(NAMES[model])
    return f"{name}: lowest AIC" if above == 0 else f"{name}: AIC {significant(above)} above"


CHARTS = {
    "probability_plots": lambda given, study: probability_plots(
        given.scan("survival_curves", CURVES), given["lifetime_models"], study
    )
}

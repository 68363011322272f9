"""The planner: an interactive chart whose sliders say what to expect of a job run. It needs no server.

Vega evaluates the exact renewal form (ttf/stats/ettr.py) in expressions that are fixed here: no text of a trace becomes
part of one, only numbers do.
"""

import math

import altair as alt

from ttf.charts.axes import PERCENT_LABEL, percent_axis
from ttf.charts.figure import Figure, Study, chart_of, figure
from ttf.charts.text import capital, significant
from ttf.charts.theme import ACCENT, FAINT, INK
from ttf.inputs import Inputs
from ttf.stats.ettr import APPROXIMATION_LIMIT
from ttf.stats.plans import Habits, habits_of, node_rate, rate_row, size_of_the_run

BASES = {
    "state": "by the states that name infrastructure",
    "event": "by states and health events",
    "proxy": "a proxy: every failure counts, those of users too",
    "component": "of the machines themselves",
}
LARGEST_LOG2 = 17
# Of RSC-1 in the paper, for a trace that shows no rate of its own.
PUBLISHED_PER_1000 = 6.5
BEST = "#009E73"
_STEPS = 6
_PANEL, _HEIGHT, _TILE = 285, 230, 140
# From the left panel's right side to the right panel's left side, its axis between them.
_BETWEEN = 66
_MINUTES = (1, 5, 15, 60, 240, 1440)


def scheduled(rate: str, interval: str) -> str:
    """A Vega expression of expected_scheduled_s, of the rate (1 / s) and the interval (s) as expressions."""
    pieces = f"ceil(work_s / ({interval}) * (1 - 1e-12))"
    last = f"(work_s - ({pieces} - 1) * ({interval}) + write_s)"
    many = f"({pieces} > 1 ? ({pieces} - 1) * {_grown(rate, f'(({interval}) + write_s)')} : 0)"
    return f"({_grown(rate, 'start_s')} + exp(({rate}) * start_s) * ({many} + {_grown(rate, last)}))"


def ratio(rate: str, interval: str) -> str:
    """A Vega expression of ettr_renewal."""
    return f"(work_s / (queue_s + (1 + ({rate}) * queue_s) * {scheduled(rate, interval)}))"


def _grown(rate: str, time: str) -> str:
    """(e^(rate time) - 1) / rate; by its first terms where the difference would lose its digits."""
    load = f"(({rate}) * {time})"
    return f"({load} < 1e-5 ? {time} * (1 + {load} / 2 + {load} * {load} / 6) : (exp{load} - 1) / ({rate}))"


def first_guess(load: str) -> str:
    """A Vega expression of the best interval times the rate, to first order in the load, rate x write; too large."""
    return f"min(sqrt(2 * ({load})), 1)"


def better_guess(x: str, load: str) -> str:
    """A Vega expression of the next step of Newton's method from `x` on x - 1 + e^(-(x + load)).

    That is convex, so from above its root it comes down to it (see optimal_interval_s).
    """
    return f"{x} - ({x} - 1 + exp(-{x} - ({load}))) / (1 - exp(-{x} - ({load})))"


def planner(given: Inputs, study: Study) -> Figure:
    """The planner, set to the configured habits and to a failure rate.

    That of the trace, where it may be projected to a run of that size; else a published one, named as such.
    """
    rate = node_rate(given["node_failure_rate"], given["mttf_by_gpus"])
    habit, run_gpus = habits_of(given["ettr_assumptions"]), size_of_the_run(given["ettr_assumptions"])
    ((_, nodes),) = rate.sizes([run_gpus])
    why_not = rate.why_not(nodes)
    per_1000 = PUBLISHED_PER_1000 if why_not else 1000 * rate.estimate
    node_gpus = rate.node_gpus or 1
    in_nodes = rate.node_gpus is None
    unit = "nodes" if in_nodes else "GPUs"
    start = f"{significant(per_1000)} failures per 1000 node-days"
    if why_not:
        start += f", published for RSC-1 and not of this trace, from which it cannot be estimated: {why_not}"
    else:
        start += f" of the trace ({BASES[rate_row(given['node_failure_rate'])['basis']]})"
    params = _sliders(habit, per_1000, run_gpus, unit) + _derived(node_gpus)
    # Not `add_params`, which copies every panel for every parameter.
    panels = [_answer(unit, in_nodes), _curves(unit, node_gpus)]
    chart = alt.VConcatChart(vconcat=panels, spacing=18, params=[parameter.param for parameter in params])
    return figure(
        chart,
        {"answer": [{"one": 1}]},
        study,
        title="Planner: what to expect of a run",
        subtitle=f"Move the sliders below the chart. They start at {start}.",
        caption=f"Interactive: the exact mean of the renewal model, computed in the page. It starts at {start}. "
        "Dashed: at the best checkpoint interval of each size. Failures at a constant rate that grows with the nodes.",
        alt_text="An interactive planner: sliders set the size, the failure rate, the checkpoint interval, the times "
        "of writing, starting and queueing and the days of work; the chart shows the effective training time, the "
        "expected interruptions, the days to finish and the best checkpoint interval.",
    )


def _slider(name: str, label: str, value: float, low: float, high: float, step: float) -> alt.Parameter:
    return alt.param(
        name=name, value=float(f"{value:.12g}"), bind=alt.binding_range(min=low, max=high, step=step, name=label)
    )


def _sliders(habit: Habits, per_1000: float, run_gpus: int, unit: str) -> list:
    log_rate, log_interval = math.log10(per_1000), math.log10(habit.interval_s / 60)
    queue, start = habit.queue_s / 60, habit.restart_s / 60
    days = habit.productive_s / 86_400
    size = math.log2(run_gpus)
    return [
        _slider("log_size", capital(unit), size, 0, max(LARGEST_LOG2, math.ceil(size)), 0.25),
        _slider(
            *("log_rate", "Failures per 1000 node-days", log_rate),
            *(min(-2, math.floor(log_rate)), max(4, math.ceil(log_rate)), 0.02),
        ),
        _slider(
            *("log_interval", "Work between checkpoints", log_interval),
            *(min(0, math.floor(log_interval)), max(3.2, math.ceil(log_interval)), 0.02),
        ),
        _slider("write_s", "Writing a checkpoint", habit.write_s, 0, max(900, 2 * habit.write_s), 5),
        _slider("start_min", "Start-up", start, 0, max(60, math.ceil(2 * start)), 0.5),
        _slider("queue_min", "Wait in the queue", queue, 0, max(600, math.ceil(2 * queue)), 1),
        _slider("work_days", "Productive days", days, min(1, days), max(90, math.ceil(2 * days)), 1),
    ]


def _derived(node_gpus: int) -> list:
    """What follows from the sliders, each an expression of those before: seconds, and failures per second."""
    params = {
        "size": "round(pow(2, log_size))",
        "nodes": f"ceil(size / {node_gpus})",
        "per_1000": "pow(10, log_rate)",
        "rate": "nodes * per_1000 / 86400000",
        "interval_s": "60 * pow(10, log_interval)",
        "start_s": "60 * start_min",
        "queue_s": "60 * queue_min",
        "work_s": "86400 * work_days",
    }
    params["best_0"] = first_guess("rate * write_s")
    for step in range(_STEPS):
        params[f"best_{step + 1}"] = better_guess(f"best_{step}", "rate * write_s")
    params |= {
        # Where writing is free, there is no best interval but none at all.
        "best_s": f"write_s > 0 ? min(best_{_STEPS} / rate, work_s) : 0",
        "held_s": scheduled("rate", "interval_s"),
        "interruptions": "rate * held_s",
        "wall_s": "held_s + queue_s * (1 + interruptions)",
        "ettr": "work_s / wall_s",
        "ettr_at_best": f"best_s > 0 ? {ratio('rate', 'best_s')} : ettr",
        "lost_share": "rate * (start_s + interval_s / 2)",
        # What a slider is set to: the page shows it beside the slider, by these names.
        "log_size_words": "format(size, ',')",
        "log_rate_words": "format(per_1000, ',.3~r')",
        "log_interval_words": _time("interval_s"),
        "write_s_words": _time("write_s"),
        "start_min_words": _time("start_s"),
        "queue_min_words": _time("queue_s"),
        "work_days_words": "format(work_days, ',.3~r') + (work_days == 1 ? ' day' : ' days')",
    }
    return [alt.param(name=name, expr=expression) for name, expression in params.items()]


def _time(seconds: str) -> str:
    """A Vega expression of a time in words."""
    units = (("s", 1, 60), ("min", 60, 5_400), ("h", 3_600, 172_800))
    worded = "".join(
        f"{seconds} < {until} ? format({seconds} / {size}, '.3~r') + ' {unit}' : " for unit, size, until in units
    )
    return f"({worded}format({seconds} / 86400, ',.3~r') + ' days')"


def _answer(unit: str, in_nodes: bool) -> alt.HConcatChart:
    """Four numbers, and beside them in words what they are for."""
    endless = "!isFinite(wall_s) || wall_s > 3e9"
    tiles = [
        ("format(100 * ettr, '.1f') + ' %'", "effective training time"),
        (f"{endless} ? '–' : format(interruptions, ',.3~r')", "expected interruptions"),
        (f"{endless} ? 'never' : format(wall_s / 86400, ',.3~r') + ' days'", "to finish, in the mean"),
        (f"best_s > 0 ? {_time('best_s')} : '–'", "best checkpoint interval"),
    ]
    layers = []
    for number, (value, label) in enumerate(tiles):
        x, y = number % 2 * _TILE, 14 + number // 2 * 58
        layers += [
            _text(value, x, y, fontSize=24, fontWeight="bold", color=ACCENT),
            _text(f"'{label}'", x, y + 24, fontSize=11, color=FAINT),
        ]
    on = "" if in_nodes else " + ' on ' + format(nodes, ',') + (nodes == 1 ? ' node' : ' nodes')"
    one = unit.removesuffix("s")
    lines = [
        f"log_size_words + (size == 1 ? ' {one}' : ' {unit}'){on} + ', ' + work_days_words + ' of work'",
        "log_rate_words + ' failures per 1000 node-days,'",
        f"'so one every ' + {_time('1 / rate')}",
        "'A checkpoint every ' + log_interval_words + ' takes ' + write_s_words",
        "'Start-up ' + start_min_words + ', wait in the queue ' + queue_min_words",
        "best_s > 0 ? 'At the best interval ' + format(100 * ettr_at_best, '.1f') + ' % is effective' : "
        "'Writing is free: the shorter, the better'",
        f"lost_share > {APPROXIMATION_LIMIT} ? 'The usual approximation fails here' : ''",
    ]
    said = [_text(line, 0, 6 + 16 * number, fontSize=12, color=INK) for number, line in enumerate(lines)]
    panels = [
        alt.layer(*texts).properties(width=_PANEL, height=104, view=alt.ViewConfig(stroke=None))
        for texts in (layers, said)
    ]
    return alt.hconcat(*panels, spacing=_BETWEEN)


def _text(expression: str, x: float, y: float, **style: object) -> alt.Chart:
    mark = chart_of("answer").mark_text(align="left", baseline="middle", text=alt.expr(expression), **style)
    return mark.encode(x=alt.value(x), y=alt.value(y))


def _curves(unit: str, node_gpus: int) -> alt.HConcatChart:
    share = alt.Scale(domain=[0, 1])
    by_size = alt.Chart(alt.sequence(0, LARGEST_LOG2 + 0.05, 0.1, as_="log2"))
    by_size = by_size.transform_calculate(
        size="pow(2, datum.log2)", load=f"ceil(datum.size / {node_gpus}) * per_1000 / 86400000"
    )
    x = alt.X(
        "size:Q",
        scale=alt.Scale(type="log", base=2, domain=[1, 2**LARGEST_LOG2], nice=False),
        axis=alt.Axis(values=[1, 8, 64, 512, 4096, 32_768], format=",", title=f"{capital(unit)} of the run"),
    )
    y = alt.Y("ratio:Q", scale=share, axis=percent_axis("Effective training time"))
    set_line = by_size.transform_calculate(ratio=ratio("datum.load", "interval_s"))
    best_line = by_size.transform_filter("write_s > 0").transform_calculate(x=first_guess("datum.load * write_s"))
    for _ in range(_STEPS):
        best_line = best_line.transform_calculate(x=better_guess("datum.x", "datum.load * write_s"))
    best_line = best_line.transform_calculate(ratio=ratio("datum.load", "min(datum.x / datum.load, work_s)"))
    left = alt.layer(
        best_line.mark_line(color=BEST, strokeDash=[5, 3], strokeWidth=1.8).encode(x=x, y=y),
        set_line.mark_line(color=ACCENT, strokeWidth=2.2).encode(x=x, y=y),
        _chosen("size", "ettr", ACCENT, x, y),
    ).properties(width=_PANEL, height=_HEIGHT)
    minutes = alt.X(
        "minutes:Q",
        scale=alt.Scale(type="log", domain=[1, 1440], nice=False, clamp=True),
        axis=alt.Axis(
            values=list(_MINUTES),
            labelExpr="datum.value < 60 ? datum.value + ' min' : datum.value / 60 + ' h'",
            title="Work between checkpoints",
        ),
    )
    bare = alt.Y("ratio:Q", scale=share, axis=alt.Axis(labelExpr=PERCENT_LABEL, title=None))
    by_interval = alt.Chart(alt.sequence(0, math.log10(1440) + 0.01, 0.02, as_="log10")).transform_calculate(
        minutes="pow(10, datum.log10)", ratio=ratio("rate", "(60 * pow(10, datum.log10))")
    )
    right = alt.layer(
        by_interval.mark_line(color=ACCENT, strokeWidth=2.2).encode(x=minutes, y=bare),
        _chosen("best_s / 60", "ettr_at_best", BEST, minutes, bare, shape="diamond", keep="best_s > 0"),
        _chosen("interval_s / 60", "ettr", ACCENT, minutes, bare),
    ).properties(width=_PANEL, height=_HEIGHT)
    return alt.hconcat(left, right, spacing=24)


def _chosen(
    at: str, height: str, colour: str, x: alt.X, y: alt.Y, shape: str = "circle", keep: str = "true"
) -> alt.Chart:
    points = chart_of("answer").transform_filter(keep)
    points = points.transform_calculate(**{x.shorthand.partition(":")[0]: at, "ratio": height})
    return points.mark_point(shape=shape, filled=True, size=110, color=colour, opacity=1).encode(x=x, y=y)

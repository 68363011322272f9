"""How long lives go on without failure: Kaplan-Meier curves."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.fit_mttf.mttf_chart import mttf_by
from ttf.charts.axes import log_time, on_log_time, percent_axis
from ttf.charts.encodings import coloured
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw, one_for_all
from ttf.charts.picking import Picks
from ttf.charts.steps import step_curves, step_rows
from ttf.charts.text import DAY_S, HOUR_S, MINUTE_S, capital, count, duration, in_words, labels, listed, percent
from ttf.charts.theme import ACCENT, CATEGORY_COLOURS, ORDER_COLOURS
from ttf.stats.survival import thin

MOST_STRATA = 6
MOST_STEPS = 160  # of one curve: a step every four pixels
MOST_ROWS = 600  # of all curves together
TOOLTIPS = 50  # of one curve

_ROUND_TIMES = {365 * DAY_S: "1 year", DAY_S: "1 day", HOUR_S: "1 hour", MINUTE_S: "1 minute"}


def survival(given: Mapping[str, pl.DataFrame], study: Study, stratum_by: str = "all") -> Figure:
    """The share of lives without failure by time, of all or of the strata with the most lives."""
    curves, summary = given["survival"], given["survival_summary"]
    by = f" by {in_words(stratum_by)}" if stratum_by != "all" else ""
    what = f"Lives without failure{by}"
    mine = summary.filter((pl.col("event") == "failure") & (pl.col("stratum_by") == stratum_by) & (pl.col("n") > 0))
    if not mine.height:
        missing = f"no life has a known {in_words(stratum_by)} and duration" if by else "no life has a known duration"
        return nothing_to_draw(what, missing)
    if one_for_all(summary.filter(pl.col("event") == "failure"), stratum_by):
        return nothing_to_draw(what, f"all lives have one {in_words(stratum_by)}")
    if not mine["events"].sum():
        return nothing_to_draw(what, f"no {study.unit} failed at a known time")
    kept = mine.sort("n", descending=True, maintain_order=True).head(MOST_STRATA)["stratum"]
    drawn = mine.filter(pl.col("stratum").is_in(kept.implode()))
    of_gpus = stratum_by == "gpu_count"
    names = {of: count(int(of), "GPU") for of in drawn["stratum"]} if of_gpus else labels(drawn["stratum"].to_list())
    chosen = curves.filter(
        (pl.col("event") == "failure")
        & (pl.col("stratum_by") == stratum_by)
        & pl.col("stratum").is_in(kept.implode())
        & pl.col("survival").is_not_null()
    )
    legend = {row["stratum"]: f"{names[row['stratum']]} (n = {row['n']:,})" for row in drawn.iter_rows(named=True)}
    steps = min(MOST_STEPS, MOST_ROWS // drawn.height)
    thinned = thin(chosen, steps)
    rows = _rows(thinned, legend)
    n, events = drawn["n"].sum(), drawn["events"].sum()
    caption = (
        f"Kaplan-Meier estimate with log-log 95 % interval; n = {count(n, 'life')}, {count(events, 'failure')}. "
        "Lives that ended otherwise or go on are censored: the curve is what would be seen if "
        f"{study.units} stopped for no other reason, supposing that other ends come independently of failure. The axis "
        "begins at 1 s; times of 0 s stand there."
    )
    if thinned.height < chosen.height:
        caption += f" At most {steps} steps of a curve are drawn, each an exact one."
    left_out = mine.filter(~pl.col("stratum").is_in(kept.implode()))
    if left_out.height:
        caption += (
            f" The {MOST_STRATA} strata with the most lives are drawn; {count(left_out.height, 'stratum')} left out, "
            f"with {left_out['n'].sum():,} lives ({_left_out(stratum_by, left_out['stratum'].to_list())})."
        )
    title = _title(chosen, names, stratum_by, study)
    return figure(
        _chart(rows, list(legend.values()), stratum_by, study),
        {"steps": rows},
        study,
        title=title,
        subtitle=f"Share of {study.units} still without failure after so much run time{by}, with its 95 % interval.",
        caption=caption,
        alt_text=f"Falling step curve{'s' if drawn.height > 1 else ''} of the share without failure on a logarithmic "
        f"time axis{by}. {title}.",
        picks=Picks(("steps",), "s", {names[of]: legend[of] for of in legend}) if stratum_by == "gpu_type" else None,
    )


def _left_out(stratum_by: str, strata: Sequence[str], most: int = 8) -> str:
    """The strata left out by name, as many as can be read."""
    shown = [f"{int(s):,}" for s in strata] if stratum_by == "gpu_count" else list(labels(strata).values())
    unit = " GPUs" if stratum_by == "gpu_count" else ""
    if len(shown) <= most:
        return listed(shown) + unit
    return f"{', '.join(shown[:most])}{unit} and {len(shown) - most:,} more"


def _rows(curve: pl.DataFrame, legend: dict[str, str]) -> list[dict]:
    rows = []
    for (stratum,), part in curve.group_by("stratum", maintain_order=True):
        if part["survival"].first() < 1:
            # Down from everybody at 0 s, so that failures at 0 s can be seen.
            rows.append({"s": legend[stratum], "x": on_log_time(0), "v": 1})
        rows += step_rows(part, legend[stratum], "survival", 1, TOOLTIPS)
    return rows


def _chart(rows: list[dict], names: list[str], stratum_by: str, study: Study) -> alt.LayerChart:
    if stratum_by == "all":
        colour = alt.value(ACCENT)
    else:
        palette = ORDER_COLOURS if stratum_by == "gpu_count" else CATEGORY_COLOURS
        # Few strata take colours from all of an ordered palette, so that neighbours stay apart.
        step = (len(palette) - 1) / max(1, len(names) - 1) if stratum_by == "gpu_count" else 1
        colours = [palette[round(number * step)] for number in range(len(names))]
        legend = {"title": capital(in_words(stratum_by)), "orient": "bottom", "columns": 3}
        legend |= {"symbolType": "stroke", "symbolOpacity": 1}
        colour = coloured("s", dict(zip(names, colours, strict=True)), ordered=True, **legend)
    x = log_time([row["x"] for row in rows], "Time since the start of the run (logarithmic)")
    share = alt.Scale(domain=[0, 1])
    base = chart_of("steps").encode(x=x, color=colour)
    axis = percent_axis("Share without failure")
    return step_curves(base, share, axis, in_words(stratum_by), "without failure", study.units)


def _title(curves: pl.DataFrame, names: dict[str, str], stratum_by: str, study: Study) -> str:
    """The estimate at a round time that every drawn curve reaches, or else that two of them do."""
    longest = dict(curves.group_by("stratum").agg(pl.col("time_s").max()).iter_rows())
    reached = {time: [name for name in names if longest[name] >= time] for time in _ROUND_TIMES}
    some = min(2, len(names))
    times = [t for t in reached if len(reached[t]) == len(names)] or [t for t in reached if len(reached[t]) >= some]
    time = times[0] if times else min(longest.values())
    at = {
        stratum: curves.filter((pl.col("stratum") == stratum) & (pl.col("time_s") <= time))["survival"].last()
        for stratum in reached.get(time, names)
    }
    after = f"After {_ROUND_TIMES.get(time, duration(time))} of running"
    low, high = min(at, key=at.get), max(at, key=at.get)
    if stratum_by == "all":
        return f"{after}, {percent(at[low])} of {study.units} have not failed"
    if len(at) == 1:
        return f"{after}, {percent(at[low])} of {study.units} with {names[low]} have not failed"
    if percent(at[low]) == percent(at[high]):
        return f"{after}, {percent(at[low])} of {study.units} have not failed, whatever their {in_words(stratum_by)}"
    return (
        f"{after}, {percent(at[low])} ({names[low]}) to {percent(at[high])} ({names[high]}) of {study.units} "
        "have not failed"
    )


class _Charts(dict):
    """A component trace has strata of its own: survival_by_*, mttf_by_*."""

    def __missing__(self, name: str) -> Callable[[Mapping[str, pl.DataFrame], Study], Figure]:
        draw, _, stratum_by = name.partition("_by_")
        return partial({"survival": survival, "mttf": mttf_by}[draw], stratum_by=stratum_by)


CHARTS = _Charts(survival=survival)

"""How long lives go on without failure: Kaplan-Meier curves; and the mean time to failure with its exact intervals."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import altair as alt
import polars as pl

from ttf.charts.axes import log_axis, log_domain, log_scale, log_time, on_log_time, percent_axis
from ttf.charts.encodings import coloured, picked, side_notes, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw, one_for_all
from ttf.charts.intervals import DASHED, by_what, shown
from ttf.charts.steps import ROUND_TIMES, bands, step_curves, step_rows
from ttf.charts.text import HOUR_S, capital, count, duration, hours, in_words, labels, listed, percent
from ttf.charts.theme import ACCENT, CATEGORY_COLOURS, FAINT, ORDER_COLOURS
from ttf.stats.survival import thin

MOST_STRATA = 6
MOST_STEPS = 160  # of one curve: a step every four pixels
MOST_ROWS = 600  # of all curves together
TOOLTIPS = 50  # of one curve
# More sizes than these stand one below the other, as other strata do: side by side, a phone has no room for them.
MOST_ACROSS = 10
MOST_ROWS_OF_MTTF = 20
# A mean from fewer failures is too uncertain to be called the lowest or highest.
ENOUGH_FAILURES = 10


def survival(given: Mapping[str, pl.DataFrame], study: Study, stratum_by: str = "all") -> Figure:
    """The share of lives without failure by time, of all or of the strata with the most lives."""
    curves, summary = given["survival"], given["survival_summary"].filter(event="failure")
    by = f" by {in_words(stratum_by)}" if stratum_by != "all" else ""
    what = f"Lives without failure{by}"
    mine = summary.filter(pl.col("n") > 0, stratum_by=stratum_by)
    if not mine.height:
        missing = f"no life has a known {in_words(stratum_by)} and duration" if by else "no life has a known duration"
        return nothing_to_draw(what, missing)
    if one_for_all(summary, stratum_by):
        return nothing_to_draw(what, f"all lives have one {in_words(stratum_by)}")
    if not mine["events"].sum():
        return nothing_to_draw(what, f"no {study.unit} failed at a known time")
    kept = mine.sort("n", descending=True, maintain_order=True).head(MOST_STRATA)["stratum"]
    drawn = mine.filter(pl.col("stratum").is_in(kept.implode()))
    of_gpus = stratum_by == "gpu_count"
    names = {of: count(int(of), "GPU") for of in drawn["stratum"]} if of_gpus else labels(drawn["stratum"].to_list())
    is_drawn = pl.col("stratum").is_in(kept.implode())
    chosen = curves.filter(is_drawn & pl.col("survival").is_not_null(), event="failure", stratum_by=stratum_by)
    legend = {row["stratum"]: f"{names[row['stratum']]} (n = {row['n']:,})" for row in drawn.iter_rows(named=True)}
    steps = min(MOST_STEPS, MOST_ROWS // drawn.height)
    thinned = thin(chosen, steps)
    limits, about_bands = bands(chosen, study.units)
    rows = _rows(thinned, legend, limits)
    n, events = drawn["n"].sum(), drawn["events"].sum()
    caption = (
        f"Kaplan-Meier estimate with log-log intervals; n = {count(n, 'life')}, {count(events, 'failure')}. "
        "Lives that ended otherwise or go on are censored: the curve is what would be seen if "
        f"{study.units} stopped for no other reason, supposing that other ends come independently of failure. The axis "
        f"begins at 1 s; times of 0 s stand there. {about_bands}"
    )
    if thinned.height < chosen.height:
        caption += f" At most {steps} steps of a curve are drawn, each an exact one."
    if (left_out := mine.filter(~is_drawn)).height:
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
    )


def _left_out(stratum_by: str, strata: Sequence[str], most: int = 8) -> str:
    """The strata left out by name, as many as can be read."""
    shown = [f"{int(s):,}" for s in strata] if stratum_by == "gpu_count" else list(labels(strata).values())
    unit = " GPUs" if stratum_by == "gpu_count" else ""
    if len(shown) <= most:
        return listed(shown) + unit
    return f"{', '.join(shown[:most])}{unit} and {len(shown) - most:,} more"


def _rows(curve: pl.DataFrame, legend: dict[str, str], limits: Mapping[str, str]) -> list[dict]:
    rows = []
    for (stratum,), part in curve.group_by("stratum", maintain_order=True):
        if part["survival"].first() < 1:
            # Down from everybody at 0 s, so that failures at 0 s can be seen.
            rows.append({"s": legend[stratum], "x": on_log_time(0), "v": 1})
        rows += step_rows(part, legend[stratum], "survival", 1, TOOLTIPS, limits)
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
    reached = {time: [name for name in names if longest[name] >= time] for time in ROUND_TIMES}
    some = min(2, len(names))
    times = [t for t in reached if len(reached[t]) == len(names)] or [t for t in reached if len(reached[t]) >= some]
    time = times[0] if times else min(longest.values())
    at = {
        stratum: curves.filter(pl.col("time_s") <= time, stratum=stratum)["survival"].last()
        for stratum in reached.get(time, names)
    }
    after = f"After {ROUND_TIMES.get(time, duration(time))} of running"
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


def mttf_by(given: Mapping[str, pl.DataFrame], study: Study, stratum_by: str) -> Figure:
    what = f"Mean time to failure by {in_words(stratum_by)}"
    mttf = given["mttf"].filter(event="failure")
    mine = mttf.filter(pl.col("n") > 0, stratum_by=stratum_by)
    strata = _by_stratum(mine.filter(pl.col("ci_low_s") > 0))
    if not strata:
        return nothing_to_draw(what, f"no {study.unit} with a known {in_words(stratum_by)} has run for a known time")
    if one_for_all(mttf, stratum_by):
        return nothing_to_draw(what, f"all lives have one {in_words(stratum_by)}")
    kept = {row["stratum"] for row in sorted(strata, key=lambda row: -row["n"])[:MOST_ROWS_OF_MTTF]}
    drawn = [row for row in strata if row["stratum"] in kept]
    of_gpus = stratum_by == "gpu_count"
    keys = [row["stratum"] for row in drawn]
    names = {stratum: f"{int(stratum):,}" for stratum in keys} if of_gpus else labels(keys)
    rows = [_row(row, names[row["stratum"]]) for row in drawn]
    overall = mttf.filter(pl.col("mttf_s").is_not_null(), stratum_by="all")["mttf_s"].head(1).to_list()
    n, failures = sum(row["n"] for row in drawn), sum(row["events"] for row in drawn)
    caption = (
        f"Exposure over failures with right-censoring; n = {count(n, 'life')}, {count(failures, 'failure')}. "
        f"{by_what(shown(mine.filter(pl.col('events') > 0), '_s'))}"
    )
    if any(row["events"] == 0 for row in drawn):
        caption += " Triangle: no failure, so there is a one-sided lower bound only (drawn: 95 %)."
    if len(strata) > len(drawn):
        caption += f" The {MOST_ROWS_OF_MTTF} strata with the most lives; {len(strata) - len(drawn):,} left out."
    if without := mine["stratum"].n_unique() - len(strata):
        caption += f" {count(without, 'stratum')} without exposure left out."
    everything = mttf.filter(stratum_by="all")["n"].max() or 0
    if overall and (unknown := everything - mine.filter(confidence=0.95)["n"].sum()):
        caption += f" The whole trace includes {count(unknown, 'life')} without a known {in_words(stratum_by)}."
    title = _mttf_title(drawn, names, stratum_by)
    in_order = of_gpus and len(rows) <= MOST_ACROSS
    draw = _across if in_order else _down
    subtitle = "Run time per failure; thick: 90 %, thin: 95 % interval" + ("; dashed: whole trace" if overall else "")
    subtitle += "; numbers below: failures." if in_order else "."
    return figure(
        draw(rows, overall, stratum_by),
        {"strata": rows} | ({"whole": [{"mean": overall[0] / HOUR_S}]} if overall else {}),
        study,
        title=title,
        subtitle=subtitle,
        caption=caption,
        alt_text="Points with intervals on a logarithmic axis in hours, one for each of "
        f"{count(len(drawn), 'stratum')}. {title}.",
    )


def _by_stratum(mine: pl.DataFrame) -> list[dict]:
    """One row a stratum with both intervals, in hours."""
    wide, narrow = (
        shown(mine.filter(confidence=confidence), "_s").with_columns(
            pl.col("low", "high") / HOUR_S, mttf=pl.col("mttf_s") / HOUR_S
        )
        for confidence in (0.95, 0.9)
    )
    return wide.join(narrow, on="stratum", suffix="_90", maintain_order="left").to_dicts()


def _row(row: dict, name: str) -> dict:
    drawn = {"stratum": name, "note": count(row["events"], "failure")} | picked(
        row, "n", failures="events", low95="low"
    )
    if row["events"] == 0:
        return drawn
    return drawn | picked(row, "mttf", "independent", high95="high", low90="low_90", high90="high_90")


def _layers(rows: list[dict], overall: list[float], along: str, stratum: alt.SchemaBase) -> tuple:
    """The marks with hours along the channel `along`, and the domain of hours."""
    ends = [row[name] for row in rows for name in ("low95", "high95") if name in row]
    domain = log_domain([*ends, *(mean / HOUR_S for mean in overall)], 1.5 if along == "x" else 4, 1.5)
    channel, across = (alt.X, "y") if along == "x" else (alt.Y, "x")
    axis = log_axis(domain, "Mean time to failure (hours, logarithmic)")

    def hours_of(low: str, high: object = None) -> dict:
        channels = {along: channel(f"{low}:Q", scale=log_scale(domain), axis=axis)}
        return channels if high is None else channels | {f"{along}2": high}

    tooltip = [
        *tips("stratum"),
        *tips(form=",", n="lives"),
        *tips("failures", form=","),
        *tips(form=",.1f", mttf="mean time to failure (h)", low90="90 % from (h)", high90="90 % to (h)"),
        *tips(form=",.1f", low95="95 % from (h)", high95="95 % to (h)"),
    ]
    base = chart_of("strata").encode(tooltip=tooltip, **{across: stratum})
    seen = base.transform_filter("isValid(datum.mttf)")
    unseen = base.transform_filter("!isValid(datum.mttf)")
    thin = seen.mark_rule(strokeWidth=1.5, color=ACCENT).encode(**hours_of("low95", "high95:Q"), strokeDash=DASHED)
    clustered = seen.transform_filter("!datum.independent")
    thick = clustered.mark_rule(strokeWidth=4.5, color=ACCENT, opacity=0.55).encode(**hours_of("low90", "high90:Q"))
    dots = seen.mark_point(filled=True, size=60, color=ACCENT, opacity=1).encode(**hours_of("mttf"))
    edge, shape = (alt.X2Value("width"), "triangle-right") if along == "x" else (alt.Y2Value(0), "triangle-up")
    arrows = unseen.mark_rule(strokeDash=[2, 3], color=FAINT).encode(**hours_of("low95", edge))
    triangles = unseen.mark_point(shape=shape, size=80, filled=False, strokeWidth=1.5, color=FAINT)
    layers = [thin, thick, dots]
    if any("mttf" not in row for row in rows):
        layers += [arrows, triangles.encode(**hours_of("low95"))]
    if overall:
        line = chart_of("whole").mark_rule(strokeDash=[4, 3], color=FAINT)
        line = line.encode(**hours_of("mean"), tooltip=tips(form=",.1f", mean="whole trace (h)"))
        layers.insert(0, line)
    return layers, base


def _down(rows: list[dict], overall: list[float], stratum_by: str) -> alt.LayerChart:
    """Strata without an order: one below the other, so that long names can be read."""
    stratum = alt.Y("stratum:N", sort=[row["stratum"] for row in rows], title=capital(in_words(stratum_by)))
    layers, base = _layers(rows, overall, "x", stratum)
    notes = side_notes(base, 488, 10.5)
    return alt.layer(*layers, notes).properties(width=480, height=alt.Step(30 if len(rows) <= MOST_ACROSS else 20))


def _across(rows: list[dict], overall: list[float], _stratum_by: str) -> alt.LayerChart:
    """Numbers of GPUs in their order from left to right."""
    stratum = alt.X(
        "stratum:O", sort=[row["stratum"] for row in rows], title="GPUs of the job", axis=alt.Axis(labelAngle=0)
    )
    layers, base = _layers(rows, overall, "y", stratum)
    notes = base.mark_text(baseline="bottom", fontSize=10, color=FAINT).encode(
        y=alt.value(297), text=alt.Text("failures:Q", format=".3~s")
    )
    return alt.layer(*layers, notes).properties(width=650, height=300)


def _mttf_title(drawn: list[dict], names: dict[str, str], stratum_by: str) -> str:
    def named(row: dict) -> str:
        return count(int(row["stratum"]), "GPU") if stratum_by == "gpu_count" else names[row["stratum"]]

    seen = [row for row in drawn if row["events"]]
    if not seen:
        most = max(drawn, key=lambda row: row["ci_low_s"])
        return (
            f"No failure at a known time: the mean time to failure with {named(most)} is {hours(most['ci_low_s'])} "
            "or more"
        )
    if len(seen) == 1:
        (only,) = seen
        return (
            f"The mean time to failure with {named(only)} is {hours(only['mttf_s'])} (95 % interval "
            f"{hours(HOUR_S * only['low'])} to {hours(HOUR_S * only['high'])})"
        )
    enough = [row for row in seen if row["events"] >= ENOUGH_FAILURES]
    said = enough if len(enough) > 1 else seen
    low, high = min(said, key=lambda row: row["mttf_s"]), max(said, key=lambda row: row["mttf_s"])
    if hours(low["mttf_s"]) == hours(high["mttf_s"]):
        return f"The mean time to failure is {hours(low['mttf_s'])}, whatever the {in_words(stratum_by)}"
    where = f"; strata with fewer than {ENOUGH_FAILURES} failures aside" if len(said) < len(drawn) else ""
    return (
        f"The mean time to failure runs from {hours(low['mttf_s'])} ({named(low)}) to {hours(high['mttf_s'])} "
        f"({named(high)}){where}"
    )


class _Charts(dict):
    """A component trace has strata of its own: survival_by_*, mttf_by_*."""

    def __missing__(self, name: str) -> Callable[[Mapping[str, pl.DataFrame], Study], Figure]:
        draw, _, stratum_by = name.partition("_by_")
        return partial({"survival": survival, "mttf": mttf_by}[draw], stratum_by=stratum_by)


CHARTS = _Charts(survival=survival)

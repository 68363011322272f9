"""Which end comes when, and what multiplies the hazard of failure."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.estimate_hazards import JOB_SIZE
from ttf.charts.axes import TIME_TICKS_S, log_axis, log_domain, log_scale, log_time, percent_axis
from ttf.charts.encodings import coloured, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.steps import ROUND_TIMES, bands, step_curves, step_rows
from ttf.charts.text import DAY_S, capital, count, duration, in_words, labels, listed, percent, significant
from ttf.charts.theme import ACCENT, CATEGORY_COLOURS, FAINT, OUTCOME_COLOURS
from ttf.stats.survival import thin

MOST_ENDS = len(CATEGORY_COLOURS)
MOST_STEPS = 120  # of one curve
TOOLTIPS = 60  # of one curve
MOST_RATIOS = 40
# The time axis begins about where the commonest end has come to this share of what it comes to at last.
FIRST_SHARE = 0.01

_ROUND_TIMES = {5 * 365 * DAY_S: "5 years"} | ROUND_TIMES
_HAVE = {
    "failure": "failed",
    "success": "succeeded",
    "cancelled": "been cancelled",
    "unknown": "ended with no result recorded",
}


def cumulative_incidence(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """The share of lives that each end has come to, by age.

    The title is by `incidence_at`: a curve that is cut short may lack the step just before an age.
    """
    incidence, at = given["cumulative_incidence"], given["incidence_at"]
    what = "How lives end, by age"
    curves = incidence.filter((pl.col("stratum_by") == "all") & pl.col("incidence").is_not_null())
    if not curves.height:
        return nothing_to_draw(what, "no life has a known duration")
    # The table may be thinned: only the running count of its rows is that of all lives.
    every = curves.group_by("event", maintain_order=True).agg(pl.col("events_so_far", "without_time").last())
    totals = every.filter(pl.col("events_so_far") > 0).drop("without_time")
    if not totals.height:
        return nothing_to_draw(what, f"no {study.unit} ended at a known time")
    ranked = totals.sort("events_so_far", descending=True, maintain_order=True)
    drawn = totals.filter(pl.col("event").is_in(ranked["event"].head(MOST_ENDS).implode()))
    ends = drawn["event"].to_list()
    chosen = curves.filter(pl.col("event").is_in(ends))
    names = {end: f"{end} ({events:,})" for end, events in drawn.iter_rows()}
    begin = _first_tick(chosen)
    limits, about_bands = bands(chosen, study.units)
    rows = [
        row
        for (end,), curve in thin(chosen.filter(_since(begin)), MOST_STEPS).group_by("event", maintain_order=True)
        for row in step_rows(curve, names[end], "incidence", begin, TOOLTIPS, limits)
    ]
    n = int(curves["at_risk"].max())
    by_end = listed([f"{end} {events:,}" for end, events in drawn.iter_rows()])
    caption = (
        f"Aalen-Johansen estimate with log-log intervals; n = {count(n, 'life')}, ended by "
        f"{by_end}. The ends compete, and at every age their shares and that of {study.units} going on add up to all; "
        f"{study.units} still running are right-censored. The axis begins where few have ended; what ended earlier "
        f"stands at its start. {about_bands}"
    )
    if unseen := [f"{end} {lives:,}" for end, _, lives in every.iter_rows() if lives]:
        caption += f" Of unknown duration, and so left out: {listed(unseen)}."
    if (rare := ranked.slice(MOST_ENDS)).height:
        lives = count(rare["events_so_far"].sum(), "life")
        caption += f" The {MOST_ENDS} commonest ends; {rare.height:,} left out, of {lives}."
    title = _incidence_title(chosen, at, ends, study)
    return figure(
        _incidence_lines(rows, names, study),
        {"incidence": rows},
        study,
        title=title,
        subtitle=f"Share of {study.units} that have ended so after so much time, with its 95 % interval.",
        caption=caption,
        alt_text=f"Rising step curves of the share of {study.units} by how they ended, on a logarithmic time axis. "
        f"{title}.",
    )


def _first_tick(curves: pl.DataFrame) -> int:
    """The tick of the time axis before which next to nothing has ended."""
    highest = curves["incidence"].max()
    soonest = curves.filter(pl.col("incidence") >= FIRST_SHARE * highest)["time_s"].min()
    return max(tick for tick in TIME_TICKS_S if tick == 1 or tick <= soonest)


def _since(begin: int) -> pl.Expr:
    """The steps from the beginning on, and of each end the last one before, which holds there."""
    late = pl.col("time_s") >= begin
    return late | (pl.col("time_s") == pl.col("time_s").filter(~late).max().over("event")).fill_null(False)


def _incidence_lines(rows: list[dict], names: dict[str, str], study: Study) -> alt.LayerChart:
    is_outcome = all(end in OUTCOME_COLOURS for end in names)
    colours = OUTCOME_COLOURS if is_outcome else dict(zip(names, CATEGORY_COLOURS, strict=False))
    legend = {"title": "Ended by", "orient": "bottom", "columns": 3, "symbolType": "stroke", "symbolOpacity": 1}
    colour = coloured("s", {name: colours[end] for end, name in names.items()}, ordered=True, **legend)
    x = log_time([row["x"] for row in rows], "Time since the start (logarithmic)")
    highest = max(row["h"] or row["v"] for row in rows)
    share = alt.Scale(domain=[0, 1 if highest > 0.5 else round(1.1 * highest + 0.005, 2)])
    axis = percent_axis("Share that has ended so")
    base = chart_of("incidence").encode(x=x, color=colour)
    return step_curves(base, share, axis, "ended by", "share", study.units)


def _incidence_title(curves: pl.DataFrame, at: pl.DataFrame, ends: list[str], study: Study) -> str:
    """What has become of the lives at the longest round time that they reach; else at the end of the curves."""
    known = at.filter(pl.col("time_s").is_in(list(_ROUND_TIMES)) & pl.col("incidence").is_not_null())
    time = int((known if known.height else curves)["time_s"].max())
    shares = known.filter(time_s=time) if known.height else curves.group_by("event", maintain_order=True).last()
    at = dict(shares.select("event", "incidence").iter_rows())
    after = f"After {_ROUND_TIMES.get(time, duration(time))}"
    if set(ends) <= set(_HAVE):
        first, *others = [f"{percent(at[end])} {_HAVE[end]}" for end in ends]
        return f"{after}, {listed([first.replace(' % ', f' % of {study.units} have ', 1), *others])}"
    commonest = sorted(ends, key=lambda end: -at[end])[:3]
    return f"{after}, {study.units} have failed by {listed([f'{end} ({percent(at[end])})' for end in commonest])}"


def hazard_ratios(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """Hazard ratios of failure with their 95 % intervals (a forest plot), from the table `cox`."""
    cox = given["cox"]
    what = "Hazard ratios of failure"
    of_failure = cox.filter(event="failure")
    mine = of_failure.filter((pl.col("covariate") != JOB_SIZE) & pl.col("hazard_ratio").is_not_null())
    whole = of_failure.row(by_predicate=pl.col("covariate") == "all", named=True)
    if not mine.height:
        return nothing_to_draw(what, whole["reason"] or "nothing tells lives apart")
    rows = _ratio_rows(mine.head(MOST_RATIOS))
    clustered = [row for row in rows if not row["independent"]]
    caption = (
        f"Cox regression with Efron's ties; n = {count(whole['n'], 'life')}, {count(whole['events'], 'failure')}. Each "
        "ratio holds with the other covariates fixed; Wald intervals, 95 %, "
        + (f"clustered by {whole['cluster_by']}, " if clustered else "")
        + "not adjusted for the number of ratios. "
        + (f"Dashed: if {study.units} fail independently. " if len(clustered) < len(rows) else "")
        + "Hollow: the ratio changes with time (test of proportionality, p below 0.05), so that it is an average over "
        "young and old."
    )
    if mine.height > MOST_RATIOS:
        caption += f" The first {MOST_RATIOS} of {mine.height:,} ratios."
    title = _ratio_title(rows, study)
    return figure(
        _forest(rows),
        {"ratios": rows, "one": [{"one": 1}]},
        study,
        title=title,
        subtitle="Hazard of failure against the reference in brackets (1: the same), with its 95 % interval"
        + ("; hollow: the ratio changes with age." if any(row["changes"] for row in rows) else "."),
        caption=caption,
        alt_text=f"Points with intervals on a logarithmic axis of hazard ratios. {title}.",
    )


def _ratio_rows(mine: pl.DataFrame) -> list[dict]:
    named = labels(text for pair in mine.select("level", "reference").iter_rows() for text in pair if text is not None)
    rows = []
    for row in mine.iter_rows(named=True):
        against = f" (against {named[row['reference']]})" if row["reference"] is not None else ""
        kind = "" if row["ci_low_clustered"] is None else "_clustered"
        about = {
            "name": f"{capital(in_words(row['covariate']))}: {named[row['level']]}{against}",
            # Cut at a factor of 10,000: an interval beyond it says that nothing is known.
            "low": max(row[f"ci_low{kind}"], 1e-4),
            "high": min(row[f"ci_high{kind}"], 1e4),
            "independent": not kind,
            "clear": row["p_adjusted_clustered"] is not None and row["p_adjusted_clustered"] < 0.05,
            "changes": (row["proportionality_p"] or 1) < 0.05,
        }
        rows.append(about | picked(row, "n", "events", ratio="hazard_ratio"))
    return rows


def _forest(rows: list[dict]) -> alt.LayerChart:
    domain = log_domain([*(row["low"] for row in rows), *(row["high"] for row in rows), 1.0])
    x = {"scale": log_scale(domain), "axis": log_axis(domain, "Hazard ratio (logarithmic)")}
    y = alt.Y("name:N", sort=[row["name"] for row in rows], title=None, axis=alt.Axis(labelLimit=300))
    tooltip = [
        *tips(name="covariate"),
        *tips(form=".3f", ratio="hazard ratio", low="95 % from", high="95 % to"),
        *tips(form=",", n="lives", events="failures"),
    ]
    base = chart_of("ratios").encode(y=y, tooltip=tooltip)
    dash = alt.condition("datum.independent", alt.value([3, 3]), alt.value([1, 0]))
    intervals = base.mark_rule(strokeWidth=1.6, color=ACCENT).encode(
        x=alt.X("low:Q", **x), x2="high:Q", strokeDash=dash
    )
    dots = base.mark_point(size=50, fill=ACCENT, stroke=ACCENT, opacity=1, strokeWidth=1.6).encode(
        x=alt.X("ratio:Q", **x), fill=alt.condition("datum.changes", alt.value("white"), alt.value(ACCENT))
    )
    one = chart_of("one").mark_rule(strokeDash=[4, 3], color=FAINT).encode(x=alt.X("one:Q", **x))
    return (one + intervals + dots).properties(width=400, height=alt.Step(20))


def _ratio_title(rows: list[dict], study: Study) -> str:
    clear = [row for row in rows if row["clear"]]
    if all(row["independent"] for row in rows):
        return f"Whether a covariate moves the hazard of failure of {study.units} beyond chance cannot be told"
    if not clear:
        return f"No covariate moves the hazard of failure of {study.units} beyond chance"
    # By the end of the interval nearest to 1: a wide one proves little, however far its middle.
    most = max(clear, key=lambda row: max(row["low"], 1 / row["high"]))
    return (
        f"{most['name'].replace(': ', ', ', 1)}: {significant(most['ratio'])} times the hazard of failure "
        f"(95 % interval {significant(most['low'])} to {significant(most['high'])}), the clearest difference"
    )


CHARTS = {"cumulative_incidence": cumulative_incidence, "hazard_ratios": hazard_ratios}

"""Mean and median run time by GPU type."""

import altair as alt
import polars as pl

from ttf.analyses.correlate.groups import COLOURS, FEW, SETS, few_in_a_mean
from ttf.charts.axes import log_time, on_log_time
from ttf.charts.encodings import tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.picking import Picks
from ttf.charts.text import count, duration, labels
from ttf.charts.theme import FAINT
from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_ENDED

MOST_TYPES = 20


def runtime_by_gpu_type(given: Inputs, study: Study) -> Figure:
    """Mean and median run time by GPU type, for successes and failures."""
    what = "Run time by GPU type"
    known = given["runtime_by_group"].filter(
        (pl.col("feature") == "gpu_type") & pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(SETS)
    )
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} that succeeded or failed has a GPU type and a run time")
    jobs = known.group_by("value", maintain_order=True).agg(pl.col("jobs").sum())
    kept = jobs.sort("jobs", descending=True, maintain_order=True).head(MOST_TYPES)["value"]
    drawn = known.filter(pl.col("value").is_in(kept.implode()))
    names = labels(sorted(drawn["value"].unique()))
    rows = [
        {
            "type": names[row["value"]],
            "outcome": row["outcome_set"],
            "statistic": statistic,
            "x": on_log_time(row[f"runtime_{statistic}_s"]),
            "seconds": row[f"runtime_{statistic}_s"],
            "jobs": row["jobs"],
            "note": f"n = {row['jobs']:,}" if statistic == "mean" else None,
        }
        for row in drawn.iter_rows(named=True)
        for statistic in ("mean", "median")
    ]
    outcome = alt.YOffset("outcome:N", sort=list(SETS))
    base = chart_of("types").encode(
        x=log_time([row["x"] for row in rows], "Run time (logarithmic)", 1.3),
        y=alt.Y("type:N", title="GPU type", sort=list(names.values())),
        yOffset=outcome,
        color=alt.Color("outcome:N", scale=COLOURS, legend=alt.Legend(title="outcome", orient="bottom")),
    )
    pointed = base.encode(
        shape=alt.Shape(
            "statistic:N",
            scale=alt.Scale(domain=["mean", "median"], range=["circle", "diamond"]),
            legend=alt.Legend(title="run time", orient="bottom"),
        ),
        tooltip=[
            *tips(type="GPU type"),
            *tips("outcome", "statistic"),
            *tips(form=",.1f", seconds="run time (s)"),
            *tips(form=",", jobs=study.units),
        ],
    )
    # Two layers, as the legends of a fill and of a stroke by one field would contradict each other.
    marks = [
        pointed.transform_filter(which).mark_point(size=70, filled=filled, strokeWidth=2, opacity=1)
        for filled, which in ((True, {"not": FEW.to_dict()}), (False, FEW))
    ]
    spans = base.mark_line(strokeWidth=1).encode(detail=["type:N", "outcome:N"])
    notes = (
        base.transform_filter("isValid(datum.note)")
        .mark_text(align="left", fontSize=10, baseline="middle")
        .encode(x=alt.value(508), text="note:N", color=alt.value(FAINT))
    )
    chart = alt.layer(spans, *marks, notes).properties(width=500, height=alt.Step(20 if len(names) > 1 else 34))
    left_out = jobs.height - len(names)
    caption = (
        f"Mean and median run time of the {study.units} of each GPU type that succeeded or failed at a known time; "
        f"n = {count(drawn['jobs'].sum(), study.unit)}, beside each row its own."
    )
    if left_out:
        caption += f" The {MOST_TYPES} commonest types; {count(left_out, 'rarer type')} left out."
    if drawn["runtime_median_s"].min() < 1 or drawn["runtime_mean_s"].min() < 1:
        caption += " Times below 1 s stand at 1 s."
    caption += few_in_a_mean(rows, study)
    title = _types_title(drawn, names, study)
    return figure(
        chart,
        {"types": rows},
        study,
        title=title,
        subtitle=f"Mean (circle) and median (diamond) run time of {study.units} by GPU type and outcome.",
        caption=caption,
        alt_text=f"Points on a logarithmic time axis, two rows for each of {count(len(names), 'GPU type')}. {title}.",
        picks=Picks(("types",), "type", {name: name for name in names.values()}),
    )


def _types_title(drawn: pl.DataFrame, names: dict[str, str], study: Study) -> str:
    """Where failed jobs ran shorter; means of few jobs do not count, unless there are no others."""
    enough = drawn.filter(pl.col("jobs") >= FEWEST_ENDED)
    of_each = f" with {FEWEST_ENDED} or more of each" if 0 < enough.height < drawn.height else ""
    drawn = enough if enough.height else drawn
    means = {(row["value"], row["outcome_set"]): row["runtime_mean_s"] for row in drawn.iter_rows(named=True)}
    both = [name for name in names if all((name, outcome) in means for outcome in SETS)]
    if not both:
        (shortest, outcome), low = min(means.items(), key=lambda item: item[1])
        (longest, _), high = max(means.items(), key=lambda item: item[1])
        done = "succeeded" if outcome == "success" else "failed"
        title = f"{study.units.capitalize()} that {done} ran {duration(low)} on average on {names[shortest]}"
        return title + (f", {duration(high)} on {names[longest]}" if longest != shortest else "")
    if len(both) == 1:
        failed, succeeded = (duration(means[both[0], outcome]) for outcome in ("failure", "success"))
        return f"On {names[both[0]]}, failed {study.units} ran {failed} on average, successful ones {succeeded}"
    shorter = sum(means[name, "failure"] < means[name, "success"] for name in both)
    quantity = "all" if shorter == len(both) else f"{shorter} of" if shorter else "none of the"
    return (
        f"Failed {study.units} ran shorter on average than successful ones on {quantity} {len(both)} GPU types{of_each}"
    )

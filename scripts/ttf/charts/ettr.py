"""Effective training time against the size of a run: exact, approximated, simulated; and as measured."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.charts.figure import Figure, Study, chart_of, figure, log_domain, nothing_to_draw, percent_axis
from ttf.charts.text import count, duration, percent, significant
from ttf.charts.theme import ACCENT, FAINT
from ttf.stats.ettr import APPROXIMATION_LIMIT
from ttf.stats.plans import ESTIMATE, rate_row

EXACT, INSIDE, BEYOND = "exact mean", "approximation", "approximation beyond its limit"
SIMULATED = "simulated"
COLOURS = {EXACT: ACCENT, INSIDE: "#D55E00", BEYOND: "#D55E00", SIMULATED: "#222222"}
DASHES = {EXACT: [1, 0], INSIDE: [6, 3], BEYOND: [1.5, 3], SIMULATED: [1, 0]}
WIDTH, HEIGHT = 640, 300
_WIDTH_WITH_NOTES = 540
BASES = {
    "state": "by the states that name infrastructure",
    "event": "by states and health events",
    "proxy": "a proxy: every failure counts, those of users too",
    "component": "of the machines themselves",
}


def rate_words(rate: Mapping) -> str:
    """The failure rate of a node in words, with its interval, number of failures and basis."""
    return (
        f"{significant(rate['failures_per_1000_node_days'])} failures per 1000 node-days "
        f"(90 % interval {significant(rate['ci_low'])} to {significant(rate['ci_high'])}, "
        f"{count(rate['failures'], 'failure')}; {BASES[rate['basis']]})"
    )


def ettr_by_gpus(ettr: pl.DataFrame, rates: pl.DataFrame, run_gpus: int, study: Study) -> Figure:
    """The ratio against the size at the first checkpoint interval of ettr.csv, with the band of the failure rate."""
    what = "Effective training time by size"
    known = ettr.filter(pl.col("ettr_renewal").is_not_null() & pl.col("rate").is_in(ESTIMATE))
    known = known.filter(pl.col("checkpoint_interval_s") == ettr["checkpoint_interval_s"].first())
    known = known.with_columns(size=pl.coalesce("gpus", "nodes"))
    estimate = known.filter(pl.col("rate") == ESTIMATE[0])
    if estimate.height < 2:
        return nothing_to_draw(what, ettr["reason"].drop_nulls().first() or "one size only")
    rate = rate_row(rates)
    in_nodes = known["gpus"].null_count() > 0
    unit = "node" if in_nodes else "GPU"
    # The run that is asked about, or the largest that there is a projection for.
    run_gpus = run_gpus if run_gpus in estimate["size"] else estimate["size"].max()
    rows = _lines(estimate)
    points = [
        {"size": row["size"], "ratio": row["ettr_simulated"], "series": SIMULATED}
        | _ends(row["ettr_simulated"], row["ettr_simulated_se"])
        for row in estimate.filter(pl.col("ettr_simulated").is_not_null()).iter_rows(named=True)
    ]
    bounds = {row["rate"]: row for row in known.filter(size=run_gpus).iter_rows(named=True)}
    mine = bounds[ESTIMATE[0]]
    band = (
        known.filter(pl.col("rate") != ESTIMATE[0])
        .pivot("rate", index="size", values="ettr_renewal", aggregate_function="first")
        # The higher the failure rate, the lower the ratio.
        .select("size", low="high", high="low")
        .drop_nulls()
    )
    title = (
        f"In a run of {count(run_gpus, unit)}, {percent(mine['ettr_renewal'])} of the time is productive"
        if mine["ettr_renewal"] >= 0.0005
        else f"A run of {count(run_gpus, unit)} would make no headway at this failure rate"
    )
    plan = (
        f"A checkpoint after {duration(mine['checkpoint_interval_s'])} of work takes "
        f"{duration(mine['checkpoint_write_s'])}; start-up {duration(mine['restart_s'])}; queue "
        f"{duration(mine['queue_s'])}; {duration(mine['productive_s'])} of work."
    )
    subtitle = f"{plan} Band: at the ends of the interval of the failure rate."
    invalid = estimate.filter(~pl.col("approximation_valid"))["size"].to_list()
    caption = f"The failure rate of a node is {rate_words(rate)}. {plan} "
    caption += "Exact: the mean of the renewal model; points: simulated runs, with four standard errors either way. "
    caption += (
        f"From {count(invalid[0], unit)} on, failures take more than {APPROXIMATION_LIMIT:.0%} of the scheduled time, "
        "and the approximation fails."
        if invalid
        else "The approximation holds at every size shown."
    ).replace("30%", "30 %")
    return figure(
        _by_size(rows, points, band.to_dicts(), unit),
        {"lines": rows, "points": points, "band": band.to_dicts()},
        study,
        title=title,
        subtitle=subtitle,
        caption=caption,
        alt_text=f"Lines of the effective training time ratio falling with the number of {unit}s on a logarithmic "
        f"axis. {title}.",
    )


def _lines(estimate: pl.DataFrame) -> list[dict]:
    rows = [
        {"size": row["size"], "ratio": row["ettr_renewal"], "series": EXACT} for row in estimate.iter_rows(named=True)
    ]
    last = None
    for row in estimate.filter(pl.col("ettr_combined").is_not_null()).iter_rows(named=True):
        one = {"size": row["size"], "ratio": row["ettr_combined"]}
        if not row["approximation_valid"] and last is not None and last["series"] == INSIDE:
            # So that the dotted part begins where the dashed one ends.
            rows.append(last | {"series": BEYOND})
        last = one | {"series": INSIDE if row["approximation_valid"] else BEYOND}
        rows.append(last)
    return rows


def _ends(ratio: float, error: float | None) -> dict:
    return {} if error is None else {"low": max(ratio - 4 * error, 0), "high": min(ratio + 4 * error, 1)}


def _size_scale(sizes: list[int]) -> alt.Scale:
    return alt.Scale(type="log", base=2, domain=log_domain(sizes, 1.15, 1.15), nice=False)


def _by_size(rows: list[dict], points: list[dict], band: list[dict], unit: str) -> alt.LayerChart:
    sizes = sorted({row["size"] for row in rows})
    ticks = [size for size in sizes if size == 1 or size & (size - 1) == 0] or sizes
    x = alt.X(
        "size:Q",
        scale=_size_scale(sizes),
        axis=alt.Axis(values=ticks, format=",", title=f"{unit}s of the run (logarithmic)", labelOverlap=True),
    )
    y = alt.Y("ratio:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis("Effective training time"))
    legend = alt.Legend(title=None, orient="bottom", columns=4, symbolType="stroke")
    colour = alt.Color("series:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), legend=legend)
    dash = alt.StrokeDash(
        "series:N", scale=alt.Scale(domain=list(COLOURS), range=[DASHES[name] for name in COLOURS]), legend=legend
    )
    tooltip = [
        alt.Tooltip("series:N", title="which"),
        alt.Tooltip("size:Q", title=f"{unit}s", format=","),
        alt.Tooltip("ratio:Q", title="effective training time", format=".1%"),
    ]
    lines = chart_of("lines").mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=tooltip)
    layers = [lines]
    if band:
        shade = chart_of("band").mark_area(color=ACCENT, opacity=0.15)
        layers.insert(0, shade.encode(x=x, y=alt.Y("low:Q"), y2="high:Q"))
    if points:
        base = chart_of("points").encode(x=x, color=colour, tooltip=tooltip)
        errors = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1).encode(y="low:Q", y2="high:Q")
        layers += [errors, base.mark_point(filled=True, size=35, opacity=1).encode(y=y)]
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def ettr_measured(measured: pl.DataFrame, study: Study) -> Figure:
    """The mean ratio of the job runs of each size with its interval, beside what the model expects of the same runs."""
    what = "Measured effective training time"
    if not measured.height:
        return nothing_to_draw(what, "no job run lasted long enough")
    rows = []
    for row in measured.iter_rows(named=True):
        label = f"{row['gpus_low']:,} to {row['gpus_high']:,}" if row["gpus_low"] < row["gpus_high"] else None
        rows.append(
            {"size": label or f"{row['gpus_high']:,}", "runs": row["runs"], "note": f"n = {row['runs']:,}"}
            | {name: row[name] for name in ("ettr_mean", "ci_low", "ci_high", "expected_ettr") if row[name] is not None}
        )
    runs = measured["runs"].sum()
    mean = float((measured["ettr_mean"] * measured["runs"]).sum() / runs)
    title = f"In {count(runs, 'long job run')}, {percent(mean)} of the time was work that lasts, in the mean"
    missing = sum("expected_ettr" not in row for row in rows)
    caption = f"Mean over job runs with Student's 95 % interval; {count(runs, 'run')}."
    caption += "" if missing == len(rows) else " Diamonds: what the exact model expects of the same runs."
    y = alt.Y("size:N", sort=[row["size"] for row in rows], title="GPUs of the run")
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("ettr_mean:Q", scale=scale, axis=percent_axis("Effective training time, mean over runs"))
    tooltip = [
        alt.Tooltip("size:N", title="GPUs"),
        alt.Tooltip("runs:Q", format=","),
        alt.Tooltip("ettr_mean:Q", title="measured", format=".1%"),
        alt.Tooltip("expected_ettr:Q", title="expected", format=".1%"),
    ]
    base = chart_of("runs").encode(y=y, tooltip=tooltip)
    with_interval = base.transform_filter("isValid(datum.ci_low)")
    rules = with_interval.mark_rule(strokeWidth=1.5, color=ACCENT).encode(
        x=alt.X("ci_low:Q", scale=scale), x2="ci_high"
    )
    dots = base.mark_point(filled=True, size=60, color=ACCENT, opacity=1).encode(x=x)
    expected = (
        base.transform_filter("isValid(datum.expected_ettr)")
        .mark_point(shape="diamond", size=80, filled=False, strokeWidth=1.8, color="#D55E00")
        .encode(x=alt.X("expected_ettr:Q", scale=scale))
    )
    notes = base.mark_text(align="left", dx=8, fontSize=11, color=FAINT).encode(
        x=alt.value(_WIDTH_WITH_NOTES), text="note:N"
    )
    chart = alt.layer(rules, dots, expected, notes).properties(width=_WIDTH_WITH_NOTES, height=alt.Step(26))
    return figure(
        chart,
        {"runs": rows},
        study,
        title=title,
        subtitle="Points: measured, with 95 % interval"
        + ("." if missing == len(rows) else "; diamonds: expected of the same runs."),
        caption=caption,
        alt_text=f"Points with intervals by number of GPUs on an axis from 0 to 100 %. {title}.",
    )

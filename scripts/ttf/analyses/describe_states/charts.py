"""Jobs by the state they ended in and by size, each by number and by GPU time."""

import altair as alt
import polars as pl

from ttf.charts.axes import percent_axis
from ttf.charts.encodings import coloured, labelled_bars, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import capital, count, gpus_label, labels, percent, plural
from ttf.charts.theme import ACCENT, CATEGORY_COLOURS, OUTCOME_COLOURS
from ttf.inputs import Inputs

MOST_STATES = 14
_STATE, _INFRA, _PROXY = "state", "laid to infrastructure", "every failure (a proxy)"


def states_chart(given: Inputs, study: Study) -> Figure:
    """Share of the jobs (or attempts) and of GPU time by state, and of what is attributed to infrastructure."""
    states = given["states"]
    counted = states["unit"].last()
    unit = "attempt" if counted == "attempt" else study.unit
    mine = states.filter(pl.col("unit") == counted)
    words = mine.filter(pl.col("kind") == "state").with_columns(pl.col("state").fill_null("not told"))
    if not words["count"].sum():
        return nothing_to_draw("Shares by state", f"the trace has no {unit}")
    shown = words.head(MOST_STATES)
    names = labels(shown["state"])
    infra = mine.filter(pl.col("kind") == "infra").to_dicts()
    proxy = bool(infra) and infra[0]["infra_basis"] == "proxy"
    overlay = _PROXY if proxy else _INFRA
    measures = {f"share of {plural(unit)}": "count_share"}
    if shown["gpu_hours_share"].count():
        measures["share of GPU time"] = "gpu_hours_share"
    labelled = [(row, names[row["state"]], _STATE) for row in shown.iter_rows(named=True)]
    rows = [
        {"measure": measure, "state": name, "kind": kind, "label": percent(row[column])}
        | picked(row, "count", share=column)
        for row, name, kind in [*labelled, *((row, overlay, overlay) for row in infra)]
        for measure, column in measures.items()
        if row[column] is not None
    ]
    order = [*names.values(), overlay]
    base = chart_of("states").encode(
        # Room for the label beside a bar of 100 %.
        x=alt.X("share:Q", scale=alt.Scale(domain=[0, 1.15]), axis=percent_axis(values=[0, 0.25, 0.5, 0.75, 1])),
        y=alt.Y("state:N", title=None, sort=order, axis=alt.Axis(labelLimit=170)),
        tooltip=[*tips("state", label="share"), *tips(form=",", count=plural(unit))],
    )
    colour = coloured("kind", {_STATE: ACCENT, overlay: OUTCOME_COLOURS["failure"]})
    width = 250 if len(measures) == 2 else 520
    facet = alt.Facet("measure:N", title=None, sort=list(measures), header=alt.Header(labelFontWeight="bold"))
    bars = labelled_bars(base, 14, colour, 11).properties(width=width, height=alt.Step(21))
    title = _states_title(words, infra, names, unit, proxy)
    n = mine["n"][0]
    caption = f"{capital(count(n, unit))} by the state in which they ended, as the trace writes it."
    if infra:
        of = "every failure, as nothing tells causes apart" if proxy else "ends laid to hardware or system software"
        caption += f" The last bar lies over the states: {of}."
    if words.height > shown.height:
        # Not how many: the table's last row may stand for several.
        caption += " Rarer states are in states.csv."
    return figure(
        bars.facet(facet=facet, columns=2),
        {"states": rows},
        study,
        title=title,
        subtitle=f"By number of {plural(unit)} and by GPU time; orange: {overlay}.",
        caption=caption,
        alt_text=f"Bars of shares for {count(shown.height, 'state')}. {title}.",
    )


def _states_title(words: pl.DataFrame, infra: list[dict], names: dict, unit: str, proxy: bool) -> str:
    failures = infra[0] if infra else None
    if failures and failures["count"] and failures["gpu_hours_share"] is not None:
        what = "Failures of any kind (a proxy)" if proxy else "Infrastructure failures"
        of_units, of_time = percent(failures["count_share"]), percent(failures["gpu_hours_share"])
        return f"{what} end {of_units} of {plural(unit)}, which hold {of_time} of GPU time"
    first = words.row(0, named=True)
    return f"{percent(first['count_share'])} of {plural(unit)} end as {names[first['state']]}"


def size_mix_chart(given: Inputs, study: Study) -> Figure:
    """Share of the jobs and of GPU time by number of GPUs."""
    mix = given["size_mix"]
    sized = mix.filter(pl.col("gpus_high") > 0)
    if not sized.height:
        what = f"{capital(study.units)} and GPU time by number of GPUs"
        return nothing_to_draw(what, f"no {study.unit} asked for a GPU")
    measures = {study.units: "jobs"} | ({"GPU time": "gpu_hours"} if sized["gpu_hours_share"].count() else {})
    order = [gpus_label(low, high) for low, high in sized.select("gpus_low", "gpus_high").iter_rows()]
    rows = [
        {"gpus": gpus, "measure": measure}
        | picked(row, share=f"{column}_share", up_to=f"{column}_up_to_share", n="jobs")
        for gpus, row in zip(order, sized.iter_rows(named=True), strict=True)
        for measure, column in measures.items()
    ]
    chart = (
        chart_of("sizes")
        .mark_bar()
        .encode(
            x=alt.X("gpus:N", sort=order, title=f"GPUs of the {study.unit}", axis=alt.Axis(labelAngle=-35)),
            xOffset=alt.XOffset("measure:N", sort=list(measures)),
            y=alt.Y("share:Q", axis=percent_axis("Share"), scale=alt.Scale(zero=True)),
            color=coloured("measure", dict(zip(measures, CATEGORY_COLOURS, strict=False)), title=None, orient="bottom"),
            tooltip=[
                *tips(gpus="GPUs", measure="share of"),
                *tips("share", form=".2%", up_to="up to this size"),
                *tips(form=",", n=study.units),
            ],
        )
        .properties(width=620, height=260)
    )
    most = sized.sort("jobs", "gpus_high", descending=[True, False]).row(0, named=True)
    gpus = gpus_label(most["gpus_low"], most["gpus_high"])
    title = f"{percent(most['jobs_share'])} of {study.units} ask for {gpus} GPU{'' if gpus == '1' else 's'}"
    if most["gpu_hours_share"] is not None:
        title += f" and take {percent(most['gpu_hours_share'])} of GPU time"
    caption = f"n = {count(sized['n'][0], study.unit)} that asked for a GPU; a share of one GPU counts as 1."
    without = mix.filter(pl.col("gpus_high") == 0)["jobs"].sum()
    if without:
        caption += f" {capital(count(without, study.unit))} without a GPU left out."
    return figure(
        chart,
        {"sizes": rows},
        study,
        title=title,
        subtitle=f"Share of the {study.units} that asked for a GPU, and of all GPU time, by GPUs of the {study.unit}.",
        caption=caption,
        alt_text=f"Paired bars for {count(sized.height, 'size')}. {title}.",
    )


CHARTS = {"states": states_chart, "size_mix": size_mix_chart}

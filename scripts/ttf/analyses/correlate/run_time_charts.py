"""Mean run time against what jobs asked for and what they used: a point per group, a panel per outcome set."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from ttf.charts.axes import log_domain, log_scale, log_ticks, on_log_time, time_axis, time_domain
from ttf.charts.encodings import picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import FEATURE_NAMES, capital, coefficient, count, feature_title, listed
from ttf.charts.theme import INK, OUTCOME_COLOURS
from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_ENDED
from ttf.stats.features import correlation_row

MEASURED = ("gpu_utilisation", "cpu_usage", "memory_usage")
MOST_CUTOFFS = 3

# Of all panels in a row with the gaps between them.
_WIDTH = 608
_HEIGHT = 150
_GAP = 8
_FEW_TICKS_S = (1, 60, 3_600, 86_400, 8_640_000, 864_000_000)
# Above the highest point, for the correlation in the corner of each panel.
_HEADROOM = 12

# `not_success` is left to the table: it is for comparison with a published study, and mixes what runs with what failed.
SETS = ("success", "failure")
COLOURS = alt.Scale(domain=list(SETS), range=[OUTCOME_COLOURS[name] for name in SETS])
# Of a row with its number of jobs: their mean is drawn hollow, as a few long runs among so few can move it far.
FEW = alt.FieldLTPredicate("jobs", lt=FEWEST_ENDED)

MOST_POINTS = 1_000  # in a chart
MOST_GROUPS = 300  # of a feature
BINS = 100

KEYS = ("outcome_set", "feature", "cutoff_s")


@dataclass(frozen=True)
class Points:
    """Points to draw, and what the caption has to say about them.

    rows: outcome_set, feature, cutoff_s, value (float), jobs, mean_s, median_s; of a bin also its values from, to.
    zeros: groups excluded from a logarithmic axis. merged: the features whose groups were merged into bins.
    """

    rows: list[dict]
    zeros: int
    merged: list[str]


def few_in_a_mean(rows: Sequence[dict], study: Study) -> str:
    """What the caption says of means that are drawn hollow, where there are any."""
    if all(row["jobs"] >= FEWEST_ENDED for row in rows):
        return ""
    return f" Hollow: fewer than {FEWEST_ENDED} {study.units}, whose mean a few long runs can move far."


def points(groups: pl.DataFrame, log: bool) -> Points:
    """The groups of runtime_by_group.csv (numeric features only) as points.

    A feature with more groups in a panel than fit has the groups of each of its panels merged into 100 bins of
    equal width on the axis, at job-weighted means; a bin has no median.
    """
    numbers = groups.with_columns(value=pl.col("value").cast(pl.Float64))
    positive = numbers.filter(pl.col("value") > 0) if log else numbers
    panels = max(1, positive.select(KEYS).n_unique())
    most = min(MOST_GROUPS, MOST_POINTS // panels)
    rows: list[dict] = []
    merged = []
    for (feature,), part in positive.group_by("feature", maintain_order=True):
        if part.group_by(KEYS).len()["len"].max() > most:
            merged.append(str(feature))
            part = _binned(part, log)
        rows += part.rename({"runtime_mean_s": "mean_s", "runtime_median_s": "median_s"}).to_dicts()
    return Points(rows, numbers.height - positive.height, merged)


def _binned(part: pl.DataFrame, log: bool) -> pl.DataFrame:
    """The groups with those of a bin as one, of the values `from` to `to`."""
    value, jobs = pl.col("value"), pl.col("jobs")
    place = value.log() if log else value
    number = ((place - place.min()) / (place.max() - place.min()) * BINS).floor().clip(upper_bound=BINS - 1)

    def weighted(name: str) -> pl.Expr:
        return (pl.col(name) * jobs).sum() / jobs.sum()

    bins = part.group_by(*KEYS, bin=number, maintain_order=True).agg(
        # Rounding leaves a mean among its values.
        weighted("value").clip(value.min(), value.max()),
        jobs.sum(),
        weighted("runtime_mean_s"),
        pl.when(pl.len() == 1).then(pl.col("runtime_median_s").first()),
        value.min().alias("from"),
        to=value.max(),
    )
    return bins.drop("bin")


def runtime_by_request(given: Inputs, study: Study, *, feature: str, log: bool) -> Figure:
    """Mean run time against the value of one request; a row of panels per outcome, a column per cut-off."""
    groups, correlations, name = given["runtime_by_group"], given["correlations"], FEATURE_NAMES[feature]
    what = f"Run time by {name}" + (" (logarithmic)" if log else "")
    known = groups.filter(pl.col("outcome_set").is_in(SETS), feature=feature)
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} that succeeded or failed has a {name} and a run time")
    cutoffs = sorted(known["cutoff_s"].drop_nulls().unique(), reverse=True)
    shown = [None, *cutoffs[:MOST_CUTOFFS]]
    ready = points(known.filter(pl.col("cutoff_s").is_in(shown, nulls_equal=True)), log)
    if len({row["value"] for row in ready.rows}) < 2:
        fewer = f"fewer than two values of {name}{' above 0' if log else ''}"
        return nothing_to_draw(what, f"{fewer} occur among {study.units} that ended")
    columns = {cutoff: "no cut-off" if cutoff is None else f"run time < {cutoff:,} s" for cutoff in shown}
    present = _present(ready)
    rows = [_drawn(row) | {"column": columns[row["cutoff_s"]]} for row in ready.rows]
    notes = [
        {"outcome": outcome, "column": label, "note": note(correlations, feature, outcome, cutoff)}
        for outcome in present
        for cutoff, label in columns.items()
    ]
    x = _x(feature, ready.rows, log)
    panel = _panel("groups", x, _y(ready.rows), _size(ready.rows, study), _tooltip(feature, ready))
    chart = panel.properties(width=_width(len(columns), _GAP), height=_HEIGHT).facet(
        row=alt.Row("outcome:N", sort=present, title=None, header=alt.Header(labelOrient="right")),
        column=alt.Column("column:N", sort=list(columns.values()), title=None),
        spacing=_GAP,
    )
    title = trend_of_request(correlations, feature, study)
    caption = f"One point per distinct {name}: the mean run time of its {study.units}. {_numbers(ready, study)}"
    caption += _remarks(ready, study, log)
    if cutoffs:
        caption += " A cut-off selects on the outcome: it leaves out the long runs."
    if len(cutoffs) > MOST_CUTOFFS:
        caption += f" {count(len(cutoffs) - MOST_CUTOFFS, 'smaller cut-off')} left to the table."
    return figure(
        chart,
        {"groups": [*rows, *notes]},
        study,
        title=title,
        subtitle=_subtitle(name, study),
        caption=caption,
        alt_text=f"Scatter plots of mean run time against {name}, for {listed(present)}, without and with cut-offs of "
        f"the run time. {title}.",
    )


def runtime_by_measured_use(given: Inputs, study: Study, *, log: bool) -> Figure:
    """Mean run time against measured use, without a cut-off; a column of panels per feature, a row per outcome."""
    groups, correlations = given["runtime_by_group"], given["correlations"]
    what = "Run time by measured use" + (" (logarithmic)" if log else "")
    known = groups.filter(
        pl.col("feature").is_in(MEASURED) & pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(SETS)
    )
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} that succeeded or failed has a measured use and a run time")
    ready = points(known, log)
    by_feature = {name: [row for row in ready.rows if row["feature"] == name] for name in MEASURED}
    features = [name for name, rows in by_feature.items() if len({row["value"] for row in rows}) > 1]
    if not features:
        of_two = f"no measured use has two values{' above 0' if log else ''}"
        return nothing_to_draw(what, f"{of_two} among {study.units} that ended")
    ready = Points([row for name in features for row in by_feature[name]], ready.zeros, ready.merged)
    present = _present(ready)
    datasets, panels = {}, []
    for feature in features:
        for outcome in present:
            mine = [row for row in by_feature[feature] if row["outcome_set"] == outcome]
            text = {"outcome": outcome, "note": note(correlations, feature, outcome, None)}
            datasets[f"{outcome}_{feature}"] = [*map(_drawn, mine), text]
            heading = alt.TitleParams(capital(outcome), fontSize=12, offset=4, anchor="middle", frame="group")
            panel = _panel(
                f"{outcome}_{feature}",
                _x(feature, by_feature[feature], log),
                # The panels of a row have one run time axis, at the left.
                _y(ready.rows, labelled=outcome == present[0]),
                _size(ready.rows, study),
                _tooltip(feature, ready),
            )
            panel = panel.properties(width=_width(len(present), 20), height=_HEIGHT)
            panels.append(panel.properties(title=heading) if feature == features[0] else panel)
    # Legends alike are drawn once.
    chart = alt.concat(*panels, columns=len(present), spacing={"row": 2 * _GAP, "column": 20}).resolve_scale(
        x="independent", y="independent", size="shared", color="shared"
    )
    title = trend_of_use(correlations, features, study)
    names = listed([FEATURE_NAMES[name] for name in features])
    caption = (
        f"One point per whole unit of measured use: the mean run time of its {study.units}, without a cut-off. "
        f"{_numbers(ready, study)}"
    )
    return figure(
        chart,
        datasets,
        study,
        title=title,
        subtitle=_subtitle(names, study),
        caption=caption + _remarks(ready, study, log),
        alt_text=f"Scatter plots of mean run time against {names}, for {listed(present)}. {title}.",
    )


def _present(ready: Points) -> list[str]:
    return [name for name in SETS if any(row["outcome_set"] == name for row in ready.rows)]


def _width(panels: int, gap: int) -> int:
    return (_WIDTH - gap * (panels - 1)) // panels


def _drawn(row: dict) -> dict:
    # Of a bin with several values.
    ends = picked(row, "from", "to") if row.get("from") != row.get("to") else {}
    drawn = picked(row, "value", "jobs", "mean_s", "median_s", outcome="outcome_set")
    return drawn | {"y": on_log_time(row["mean_s"])} | ends


def _y(rows: Sequence[dict], labelled: bool = True) -> alt.Y:
    axis = time_axis("Mean run time" if labelled else None, _FEW_TICKS_S, labels=labelled, ticks=labelled)
    domain = time_domain([on_log_time(row["mean_s"]) for row in rows], _HEADROOM)
    return alt.Y("y:Q", scale=log_scale(domain), axis=axis)


def _size(rows: Sequence[dict], study: Study) -> alt.Size:
    most = max(row["jobs"] for row in rows)
    # One significant digit, rounded down, so that no size in the legend is beyond the largest point.
    digit = 10 ** (len(str(most)) - 1)
    top = most // digit * digit
    legend = alt.Legend(
        title=f"{study.units} in a group",
        orient="bottom",
        direction="horizontal",
        values=sorted({1, max(1, top // 4), top}),
        symbolStrokeWidth=1,
        format=",.0f",
    )
    scale = alt.Scale(type="sqrt", domain=[1, max(2, most)], range=[14, 260], zero=False)
    return alt.Size("jobs:Q", scale=scale, legend=legend)


def _x(feature: str, rows: Sequence[dict], log: bool) -> alt.X:
    values = [row["value"] for row in rows]
    # On two lines, because a panel is narrow.
    title = feature_title(feature).replace(" (", "\n(").split("\n")
    shown = {"title": title, "format": ",.6~g", "labelOverlap": True}
    if log:
        domain = log_domain(values)
        return alt.X("value:Q", scale=log_scale(domain), axis=alt.Axis(values=log_ticks(domain), **shown))
    margin = 0.03 * max(values)
    # A label near the end of an axis stays off the next panel.
    axis = alt.Axis(tickCount=3, labelFlush=15, **shown)
    return alt.X("value:Q", scale=alt.Scale(domain=[-margin, max(values) + margin], nice=False), axis=axis)


def _tooltip(feature: str, ready: Points) -> list[alt.Tooltip]:
    of_bin = {"from": "values from", "to": "values to"} if feature in ready.merged else {}
    return [
        *tips("outcome"),
        *tips(form=",.6~g", value=feature_title(feature), **of_bin),
        *tips(form=",", jobs="n"),
        *tips(form=",.1f", mean_s="mean run time (s)", median_s="median run time (s)"),
    ]


def _panel(dataset: str, x: alt.X, y: alt.Y, size: alt.Size, tooltip: list[alt.Tooltip]) -> alt.LayerChart:
    base = chart_of(dataset)
    outcome = {"scale": COLOURS, "legend": None}
    dots = (
        base.transform_filter("isValid(datum.value)")
        .mark_circle(opacity=0.65)
        .encode(
            x=x,
            y=y,
            color=alt.Color("outcome:N", **outcome),
            stroke=alt.condition(FEW, alt.Stroke("outcome:N", **outcome), alt.value("white")),
            strokeWidth=alt.condition(FEW, alt.value(1), alt.value(0.4)),
            fillOpacity=alt.condition(FEW, alt.value(0), alt.value(1)),
            size=size,
            tooltip=tooltip,
        )
    )
    corner = (
        base.transform_filter("isValid(datum.note)")
        .mark_text(align="left", baseline="top", fontSize=10.5, color=INK)
        .encode(x=alt.value(5), y=alt.value(5), text="note:N")
    )
    return dots + corner


def _subtitle(names: str, study: Study) -> str:
    return (
        f"Mean run time of {study.units} by {names}; larger points stand for more {study.units}, hollow ones for "
        f"fewer than {FEWEST_ENDED}. In the corners: Pearson's correlation of the group means, n groups."
    )


def _numbers(ready: Points, study: Study) -> str:
    """How many jobs are drawn without a cut-off."""
    parts = []
    for outcome in _present(ready):
        jobs: dict[str, int] = {}
        for row in ready.rows:
            if row["outcome_set"] == outcome and row["cutoff_s"] is None:
                jobs[row["feature"]] = jobs.get(row["feature"], 0) + row["jobs"]
        least, most = min(jobs.values(), default=0), max(jobs.values(), default=0)
        parts.append(f"{outcome} {most:,}" if least == most else f"{outcome} {least:,} to {most:,} by feature")
    return f"n ({study.units} drawn, no cut-off): {', '.join(parts)}."


def _remarks(ready: Points, study: Study, log: bool) -> str:
    text = few_in_a_mean(ready.rows, study)
    if ready.merged:
        names = listed([FEATURE_NAMES[name] for name in ready.merged])
        text += (
            f" Too many values of {names} to draw: neighbouring groups are merged into 100 bins of equal width"
            f"{' on the logarithmic axis' if log else ''}, their means weighted by n."
        )
    if log and ready.zeros:
        text += f" A logarithmic axis has no 0: {count(ready.zeros, 'group')} at 0, over all panels, not drawn."
    text += (
        " The correlations are of all groups, each of the same weight, and of values and means themselves, not their "
        "logarithms: the same on both axes."
    )
    if any(row["mean_s"] < 1 for row in ready.rows):
        text += " Means below 1 s stand at 1 s."
    return text + (
        " A trend is called clear where its p-value, adjusted over the features (Holm), is below the study's "
        "significance level."
    )


# A title is silent about fewer: three points on a line are easily had by chance, whatever their p-value.
FEWEST_GROUPS = 5
_WORDS = {"success": "successful", "failure": "failed"}


def correlation(correlations: pl.DataFrame, feature: str, outcome: str, cutoff: int | None) -> dict | None:
    """The row of correlations.csv that belongs to a panel, whatever its axes: Pearson's r of the group means."""
    return correlation_row(correlations, outcome, feature, cutoff, "group_mean", "pearson")


def quoted(found: dict) -> str:
    return f"r = {coefficient(found['estimate'])}"


def note(correlations: pl.DataFrame, feature: str, outcome: str, cutoff: int | None) -> str:
    found = correlation(correlations, feature, outcome, cutoff)
    if found is None:
        return ""
    n = f"n = {found['n']:,}"
    return n if found["estimate"] is None else f"{quoted(found)}, {n}"


def trend_of_request(correlations: pl.DataFrame, feature: str, study: Study) -> str:
    """The title of a chart of one request: its correlations without a cut-off."""
    name = FEATURE_NAMES[feature]
    parts = []
    for outcome, word in _WORDS.items():
        found = correlation(correlations, feature, outcome, None)
        if _speaks(found):
            parts.append((_verb(found), word, f"({quoted(found)}, n = {found['n']:,})"))
    if not parts:
        return f"Mean run time by {name}: no trend can be told"
    (verb, word, number), *others = parts
    title = f"Mean run time {verb} with {name} among {word} {study.units} {number}"
    for other, word, number in others:
        title += f" and {word} ones {number}" if other == verb else f"; among {word} ones it {other} {number}"
    return title


def trend_of_use(correlations: pl.DataFrame, features: Sequence[str], study: Study) -> str:
    """The title of the chart of measured use: which trends are clear without a cut-off."""
    clear: dict[str, list[str]] = {}
    known = False
    for outcome, word in _WORDS.items():
        by_verb: dict[str, list[str]] = {}
        for feature in features:
            found = correlation(correlations, feature, outcome, None)
            if not _speaks(found):
                continue
            known = True
            if found["reject"]:
                by_verb.setdefault(_verb(found), []).append(FEATURE_NAMES[feature])
        if by_verb:
            clear[word] = [f"{verb} with {listed(names)}" for verb, names in by_verb.items()]
    if not known:
        return "Mean run time by measured use: no trend can be told"
    if not clear:
        return f"Mean run time shows no clear trend with the measured use of {study.units}"
    (word, verbs), *others = clear.items()
    title = f"Among {word} {study.units} mean run time {listed(verbs)}"
    return title + "".join(f"; among {word} ones it {listed(verbs)}" for word, verbs in others)


def _speaks(found: dict | None) -> bool:
    return found is not None and found["estimate"] is not None and found["n"] >= FEWEST_GROUPS


def _verb(found: dict) -> str:
    if not found["reject"]:
        return "shows no clear trend"
    return "rises" if found["estimate"] > 0 else "falls"

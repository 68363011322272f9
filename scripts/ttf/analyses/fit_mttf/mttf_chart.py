"""Mean time to failure by stratum, with its exact intervals."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.charts.axes import log_axis, log_domain, log_scale
from ttf.charts.encodings import side_notes, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw, one_for_all
from ttf.charts.picking import Picks
from ttf.charts.text import HOUR_S, capital, count, hours, in_words, labels
from ttf.charts.theme import ACCENT, FAINT

# More sizes than these stand one below the other, as other strata do: side by side, a phone has no room for them.
MOST_ACROSS = 10
MOST_STRATA = 20
# A mean from fewer failures is too uncertain to be called the lowest or highest.
ENOUGH_FAILURES = 10


def mttf_by(given: Mapping[str, pl.DataFrame], study: Study, stratum_by: str) -> Figure:
    """Mean time to failure by GPU type or number of GPUs with 90 % and 95 % intervals."""
    what = f"Mean time to failure by {in_words(stratum_by)}"
    mttf = given["mttf"].filter(pl.col("event") == "failure")
    mine = mttf.filter((pl.col("stratum_by") == stratum_by) & (pl.col("n") > 0))
    strata = _by_stratum(mine.filter(pl.col("ci_low_s") > 0))
    if not strata:
        return nothing_to_draw(what, f"no {study.unit} with a known {in_words(stratum_by)} has run for a known time")
    if one_for_all(mttf, stratum_by):
        return nothing_to_draw(what, f"all lives have one {in_words(stratum_by)}")
    kept = {row["stratum"] for row in sorted(strata, key=lambda row: -row["n"])[:MOST_STRATA]}
    drawn = [row for row in strata if row["stratum"] in kept]
    names = _names(stratum_by, [row["stratum"] for row in drawn])
    rows = [_row(row, names[row["stratum"]]) for row in drawn]
    overall = mttf.filter((pl.col("stratum_by") == "all") & pl.col("mttf_s").is_not_null())["mttf_s"].head(1).to_list()
    n, failures = sum(row["n"] for row in drawn), sum(row["events"] for row in drawn)
    caption = (
        f"Exposure over failures with right-censoring, exact Poisson (Garwood) intervals; n = {count(n, 'life')}, "
        f"{count(failures, 'failure')}."
    )
    if any(row["events"] == 0 for row in drawn):
        caption += " Triangle: no failure, so there is a one-sided lower bound only (drawn: 95 %)."
    if len(strata) > len(drawn):
        caption += f" The {MOST_STRATA} strata with the most lives; {len(strata) - len(drawn):,} left out."
    without = mine["stratum"].n_unique() - len(strata)
    if without:
        caption += f" {count(without, 'stratum')} without exposure left out."
    everything = mttf.filter(pl.col("stratum_by") == "all")["n"].max() or 0
    if overall and (unknown := everything - mine.filter(pl.col("confidence") == 0.95)["n"].sum()):
        caption += f" The whole trace includes {count(unknown, 'life')} without a known {in_words(stratum_by)}."
    title = _title(drawn, names, stratum_by)
    picks = Picks(("strata",), "stratum", {name: name for name in names.values()})
    in_order = stratum_by == "gpu_count" and len(rows) <= MOST_ACROSS
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
        picks=picks if stratum_by == "gpu_type" else None,
    )


def _by_stratum(mine: pl.DataFrame) -> list[dict]:
    """One row a stratum with both intervals."""
    strata: dict[str, dict] = {}
    for row in mine.iter_rows(named=True):
        one = strata.setdefault(
            row["stratum"], {name: row[name] for name in ("stratum", "n", "events", "exposure_s", "mttf_s")}
        )
        one[row["confidence"]] = (row["ci_low_s"], row["ci_high_s"])
    return [row for row in strata.values() if 0.9 in row and 0.95 in row]


def _names(stratum_by: str, strata: list[str]) -> dict[str, str]:
    if stratum_by == "gpu_count":
        return {stratum: f"{int(stratum):,}" for stratum in strata}
    return labels(strata)


def _row(row: dict, name: str) -> dict:
    (low95, high95), (low90, high90) = row[0.95], row[0.9]
    failures = {"failures": row["events"], "note": count(row["events"], "failure")}
    drawn = {"stratum": name, "n": row["n"], **failures, "low95": low95 / HOUR_S}
    if row["events"] == 0:
        return drawn
    seen = {"mttf": row["mttf_s"], "high95": high95, "low90": low90, "high90": high90}
    return drawn | {name: seconds / HOUR_S for name, seconds in seen.items()}


def _layers(rows: list[dict], overall: list[float], along: str, stratum: alt.SchemaBase) -> tuple:
    """The marks with hours along the channel `along`, and the domain of hours."""
    ends = [row[name] for row in rows for name in ("low95", "high95") if name in row]
    domain = log_domain([*ends, *(mean / HOUR_S for mean in overall)], 1.5 if along == "x" else 4, 1.5)
    channel = alt.X if along == "x" else alt.Y
    axis = log_axis(domain, "Mean time to failure (hours, logarithmic)")
    scale = log_scale(domain)

    def hours_of(low: str, high: object = None) -> dict:
        channels = {along: channel(f"{low}:Q", scale=scale, axis=axis)}
        return channels if high is None else channels | {f"{along}2": high}

    across = "y" if along == "x" else "x"
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
    thin = seen.mark_rule(strokeWidth=1.5, color=ACCENT).encode(**hours_of("low95", "high95:Q"))
    thick = seen.mark_rule(strokeWidth=4.5, color=ACCENT, opacity=0.55).encode(**hours_of("low90", "high90:Q"))
    dots = seen.mark_point(filled=True, size=60, color=ACCENT, opacity=1).encode(**hours_of("mttf"))
    edge, shape = (alt.X2Value("width"), "triangle-right") if along == "x" else (alt.Y2Value(0), "triangle-up")
    arrows = unseen.mark_rule(strokeDash=[2, 3], color=FAINT).encode(**hours_of("low95", edge))
    triangles = unseen.mark_point(shape=shape, size=80, filled=False, strokeWidth=1.5, color=FAINT)
    triangles = triangles.encode(**hours_of("low95"))
    layers = [thin, thick, dots]
    if any("mttf" not in row for row in rows):
        layers += [arrows, triangles]
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


def _title(drawn: list[dict], names: dict[str, str], stratum_by: str) -> str:
    def named(row: dict) -> str:
        return count(int(row["stratum"]), "GPU") if stratum_by == "gpu_count" else names[row["stratum"]]

    seen = [row for row in drawn if row["events"]]
    if not seen:
        most = max(drawn, key=lambda row: row[0.95][0])
        return (
            f"No failure at a known time: the mean time to failure with {named(most)} is {hours(most[0.95][0])} or more"
        )
    if len(seen) == 1:
        only = seen[0]
        low, high = only[0.95]
        return (
            f"The mean time to failure with {named(only)} is {hours(only['mttf_s'])} (95 % interval {hours(low)} to "
            f"{hours(high)})"
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

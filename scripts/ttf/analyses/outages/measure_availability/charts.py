"""Outage causes: the share of each in the outage records and in their time down."""

import polars as pl

from ttf.analyses.outages.measure_availability.compute import CAUSE
from ttf.display.charts.figure import Figure, Study, empty_figure, make_figure
from ttf.display.charts.share_panels import add_percentages, describe_shares, draw_share_panels
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import CANCELLED, INFRA, THIRD
from ttf.engine.words import capitalise, plural
from ttf.records.inputs import Inputs

MOST_BARS = 6
_MEASURES = {"share": "records", "downtime_share": "their time down"}
_COLOURS = {"other": INFRA, "planned": THIRD, "rest": CANCELLED}
_NAMES_WIDTH = 190


def outage_causes(inputs: Inputs, study: Study) -> Figure:
    """Draw bars of causes in one or two panels, those with the most time down first."""
    causes = inputs["outage_causes"]
    depth = _choose_depth(causes)
    if depth is None:
        return empty_figure("Outages by cause", "no record of an outage names a cause" if causes.height else "none")
    title, causes_at_depth = f"Outages by {depth}", causes.filter(depth=depth)
    rows = _rank_causes(causes_at_depth, depth)
    measures = {name: label for name, label in _MEASURES.items() if causes_at_depth[name].sum()}
    rows = add_percentages(rows, measures)
    planned = "; yellow: planned" if any(row["kind"] == "planned" for row in rows) else ""
    measure_words = " and of ".join(measures.values())
    return make_figure(
        draw_share_panels("cause", rows, measures, _COLOURS, study, _NAMES_WIDTH),
        {"causes": rows},
        study,
        title=title,
        subtitle=f"Share of {measure_words}{planned}",
        caption=f"n = {plural(int(causes_at_depth['events'].sum()), 'record')} of outages",
        alt_text=f"Bars of the share of {measure_words}: {describe_shares('cause', rows, measures)}.",
    )


def _choose_depth(causes: pl.DataFrame) -> str | None:
    """Return the first of class, level and cause with several values, else the first with any; None if all blank."""
    named_depths = [name for name in ("class", "level", "cause") if causes[name].count()]
    divided_depths = [name for name in named_depths if causes.filter(depth=name)[name].n_unique() > 1]
    return next(iter([*divided_depths, *named_depths]), None)


def _rank_causes(causes: pl.DataFrame, depth: str) -> list[dict]:
    """Return MOST_BARS causes with the most time down; the last sums the rest. Duplicate names get their level."""
    is_double = causes[depth].is_duplicated() & causes[depth].is_not_null()
    parents = CAUSE[: CAUSE.index(depth)]
    label = pl.concat_str(depth, pl.format(" ({})", parents[0]), ignore_nulls=True) if parents else pl.col(depth)
    names = causes.select(
        pl.when(is_double).then(label).otherwise(pl.col(depth)).fill_null("No cause named")
    ).to_series()
    short_names = make_labels(names)
    ranked = [
        {"cause": capitalise(short_names[name])}
        | {"kind": "planned" if 2 * row["planned"] > row["events"] else "other", "records": row["events"]}
        | {measure: row[measure] or 0 for measure in _MEASURES}
        for name, row in zip(names, causes.iter_rows(named=True), strict=True)
    ]
    ranked.sort(key=lambda row: (-row["downtime_share"], -row["records"], row["cause"]))
    if len(ranked) <= MOST_BARS:
        return ranked
    smallest = ranked[MOST_BARS - 1 :]
    totals = {name: sum(row[name] for row in smallest) for name in ("records", *_MEASURES)}
    return [*ranked[: MOST_BARS - 1], {"cause": f"{len(smallest)} others", "kind": "rest"} | totals]


CHARTS = {"outage_causes": outage_causes}

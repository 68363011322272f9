"""What units were down for: the share of each cause in the records of outages, and in their time down."""

import polars as pl

from ttf.analyses.outages.measure_availability.compute import CAUSE
from ttf.display.charts.figure import Figure, Study, figure, nothing_to_draw
from ttf.display.charts.share_panels import add_percentages, describe_shares, draw_share_panels
from ttf.display.charts.text import labels
from ttf.display.charts.theme import CANCELLED, INFRA, THIRD
from ttf.engine.words import capital, plural
from ttf.records.inputs import Inputs

MOST_BARS = 6
_MEASURES = {"share": "records", "downtime_share": "their time down"}
_COLOURS = {"other": INFRA, "planned": THIRD, "rest": CANCELLED}
_NAMES_WIDTH = 190


def outage_causes(given: Inputs, study: Study) -> Figure:
    """Bars of causes in one or two panels, those with most time down first."""
    causes = given["outage_causes"]
    depth = _depth(causes)
    if depth is None:
        return nothing_to_draw("Outages by cause", "no record of an outage names a cause" if causes.height else "none")
    what, every = f"Outages by {depth}", causes.filter(pl.col("depth") == depth)
    rows = _most(every, depth)
    measures = {name: words for name, words in _MEASURES.items() if every[name].sum()}
    rows = add_percentages(rows, measures)
    planned = "; yellow: planned" if any(row["kind"] == "planned" for row in rows) else ""
    of = " and of ".join(measures.values())
    return figure(
        draw_share_panels("cause", rows, measures, _COLOURS, study, _NAMES_WIDTH),
        {"causes": rows},
        study,
        title=what,
        subtitle=f"Share of {of}{planned}",
        caption=f"n = {plural(int(every['events'].sum()), 'record')} of outages",
        alt_text=f"Bars of the share of {of}: {describe_shares('cause', rows, measures)}.",
    )


def _depth(causes: pl.DataFrame) -> str | None:
    """The classes of causes, or the levels, or the causes: which is told apart; None where no record names any."""
    named = [name for name in ("class", "level", "cause") if causes[name].count()]
    apart = [name for name in named if causes.filter(pl.col("depth") == name)[name].n_unique() > 1]
    return next(iter([*apart, *named]), None)


def _most(every: pl.DataFrame, depth: str) -> list[dict]:
    """The causes with most time down, the others together, in at most MOST_BARS; of one name with their level."""
    twice = every[depth].is_duplicated() & every[depth].is_not_null()
    above = CAUSE[: CAUSE.index(depth)]
    full = pl.concat_str(depth, pl.format(" ({})", above[0]), ignore_nulls=True) if above else pl.col(depth)
    names = every.select(pl.when(twice).then(full).otherwise(pl.col(depth)).fill_null("No cause named")).to_series()
    short = labels(names)
    ranked = [
        {"cause": capital(short[name])}
        | {"kind": "planned" if 2 * row["planned"] > row["events"] else "other", "records": row["events"]}
        | {measure: row[measure] or 0 for measure in _MEASURES}
        for name, row in zip(names, every.iter_rows(named=True), strict=True)
    ]
    ranked.sort(key=lambda row: (-row["downtime_share"], -row["records"], row["cause"]))
    if len(ranked) <= MOST_BARS:
        return ranked
    rest = ranked[MOST_BARS - 1 :]
    together = {name: sum(row[name] for row in rest) for name in ("records", *_MEASURES)}
    return [*ranked[: MOST_BARS - 1], {"cause": f"{len(rest)} others", "kind": "rest"} | together]


CHARTS = {"outage_causes": outage_causes}

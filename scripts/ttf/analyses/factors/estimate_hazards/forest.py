"""The forest plot of the factors of failure: failure shares and hazard ratios, a row for each factor and level."""

import math

import altair as alt
import polars as pl

from ttf.analyses.factors.estimate_hazards import DOUBLING, JOB_SIZE
from ttf.analyses.factors.estimate_hazards.total import strongest, total_ratios
from ttf.display.charts.axes import log_domain, log_scale, log_ticks, percent_axis
from ttf.display.charts.encodings import picked
from ttf.display.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.display.charts.intervals import draw_intervals, shown
from ttf.display.charts.text import labels
from ttf.display.charts.theme import ACCENT, FAILURE, FAINT, INK
from ttf.display.metrics import FEWEST_ENDED
from ttf.engine.size_unit import NODE, SizeUnit
from ttf.engine.words import capital, in_words, plural, share
from ttf.records.inputs import Inputs

MOST_ROWS, MOST_REQUESTS = 8, 3
STEP = 20
# Cut there: an interval beyond it says that nothing is known.
WIDEST = 1e4


def factors_of_failure(given: Inputs, study: Study) -> Figure:
    """The failure share at the values of a feature, where they are few, beside the hazard ratios."""
    what, cox = "Failure share and hazard ratio by factor", given["cox"]
    whole = cox.row(by_predicate=(pl.col("covariate") == "all") & (pl.col("event") == "failure"), named=True)
    if not (ratios := total_ratios(cox)).height:
        return nothing_to_draw(what, whole["reason"] or f"nothing tells {study.units} apart")
    has_jobs = "failure_share" in given
    rows = _rows(ratios, strongest(cox), given["failure_share"] if has_jobs else None, study.size)
    has_shares = any("share" in row for row in rows)
    exact = [row[name] for row in rows for name in ("independent", "share_independent") if name in row]
    by = f"if {study.units} are independent" if all(exact) else f"clustered by {whole['cluster_by']}"
    by += "; dashed: if independent" if any(exact) and not all(exact) else ""
    # A component is at risk once for each of its lives.
    caption = f"n = {whole['n']:,} {study.lives}{' at risk' * has_jobs}, "
    caption += plural(whole["events"], "failure")
    if left_out := ratios.height - sum("low" in row for row in rows):
        caption += f"; {plural(left_out, 'more ratio')} in the table"
    return figure(
        # Other fonts than the one that is measured here are wider.
        _chart(rows, has_shares, study).properties(padding={"left": 14, "right": 14, "top": 5, "bottom": 5}),
        {"factors": rows},
        study,
        title=what if has_shares else "Hazard ratio of failure by factor",
        subtitle=f"Cox regression, adjusted for the other factors; 95% CI {by}",
        caption=caption,
        alt_text=f"{plural(len(rows), 'row')} with points and intervals: "
        f"{'shares that failed, and ' if has_shares else ''}hazard ratios on a logarithmic axis.",
    )


def _rows(ratios: pl.DataFrame, most: dict | None, shares: pl.DataFrame | None, size: SizeUnit) -> list[dict]:
    """The size of the job, its commonest GPU requests, and of other factors the levels with most jobs."""
    of_size = ratios.filter(pl.col("covariate").is_in([JOB_SIZE, "gpu_count", "nodes"]))
    of_levels = ratios.join(of_size, on=["covariate", "level"], how="anti", maintain_order="left")
    named = labels([*of_levels["level"], *of_levels["reference"].drop_nulls()])
    rows: dict[str, dict] = {}
    for row in of_size.iter_rows(named=True):
        rows |= _of_amount(row, size)
    for name, cells in _requests(shares).items():
        rows[name] = cells | rows.pop(name, {})
    room = MOST_ROWS - len(rows) - of_levels["covariate"].n_unique()
    is_most = pl.lit(False)
    if most:
        is_most = (pl.col("covariate") == most["covariate"]) & (pl.col("level") == most["level"])
    largest = of_levels.with_columns(most=is_most).sort("most", "n", descending=True, maintain_order=True)
    chosen = of_levels.join(largest.head(max(room, 1)), on=["covariate", "level"], how="semi", maintain_order="left")
    by_type = _shares_of(shares, "gpu_type")
    for (covariate, reference), part in chosen.group_by(["covariate", "reference"], maintain_order=True):
        levels = [(reference, _REFERENCE), *((row["level"], _ratio(row)) for row in part.iter_rows(named=True))]
        for level, cells in levels:
            name = f"{capital(in_words(covariate)).replace('Cpu', 'CPU')} {named[level]}"
            rows[name] = (by_type.get(level, {}) if covariate == "gpu_type" else {}) | cells
    return [{"name": name} | cells for name, cells in rows.items()]


_REFERENCE = {"ratio": 1.0, "text": "reference"}


def _of_amount(row: dict, size: SizeUnit) -> dict[str, dict]:
    """A ratio per doubling, or of none against 1."""
    what = size if row["covariate"] == "gpu_count" else NODE
    if row["level"].startswith(DOUBLING):
        return {
            "Size, per doubling" if row["covariate"] == JOB_SIZE else capital(f"{what}s, per doubling"): _ratio(row)
        }
    return {f"No {what}": _ratio(row), f"1 {what}": _REFERENCE}


def _ratio(row: dict) -> dict:
    of = "" if row["ci_low_clustered"] is None else "_clustered"
    low, high = row[f"ci_low{of}"], row[f"ci_high{of}"]
    text = f"{_two_digits(row['hazard_ratio'])} ({_two_digits(low)}–{'∞' if high > WIDEST else _two_digits(high)})"
    ends = {"low": max(low, 1 / WIDEST), "high": min(high, WIDEST)}
    return {"ratio": row["hazard_ratio"], "text": text, "independent": not of} | ends


def _two_digits(ratio: float) -> str:
    return f"{ratio:,.{max(1 - math.floor(math.log10(float(f'{ratio:.2g}'))), 0)}f}"


def _shares_of(shares: pl.DataFrame | None, feature: str) -> dict[str, dict]:
    """Value -> its failure share with the interval; of values of which enough jobs ended."""
    if shares is None:
        return {}
    known = shown(shares.filter(pl.col("ended") >= FEWEST_ENDED, feature=feature))
    cells = {"share": "failure_share", "share_low": "low", "share_high": "high", "share_independent": "independent"}
    return {
        row["value"]: picked(row, **cells) | {"share_text": share(row["failure_share"]), "jobs": row["jobs"]}
        for row in known.iter_rows(named=True)
    }


def _requests(shares: pl.DataFrame | None) -> dict[str, dict]:
    """The shares at the commonest requests of GPUs, in their order; none where all request as many."""
    found = {float(value) / 100: cells for value, cells in _shares_of(shares, "gpu_request").items()}
    common = sorted(found, key=lambda gpus: -found[gpus]["jobs"])[:MOST_REQUESTS]
    return {_gpus(gpus): found[gpus] for gpus in sorted(common)} if len(common) > 1 else {}


def _gpus(number: float) -> str:
    return f"{f'{number:,.3g}' if number else 'No'} GPU{'s' if number > 1 else ''}"


def _chart(rows: list[dict], has_shares: bool, study: Study) -> alt.TopLevelMixin:
    of_share, of_ratio = ([row for row in rows if name in row] for name in ("share", "ratio"))
    if study.narrow:
        panels = [_ratios(of_ratio, True, 88)]
        if has_shares:
            panels.append(_shares(of_share, 150, study))
        return alt.vconcat(*panels, spacing=18)
    if not has_shares:
        return _ratios(rows, True, 420)
    return alt.hconcat(_shares(rows, 170, study), _ratios(rows, False, 220), spacing=14)


def _panel(rows: list[dict], labelled: bool, width: int) -> alt.Chart:
    order = [row["name"] for row in rows]
    axis = alt.Axis(labelLimit=122 if width < 160 else 170, ticks=False, domain=False, labelPadding=8)
    y = alt.Y("name:N", sort=order, scale=alt.Scale(domain=order), title=None, axis=axis if labelled else None)
    return chart_of("factors").encode(y=y).properties(width=width, height=alt.Step(STEP))


def _shares(rows: list[dict], width: int, study: Study) -> alt.LayerChart:
    base = _panel(rows, True, width).transform_filter("isValid(datum.share)")
    top = max(row.get("share_high") or row.get("share", 0) for row in rows)
    axis = percent_axis(f"Failed, of ended {study.units}", tickCount=3, grid=False)
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, min(1, 1.05 * top) or 1]), axis=axis)
    dash = alt.condition("datum.share_independent", alt.value([3, 3]), alt.value([1, 0]))
    lines = base.mark_rule(color=FAILURE, strokeWidth=1.6)
    lines = lines.encode(x=alt.X("share_low:Q"), x2="share_high:Q", strokeDash=dash)
    dots = base.mark_circle(color=FAILURE, size=46, opacity=1).encode(x=x)
    texts = base.mark_text(align="left", fontSize=11, color=INK).encode(x=alt.value(width + 8), text="share_text:N")
    return lines + dots + texts


def _ratios(rows: list[dict], labelled: bool, width: int) -> alt.LayerChart:
    ends = [row[end] for row in rows if "low" in row for end in ("low", "high")]
    domain = log_domain([*ends, 1.0], 1.15, 1.15)
    ticks = log_ticks(domain)
    if len(ticks) > 4:  # a narrow plot has no room for all of them
        ticks = ticks[:: -(-len(ticks) // 4)]
    axis = alt.Axis(values=ticks, format=",.6~g", title="Hazard ratio of failure (log)", grid=False, labelOverlap=True)
    scale = log_scale(domain)
    base = _panel(rows, labelled, width).transform_filter("isValid(datum.ratio)")
    one = chart_of("factors").mark_rule(color=FAINT, strokeDash=[4, 3]).encode(x=alt.datum(1, type="quantitative"))
    lines = draw_intervals(base, alt.X("low:Q", scale=scale), color=ACCENT, strokeWidth=1.6)
    colour, ink = (alt.condition("isValid(datum.low)", alt.value(of), alt.value(FAINT)) for of in (ACCENT, INK))
    dots = base.mark_circle(size=46, opacity=1).encode(x=alt.X("ratio:Q", scale=scale, axis=axis), color=colour)
    texts = base.mark_text(align="left", fontSize=11).encode(x=alt.value(width + 8), text="text:N", color=ink)
    return one + lines + dots + texts

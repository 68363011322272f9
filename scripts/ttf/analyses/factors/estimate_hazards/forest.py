"""Forest plot of the factors of failure: failure shares and hazard ratios, a row per factor and level."""

import math

import altair as alt
import polars as pl

from ttf.analyses.factors.estimate_hazards import DOUBLING, JOB_SIZE
from ttf.analyses.factors.estimate_hazards.total import strongest_ratio, total_ratios
from ttf.display.charts.axes import log_domain, log_scale, log_ticks, percent_axis
from ttf.display.charts.encodings import pick_columns
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, draw_intervals
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import ACCENT, FAILURE, FAINT, INK
from ttf.display.metrics import FEWEST_ENDED
from ttf.engine.size_unit import NODE, SizeUnit
from ttf.engine.words import capitalise, plural, share, stratification_name
from ttf.records.inputs import Inputs

MOST_ROWS, MOST_REQUESTS = 8, 3
STEP = 20
# Intervals are cut at this ratio: a wider one carries no information.
WIDEST = 1e4


def factors_of_failure(inputs: Inputs, study: Study) -> Figure:
    """Draw failure shares by value of features with few values, and hazard ratios."""
    title, cox = "Failure share and hazard ratio by factor", inputs["cox"]
    model_row = cox.row(by_predicate=(pl.col("covariate") == "all") & (pl.col("event") == "failure"), named=True)
    if not (ratios := total_ratios(cox)).height:
        return empty_figure(title, model_row["reason"] or f"nothing tells {study.units} apart")
    has_jobs = "failure_share" in inputs
    rows = _pick_rows(ratios, strongest_ratio(cox), inputs["failure_share"] if has_jobs else None, study.size)
    has_shares = any("share" in row for row in rows)
    flags = [row[name] for row in rows for name in ("independent", "share_independent") if name in row]
    note = f"if {study.units} are independent" if all(flags) else f"clustered by {model_row['cluster_by']}"
    note += "; dashed: if independent" if any(flags) and not all(flags) else ""
    # A component is at risk once for each of its durations.
    caption = f"n = {model_row['n']:,} {study.durations}{' at risk' * has_jobs}, "
    caption += plural(model_row["events"], "failure")
    if n_excluded := ratios.height - sum("low" in row for row in rows):
        caption += f"; {plural(n_excluded, 'more ratio')} in the table"
    return make_figure(
        # Padding, since other fonts are wider than the one measured here.
        _draw_forest(rows, has_shares, study).properties(padding={"left": 14, "right": 14, "top": 5, "bottom": 5}),
        {"factors": rows},
        study,
        title=title if has_shares else "Hazard ratio of failure by factor",
        subtitle=f"Cox regression, adjusted for the other factors; 95% CI {note}",
        caption=caption,
        alt_text=f"{plural(len(rows), 'row')} with points and intervals: "
        f"{'shares that failed, and ' if has_shares else ''}hazard ratios on a logarithmic axis.",
    )


def _pick_rows(ratios: pl.DataFrame, strongest: dict | None, shares: pl.DataFrame | None, size: SizeUnit) -> list[dict]:
    """Return rows of job size, the most frequent GPU requests, and the levels with most jobs of other factors."""
    size_ratios = ratios.filter(pl.col("covariate").is_in([JOB_SIZE, "gpu_count", "nodes"]))
    level_ratios = ratios.join(size_ratios, on=["covariate", "level"], how="anti", maintain_order="left")
    level_labels = make_labels([*level_ratios["level"], *level_ratios["reference"].drop_nulls()])
    rows: dict[str, dict] = {}
    for row in size_ratios.iter_rows(named=True):
        rows |= _build_amount_rows(row, size)
    for label, cells in _request_shares(shares).items():
        rows[label] = cells | rows.pop(label, {})
    n_levels = MOST_ROWS - len(rows) - level_ratios["covariate"].n_unique()
    is_strongest = pl.lit(False)
    if strongest:
        is_strongest = (pl.col("covariate") == strongest["covariate"]) & (pl.col("level") == strongest["level"])
    largest = level_ratios.with_columns(first=is_strongest).sort("first", "n", descending=True, maintain_order=True)
    largest = largest.head(max(n_levels, 1))
    shown_ratios = level_ratios.join(largest, on=["covariate", "level"], how="semi", maintain_order="left")
    shares_by_type = _shares_by_value(shares, "gpu_type")
    for (covariate, reference), factor_ratios in shown_ratios.group_by(["covariate", "reference"], maintain_order=True):
        levels = [(reference, _REFERENCE)]
        levels += [(row["level"], _ratio_cells(row)) for row in factor_ratios.iter_rows(named=True)]
        for level, cells in levels:
            label = f"{capitalise(stratification_name(covariate)).replace('Cpu', 'CPU')} {level_labels[level]}"
            rows[label] = (shares_by_type.get(level, {}) if covariate == "gpu_type" else {}) | cells
    return [{"name": label} | cells for label, cells in rows.items()]


_REFERENCE = {"ratio": 1.0, "text": "reference"}


def _build_amount_rows(row: dict, size: SizeUnit) -> dict[str, dict]:
    """Return a row by its label: the ratio per doubling of an amount; or none, and the reference, one."""
    unit = size if row["covariate"] == "gpu_count" else NODE
    if row["level"].startswith(DOUBLING):
        label = "Size" if row["covariate"] == JOB_SIZE else capitalise(f"{unit}s")
        return {f"{label}, per doubling": _ratio_cells(row)}
    return {f"No {unit}": _ratio_cells(row), f"1 {unit}": _REFERENCE}


def _ratio_cells(row: dict) -> dict:
    """Return the ratio, its text, its limits as drawn, and whether they assume independence."""
    suffix = "" if row["ci_low_clustered"] is None else "_clustered"
    low, high = row[f"ci_low{suffix}"], row[f"ci_high{suffix}"]
    high_text = "∞" if high > WIDEST else _format_ratio(high)
    text = f"{_format_ratio(row['hazard_ratio'])} ({_format_ratio(low)}–{high_text})"
    limits = {"low": max(low, 1 / WIDEST), "high": min(high, WIDEST)}
    return {"ratio": row["hazard_ratio"], "text": text, "independent": not suffix} | limits


def _format_ratio(ratio: float) -> str:
    return f"{ratio:,.{max(1 - math.floor(math.log10(float(f'{ratio:.2g}'))), 0)}f}"


def _shares_by_value(shares: pl.DataFrame | None, feature: str) -> dict[str, dict]:
    """Map each value of the feature with enough ended jobs to its failure share with the interval."""
    if shares is None:
        return {}
    known_shares = add_bounds(shares.filter(pl.col("ended") >= FEWEST_ENDED, feature=feature))
    columns = {"share": "failure_share", "share_low": "low", "share_high": "high", "share_independent": "independent"}
    return {
        row["value"]: pick_columns(row, **columns) | {"share_text": share(row["failure_share"]), "jobs": row["jobs"]}
        for row in known_shares.iter_rows(named=True)
    }


def _request_shares(shares: pl.DataFrame | None) -> dict[str, dict]:
    """Return failure shares by number of GPUs of the most frequent requests; none if all jobs request the same."""
    shares_by_gpus = {float(value) / 100: cells for value, cells in _shares_by_value(shares, "gpu_request").items()}
    frequent = sorted(shares_by_gpus, key=lambda gpus: -shares_by_gpus[gpus]["jobs"])[:MOST_REQUESTS]
    return {_format_gpus(gpus): shares_by_gpus[gpus] for gpus in sorted(frequent)} if len(frequent) > 1 else {}


def _format_gpus(number: float) -> str:
    return f"{f'{number:,.3g}' if number else 'No'} GPU{'s' if number > 1 else ''}"


def _draw_forest(rows: list[dict], has_shares: bool, study: Study) -> alt.TopLevelMixin:
    share_rows, ratio_rows = ([row for row in rows if name in row] for name in ("share", "ratio"))
    if study.narrow:
        panels = [_draw_ratios_panel(ratio_rows, True, 88)]
        if has_shares:
            panels.append(_draw_shares_panel(share_rows, 150, study))
        return alt.vconcat(*panels, spacing=18)
    if not has_shares:
        return _draw_ratios_panel(rows, True, 420)
    return alt.hconcat(_draw_shares_panel(rows, 170, study), _draw_ratios_panel(rows, False, 220), spacing=14)


def _make_base_panel(rows: list[dict], has_labels: bool, width: int) -> alt.Chart:
    order = [row["name"] for row in rows]
    axis = alt.Axis(labelLimit=122 if width < 160 else 170, ticks=False, domain=False, labelPadding=8)
    y = alt.Y("name:N", sort=order, scale=alt.Scale(domain=order), title=None, axis=axis if has_labels else None)
    return make_chart("factors").encode(y=y).properties(width=width, height=alt.Step(STEP))


def _draw_shares_panel(rows: list[dict], width: int, study: Study) -> alt.LayerChart:
    base = _make_base_panel(rows, True, width).transform_filter("isValid(datum.share)")
    top = max(row.get("share_high") or row.get("share", 0) for row in rows)
    axis = percent_axis(f"Failed, of ended {study.units}", tickCount=3, grid=False)
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, min(1, 1.05 * top) or 1]), axis=axis)
    dash = alt.condition("datum.share_independent", alt.value([3, 3]), alt.value([1, 0]))
    lines = base.mark_rule(color=FAILURE, strokeWidth=1.6)
    lines = lines.encode(x=alt.X("share_low:Q"), x2="share_high:Q", strokeDash=dash)
    dots = base.mark_circle(color=FAILURE, size=46, opacity=1).encode(x=x)
    texts = base.mark_text(align="left", fontSize=11, color=INK).encode(x=alt.value(width + 8), text="share_text:N")
    return lines + dots + texts


def _draw_ratios_panel(rows: list[dict], has_labels: bool, width: int) -> alt.LayerChart:
    domain = log_domain([1.0, *(row[end] for row in rows if "low" in row for end in ("low", "high"))], 1.15, 1.15)
    ticks = log_ticks(domain)
    if len(ticks) > 4:  # a narrow plot has no room for all of them
        ticks = ticks[:: -(-len(ticks) // 4)]
    axis = alt.Axis(values=ticks, format=",.6~g", title="Hazard ratio of failure (log)", grid=False, labelOverlap=True)
    scale = log_scale(domain)
    base = _make_base_panel(rows, has_labels, width).transform_filter("isValid(datum.ratio)")
    unity = make_chart("factors").mark_rule(color=FAINT, strokeDash=[4, 3]).encode(x=alt.datum(1, type="quantitative"))
    lines = draw_intervals(base, alt.X("low:Q", scale=scale), color=ACCENT, strokeWidth=1.6)
    colour, ink = (alt.condition("isValid(datum.low)", alt.value(full), alt.value(FAINT)) for full in (ACCENT, INK))
    dots = base.mark_circle(size=46, opacity=1).encode(x=alt.X("ratio:Q", scale=scale, axis=axis), color=colour)
    texts = base.mark_text(align="left", fontSize=11).encode(x=alt.value(width + 8), text="text:N", color=ink)
    return unity + lines + dots + texts

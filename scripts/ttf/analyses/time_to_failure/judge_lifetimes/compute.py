"""Verdict on the hazard from the lifetime models: its trend with age, and whether a single mean misleads."""

import math
from types import MappingProxyType

import numpy as np
import polars as pl
from scipy.special import chdtrc

from ttf.analyses.time_to_failure.judge_lifetimes import FEWEST_FAILURES, LIFETIME_VERDICT, LIFETIME_VERDICTS, MIXTURE
from ttf.engine.columns import STRATUM
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.inputs import Inputs
from ttf.records.jobs import Frame
from ttf.stats.basics.normal import Z_95
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.durations.strata import NO_DURATION
from ttf.stats.durations.survival import iterate_curves
from ttf.stats.lifetimes.pooled_shapes import ShapesByStratum, fit_shapes

# The hazard `stays` if the whole interval of the shape is within this factor of 1.
NEARLY_CONSTANT = 1.25
# Within groups the hazard `falls` if the interval of the shape is below this, and `rises` above its inverse: rates that
# are not gamma-distributed, or that differ within groups, bias the shape by some hundredths.
FALLING = 0.9
# A constant mean time to failure misleads beyond these limits.
SIGNIFICANCE = 0.01
LARGEST_HARMLESS_GAP = 0.05
LARGEST_HARMLESS_RATIO = 2.0
# Survival estimates with fewer at risk are not compared with the model.
FEWEST_AT_RISK = 30

CURVES = ("event", "stratum_by", "stratum", "time_s", "at_risk", "events", "survival")


def compute(inputs: Inputs) -> dict:
    """Return the tables of the analysis: lifetime_verdict and lifetime_verdicts."""
    models, causes = inputs["lifetime_models"], inputs.settings.causes
    strata = models["stratum_by"].unique(maintain_order=True).to_list()
    columns = ["duration_s", "event", *CLUSTER_COLUMNS, *causes, *(name for name in strata if name != "all")]
    event_exprs = {"failure": pl.col("event") == "failure"} | {cause: pl.col(cause) for cause in causes}
    events = {name: expr.fill_null(False) for name, expr in event_exprs.items()}
    cells_by_stratum = fit_shapes(inputs.scan("durations", columns), events, strata)
    verdicts = lifetime_verdict(models, inputs.scan("survival_curves", CURVES), cells_by_stratum)
    return {"lifetime_verdict": verdicts, "lifetime_verdicts": count_verdicts(verdicts)}


def count_verdicts(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return the row of LIFETIME_VERDICTS. verdicts: LIFETIME_VERDICT."""
    strata = verdicts.filter(pl.col("stratum_by") != "all", event="failure").drop_nulls("verdict")
    words = {"falls": "falls", "stays": "stays", "rises": "rises", "mixture": MIXTURE, "unclear": "unclear"}
    row = {name: strata.filter(verdict_within=word).height for name, word in words.items()}
    row |= {f"no_{name}": strata[name].null_count() for name in ("verdict_within", "misleads_clustered")}
    row |= {"strata": strata.height, "misleads": int(strata["misleads_clustered"].sum())}
    return LIFETIME_VERDICTS.frame([row])


def lifetime_verdict(
    models: pl.DataFrame, curves: Frame, clustered: ShapesByStratum = MappingProxyType({})
) -> pl.DataFrame:
    """Judge the hazard of each stratum of `models` (LIFETIME_VERDICT).

    models: from `lifetime_models`. curves: from `survival_tables`, not thinned. clustered: from `fit_shapes`; empty if
    the trace names nothing that repeats.

    Returns LIFETIME_VERDICT; a blank has a reason. verdict: `falls` if the 95% CI of the Weibull shape is below 1,
    `rises` if above, `stays` if it contains 1 and is within the factor 1.25, else `unclear`. The interval is shape *
    exp(-+1.96 * shape_se / shape); p_value of twice the difference of their log-likelihoods, from
    chi-squared with one degree of freedom (Kalbfleisch & Prentice 2002, section 3.4).

    largest_gap: the exponential's survival less the Kaplan-Meier estimate at their largest distance (at_s), among event
    times with 30 or more at risk. split_age_s: age by which half of the exposure has passed. young_mttf_s: exposure /
    events up to it; old_mttf_s: after it; mttf_ratio: old / young. misleads: p_value < 0.01, and a gap of at least 0.05
    or a ratio of at least 2 either way (no failure in one half counts as such). These assume independent, identical
    units. The clustered interval is that of the pooled shape on the log scale; misleads_clustered uses p_clustered.

    verdict_within: `falls` if the interval of the shape within groups is below FALLING, `rises` if above 1 / FALLING,
    `stays` if within the factor 1.25 of 1; else MIXTURE if the verdict over all is `falls` or `rises`, else `unclear`.
    """
    key_names = list(STRATUM)
    fits = {tuple(row[name] for name in (*key_names, "model")): row for row in models.iter_rows(named=True)}
    strata = models.select(key_names).unique(maintain_order=True).rows()
    pairs = {key: (fits[*key, "exponential"], fits[*key, "weibull"]) for key in strata}

    def judge_stratum(key: tuple, curve: pl.DataFrame | None) -> dict:
        """Return the cells of a stratum; curve: None if it has no duration."""
        return _add_clustered(_verdict_cells(*pairs[key], curve), clustered.get(key))

    # One curve at a time is in memory.
    verdicts = {key: judge_stratum(key, curve) for key, curve in iterate_curves(curves) if key in pairs}
    rows = []
    for key, (exponential, _) in pairs.items():
        row = dict(zip(key_names, key, strict=True)) | {"n": exponential["n"], "events": exponential["events"]}
        rows.append(row | (verdicts.get(key) or judge_stratum(key, None)))
    return LIFETIME_VERDICT.frame(rows)


def _verdict_cells(exponential: dict, weibull: dict, curve: pl.DataFrame | None) -> dict:
    """Return cells of LIFETIME_VERDICT without clusters; exponential, weibull: their rows of lifetime_models."""
    if not exponential["converged"]:
        return {"reason": exponential["reason"]}
    cells: dict = {}
    reasons = []
    if weibull["converged"]:
        shape, factor = weibull["shape"], math.exp(Z_95 * weibull["shape_se"] / weibull["shape"])
        low, high = shape / factor, shape * factor
        # Rounding can make the larger model slightly worse than the smaller.
        statistic = max(0.0, 2 * (weibull["loglik"] - exponential["loglik"]))
        cells |= {"verdict": _choose_verdict(low, high), "shape": shape, "shape_ci_low": low, "shape_ci_high": high}
        cells["p_value"] = float(chdtrc(1, statistic))
        if exponential["events"] < FEWEST_FAILURES:
            reasons.append(f"fewer than {FEWEST_FAILURES} failures: the interval of the shape covers less than 95%")
    else:
        reasons.append(weibull["reason"])
    if curve is None:
        return cells | {"reason": "; ".join([*reasons, NO_DURATION])}
    cells |= _gap_cells(curve, exponential["scale_s"])
    if "largest_gap" not in cells:
        reasons.append(f"no event with {FEWEST_AT_RISK} at risk: no gap")
    half_cells, half_reasons = _halves_cells(curve)
    cells |= half_cells
    reasons += half_reasons
    if "p_value" in cells:
        cells["misleads"] = _is_misleading(cells, cells["p_value"])
    return cells | {"reason": "; ".join(reasons) or None}


def _choose_verdict(low: float, high: float, falling: float = 1.0, default: str = "unclear") -> str:
    """Return falls, rises, stays or `default` by the interval of a shape; below `falling` the hazard falls."""
    if high < falling:
        return "falls"
    if low > 1 / falling:
        return "rises"
    return "stays" if low >= 1 / NEARLY_CONSTANT and high <= NEARLY_CONSTANT else default


def _gap_cells(curve: pl.DataFrame, mean_s: float) -> dict:
    """Return the largest gap between exponential and curve, and where it is; empty with too few at risk."""
    steps = curve.filter((pl.col("events") > 0) & (pl.col("at_risk") >= FEWEST_AT_RISK))
    if not steps.height:
        return {}
    expected = np.exp(-steps["time_s"].to_numpy() / mean_s)
    gaps = expected - steps["survival"].to_numpy()
    largest = int(np.argmax(np.abs(gaps)))
    return {
        "largest_gap": float(gaps[largest]),
        "at_s": steps["time_s"][largest],
        "km_survival": steps["survival"][largest],
        "exponential_survival": float(expected[largest]),
    }


def _add_clustered(row: dict, cells: dict | None) -> dict:
    """Return the row with the cells of its stratum from `fit_shapes`, and the verdicts that these give."""
    if "shape" not in row:
        return row
    cells = cells if cells is not None else {"why_not": UNCLUSTERED}
    row = {name: value for name, value in cells.items() if name in LIFETIME_VERDICT.columns} | row
    if "reach" in cells:
        factor = math.exp(cells["reach"])
        row |= {"shape_ci_low_clustered": row["shape"] / factor, "shape_ci_high_clustered": row["shape"] * factor}
    if "misleads" in row and "p_clustered" in row:
        row["misleads_clustered"] = _is_misleading(row, row["p_clustered"])
    if "shape_within" in row:
        default = MIXTURE if row["verdict"] in ("falls", "rises") else "unclear"
        limits = row["shape_within_ci_low"], row["shape_within_ci_high"]
        row["verdict_within"] = _choose_verdict(*limits, FALLING, default)
    reasons = [row.get("reason"), cells.get("why_not"), cells.get("why_not_within")]
    return row | {"reason": "; ".join(filter(None, reasons)) or None}


def _is_misleading(cells: dict, p_value: float) -> bool | None:
    """Return whether one mean misleads; None if p is small, but the gap or the halves to show it are missing."""
    if p_value >= SIGNIFICANCE:
        return False
    gap = cells.get("largest_gap")
    has_effect = (None if gap is None else abs(gap) >= LARGEST_HARMLESS_GAP, _has_unequal_halves(cells))
    return True if True in has_effect else None if None in has_effect else False


def _has_unequal_halves(cells: dict) -> bool | None:
    if "split_age_s" not in cells:
        return None
    young, old = cells["young_mttf_s"], cells["old_mttf_s"]
    if young is None or old is None:
        return True
    return max(young, old) >= LARGEST_HARMLESS_RATIO * min(young, old)


def _halves_cells(curve: pl.DataFrame) -> tuple[dict, list[str]]:
    """Return (cells on the young and the old half of the exposure, reasons for blanks)."""
    time, at_risk, events = (curve[name].to_numpy() for name in ("time_s", "at_risk", "events"))
    # Between two rows of the curve the number at risk is that of the second.
    exposure = np.concatenate(([0], np.cumsum(at_risk[1:] * np.diff(time))))
    half = int(exposure[-1]) / 2
    if half == 0:
        return {}, ["no time at risk: no halves"]
    row = int(np.searchsorted(exposure, half))  # not the first, where the exposure is 0
    age = float(time[row]) - (float(exposure[row]) - half) / float(at_risk[row])
    young, old = int(events[time <= age].sum()), int(events[time > age].sum())
    cells: dict = {
        "split_age_s": math.floor(age),
        "young_events": young,
        "old_events": old,
        "young_mttf_s": half / young if young else None,
        "old_mttf_s": half / old if old else None,
    }
    if not (young and old):
        return cells, ["no failure in one half of the exposure: no ratio"]
    return cells | {"mttf_ratio": cells["old_mttf_s"] / cells["young_mttf_s"]}, []

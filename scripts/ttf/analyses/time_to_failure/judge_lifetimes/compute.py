"""What the lifetime models say of the failure rate: does it fall, stay or rise with age, and does a mean mislead?"""

import math
from types import MappingProxyType

import numpy as np
import polars as pl
from scipy.special import chdtrc

from ttf.analyses.time_to_failure.judge_lifetimes import FEWEST_FAILURES, LIFETIME_VERDICT, LIFETIME_VERDICTS, MIXTURE
from ttf.analyses.time_to_failure.judge_lifetimes.pooled_shapes import Found, shapes
from ttf.engine.columns import STRATUM
from ttf.records.clusters import CLUSTER_COLUMNS
from ttf.records.inputs import Inputs
from ttf.records.jobs import Frame
from ttf.stats.basics.normal import Z_95
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.durations.strata import NO_LIFE
from ttf.stats.durations.survival import curve_by_curve

# A rate is said to stay where the whole interval of the shape lies as near to 1 as this factor.
NEARLY_CONSTANT = 1.25
# Within groups a rate is said to fall where the whole interval of the shape is below this, to rise above its inverse:
# rates that are no gamma's, or that differ within groups too, move the shape by some hundredths.
FALLING = 0.9
# When a constant mean time to failure misleads.
SIGNIFICANCE = 0.01
LARGEST_HARMLESS_GAP = 0.05
LARGEST_HARMLESS_RATIO = 2.0
# A survival estimate that fewer lives stand behind is no measure of another curve.
FEWEST_AT_RISK = 30

CURVES = ("event", "stratum_by", "stratum", "time_s", "at_risk", "events", "survival")


def compute(given: Inputs) -> dict:
    models, causes = given["lifetime_models"], given.settings.causes
    strata = models["stratum_by"].unique(maintain_order=True).to_list()
    columns = ["duration_s", "event", *CLUSTER_COLUMNS, *causes, *(name for name in strata if name != "all")]
    hits = {"failure": pl.col("event") == "failure"} | {cause: pl.col(cause) for cause in causes}
    found = shapes(given.scan("lives", columns), {name: hit.fill_null(False) for name, hit in hits.items()}, strata)
    verdicts = lifetime_verdict(models, given.scan("survival_curves", CURVES), found)
    return {"lifetime_verdict": verdicts, "lifetime_verdicts": count_verdicts(verdicts)}


def count_verdicts(verdicts: pl.DataFrame) -> pl.DataFrame:
    """The one row of LIFETIME_VERDICTS; verdicts: LIFETIME_VERDICT."""
    strata = verdicts.filter(pl.col("stratum_by") != "all", event="failure").drop_nulls("verdict")
    words = {"falls": "falls", "stays": "stays", "rises": "rises", "mixture": MIXTURE, "unclear": "unclear"}
    row = {name: strata.filter(verdict_within=word).height for name, word in words.items()}
    row |= {f"no_{name}": strata[name].null_count() for name in ("verdict_within", "misleads_clustered")}
    row |= {"strata": strata.height, "misleads": int(strata["misleads_clustered"].sum())}
    return LIFETIME_VERDICTS.frame([row])


def lifetime_verdict(models: pl.DataFrame, curves: Frame, clustered: Found = MappingProxyType({})) -> pl.DataFrame:
    """A row for each stratum of `models`, which is as `lifetime_models` gives it; curves: `survival_tables`', whole.

    clustered: of `shapes`, none where the trace names nothing that repeats.

    verdict: the failure rate `falls` where the 95% CI of the Weibull shape lies below 1, `rises` where it lies
    above, `stays` where it holds 1 and no end of it is further off than the factor 1.25, else `unclear`. The interval
    is shape * exp(-+1.96 * shape_se / shape); lr_statistic = 2 * (Weibull's - exponential's log-likelihood), p_value
    from chi-squared with one degree of freedom (Kalbfleisch & Prentice 2002, section 3.4).

    largest_gap: the exponential's survival less the Kaplan-Meier estimate, where the two are furthest apart (at_s),
    among the times of an event with 30 lives or more at risk. split_age_s: the age by which half
    of all exposure was served; young_mttf_s: exposure / events up to it; old_mttf_s: after it; mttf_ratio: old / young.
    misleads: whether a constant mean time to failure does, that is p_value < 0.01, and the gap is 0.05 or more either
    way or the ratio 2 or more or a half or less (no failure in one half counts as such). All this holds if lives are
    independent and alike. The clustered interval is that of the pooled shape on the log scale, misleads_clustered goes
    by p_clustered.

    verdict_within: `falls` where the interval of the shape within groups lies below FALLING, `rises` where it lies
    above 1 / FALLING, `stays` where it lies within the factor 1.25 of 1; else MIXTURE where the rate falls or rises
    over all, else `unclear`. What cannot be computed is blank, with a reason.
    """
    names = list(STRATUM)
    fits = {tuple(row[name] for name in (*names, "model")): row for row in models.iter_rows(named=True)}
    strata = models.select(names).unique(maintain_order=True).rows()
    pairs = {key: [fits[*key, model] for model in ("exponential", "weibull")] for key in strata}

    def verdict(key: tuple, curve: pl.DataFrame | None) -> dict:
        return _clustered(_verdict(*pairs[key], curve), clustered.get(key))

    # One curve is held at a time.
    found = {key: verdict(key, curve) for key, curve in curve_by_curve(curves) if key in pairs}
    rows = []
    for key, (exponential, _) in pairs.items():
        row = dict(zip(names, key, strict=True)) | {"n": exponential["n"], "events": exponential["events"]}
        rows.append(row | (found.get(key) or verdict(key, None)))
    return LIFETIME_VERDICT.frame(rows)


def _verdict(exponential: dict, weibull: dict, curve: pl.DataFrame | None) -> dict:
    if not exponential["converged"]:
        return {"reason": exponential["reason"]}
    found, reasons = {}, []
    if weibull["converged"]:
        shape, factor = weibull["shape"], math.exp(Z_95 * weibull["shape_se"] / weibull["shape"])
        low, high = shape / factor, shape * factor
        # Rounding can leave the wider model a hair below the narrower.
        statistic = max(0.0, 2 * (weibull["loglik"] - exponential["loglik"]))
        found |= {"verdict": _verdict_word(low, high), "shape": shape, "shape_ci_low": low, "shape_ci_high": high}
        found |= {"lr_statistic": statistic, "p_value": float(chdtrc(1, statistic))}
        if exponential["events"] < FEWEST_FAILURES:
            reasons.append(f"fewer than {FEWEST_FAILURES} failures: the interval of the shape covers less than 95%")
    else:
        reasons.append(weibull["reason"])
    if curve is None:
        return found | {"reason": "; ".join([*reasons, NO_LIFE])}
    found |= _gap(curve, exponential["scale_s"])
    if "largest_gap" not in found:
        reasons.append(f"no event with {FEWEST_AT_RISK} at risk: no gap")
    halves, why = _halves(curve)
    found |= halves
    reasons += why
    if "p_value" in found:
        found["misleads"] = _misleads(found, found["p_value"])
    return found | {"reason": "; ".join(reasons) or None}


def _verdict_word(low: float, high: float, falling: float = 1.0, otherwise: str = "unclear") -> str:
    if high < falling:
        return "falls"
    if low > 1 / falling:
        return "rises"
    return "stays" if low >= 1 / NEARLY_CONSTANT and high <= NEARLY_CONSTANT else otherwise


def _gap(curve: pl.DataFrame, mean_s: float) -> dict:
    steps = curve.filter((pl.col("events") > 0) & (pl.col("at_risk") >= FEWEST_AT_RISK))
    if not steps.height:
        return {}
    expected = np.exp(-steps["time_s"].to_numpy() / mean_s)
    gaps = expected - steps["survival"].to_numpy()
    widest = int(np.argmax(np.abs(gaps)))
    return {
        "largest_gap": float(gaps[widest]),
        "at_s": steps["time_s"][widest],
        "km_survival": steps["survival"][widest],
        "exponential_survival": float(expected[widest]),
    }


def _clustered(row: dict, found: dict | None) -> dict:
    """The row with what holds when clusters differ."""
    if "shape" not in row:
        return row
    found = found if found is not None else {"why_not": UNCLUSTERED}
    row = {name: value for name, value in found.items() if name in LIFETIME_VERDICT.columns} | row
    if "reach" in found:
        factor = math.exp(found["reach"])
        row |= {"shape_ci_low_clustered": row["shape"] / factor, "shape_ci_high_clustered": row["shape"] * factor}
    if "misleads" in row and "p_clustered" in row:
        row["misleads_clustered"] = _misleads(row, row["p_clustered"])
    if "shape_within" in row:
        otherwise = MIXTURE if row["verdict"] in ("falls", "rises") else "unclear"
        limits = row["shape_within_ci_low"], row["shape_within_ci_high"]
        row["verdict_within"] = _verdict_word(*limits, FALLING, otherwise)
    reasons = [row.get("reason"), found.get("why_not"), found.get("why_not_within")]
    return row | {"reason": "; ".join(filter(None, reasons)) or None}


def _misleads(found: dict, p_value: float) -> bool | None:
    """None where a constant rate is rejected, and the gap or the halves, which tell what that does, are lacking."""
    if p_value >= SIGNIFICANCE:
        return False
    gap = found.get("largest_gap")
    harms = (None if gap is None else abs(gap) >= LARGEST_HARMLESS_GAP, _one_sided(found))
    return True if True in harms else None if None in harms else False


def _one_sided(found: dict) -> bool | None:
    """Whether one half of the exposure saw twice the failure rate of the other, or all failures."""
    if "split_age_s" not in found:
        return None
    young, old = found["young_mttf_s"], found["old_mttf_s"]
    if young is None or old is None:
        return True
    return max(young, old) >= LARGEST_HARMLESS_RATIO * min(young, old)


def _halves(curve: pl.DataFrame) -> tuple[dict, list[str]]:
    """Mean time to failure below and above the age by which half of the exposure was served."""
    time, at_risk, events = (curve[name].to_numpy() for name in ("time_s", "at_risk", "events"))
    # Between two rows of the curve as many lives are at risk as at the second.
    served = np.concatenate(([0], np.cumsum(at_risk[1:] * np.diff(time))))
    half = int(served[-1]) / 2
    if half == 0:
        return {}, ["no time at risk: no halves"]
    row = int(np.searchsorted(served, half))  # not the first, where nothing has been served
    age = float(time[row]) - (float(served[row]) - half) / float(at_risk[row])
    young, old = int(events[time <= age].sum()), int(events[time > age].sum())
    found = {
        "split_age_s": math.floor(age),
        "young_events": young,
        "old_events": old,
        "young_mttf_s": half / young if young else None,
        "old_mttf_s": half / old if old else None,
    }
    if not (young and old):
        return found, ["no failure in one half of the exposure: no ratio"]
    return found | {"mttf_ratio": found["old_mttf_s"] / found["young_mttf_s"]}, []

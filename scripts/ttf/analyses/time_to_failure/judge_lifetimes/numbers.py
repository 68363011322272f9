"""Numbers for the page: whether the hazard changes with age, and whether a single mean misleads."""

from ttf.analyses.time_to_failure.judge_lifetimes import LIFETIME_VERDICT, LIFETIME_VERDICTS
from ttf.display.metrics import CLUSTERS, cells

_VERDICT = "n verdict verdict_within group_by groups misleads misleads_clustered events"
_SHAPE = "shape shape_ci_low shape_ci_high shape_ci_low_clustered shape_ci_high_clustered shape_within"
_SHAPE_WITHIN = " ".join(f"shape_within_ci_{end}_clustered=shape_within_ci_{end}" for end in ("low", "high"))
_TEST = f"p_clustered largest_gap km_survival exponential_survival at_s {CLUSTERS}"
_VERDICTS = "falls stays rises mixture unclear no_verdict_within misleads no_misleads_clustered"
_HALVES = "split_age_s young_mttf_s old_mttf_s young_events old_events mttf_ratio"

NUMBERS = [
    cells(
        LIFETIME_VERDICT,
        "lifetimes",
        f"{_VERDICT} {_SHAPE} {_SHAPE_WITHIN} {_TEST} {_HALVES}",
        event="failure",
        stratum_by="all",
    ),
    cells(LIFETIME_VERDICTS, "lifetimes", "strata"),
    cells(LIFETIME_VERDICTS, "lifetimes.strata", _VERDICTS),
]

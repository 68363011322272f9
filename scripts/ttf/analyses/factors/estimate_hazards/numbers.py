"""Numbers for the page: competing risks, comparisons of strata, hazard ratios and delayed entry."""

import polars as pl

from ttf.analyses.factors.estimate_hazards import (
    COX,
    COX_SUMMARY,
    DOUBLING,
    INCIDENCE_AT,
    JOB_SIZE,
    LOGRANK,
    MTTF_DELAYED_ENTRY,
    SURVIVAL_SUMMARY_DELAYED_ENTRY,
)
from ttf.analyses.factors.estimate_hazards.total import IS_STRONGEST
from ttf.display.metrics import CI, CI_S, CLUSTERS, cells

_TEST = f"strata p_adjusted p_adjusted_clustered {CLUSTERS}"
_WITHOUT_END = pl.col("without_end") > 0
_IS_TOTAL = pl.col("covariate") == JOB_SIZE
_IS_DOUBLING = (pl.col("covariate") == "gpu_count") & (pl.col("level") == DOUBLING)
# If nodes are in the model too, the ratio of GPUs is at a fixed number of nodes, not that of a larger job.
_IS_JOB = _IS_TOTAL | (_IS_DOUBLING & ~_IS_TOTAL.any())
_STRONGEST = f"covariate level reference hazard_ratio events {CI} p_clustered p_adjusted_clustered"

NUMBERS = [
    *(
        cells(INCIDENCE_AT, f"incidence.{{event}}.{word}", f"incidence {CI}", not_blank="incidence", time_s=time_s)
        for time_s, word in {3_600: "1h", 86_400: "1d", 31_536_000: "1y"}.items()
    ),
    cells(INCIDENCE_AT, "incidence.{event}", "without_end", _WITHOUT_END, not_blank="incidence_low"),
    cells(
        INCIDENCE_AT,
        "incidence.{event}.{time_s}s",
        "incidence incidence_low incidence_high",
        _WITHOUT_END,
        not_blank="incidence_low",
    ),
    cells(
        LOGRANK,
        "logrank.{stratum_by}",
        f"{_TEST} pairs different_pairs untested_pairs",
        event="failure",
        kind="overall",
    ),
    cells(COX, "cox", "n events reason", event="failure", covariate="all"),
    cells(COX, "cox", f"proportionality_p {CLUSTERS}", n="events", event="failure", covariate="all"),
    cells(COX_SUMMARY, "cox", "ratios clear significant_if_independent untested covariates changing"),
    cells(COX_SUMMARY, "cox.total", "ratios=total_ratios clear=total_clear untested=total_untested"),
    cells(COX, "cox.job", f"covariate hazard_ratio {CI}", _IS_JOB, not_blank="hazard_ratio", event="failure"),
    cells(COX, "cox.strongest", _STRONGEST, IS_STRONGEST, take=1),
    cells(
        SURVIVAL_SUMMARY_DELAYED_ENTRY,
        "delayed_entry",
        "n late=entered_late",
        event="failure",
        stratum_by="all",
    ),
    cells(
        MTTF_DELAYED_ENTRY,
        "delayed_entry",
        f"events mttf_s {CI_S}",
        event="failure",
        stratum_by="all",
        confidence=0.95,
    ),
]

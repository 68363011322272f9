import polars as pl

from ttf.analyses.fit_mttf import MTTF
from ttf.report.tables import Interval, Shown
from ttf.report.trace import MOST_STRATA, Trace, largest_strata, strata_in_words

INTERVAL = Interval(low="ci_low_clustered_s", high="ci_high_clustered_s")


def tables(trace: Trace) -> dict[str, Shown]:
    """The mean time to failure of each cause over all lives, and by stratum."""
    mttf = trace.table("mttf").filter(pl.col("confidence") == 0.95)
    of_failure = pl.col("event") == "failure"
    causes = mttf.filter((pl.col("stratum_by") == "all") & ~of_failure)
    strata = strata_in_words(largest_strata(mttf.filter(of_failure)))
    by_stratum = dict.fromkeys(("stratum", "n", "events", "exposure_s", "mttf_s", "failures_per_1000_gpu_days"))
    return {
        "causes": Shown(causes, {"event": "Cause", "n": None, "events": None, "mttf_s": INTERVAL}, MTTF),
        "mttf": Shown(strata, by_stratum | {"mttf_s": INTERVAL}, MTTF, "stratum_by"),
    }


def context(trace: Trace, metrics: dict) -> dict:
    strata = [name.removeprefix("survival_by_") for name in trace.figures if name.startswith("survival_by_")]
    return {"strata": strata, "most_strata": MOST_STRATA}

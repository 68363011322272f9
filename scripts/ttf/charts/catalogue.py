"""Every chart of the report by name, built from the tables of one trace."""

from collections.abc import Callable, Mapping

import polars as pl

from ttf.charts.failure_share import failure_share
from ttf.charts.figure import Figure, Study
from ttf.charts.gpu_types import runtime_by_gpu_type
from ttf.charts.mttf import mttf_by
from ttf.charts.outcomes import outcome_shares, runtime_distribution
from ttf.charts.run_times import runtime_by_measured_use, runtime_by_request
from ttf.charts.survival import survival, survival_by

Tables = Mapping[str, pl.DataFrame]
REQUESTS = ("gpu_request", "cpu_request", "memory_request", "size")


def _by_request(feature: str, log: bool) -> Callable[[Tables, Study], Figure]:
    return lambda t, study: runtime_by_request(t["runtime_by_group"], t["correlations"], feature, study, log=log)


# In the order of the report. The tables by the names of the inputs of rule draw_charts.
BUILDERS: dict[str, Callable[[Tables, Study], Figure]] = {
    "outcome_shares": lambda t, study: outcome_shares(t["outcomes"], study),
    "runtime_distribution": lambda t, study: runtime_distribution(t["quantiles"], t["outcomes"], study),
    "runtime_by_gpu_type": lambda t, study: runtime_by_gpu_type(t["runtime_by_group"], study),
    **{
        f"runtime_by_{feature}{'_log' if log else ''}": _by_request(feature, log)
        for feature in REQUESTS
        for log in (False, True)
    },
    **{
        f"runtime_by_measured_use{'_log' if log else ''}": lambda t, study, log=log: runtime_by_measured_use(
            t["runtime_by_group"], t["correlations"], study, log=log
        )
        for log in (False, True)
    },
    "failure_share": lambda t, study: failure_share(t["failure_share"], t["outcomes"], study),
    "survival": lambda t, study: survival(t["survival"], t["summary"], study),
    "survival_by_gpu_type": lambda t, study: survival_by(t["survival"], t["summary"], "gpu_type", study),
    "survival_by_gpu_count": lambda t, study: survival_by(t["survival"], t["summary"], "gpu_count", study),
    "mttf_by_gpu_type": lambda t, study: mttf_by(t["mttf"], "gpu_type", study),
    "mttf_by_gpu_count": lambda t, study: mttf_by(t["mttf"], "gpu_count", study),
}


def builder(name: str) -> Callable[[Tables, Study], Figure]:
    """The builder of a chart; those of a component trace go by strata of its own: survival_by_*, mttf_by_*."""
    if name in BUILDERS:
        return BUILDERS[name]
    kind, _, stratum = name.partition("_by_")
    if kind == "survival":
        return lambda t, study: survival_by(t["survival"], t["summary"], stratum, study)
    if kind == "mttf":
        return lambda t, study: mttf_by(t["mttf"], stratum, study)
    raise KeyError(name)


TABLES = (
    *("outcomes", "quantiles", "failure_share", "runtime_by_group", "correlations", "survival", "summary", "mttf"),
)

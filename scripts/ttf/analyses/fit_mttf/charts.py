from collections.abc import Callable

from ttf.charts.mttf import mttf_by
from ttf.charts.survival import survival, survival_by


class _ByStratum(dict):
    """A component trace has strata of its own: survival_by_*, mttf_by_*."""

    def __missing__(self, name: str) -> Callable:
        kind, _, stratum = name.partition("_by_")
        if kind == "survival":
            return lambda given, study: survival_by(given["survival"], given["survival_summary"], stratum, study)
        return lambda given, study: mttf_by(given["mttf"], stratum, study)


CHARTS = _ByStratum(survival=lambda given, study: survival(given["survival"], given["survival_summary"], study))

"""Metrics on run time and requests, shared by several analyses."""

from ttf.display.charts.text import FEATURE_NAMES
from ttf.display.trace_numbers import Numbers

# Names of requests in sentences.
NAMES = {name: FEATURE_NAMES[name] for name in ("gpu_request", "cpu_request", "memory_request")}
NAMES["size"] = "number of instances"


def list_correlation_keys(m: Numbers, unit: str) -> list[str]:
    """Return the keys of the correlations of requests with run time; unit: group_mean or job."""
    keys = [f"correlations.{outcome}.{name}.{unit}" for outcome in ("success", "failure") for name in NAMES]
    return [key for key in keys if f"{key}.estimate" in m]


def has_run_time_chart(m: Numbers) -> bool:
    """Whether run time can be plotted against any request."""
    return bool(list_correlation_keys(m, "group_mean"))


def find_strongest_correlation(m: Numbers) -> str | None:
    """Return the key of the strongest significant correlation over jobs, or None."""
    significant = [key for key in list_correlation_keys(m, "job") if m.value(f"{key}.reject_clustered")]
    return max(significant, key=lambda key: abs(m[f"{key}.estimate"]), default=None)

"""What the metrics say of run time and requests, for every room that names it."""

from ttf.display.charts.text import FEATURE_NAMES
from ttf.display.trace_numbers import Numbers

# What requests are called in a sentence.
NAMES = {name: FEATURE_NAMES[name] for name in ("gpu_request", "cpu_request", "memory_request")}
NAMES["size"] = "number of instances"


def keys_of(m: Numbers, of: str) -> list[str]:
    """The keys of the correlations of requests with run time; of: group_mean or job."""
    keys = [f"correlations.{outcome}.{name}.{of}" for outcome in ("success", "failure") for name in NAMES]
    return [key for key in keys if m.has(f"{key}.estimate")]


def drawn(m: Numbers) -> bool:
    """Whether run time can be drawn against any request."""
    return bool(keys_of(m, "group_mean"))


def clearest(m: Numbers) -> str | None:
    """The key of the strongest significant correlation over jobs."""
    clear = [key for key in keys_of(m, "job") if m.value(f"{key}.reject_clustered", False)]
    return max(clear, key=lambda key: abs(m[f"{key}.estimate"]), default=None)

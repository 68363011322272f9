"""Reader-facing names of models, splits, slices and features."""

from collections.abc import Callable

from ttf.analyses.shared.risk import KINDS
from ttf.engine import words

# The verdict: net saving of acting on the score, if failure can be predicted at all.
STRONG, MODERATE, WEAK, NONE = "strong", "moderate", "weak: not worth acting on", "none"
# Predictable, but the saving is unknown; or the data cannot tell whether failure is predictable.
UNPRICED, CANNOT_SAY = "predicted, savings unknown", "cannot tell"
RANDOM = "random"
ORIGINS = ("temporal_1", "temporal_2", "temporal_3")
MODELS = {"base_rate": "base rate", **KINDS}
SPLITS = {**dict(zip(ORIGINS, ("First origin", "Second origin", "Last origin"), strict=True)), RANDOM: "Random split"}
# Without the one cluster (a user, say) that has more than half of the failures.
WITHOUT_MOST = "without_most"
UNSEEN = {
    "unseen_user": "users never seen",
    "unseen_group": "groups never seen",
    "unseen_gpu_type": "GPU types never seen",
    "beyond_range": "requests beyond those seen",
}


# The verdict in words, on the page and in the terminal.
VERDICT_TEXTS = {
    STRONG: "Failure prediction is strong",
    MODERATE: "Failure prediction is moderate",
    WEAK: "Failure prediction is weak, not worth acting on",
    UNPRICED: "Failure can be predicted",
    NONE: "Failure cannot be predicted",
    CANNOT_SAY: "The data cannot say whether failure can be predicted",
}


def _format_number(value: float) -> str:
    return words.count(value) if value == round(value) else words.number(value)


# Suffix of a job-record column -> (unit, formatter of a value).
_UNITS: dict[str, tuple[str, Callable[[float], str]]] = {
    "_s": ("", words.duration),
    "_milli": ("", lambda value: _format_number(value / 1000)),
    "_mib": ("GiB", lambda value: _format_number(value / 1024)),
}


_ACRONYMS = {"gpu": "GPU", "gpus": "GPUs", "cpu": "CPU", "cpus": "CPUs", "qos": "QOS"}


def feature_name(feature: str) -> str:
    """Return the name of a feature for readers: GPU type for gpu_type."""
    return " ".join(_ACRONYMS.get(word, word) for word in feature.split("_"))


def feature_unit(columns: str) -> str:
    """Return the unit in which a feature is shown; columns: its columns as listed in risk_features."""
    return _unit_by_suffix(columns)[0]


def feature_value(value: str, kind: str, columns: str) -> str:
    """Format a value of risk_dependence: a request in its unit, a history as a share, others unchanged."""
    try:
        number = float(value)
    except ValueError:
        return value
    if kind == "history":
        return words.share(number)
    return _unit_by_suffix(columns)[1](number) if kind == "numeric" else value


def _unit_by_suffix(columns: str) -> tuple[str, Callable[[float], str]]:
    """Return (unit, formatter of a value) of a numeric feature, by the suffix of its columns."""
    return next((unit for suffix, unit in _UNITS.items() if columns.endswith(suffix)), ("", _format_number))

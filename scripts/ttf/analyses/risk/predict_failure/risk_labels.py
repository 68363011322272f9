"""What readers call the models, the splits, the slices and the features of the tables."""

from collections.abc import Callable

from ttf.analyses.shared.risk import KINDS
from ttf.engine import words

# The verdict: by what acting on the score saves against its cost, where failure can be predicted at all.
STRONG, MODERATE, WEAK, NONE = "strong", "moderate", "weak: not worth acting on", "none"
# What acting on it saves cannot be told; whether failure can be predicted cannot be told.
UNPRICED, CANNOT_SAY = "predicted, savings unknown", "cannot tell"
RANDOM = "random"
ORIGINS = ("temporal_1", "temporal_2", "temporal_3")
MODELS = {"base_rate": "base rate", **KINDS, "gradient_boosting": "gradient boosting"}
SPLITS = {**dict(zip(ORIGINS, ("First origin", "Second origin", "Last origin"), strict=True)), RANDOM: "Random split"}
# Without the jobs of the one user, or what else clusters are, of whom more than half of the failures are.
WITHOUT_MOST = "without_most"
UNSEEN = {
    "unseen_user": "users never seen",
    "unseen_group": "groups never seen",
    "unseen_gpu_type": "GPU types never seen",
    "beyond_range": "requests beyond those seen",
}


# The verdict in words, on the page and in the terminal.
SAID = {
    STRONG: "Failure prediction is strong",
    MODERATE: "Failure prediction is moderate",
    WEAK: "Failure prediction is weak, not worth acting on",
    UNPRICED: "Failure can be predicted",
    NONE: "Failure cannot be predicted",
    CANNOT_SAY: "The data cannot say whether failure can be predicted",
}


def _short(value: float) -> str:
    return words.count(value) if value == round(value) else words.number(value)


# How a column of the job record is written, by the end of its name: (unit, words of a value).
_UNITS: dict[str, tuple[str, Callable[[float], str]]] = {
    "_s": ("", words.duration),
    "_milli": ("", lambda value: _short(value / 1000)),
    "_mib": ("GiB", lambda value: _short(value / 1024)),
}


_ACRONYMS = {"gpu": "GPU", "gpus": "GPUs", "cpu": "CPU", "cpus": "CPUs", "qos": "QOS"}


def feature_name(feature: str) -> str:
    """A feature as readers know it: GPU type for gpu_type."""
    return " ".join(_ACRONYMS.get(word, word) for word in feature.split("_"))


def feature_unit(columns: str) -> str:
    """The unit in which values of a feature are shown; columns: those it is made of, as risk_features has them."""
    return _of(columns)[0]


def feature_value(value: str, kind: str, columns: str) -> str:
    """A value of risk_dependence in words: a request in its unit, a history as a share; any other as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    if kind == "history":
        return words.share(number)
    return _of(columns)[1](number) if kind == "numeric" else value


def _of(columns: str) -> tuple[str, Callable[[float], str]]:
    return next((of for end, of in _UNITS.items() if columns.endswith(end)), ("", _short))

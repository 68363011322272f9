"""Texts of charts: features, and labels made of untrusted text."""

import textwrap
import unicodedata
from collections.abc import Iterable

from ttf.engine.words import capitalise

FEATURE_NAMES = {
    "gpu_type": "GPU type",
    "gpu_request": "GPU request",
    "cpu_request": "CPU request",
    "memory_request": "memory request",
    "size": "size",
    "gpu_utilisation": "GPU use",
    "cpu_usage": "CPU use",
    "memory_usage": "memory use",
}
FEATURE_UNITS = {
    "gpu_request": "% of one GPU",
    "cpu_request": "% of one core",
    "memory_request": "GiB",
    "size": "instances",
    "gpu_utilisation": "% of one GPU",
    "cpu_usage": "% of one core",
    "memory_usage": "GiB",
}

HOUR_S, DAY_S = 3_600, 86_400

# Maximum length of a label: long enough for every known GPU type, short enough for an axis.
LABEL_LENGTH = 40


def feature_title(feature: str) -> str:
    """Return a feature as the title of an axis: with its unit, and a capital."""
    name = capitalise(FEATURE_NAMES.get(feature, feature))
    return f"{name} ({FEATURE_UNITS[feature]})" if feature in FEATURE_UNITS else name


def wrap_lines(text: str, width: int) -> list[str]:
    """Split a text into lines of at most `width` characters; a number stays with its unit."""
    glued = f"{text} "
    for unit in ("%", "s", "min", "h", "days", "years", "GPU", "GPUs"):
        for punctuation in (" ", ",", ";", ".", ")", ":"):
            glued = glued.replace(f" {unit}{punctuation}", f"\u00a0{unit}{punctuation}")
    glued = glued.replace(" = ", "\u00a0=\u00a0")
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(glued, width)]


def make_labels(values: Iterable[str]) -> dict[str, str]:
    """Return a short printable label for each text from a trace, different for different texts.

    A trace is untrusted: control and direction characters are removed (an SVG with them is not even well-formed XML),
    white space is folded, long text is shortened, and equal results are numbered.
    """
    unique: dict[str, str] = {}
    all_labels: set[str] = set()
    for value in dict.fromkeys(values):
        base = label = _make_label(value)
        number = 1
        while label in all_labels:
            number += 1
            label = f"{base} ({number})"
        all_labels.add(label)
        unique[value] = label
    return unique


def _make_label(text: str) -> str:
    # Cutting first keeps a text of megabytes cheap; only its beginning can show.
    characters = [" " if c.isspace() else c for c in text[: 10 * LABEL_LENGTH]]
    printable = [c for c in characters if not unicodedata.category(c).startswith("C")]
    folded = " ".join("".join(printable).split()) or "blank"
    return folded if len(folded) <= LABEL_LENGTH else f"{folded[: LABEL_LENGTH - 1]}…"

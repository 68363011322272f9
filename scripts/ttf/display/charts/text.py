"""What charts say of a trace: features, and labels made of untrusted text."""

import textwrap
import unicodedata
from collections.abc import Iterable

from ttf.engine.words import capital

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

# Shortened to this many characters: long enough for every GPU type there is, short enough for an axis.
LABEL_LENGTH = 40


def feature_title(feature: str) -> str:
    """A feature as the title of an axis: with its unit, and a capital."""
    name = capital(FEATURE_NAMES.get(feature, feature))
    return f"{name} ({FEATURE_UNITS[feature]})" if feature in FEATURE_UNITS else name


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` characters; a number stays with its unit."""
    glued = f"{text} "
    for unit in ("%", "s", "min", "h", "days", "years", "GPU", "GPUs"):
        for end in (" ", ",", ";", ".", ")", ":"):
            glued = glued.replace(f" {unit}{end}", f"\u00a0{unit}{end}")
    glued = glued.replace(" = ", "\u00a0=\u00a0")
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(glued, width)]


def labels(values: Iterable[str]) -> dict[str, str]:
    """A short printable label for each of some texts from a trace, different for different texts.

    A trace is untrusted: control and direction characters are taken out (an SVG with them is not even
    well-formed XML), white space is folded, what is long is shortened, what then looks alike is numbered.
    """
    unique: dict[str, str] = {}
    taken: set[str] = set()
    for value in values:
        first = label = _short(value)
        number = 1
        while label in taken and value not in unique:
            number += 1
            label = f"{first} ({number})"
        if value not in unique:
            taken.add(label)
            unique[value] = label
    return unique


def _short(text: str) -> str:
    # Only the beginning can show; cutting first keeps a text of megabytes cheap.
    shown = [" " if c.isspace() else c for c in text[: 10 * LABEL_LENGTH]]
    kept = [c for c in shown if not unicodedata.category(c).startswith("C")]
    folded = " ".join("".join(kept).split()) or "blank"
    return folded if len(folded) <= LABEL_LENGTH else f"{folded[: LABEL_LENGTH - 1]}…"
